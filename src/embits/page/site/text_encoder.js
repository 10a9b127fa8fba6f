/**
 * Text encoders: vectors of texts from a table of token codes of about a megabyte (docs/text.md). The vectors are
 * those of Python's TextEncoder, up to the last digits of float32.
 *
 *     const textEncoder = await openTextEncoder(await (await fetch("encoder.safetensors")).arrayBuffer());
 *     const vector = textEncoder.encode("how do I reset my password");   // a Float32Array
 *     bits.search(vector);
 */
import { checkString, shown } from "./arguments.js";
import { coderOf } from "./coder.js";
import { ARRAYS, checkArrays, checkLearned, checkParameters, MAX_WEIGHT, PARAMETERS } from "./coder_rules.js";
import { LARGEST, MAX_SIZE } from "./constants.js";
import { readContents, verifyContents } from "./contents.js";
import { FormatError, isBytes, plainBytes } from "./format.js";
import { lengthScale } from "./lengths.js";
import { norm, numbers } from "./matrix.js";
import { tokensOf } from "./text_tokens.js";

const MAX_BASE = 64;
const SIF = 1e-3; // a of a / (a + p)
const LEAST_IDF = 1e-3;
const WEIGHTS = ["uniform", "sif", "idf"];
const { fround } = Math;

const damaged = (problem) => {
  throw new FormatError(`damaged: ${problem}`);
};

/** Open the file of a text encoder: its bytes, or a Response. It checks the header and copies little. */
export async function openTextEncoder(source) {
  const given = await source;
  const read = typeof Response !== "undefined" && given instanceof Response ? await bytesOf(given) : given;
  if (!isBytes(read)) {
    throw new TypeError("openTextEncoder takes the bytes of a file (an ArrayBuffer or a Uint8Array), or a Response");
  }
  const contents = readContents(plainBytes(read));
  if (!contents.settings) {
    throw new FormatError("a file of codes, not a text encoder: open it with open");
  }
  const tokens = await tokensOf(contents);
  return new StaticTextEncoder(contents, tokens);
}

async function bytesOf(response) {
  if (!response.ok) throw new Error(`the server returned status ${response.status} for the text encoder`);
  return response.arrayBuffer();
}

/** Turns texts into vectors. */
export class StaticTextEncoder {
  #contents;
  #tokens;
  #weights;
  #unfitted = null; // why it cannot encode
  #own;
  #coder = null;
  #known = new Map(); // rows that the net has decoded

  constructor(contents, tokens) {
    const { facts, tensors, length, settings: typed } = contents;
    const { nBits, dims } = facts;
    const settings = checkedSettings(typed);
    Object.assign(this, { nBits, dims, method: facts.method, length: tokens.count });
    this.#contents = { ...contents, settings };
    this.#tokens = tokens;
    const part = (name, dtype, shape) => partOf(tensors, name, dtype, shape);
    this.scales = scaled(tensors, "scales", length, settings) ?? damaged("text.scales is missing");
    this.net = tensors.has("text.net_A") ? netOf(contents) : null;
    this.decoder = this.net ? new Int8Array(nBits * dims) : part("decoder", "I8", [nBits, dims]);
    this.units = this.net ? new Float32Array(dims) : part("units", "F32", [dims]);
    this.offset = this.net ? this.units : part("offset", "F32", [dims]);
    this.rows = tensors.has("text.rows") ? part("rows", "U32", [tokens.count]) : null;
    if (this.rows?.some((row) => row >= length)) damaged(`a token has no row among ${length}`);
    const whitens = tensors.has("text.whitening");
    this.mean = whitens ? part("mean", "F32", [dims]) : null;
    this.whitening = whitens ? part("whitening", "F32", [dims, dims]) : null;
    this.#own = scaled(tensors, "weights", tokens.count, settings);
    const seen = scaled(tensors, "frequencies", tokens.count, settings);
    this.#unfitted = unfitted(settings, seen);
    this.#weights = this.#unfitted ? null : weightsOf(settings, seen, tokens);
    if (settings.coder !== undefined) checkTextCoder(contents);
  }

