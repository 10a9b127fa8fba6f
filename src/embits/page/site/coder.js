/**
 * The coder of a file, and how it prepares the query of a search. By float queries, the score of a row with
 * bits b is Σ weight · (2b - 1) + offset, an estimate of the cosine.
 */
import { checkCount, checkVector } from "./arguments.js";
import { MAX_WEIGHT } from "./coder_rules.js";
import { COSINES, FITTED_K } from "./constants.js";
import { FormatError } from "./format.js";
import { norm, numbers } from "./matrix.js";
import { METHODS } from "./methods.js";

const WIDE = ["search", "look"]; // arrays that are used in float64
const { fround } = Math;

/** The coder of an opened file; its arrays are read and checked when they are first used. */
export function coderOf({ method, params, tensors, nBits, dims }) {
  const hidden = tensors.get("coder.net_A")?.shape[0] ?? 0; // units of a layer of a net
  const units = tensors.get("coder.layer_S")?.shape[0] ?? 0; // of the hidden layer of an encoder
  const sizes = { bits: nBits, dims, more: dims + 1, hidden, inputs: nBits + 2 * hidden, units };
  const read = new Map();
  const array = (name, shape, kind = "floats") => {
    if (!read.has(name)) read.set(name, checked(tensors.get(`coder.${name}`), name, shape, sizes, kind));
    return read.get(name);
  };
  // Arrays without rows stand for none. Those of a remote file are known by their places.
  const has = (name) => (tensors.place?.(`coder.${name}`) ?? tensors.get(`coder.${name}`))?.shape[0] > 0;
  const Coder = Object.hasOwn(METHODS, method) ? METHODS[method] : null;
  if (![...tensors.keys()].some((name) => name.startsWith("coder."))) {
    throw new Error("the file was written without its coder: it can be searched by codes only");
  }
  if (!Coder) throw new Error(`JavaScript has no coder '${method}': the file can be searched by codes only`);
  return new Coder(array, has, params, nBits);
}

function checked(tensor, name, shape, sizes, kind) {
  const wanted = shape.map((size) => sizes[size] ?? size);
  if (!tensor) throw new FormatError(`the file has no array '${name}' of its coder`);
  const fits = tensor.shape.length === wanted.length && wanted.every((size, i) => size === tensor.shape[i]);
  const data = numbers(tensor);
  const isUsual =
    kind === "int8"
      ? tensor.dtype === "I8"
      : tensor.dtype.startsWith("F") && data.every((x) => Math.abs(x) <= MAX_WEIGHT);
  if (!fits || !isUsual) {
    throw new FormatError(`damaged: the coder's ${name} is not ${kind} of shape [${wanted}] up to 1e18`);
  }
  const isWide = tensor.dtype === "F64" && !WIDE.includes(name);
  return isWide ? Float32Array.from(data) : data;
}

/**
 * A query as a search needs it: { code }, or { weights, offset, vector }, where `vector()` is what decoded
 * rows are compared with. `codeOf` gives the code of a key, and `coder` the coder.
 */
export function prepareQuery(query, metric, { dims, codeOf, coder }) {
  const isFloats = ArrayBuffer.isView(query) && !(query instanceof Uint8Array);
  if (metric === "asymmetric" || (isFloats && metric === "decoded" && query.every((x) => x === 0))) {
    const vector = checkVector(query, dims);
    return { ...floatQuery(coder(), vector), vector: () => coder().direction(vector) };
  }
  const code = isFloats ? coder().encode(checkVector(query, dims)) : codeOf(query);
  return metric === "hamming" ? { code } : { ...decodedQuery(coder(), code), vector: () => coder().rebuilt(code) };
}

/** How many of the best rows are scored again, by their decoded vectors: by default as the coder was fitted. */
export function secondLookSize(size, metric, k, coder) {
  const isCosine = COSINES.includes(metric);
  if (size === undefined) return isCosine ? Math.ceil((coder().secondLook * Math.max(k, FITTED_K)) / FITTED_K) : 0;
  if (!checkCount(size, "secondLook") || isCosine) return size;
  throw new TypeError(`secondLook needs the metric 'asymmetric' or 'decoded', found '${metric}'`);
}

/** A row as a search returns it; by Hamming distance its score is the share of equal bits, in float32. */
export function neighbor(word, { row, distance, score }, nBits) {
  return distance === undefined ? { word, row, score } : { word, row, distance, score: fround(1 - distance / nBits) };
}

/** Weights and offset of a float query; a vector of zeros scores 0 with every row. */
export function floatQuery(coder, vector, rebuilt = false) {
  if (vector.some((x) => x !== 0)) return coder.weigh(vector, rebuilt);
  return { weights: new Float32Array(coder.nBits), offset: 0 };
}

/** Weights and offset of the vector that a code decodes to; a searched code scores 1 with itself. */
export function decodedQuery(coder, code) {
  const { weights, offset } = floatQuery(coder, coder.decode(code), true);
  if (coder.isThreshold) return { weights, offset };
  const signed = weights.map((weight, i) => (code[i >> 3] & (128 >> (i & 7)) ? weight : -weight));
  const own = fround(signed.reduce((sum, x) => sum + x, 0) + offset);
  if (!(own > 0)) return { weights, offset };
  return { weights: weights.map((weight) => weight / own), offset: fround(offset / own) };
}

/** Weights and offset of a sum of rebuilt directions, less others. */
export function combinedQuery(coder, positive, negative) {
  const sum = new Float32Array(positive[0].length);
  for (const [sign, vectors] of [
    [1, positive],
    [-1, negative],
  ]) {
    for (const vector of vectors) {
      const length = norm(vector) || 1;
      vector.forEach((x, i) => (sum[i] += (sign * x) / length));
    }
  }
  return floatQuery(coder, sum, true);
}
