/**
 * What the coder of a file does: encode vectors, decode codes, and weigh the bits for a float query.
 * The score of a row with bits b is Σ weight · (2b - 1) + offset, an estimate of the cosine.
 */
import { FormatError } from "./format.js";
import { norm, numbers, packed, signsOfProduct, sumOfRows, times } from "./matrix.js";
import { searchedEncoder, whitened } from "./searched.js";

const SHORT = 1e-12; // squares of shorter vectors may underflow in float32
const TINY = 1e-30; // the norm of a vector of zeros
const BELOW_ZERO = -(2 ** -126);
const { fround } = Math;

/** The coder of an opened file; its arrays are read and checked when they are first used. */
export function coderOf({ method, params, tensors, nBits, dims }) {
  const sizes = { bits: nBits, dims, more: dims + 1 };
  const read = new Map();
  const array = (name, shape) => {
    if (!read.has(name)) read.set(name, checked(tensors.get(`coder.${name}`), name, shape, sizes));
    return read.get(name);
  };
  const has = (name) => tensors.has(`coder.${name}`);
  const Coder = Object.hasOwn(METHODS, method) ? METHODS[method] : null;
  if (![...tensors.keys()].some((name) => name.startsWith("coder."))) {
    throw new Error("the file was written without its coder: it can be searched by codes only");
  }
  if (!Coder) throw new Error(`JavaScript has no coder '${method}': the file can be searched by codes only`);
  return new Coder(array, has, params, nBits);
}

function checked(tensor, name, shape, sizes) {
  const wanted = shape.map((size) => sizes[size] ?? size);
  if (!tensor) throw new FormatError(`the file has no array '${name}' of its coder`);
  const fits = tensor.shape.length === wanted.length && wanted.every((size, i) => size === tensor.shape[i]);
  const data = numbers(tensor);
  if (!fits || !tensor.dtype.startsWith("F") || !data.every(Number.isFinite)) {
    throw new FormatError(`damaged: the coder's ${name} is not finite floats of shape [${wanted}]`);
  }
  return data;
}

/** A coder whose bits are the signs of one matrix product, and whose decoder is linear. */
class Linear {
  constructor(array, has, params, nBits) {
    Object.assign(this, { array, has, params, nBits });
  }

  /** Whether a code is the signs of `project`: bits are not searched. */
  get isThreshold() {
    return true;
  }

  get matrix() {
    return this.array("W", ["bits", "dims"]);
  }

  /** The vector that the matrix is multiplied by, in float32. */
  input(vector) {
    return vector;
  }

  encode(vector) {
    return packed(signsOfProduct(this.matrix, this.input(vector)));
  }

  project(vector) {
    return times(this.matrix, this.input(vector));
  }

  decode(code) {
    const offset = this.array("offset", ["dims"]);
    return Float32Array.from(sumOfRows(this.array("decoder", ["bits", "dims"]), code, offset));
  }

  /** The cosine of the query's scores and the row's bits. */
  weigh(vector, rebuilt) {
    const scores = this.project(vector, rebuilt);
    const length = norm(scores) * Math.sqrt(this.nBits) || 1;
    return { weights: Float32Array.from(scores, (score) => score / length), offset: 0 };
  }
}

class RandomHyperplanes extends Linear {
  get matrix() {
    return this.array("planes", ["bits", "dims"]);
  }
}

class ITQ extends Linear {
  input(vector) {
    const mean = this.array("mean", ["dims"]);
    return vector.map((x, i) => fround(x - mean[i]));
  }
}

class SignBits extends Linear {
  project(vector) {
    return this.params.strict ? vector.map((x) => (x === 0 ? BELOW_ZERO : x)) : vector;
  }

  encode(vector) {
    return packed(Array.from(this.project(vector), (x) => x >= 0));
  }
}

class Paper extends Linear {
  get scale() {
    return this.has("scale") ? this.array("scale", [1])[0] : 1;
  }

  mean(i) {
    return this.has("mean") ? this.array("mean", ["dims"])[i] : 0;
  }

  input(vector) {
    const scaled = this.scale === 1 ? vector : vector.map((x, i) => fround(x - this.mean(i)) * this.scale);
    return this.params.clip ? scaled.map((x) => Math.max(-1, Math.min(1, x))) : scaled;
  }