  /**
   * The vector of a text, a Float32Array; of several texts, an array of them. A text with no known token has the vector
   * of zeros. Lone surrogates are left out.
   */
  encode(text) {
    if (Array.isArray(text)) return text.map((each) => this.encode(each));
    checkString(text, "the text");
    if (this.#unfitted) throw new Error(this.#unfitted);
    return this.#whitened(this.#pooled(text));
  }

  /** The packed code of a text, as Python's `encode_codes`; the encoder must have been fitted on texts. */
  encodeCode(text) {
    const vector = this.encode(text);
    if (!vector.some((x) => x !== 0)) throw new RangeError(`the text ${shown(text)} has no known token, so no code`);
    return (this.#coder ??= textCoder(this.#contents)).encode(vector);
  }

  /** The weighted mean of the tokens of a text. */
  #pooled(text) {
    const { nBits, dims, decoder, units, offset, scales, rows } = this;
    const { codes, width } = this.#contents;
    const { tokens, vectors } = this.#tokens.of(text);
    const [counts, sums] = [new Float64Array(nBits), new Float64Array(dims)];
    let [total, share] = [0, vectors.length];
    for (const token of tokens) {
      const row = rows ? rows[token] : token;
      const weight = this.#weights ? this.#weights[token] : 1;
      const scale = fround(fround(this.#own ? weight * this.#own[token] : weight) * scales[row]);
      if (this.net) {
        this.#decoded(row).forEach((x, i) => (sums[i] += scale * x));
      } else {
        for (let bit = 0; bit < nBits; bit++) {
          if (codes[row * width + (bit >> 3)] & (128 >> (bit & 7))) counts[bit] += scale;
        }
      }
      total += scale;
      share += weight;
    }
    for (let bit = 0; bit < nBits; bit++) {
      const count = counts[bit];
      if (count) for (let i = 0; i < dims; i++) sums[i] += count * decoder[bit * dims + i];
    }
    for (let i = 0; i < dims; i++) {
      if (!this.net) sums[i] = sums[i] * units[i] + total * offset[i];
      for (const vector of vectors) sums[i] += vector[i];
      sums[i] /= share > 0 ? share : 1;
    }
    return this.#contents.settings.normalize ? unit(sums) : sums;
  }

  /** The direction that the net decodes for a row. */
  #decoded(row) {
    const { codes, width } = this.#contents;
    if (!this.#known.has(row)) this.#known.set(row, unit(this.net.rebuilt(codes.subarray(row * width, (row + 1) * width))));
    return this.#known.get(row);
  }

  #whitened(vector) {
    if (!this.whitening || !vector.some((x) => x !== 0)) return Float32Array.from(vector);
    const { dims, mean, whitening } = this;
    const centered = unit(vector).map((x, i) => x - mean[i]);
    const sums = new Float64Array(dims);
    centered.forEach((x, row) => {
      for (let i = 0; i < dims; i++) sums[i] += x * whitening[row * dims + i];
    });
    return Float32Array.from(unit(sums));
  }

  /** Check every byte, or reject with FormatError. */
  async verify() {
    await verifyContents(this.#contents);
    const { settings, tensors } = this.#contents;
    if (settings.coder) checkLearned(settings.coder.method, namedCoder(tensors, "coder.", ""));
  }
}

function unit(vector) {
  const length = norm(vector);
  return length ? vector.map((x) => x / length) : vector;
}

/** A tensor of a text encoder, checked. */
function partOf(tensors, name, dtype, shape, largest = MAX_WEIGHT) {
  const tensor = tensors.get(`text.${name}`);
  if (tensor?.dtype !== dtype || tensor.shape.join() !== shape.join()) {
    damaged(`text.${name} is ${tensor ? `${tensor.dtype} [${tensor.shape}]` : "missing"}, expected ${dtype} [${shape}]`);
  }
  const data = numbers(tensor);
  if (dtype.startsWith("F") && !data.every((x) => Math.abs(x) <= largest)) damaged(`text.${name} holds NaN or numbers beyond ${largest}`);
  return data;
}

/** Numbers on the scale of lengths, or null if the file has none. */
function scaled(tensors, name, count, settings) {
  if (!tensors.has(`text.${name}`)) return null;
  const base = settings[`${name}_base`];
  if (!Number.isInteger(base) || Math.abs(base) > MAX_BASE) damaged(`${name}_base is not -${MAX_BASE} to ${MAX_BASE}`);
  const scale = lengthScale(base);
  return Float32Array.from(partOf(tensors, name, "U8", [count]), (step) => scale[step]);
}

/** The settings as plain values, checked: whole numbers are BigInt before. */
function checkedSettings(typed) {
  const plain = (value) => (value instanceof Map ? Object.fromEntries([...value].map(([name, each]) => [name, plain(each)])) : plainNumber(value));
  const isWhole = (value) => typeof value === "bigint" && value >= 0n && value <= BigInt(MAX_SIZE);
  const [unknown, texts, whiten] = [typed.get("unknown") ?? 0n, typed.has("texts") ? typed.get("texts") : 0n, plainNumber(typed.get("whiten") ?? 0)];
  const bases = [...typed].filter(([name, base]) => name.endsWith("_base") && typeof base !== "bigint");
  const isFlag = !typed.has("normalize") || typeof typed.get("normalize") === "boolean";
  if (!isWhole(unknown) || !isWhole(texts) || typeof whiten !== "number" || typeof whiten !== "number" || !(whiten >= 0 && whiten <= 0.5) || typed.get("whiten") === null || !isFlag) {
    damaged("unknown, texts, whiten or normalize of the text encoder is not as it is written");
  }
  const settings = plain(typed);
  for (const [name] of bases) settings[name] = null;
  if (!["undefined", "string"].includes(typeof (settings.weights ?? undefined)) || !WEIGHTS.includes(settings.weights ?? "sif")) {
    damaged(`weights are ${shown(settings.weights)}`);
  }
  return settings;
}

const plainNumber = (value) => (typeof value === "bigint" ? Number(value) : value);

/** Why texts cannot be encoded: weights that need frequencies, which the encoder has not counted; or null. */
function unfitted({ weights, texts = 0 }, seen) {
  if (seen?.length && !seen.some((count) => count > 0)) damaged("no token was ever seen by its frequencies");
  const isNeeded = weights === "idf" || weights === "sif";
  const isMissing = (!seen && isNeeded) || (weights === "idf" && !(texts > 0));
  return isMissing ? `weights '${weights}' need frequencies: fit the encoder on texts` : null;
}

/** What tokens weigh by their frequencies; null if all weigh 1. */
function weightsOf({ weights, texts = 0 }, seen, { areWords }) {
  const kind = weights ?? (areWords ? "sif" : "uniform");
  if (!seen || kind === "uniform") return null;
  const all = seen.reduce((sum, count) => sum + count, 0);
  const weigh =
    kind === "sif"
      ? (count) => SIF / (SIF + count / all)
      : (count) => Math.log((texts + 1) / (Math.min(count, texts) + 1)) + LEAST_IDF;
  return Float32Array.from(seen, weigh);
}

/** The coder of text vectors, which is beside the table. */
function textCoder(contents) {
  const about = contents.settings.coder;
  if (!about) throw new Error("the text encoder was not fitted on texts: it has no coder of their codes");
  return coderFrom(contents, "coder.", about.method, about.params ?? {}, "");
}

/** Check the method, the parameters and the arrays of the coder of text vectors. */
function checkTextCoder({ facts: { nBits, dims }, tensors, settings }) {
  const about = settings.get("coder");
  const method = about?.get?.("method");
  if (!Object.hasOwn(PARAMETERS, method)) damaged(`the coder of texts has the method ${shown(method)}`);
  checkParameters(method, about.get("params"), nBits);
  checkArrays(method, namedCoder(tensors, "coder.", ""), nBits, dims);
}

/** The net of the table, checked. */
function netOf(contents) {
  const { facts, tensors } = contents;
  const hidden = tensors.get("text.net_A").shape[0];
  const sizes = { bits: facts.nBits, dims: facts.dims, hidden, inputs: facts.nBits + 2 * hidden };
  for (const [name, shape] of Object.entries(ARRAYS.neural)) {
    const wanted = shape.map((size) => sizes[size]);
    if (name.startsWith("net_")) partOf(tensors, name, shape.length === 2 ? "I8" : "F32", wanted, LARGEST);
  }
  return coderFrom(contents, "net_", "neural", {});
}

/** The coder whose arrays have names with a prefix. */
function coderFrom({ facts: { nBits, dims }, tensors }, prefix, method, params, added = prefix) {
  return coderOf({ method, params, tensors: namedCoder(tensors, prefix, added), nBits, dims });
}

/** The arrays with a prefix, by the names that they have in other files. */
function namedCoder(tensors, prefix, added) {
  const own = [...tensors].filter(([name]) => name.startsWith(`text.${prefix}`));
  return new Map(own.map(([name, tensor]) => [`coder.${added}${name.slice(5 + prefix.length)}`, tensor]));
}
