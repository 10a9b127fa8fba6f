/**
 * What the coder of each method does: encode vectors, decode codes, and weigh the bits for a float query.
 * `array` reads and checks an array of the file, and `has` says whether it is there.
 */
import { checkLook, checkScale, checkSearch } from "./coder_rules.js";
import { LARGEST } from "./constants.js";
import { FormatError } from "./format.js";
import { norm, packed, signsOfProduct, sumOfRows, times } from "./matrix.js";
import { Net } from "./net.js";
import { netSearch, unitVector } from "./net_search.js";
import { searchedEncoder, whitened } from "./searched.js";

const SHORT = 1e-12; // squares of shorter vectors may underflow in float32
const TINY = 1e-30; // the norm of a vector of zeros
const BELOW_ZERO = -(2 ** -126);
const { fround } = Math;

/** A coder whose bits are the signs of one matrix product, and whose decoder is linear. */
class Linear {
  constructor(array, has, params, nBits) {
    Object.assign(this, { array, has, params, nBits });
  }

  /** Whether a code is the signs of `project`: bits are not searched. */
  get isThreshold() {
    return true;
  }

  /** Rows that a search looks at a second time, by the cosine of `direction` and `rebuilt`. */
  get secondLook() {
    return 0;
  }

  direction(vector) {
    return vector;
  }

  rebuilt(code) {
    return this.decode(code);
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
    return this.has("scale") ? checkScale(this.array("scale", [1])) : 1;
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

  /** The vector that is coded: itself, or whitened. */
  coded(vector) {
    return this.has("whitening") ? whitened(vector, this.array("whitening", ["more", "dims"])) : vector;
  }

  direction(vector) {
    return this.coded(vector);
  }

  get t() {
    return this.array("t", ["bits"]);
  }

  get search() {
    return checkSearch(this.array("search", [6]));
  }

  get decoder() {
    return this.array("decoder", ["bits", "more"]);
  }

  get offset() {
    return this.array("offset", ["more"]);
  }

  project(vector, rebuilt) {
    const [x, length] = scaled(rebuilt ? vector : this.coded(vector));
    return times(this.matrix, x).map((score, i) => score - this.t[i] * length);
  }

  encode(vector) {
    const [x, length] = scaled(this.coded(vector));
    if (this.has("search")) return (this.#encode ??= searchedEncoder(this.searched))(x);
    const withNorm = Float64Array.of(...x, length);
    const dims = x.length;
    const rows = new Float64Array(this.nBits * (dims + 1));
    for (let bit = 0; bit < this.nBits; bit++) {
      rows.set(this.matrix.subarray(bit * dims, (bit + 1) * dims), bit * (dims + 1));
      rows[bit * (dims + 1) + dims] = -this.t[bit];
    }
    return packed(signsOfProduct(rows, withNorm));
  }

  /** What bits are searched by: thresholds, the decoder of directions, and how their length is drawn. */
  get searched() {
    const dims = this.offset.length - 1;
    const decoder = this.decoder.filter((_, at) => at % (dims + 1) < dims);
    const [length, pull] = this.search;
    const { matrix: W, t, offset } = this;
    return { W, t, decoder, offset: offset.subarray(0, dims), length, pull };
  }

  rebuilt(code) {
    return sumOfRows(this.decoder, code, this.offset).subarray(0, -1);
  }

  decode(code) {
    const direction = this.rebuilt(code);
    const length = this.#length(code) / Math.max(norm(direction), TINY);
    return Float32Array.from(direction, (x) => x * length);
  }

  /** The length that a code is decoded to: the last number of each row of the decoder is the bit's part. */
  #length(code) {
    const { decoder, offset } = this;
    let [length, most] = [offset.at(-1), 0];
    for (let bit = 0, at = offset.length - 1; bit < this.nBits; bit++, at += offset.length) {
      if (code[bit >> 3] & (128 >> (bit & 7))) length += decoder[at];
      most = Math.max(most, Math.abs(decoder[at]));
    }
    return Math.max(length, most / 1024); // above 0, so that the vector keeps its direction
  }

  /** x · (D b + o), with a share of W x · b; rebuilt vectors have a share of their own. */
  weigh(vector, rebuilt) {
    if (!this.has("search")) return super.weigh(vector, rebuilt);
    const [ofDecoder, ofScores] = this.search.subarray(rebuilt ? 4 : 2);
    const [x, length] = scaled(rebuilt ? vector : this.coded(vector));
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

const NET = {
  A: ["hidden", "bits"],
  G: ["hidden", "hidden"],
  M: ["dims", "inputs"],
  alpha: ["hidden"],
  a: ["hidden"],
  beta: ["hidden"],
  g: ["hidden"],
  c: ["dims"],
  o: ["dims"],
};
const LAYER = { S: ["units", "dims"], U: ["bits", "units"], sigma: ["units"], u: ["units"], upsilon: ["bits"] };

/** Codes of NearLossless, or of a hidden layer, searched further under a net that decodes them (net.js). */
class Neural extends NearLossless {
  #lazyNet = null;
  #flip = null;

  get #net() {
    if (this.#lazyNet) return this.#lazyNet;
    return (this.#lazyNet = new Net(this.#arrays("net", NET)));
  }

  #arrays(part, shapes) {
    const arrays = Object.entries(shapes).map(([name, shape]) => {
      const kind = shape.length === 2 ? "int8" : "floats";
      if (name === "upsilon" && !this.has("layer_upsilon")) return [name, new Float32Array(this.nBits)];
      return [name, this.array(`${part}_${name}`, shape, kind)];
    });
    return Object.fromEntries(arrays);
  }

  /** The hidden layer of the encoder, if it has one. */
  get #layer() {
    if (!this.has("layer_S")) return undefined;
    const layer = this.#arrays("layer", LAYER);
    const floats = [layer.sigma, layer.u, layer.upsilon];
    if (floats.every((array) => array.every((x) => Math.abs(x) <= LARGEST))) return layer;
    throw new FormatError("damaged: the coder's hidden layer holds numbers that no fit gives");
  }

  /** Rows of the second look, the most flips of a code, and the flips that are tried for each. */
  get look() {
    return checkLook(this.array("look", [3]));
  }

  get secondLook() {
    return this.look[0];
  }

  direction(vector) {
    return this.has("whitening") ? this.coded(vector) : unitVector(vector);
  }

  rebuilt(code) {
    return this.#net.decode(code);
  }

  encode(vector) {
    const code = this.has("search") && this.has("layer_S") ? null : super.encode(vector);
    return this.has("search") ? (this.#flip ??= this.#netSearch())(this.direction(vector), code) : code;
  }

  #netSearch() {
    const [, rounds, tries] = this.look;
    return netSearch({ net: this.#net, ...this.searched, layer: this.#layer, rounds, tries });
  }
}

export const METHODS = {
  "near-lossless": NearLossless,
  neural: Neural,
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
