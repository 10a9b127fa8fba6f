/**
 * Reads and checks the layout of an embits file (docs/file-format.md). This reader was written from
 * the specification, independently of the Python one. Nothing is copied: every tensor is a view of
 * the given bytes.
 */

/** The file is damaged, or is not one that embits wrote. */
export class FormatError extends Error {
  name = "FormatError";
}

const MAX_HEADER = 65_536;
const ALIGNMENT = 64;
const DTYPES = {
  I8: Int8Array,
  U8: Uint8Array,
  F16: Uint16Array,
  U32: Uint32Array,
  F32: Float32Array,
  U64: BigUint64Array,
  F64: Float64Array,
};

const fail = (problem) => {
  throw new FormatError(problem);
};

export const isBytes = (value) => value instanceof ArrayBuffer || value instanceof Uint8Array;

/** Bytes as a plain, aligned array; copied only if they are not aligned. */
export function plainBytes(bytes) {
  // `slice` of Node's Buffer does not copy, unlike that of other arrays: take a plain view.
  const plain =
    bytes instanceof ArrayBuffer
      ? new Uint8Array(bytes)
      : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
  // Views of numbers need aligned bytes; a part of another buffer may not be aligned.
  return plain.byteOffset % 8 ? plain.slice() : plain;
}

/** Check the header of a file's bytes; return its metadata, its tensors by name, and its header. */
export function readLayout(bytes) {
  const { metadata, places, header } = readPlaces(bytes, bytes.length);
  const tensors = new Map();
  for (const [name, { start, stop, ...place }] of places) {
    tensors.set(name, tensorOf({ name, ...place }, bytes.subarray(start, stop)));
  }
  return { metadata, tensors, header };
}

/** How long the header of a file is, from its first 8 bytes. */
export function headerLength(bytes, size) {
  if (size < 8) fail(`not a safetensors file: it has ${size} bytes`);
  const length = Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigUint64(0, true));
  if (length > MAX_HEADER) fail("not an embits file, or damaged");
  if (length > size - 8) fail(`cut short: ${size} bytes, and its header alone has ${length}`);
  return length;
}

/** The same of the first bytes of a file of a size: its metadata, and the types, shapes and places of its tensors. */
export function readPlaces(bytes, size) {
  const length = headerLength(bytes, size);
  const header = bytes.subarray(8, 8 + length);
  const { entries, metadata } = parseHeader(header);
  if ((8 + length) % ALIGNMENT) fail(`damaged: a header of ${length} bytes is not aligned`);
  return { metadata, places: placesOf(entries, size, 8 + length), header };
}

/** A tensor of its bytes, as a view of them. */
export function tensorOf({ name, dtype, shape }, bytes) {
  const View = DTYPES[dtype];
  const aligned = bytes.byteOffset % View.BYTES_PER_ELEMENT ? bytes.slice() : bytes;
  const data = new View(aligned.buffer, aligned.byteOffset, bytes.length / View.BYTES_PER_ELEMENT);
  return { name, dtype, shape, data, bytes };
}

function parseHeader(header) {
  let entries, metadata;
  try {
    const text = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(header);
    entries = parseJSON(text, (literal) => (/^-?\d+$/.test(literal) ? Number(literal) : NaN));
    metadata = Object.fromEntries(entries.get("__metadata__"));
    entries.delete("__metadata__");
  } catch {
    fail("not an embits file: its header is not valid JSON");
  }
  const strings = Object.values(metadata).every((value) => typeof value === "string");
  if (!strings || metadata.format !== "embits") {
    fail("a safetensors file that embits did not write (its format is not 'embits')");
  }
  const version = (metadata.format_version ?? "").slice(0, 20);
  if (!version) fail("damaged: the header has no format version");
  if (!["1", "2", "3", "4"].includes(version)) {
    fail(`written in format version ${version}; this reader knows versions 1 to 4: use a newer embits`);
  }
  checkHeaderSum(header, metadata.header_sha256 ?? "");
  return { entries, metadata };
}

function checkHeaderSum(header, checksum) {
  const zeroed = header.slice();
  // windows-1252 maps each byte to one character: positions in the text are positions in the bytes
  const at = new TextDecoder("windows-1252").decode(header).indexOf(checksum);
  if (/^[0-9a-f]{64}$/.test(checksum) && at >= 0) zeroed.fill(48, at, at + 64);
  if (hex(sha256(zeroed)) !== checksum) fail("damaged: the header does not match its checksum");
}

/** Tensors must fill the data exactly and in order, each with the length of its shape. */
function placesOf(entries, fileSize, dataStart) {
  const places = new Map();
  let end = 0;
  for (const [name, entry] of entries) {
    const [dtype, shape, offsets] = ["dtype", "shape", "data_offsets"].map((key) =>
      entry instanceof Map ? entry.get(key) : undefined,
    );
    if (typeof dtype !== "string" || !Array.isArray(shape) || offsets?.length !== 2) {
      fail(`damaged: no dtype, shape and offsets for tensor '${name}'`);
    }
    const View = Object.hasOwn(DTYPES, dtype) ? DTYPES[dtype] : null;
    if (!View) fail(`damaged: tensor '${name}' has dtype '${dtype}'`);
    const [start, stop] = offsets;
    const whole = [start, stop, ...shape].every((x) => Number.isSafeInteger(x) && x >= 0);
    // Doubles are exact up to 2^53, and a product beyond it cannot equal an extent below it.
    const size = whole ? shape.reduce((a, b) => a * b, View.BYTES_PER_ELEMENT) : NaN;
    if (shape.length > 2 || start !== end || stop - start !== size) {
      fail(`damaged: tensor '${name}' of shape [${shape}] lies at bytes ${start} to ${stop}`);
    }
    end = stop;
    const place = { dtype, shape, start: dataStart + start, stop: dataStart + stop };
    if (place.stop > fileSize) fail("damaged or cut short: the file ends before its tensors do");
    places.set(name, place);
  }
  const found = fileSize - dataStart;
  if (end !== found) fail(`damaged or cut short: ${found} bytes of tensors, expected ${end}`);
  return places;
}