  decode(code) {
    const sums = sumOfRows(this.matrix, code, this.array("c", ["dims"]));
    return Float32Array.from(sums, (sum, i) => Math.tanh(sum) / this.scale + this.mean(i));
  }
}

/**
 * Thresholds W x - t ‖x‖; with the array `search`, bits are then searched. With the array
 * `whitening`, x is the whitened vector; rebuilt vectors stay whitened.
 */
class NearLossless extends Linear {
  #encode = null;

  get isThreshold() {
    return !this.has("search") && !this.has("whitening");
  }

  /** The vector that is coded, and its norm. */
  #scaled(vector) {
    if (!this.has("whitening")) return scaled(vector);
    return scaled(whitened(vector, this.array("whitening", ["more", "dims"])));
  }

  get t() {
    return this.array("t", ["bits"]);
  }

  get search() {
    const search = this.array("search", [6]);
    if (!(search[0] > 0 && search[0] < 1e6 && search[1] >= 0 && search[1] < 1e6)) {
      throw new FormatError("damaged: the coder's search holds numbers that no fit gives");
    }
    return search;
  }

  get decoder() {
    return this.array("decoder", ["bits", "more"]);
  }

  get offset() {
    return this.array("offset", ["more"]);
  }

  project(vector, rebuilt) {
    const [x, length] = rebuilt ? scaled(vector) : this.#scaled(vector);
    return times(this.matrix, x).map((score, i) => score - this.t[i] * length);
  }

  encode(vector) {
    const [x, length] = this.#scaled(vector);
    if (this.has("search")) return (this.#encode ??= this.#searched())(x);
    const withNorm = Float64Array.of(...x, length);
    const dims = x.length;
    const rows = new Float64Array(this.nBits * (dims + 1));
    for (let bit = 0; bit < this.nBits; bit++) {
      rows.set(this.matrix.subarray(bit * dims, (bit + 1) * dims), bit * (dims + 1));
      rows[bit * (dims + 1) + dims] = -this.t[bit];
    }
    return packed(signsOfProduct(rows, withNorm));
  }

  #searched() {
    const dims = this.offset.length - 1;
    const decoder = this.decoder.filter((_, at) => at % (dims + 1) < dims);
    const [length, pull] = this.search;
    const { matrix: W, t, offset } = this;
    return searchedEncoder({ W, t, decoder, offset: offset.subarray(0, dims), length, pull });
  }

  decode(code) {
    const sums = sumOfRows(this.decoder, code, this.offset);
    const direction = sums.subarray(0, -1);
    const length = Math.max(sums.at(-1), 0) / Math.max(norm(direction), TINY);
    return Float32Array.from(direction, (x) => x * length);
  }

  /** x · (D b + o), with a share of W x · b; rebuilt vectors have a share of their own. */
  weigh(vector, rebuilt) {
    if (!this.has("search")) return super.weigh(vector, rebuilt);
    const [ofDecoder, ofScores] = this.search.subarray(rebuilt ? 4 : 2);
    const [x, length] = rebuilt ? scaled(vector) : this.#scaled(vector);
    const unit = x.map((value) => value / length);
    const along = times(this.decoder, unit, unit.length + 1).map((sum) => sum / 2);
    const scores = times(this.matrix, unit);
    let offset = 0;
    for (let i = 0; i < unit.length; i++) offset += unit[i] * this.offset[i];
    for (const sum of along) offset += sum;
    return {
      weights: Float32Array.from(along, (sum, i) => ofDecoder * sum + ofScores * scores[i]),
      offset: fround(ofDecoder * offset),
    };
  }
}

const METHODS = {
  "near-lossless": NearLossless,
  paper: Paper,
  lsh: RandomHyperplanes,
  itq: ITQ,
  sign: SignBits,
};

/** A vector whose squares do not underflow in float32, and its norm in float32. */
function scaled(vector) {
  let x = Float64Array.from(vector);
  if (norm(x) < SHORT) x = x.map((value) => value * 2 ** 100);
  return [x, fround(norm(x)) || TINY];
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

/** The cosine of two vectors; 0 for a vector of zeros. */
export function cosine(a, b) {
  return a.reduce((sum, x, i) => sum + x * b[i], 0) / (norm(a) * norm(b) || 1);
}
