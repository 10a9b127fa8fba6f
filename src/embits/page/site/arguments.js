/** Argument checks of the reader: wrong types throw TypeError, wrong values RangeError. */
import { METRICS } from "./constants.js";

/** A whole number of 0 or more, such as k. */
export function checkCount(value, name) {
  if (!Number.isSafeInteger(value) || value < 0) {
    throw new RangeError(`${name} is ${shown(value)}, expected a whole number of 0 or more`);
  }
  return value;
}

/** A row number. */
export function checkRow(row, length) {
  if (typeof row !== "number") throw new TypeError(`the row is ${shown(row)}, expected a number`);
  if (!Number.isInteger(row) || row < 0 || row >= length) {
    throw new RangeError(`row ${row} of ${length} rows, expected a whole number from 0 to ${length - 1}`);
  }
  return row;
}

/** A string, such as a word. */
export function checkString(value, name) {
  if (typeof value !== "string") throw new TypeError(`${name} is ${shown(value)}, expected a string`);
  return value;
}

/** Options of a function: an object with known names only. */
export function checkOptions(options, known, name) {
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw new TypeError(`the options of ${name} are ${shown(options)}, expected an object`);
  }
  const unknown = Object.keys(options).find((option) => !known.includes(option));
  if (unknown !== undefined) {
    throw new TypeError(`${name} has no option '${unknown}'; its options are ${known.join(", ")}`);
  }
  for (const name of ["furthest", "verify"]) {
    if (["boolean", "undefined"].includes(typeof options[name])) continue;
    throw new TypeError(`${name} is ${shown(options[name])}, expected true or false`);
  }
  if (!["function", "undefined"].includes(typeof options.room)) {
    throw new TypeError(`room is ${shown(options.room)}, expected a function of a size`);
  }
}

/** A packed code of `nBits` bits. */
export function checkCode(code, nBits) {
  const width = Math.ceil(nBits / 8);
  if (!(code instanceof Uint8Array)) {
    throw new TypeError(`the code is ${shown(code)}, expected a Uint8Array`);
  }
  if (code.length !== width) throw new RangeError(`a code of ${code.length} bytes, expected ${width}`);
  if (code[width - 1] & ((1 << (8 * width - nBits)) - 1)) {
    throw new RangeError(`a code with bits set after its ${nBits} bits`);
  }
  return code;
}

/** A float vector of `dims` numbers. */
export function checkVector(vector, dims) {
  if (!(vector instanceof Float32Array)) {
    throw new TypeError(`the vector is ${shown(vector)}, expected a Float32Array`);
  }
  if (vector.length !== dims) throw new RangeError(`a vector of ${vector.length} dimensions, expected ${dims}`);
  if (!vector.every(Number.isFinite)) throw new RangeError("the vector has NaN or infinity");
  return vector;
}

/** The query of a search; an array of numbers is a float vector. */
export function checkQuery(query) {
  if (Array.isArray(query) && query.every((x) => typeof x === "number")) return Float32Array.from(query);
  if (ArrayBuffer.isView(query) || typeof query === "string" || typeof query === "number") return query;
  throw new TypeError(
    `the query is ${shown(query)}, expected a vector (Float32Array), a code (Uint8Array), a word (string) or a row (number)`,
  );
}

/** The metric of a search: by default, vectors are compared as vectors, and codes and ids by Hamming distance. */
export function metricFor(metric, query, known = METRICS) {
  if (metric !== undefined && metric !== null) return checkChoice(metric, known, "metric");
  return ArrayBuffer.isView(query) && !(query instanceof Uint8Array) ? "asymmetric" : "hamming";
}

/** One of the known values, such as a metric. */
export function checkChoice(value, known, name) {
  if (known.includes(value)) return value;
  throw new RangeError(`${name} is ${shown(value)}, expected ${known.map(shown).join(" or ")}`);
}

/** A number from `lowest` to `highest`, such as a similarity. */
function checkNumber(value, name, lowest, highest) {
  if (typeof value !== "number") throw new TypeError(`${name} is ${shown(value)}, expected a number`);
  if (value >= lowest && value <= highest) return value;
  throw new RangeError(`${name} is ${value}, expected ${lowest} to ${highest}`);
}

/** What a search reads of a file with cells: a share of the neighbors, or a number of cells. */
export function checkReading({ recall, probes }) {
  if (recall !== undefined && probes !== undefined) throw new TypeError("recall and probes are given, expected one");
  if (probes !== undefined && checkCount(probes, "probes") < 1) throw new RangeError("probes is 0, expected 1 or more");
  if (recall !== undefined) checkNumber(recall, "recall", 0, 1);
}

/** What `within` searches up to: the largest distance, or with other metrics the lowest score. */
export function parseBound({ distance, similarity }, metric, nBits) {
  if ((distance === undefined) === (similarity === undefined)) {
    throw new TypeError("within needs a distance or a similarity, one of them");
  }
  if (metric === "hamming" && similarity !== undefined) {
    return distanceOf(checkNumber(similarity, "similarity", 0, 1), nBits);
  }
  if (metric === "hamming") return checkCount(checkNumber(distance, "distance", 0, nBits), "distance");
  if (similarity === undefined)
    throw new TypeError(`the metric '${metric}' has no distance: give similarity`);
  const most = metric === "dot" ? Infinity : 1;
  return checkNumber(similarity, "similarity", -most, most);
}

/** The largest distance whose similarity, 1 - distance / nBits, is at least `similarity`. */
function distanceOf(similarity, nBits) {
  let distance = Math.min(Math.round((1 - similarity) * nBits) + 1, nBits);
  while (1 - distance / nBits < similarity) distance--;
  return distance;
}

/** One key or several: always an array of words, rows and codes. */
export function keyList(keys, name) {
  const list = Array.isArray(keys) ? keys : [keys];
  for (const key of list) {
    if (typeof key === "string" || typeof key === "number" || key instanceof Uint8Array) continue;
    throw new TypeError(
      `${name} has ${shown(key)}, expected a word (string), a row (number) or a code (Uint8Array)`,
    );
  }
  return list;
}

/** A value as an error shows it. */
export function shown(value) {
  if (typeof value === "string") return `'${value}'`;
  if (typeof value === "function") return "a function";
  if (typeof value !== "object" || value === null) return String(value);
  return Array.isArray(value) ? "an array" : `a ${value.constructor?.name ?? "object"}`;
}