const MAX_DEPTH = 64; // of lists and objects in each other
const MAX_VALUES = 1_000_000;
const MAX_OBJECTS = 100_000;

/** Refuse JSON of too many values, or too deep, before it is parsed: parsed, a byte may take fifty. */
export function checkJSON(text, maxValues = MAX_VALUES, maxObjects = MAX_OBJECTS) {
  let [values, objects, depth, deepest, quoted] = [0, 0, 0, 0, false];
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit === 34) quoted = !quoted;
    else if (quoted) at += unit === 92 ? 1 : 0; // what follows a backslash
    else if (unit === 91 || unit === 123) {
      values++;
      objects += unit === 123 ? 1 : 0;
      deepest = Math.max(deepest, ++depth);
    } else if (unit === 44) values++;
    else if (unit === 93 || unit === 125) depth--;
  }
  if (deepest > MAX_DEPTH || values > maxValues || objects > maxObjects) fail("JSON of too many values, or too deep");
  return text;
}

/**
 * Parse JSON as the format requires: objects become Maps in the order of the text, and a repeated
 * name is an error (`JSON.parse` keeps the last one, and moves names like "1" to the front).
 */
export function parseJSON(text, number = Number) {
  checkJSON(text);
  const token =
    /[ \t\n\r]*(?:([{}[\]:,])|("(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*")|(-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?)|(true|false|null)|$)/y;
  const next = () => token.exec(text) ?? fail("not JSON");
  const value = ([, sign, string, literal, name], depth) => {
    if (string) return JSON.parse(string);
    if (literal) return number(literal);
    if (name) return JSON.parse(name);
    if (depth > MAX_DEPTH || (sign !== "{" && sign !== "[")) fail("not JSON");
    const named = sign === "{";
    const close = named ? "}" : "]";
    const items = named ? new Map() : [];
    for (let found = next(); found[1] !== close || (named ? items.size : items.length); found = next()) {
      if (named) {
        if (!found[2] || next()[1] !== ":") fail("not JSON");
        const key = JSON.parse(found[2]);
        if (items.has(key)) fail("a name is repeated");
        items.set(key, value(next(), depth + 1));
      } else {
        items.push(value(found, depth + 1));
      }
      const sign = next()[1];
      if (sign === close) break;
      if (sign !== ",") fail("not JSON");
    }
    return items;
  };
  const result = value(next(), 0);
  if (next()[0].trim() !== "" || token.lastIndex !== text.length) fail("not JSON");
  return result;
}

/** Bytes in hexadecimal. */
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/**
 * SHA-256 in plain JavaScript. `crypto.subtle` is asynchronous, and not available on pages over
 * plain http from another machine, so the header is always checked with this function.
 */
export function sha256(bytes) {
  const padded = new Uint8Array(Math.ceil((bytes.length + 9) / 64) * 64);
  padded.set(bytes);
  padded[bytes.length] = 0x80;
  const view = new DataView(padded.buffer);
  view.setBigUint64(padded.length - 8, BigInt(bytes.length) * 8n);
  const state = ROOTS.slice(0, 8);
  const w = new Int32Array(64);
  const turn = (x, by) => (x >>> by) | (x << (32 - by));
  for (let block = 0; block < padded.length; block += 64) {
    for (let t = 0; t < 16; t++) w[t] = view.getInt32(block + 4 * t);
    for (let t = 16; t < 64; t++) {
      const x = w[t - 15],
        y = w[t - 2];
      const s0 = turn(x, 7) ^ turn(x, 18) ^ (x >>> 3);
      const s1 = turn(y, 17) ^ turn(y, 19) ^ (y >>> 10);
      w[t] = (w[t - 16] + s0 + w[t - 7] + s1) | 0;
    }
    let [a, b, c, d, e, f, g, h] = state;
    for (let t = 0; t < 64; t++) {
      const t1 = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + CUBES[t] + w[t]) | 0;
      const t2 = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + t1) | 0, c, b, a, (t1 + t2) | 0];
    }
    [a, b, c, d, e, f, g, h].forEach((x, i) => (state[i] += x));
  }
  const digest = new DataView(new ArrayBuffer(32));
  state.forEach((x, i) => digest.setInt32(4 * i, x));
  return new Uint8Array(digest.buffer);
}

/** The SHA-256 of bytes in hexadecimal. */
export async function digest(bytes) {
  const subtle = globalThis.crypto?.subtle;
  return hex(subtle ? new Uint8Array(await subtle.digest("SHA-256", bytes)) : sha256(bytes));
}

// The constants of FIPS 180-4: fractional parts of the roots of the first 64 primes.
const PRIMES = Array.from({ length: 312 }, (_, n) => n).filter(
  (n) =>
    n > 1 && !Array.from({ length: Math.floor(Math.sqrt(n)) - 1 }, (_, d) => d + 2).some((d) => n % d === 0),
);
const fractions = (root) => Int32Array.from(PRIMES, (p) => (root(p) % 1) * 2 ** 32);
const ROOTS = fractions(Math.sqrt);
const CUBES = fractions(Math.cbrt);
