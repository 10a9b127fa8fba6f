/**
 * embits files in JavaScript: open, look up words, search, verify. For browsers and Node, without
 * dependencies. Opening a file builds nothing: codes and words are views of its bytes.
 *
 *     import { open } from "./embits.js";
 *     const bits = open(await (await fetch("glove.safetensors")).arrayBuffer());
 *     bits.mostSimilar("queen", { k: 3 });      // [{ word: "princess", row, similarity: 0.80 }, …]
 *     bits.mostSimilar(["paris", "japan"], { negative: ["france"] });   // (b AND NOT a) OR c
 *     bits.similarity("car", "automobile");     // the share of equal bits
 *     bits.search(vector, { metric: "asymmetric" });   // a Float32Array: [{ word, row, score }, …]
 *     await bits.verify();                      // checks every byte
 *
 * In Node, use `open(readFileSync("glove.safetensors"))`. Types are in embits.d.ts. simd.js makes the
 * search about ten times faster. A damaged file throws FormatError, an unknown word
 * UnknownWordError, and a wrong argument TypeError or RangeError.
 */
import {
  checkChoice,
  checkCode,
  checkCount,
  checkOptions,
  checkRow,
  checkString,
  checkVector,
  keyList,
} from "./arguments.js";
import { coderOf, decodedQuery, floatQuery } from "./coder.js";
import { NumberIds, UuidIds } from "./fixed_ids.js";
import { FormatError, hex, parseJSON, readLayout, sha256 } from "./format.js";
import { PackedVocabulary } from "./packed.js";
import { bestRows } from "./scores.js";
import { countDifferences, select } from "./search.js";
import { RowNumbers, Vocabulary } from "./vocabulary.js";

export { FormatError };

const WORD_TENSORS = ["words", "word_codes", "word_starts", "word_rows", "word_links"];
const METRICS = ["hamming", "asymmetric", "decoded"];

/** A word is not in the vocabulary. */
export class UnknownWordError extends Error {
  name = "UnknownWordError";
  constructor(word) {
    super(`the word '${word}' is not in the vocabulary`);
    this.word = word;
  }
}

/** Check the header of a file's bytes and return its BinaryVectors. */
export function open(bytes, kernel = countDifferences) {
  if (!(bytes instanceof ArrayBuffer || bytes instanceof Uint8Array)) {
    throw new TypeError("open takes the bytes of a file: an ArrayBuffer or a Uint8Array");
  }
  if (typeof kernel !== "function") throw new TypeError("the kernel is not a function");
  // `slice` of Node's Buffer does not copy, unlike that of other arrays: take a plain view.
  const plain =
    bytes instanceof ArrayBuffer
      ? new Uint8Array(bytes)
      : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
  // Views of numbers need aligned bytes; a part of another buffer may not be aligned.
  return new BinaryVectors(plain.byteOffset % 8 ? plain.slice() : plain, kernel);
}

/** Packed codes with words; without words, the row numbers are the words. */
export class BinaryVectors {
  #kernel;
  #distances;
  #lazyCoder = null;

  constructor(bytes, kernel) {
    const { metadata, tensors } = readLayout(bytes);
    Object.assign(this, facts(metadata), { tensors, size: bytes.length });
    this.checksums = metadata.sha256;
    const codes = tensors.get("codes");
    this.width = Math.ceil(this.nBits / 8);
    if (codes?.dtype !== "U8" || codes.shape.length !== 2 || codes.shape[1] !== this.width) {
      throw new FormatError(`damaged: no codes of ${this.nBits} bits`);
    }
    this.codes = codes.data;
    this.length = codes.shape[0];
    this.words = vocabularyOf(tensors, this.length, metadata.format_version);
    if (!metadata.left_out?.split(",").includes("coder")) checkCoder(this);
    this.#kernel = kernel;
    this.#distances = new Uint32Array(this.length);
  }

  /** The name of the search kernel: "JavaScript" or "WebAssembly SIMD". */
  get kernel() {
    return this.#kernel.kernel;
  }

  /** The packed code of a word or a row: a view of the file, do not write to it. */
  code(key) {
    if (key instanceof Uint8Array) return checkCode(key, this.nBits);
    const row = this.#row(key);
    return this.codes.subarray(row * this.width, (row + 1) * this.width);
  }

  #row(key) {
    if (typeof key === "number") return checkRow(key, this.length);
    const row = this.words.find(checkString(key, "the word"));
    if (row === null) throw new UnknownWordError(key);
    return row;
  }

  /** Sokal-Michener similarity, (n11 + n00) / n: the share of equal bits. */
  similarity(a, b) {
    const distance = new Uint32Array(1);
    countDifferences(this.code(a).slice(), this.width, this.code(b), distance);
    return 1 - distance[0] / this.nBits;
  }

  /**
   * Combine words as the paper does for analogies, b - a + c as (b AND NOT a) OR c: the first
   * positive, without the bits of the negatives, with the bits of the other positives.
   */
  combine(positive, negative = []) {
    const [first, ...others] = keyList(positive, "positive");
    if (first === undefined) throw new TypeError("positive is empty, expected at least one key");
    const code = this.code(first).slice();
    for (const key of keyList(negative, "negative")) this.code(key).forEach((byte, i) => (code[i] &= ~byte));
    for (const key of others) this.code(key).forEach((byte, i) => (code[i] |= byte));
    return code;
  }

  /** The k nearest rows of a code (or the furthest), ties in row order: [{ row, distance }]. */
  nearest(code, k = 10, options = {}) {
    checkCode(code, this.nBits);
    checkCount(k, "k");
    checkOptions(options, ["furthest"], "nearest");
    return this.#search(code, k, options.furthest);
  }

  #search(code, k, furthest) {
    this.#kernel(this.codes, this.width, code, this.#distances);
    return select(this.#distances, k, 8 * this.width, furthest);
  }

  /**
   * The k best rows of a query, ties in row order. "hamming" and "decoded" take a float vector, which
   * is encoded first, or a code, a word or a row: [{ word, row, distance }], and for "decoded"
   * [{ word, row, score }]. "asymmetric" takes a float vector: [{ word, row, score }]. Scores
   * estimate the cosine.
   */
  search(query, options = {}) {
    checkOptions(options, ["k", "metric"], "search");
    const { k = 10, metric = "hamming" } = options;
    checkCount(k, "k");
    checkChoice(metric, METRICS, "metric");
    const isCode = !ArrayBuffer.isView(query) || query instanceof Uint8Array;
    if (metric === "asymmetric") checkVector(query, this.dims);
    const found =
      metric === "hamming"
        ? this.#search(isCode ? this.code(query) : this.encode(query), k)
        : this.#score(this.#weights(query, metric, isCode), k);
    return found.map((each) => ({ word: this.words.at(each.row), ...each }));
  }

  #weights(query, metric, isCode) {
    if (metric === "asymmetric") return floatQuery(this.#coder, query);
    if (isCode) return decodedQuery(this.#coder, this.code(query));
    const code = this.encode(query);
    return query.some((x) => x !== 0) ? decodedQuery(this.#coder, code) : floatQuery(this.#coder, query);
  }

  #score({ weights, offset }, k) {
    const found = bestRows(this.codes, this.width, weights, k, this.#kernel, this.#distances);
    return found.map(({ row, score }) => ({ row, score: Math.fround(Math.fround(score) + offset) }));
  }

  get #coder() {
    return (this.#lazyCoder ??= coderOf(this));
  }

  /** The packed code of a float vector. */
  encode(vector) {
    return this.#coder.encode(checkVector(vector, this.dims));
  }

  /** The float vector rebuilt from the code of a word, a row or a packed code. */
  decode(key) {
    return this.#coder.decode(this.code(key));
  }

  /** The closest words, without the words of the query: [{ word, row, similarity }]. */
  mostSimilar(positive, options = {}) {
    checkOptions(options, ["negative", "k", "furthest"], "mostSimilar");
    const { negative = [], k = 10, furthest = false } = options;
    checkCount(k, "k");
    const code = this.combine(positive, negative);
    const keys = [...keyList(positive, "positive"), ...keyList(negative, "negative")];
    const query = new Set(keys.filter((key) => typeof key !== "object").map((key) => this.#row(key)));
    return this.#search(code, k + query.size, furthest)
      .filter(({ row }) => !query.has(row))
      .slice(0, k)
      .map(({ row, distance }) => ({ word: this.words.at(row), row, similarity: 1 - distance / this.nBits }));
  }

  /** Check every byte, or throw FormatError. */
  async verify() {
    const checksums = parsed(this.checksums);
    for (const { name, dtype, data, bytes } of this.tensors.values()) {
      if ((await digest(bytes)) !== checksums?.get(name)) {
        throw new FormatError(`damaged: the bytes of tensor '${name}' do not match its checksum`);
      }
      if (dtype.startsWith("F") && !allFinite(data)) {
        throw new FormatError(`damaged: tensor '${name}' contains NaN or infinity`);
      }
    }
    const spare = (1 << (8 * this.width - this.nBits)) - 1;
    for (let at = this.width - 1; spare && at < this.codes.length; at += this.width) {
      if (this.codes[at] & spare) throw new FormatError("damaged: a code has a padding bit set");
    }
    this.words.verify();
  }
}

function facts({ bits, dims, method, writer, params }) {
  const whole = [bits, dims].every((text) => /^0*[1-9]\d{0,14}$/.test(text ?? ""));
  const given = parsed(params);
  if (!whole || method === undefined || writer === undefined || !(given instanceof Map)) {
    throw new FormatError("damaged: bits, dims, method, params or writer are missing or wrong");
  }
  return { nBits: Number(bits), dims: Number(dims), method, writer, params: Object.fromEntries(given) };
}

function parsed(text) {
  try {
    return parseJSON(text ?? "");
  } catch {
    return null;
  }
}

function vocabularyOf(tensors, rows, version) {
  if (version !== "1") return packedVocabularyOf(tensors, rows);
  const parts = ["words", "word_ends", "word_order"].map((name) => tensors.get(name));
  if (parts.every((part) => !part)) return new RowNumbers(rows);
  if (!parts.every((part) => part)) {
    throw new FormatError("damaged: of words, word_ends and word_order, one is missing");
  }
  return new Vocabulary(...parts, rows);
}

function packedVocabularyOf(tensors, rows) {
  if (tensors.has("word_numbers")) return new NumberIds(tensors, rows);
  if (tensors.has("word_uuids")) return new UuidIds(tensors, rows);
  return WORD_TENSORS.some((name) => tensors.has(name))
    ? new PackedVocabulary(tensors, rows)
    : new RowNumbers(rows);
}

// The arrays of each coder. Other methods may have any arrays: searching does not need them.
const CODERS = {
  paper: { W: ["bits", "dims"], c: ["dims"], loss_curve: ["any", 2] },
  lsh: { planes: ["bits", "dims"], decoder: ["bits", "dims"], offset: ["dims"] },
  sign: { decoder: ["bits", "dims"], offset: ["dims"] },
};

function checkCoder({ method, tensors, nBits, dims }) {
  const known = Object.hasOwn(CODERS, method) ? CODERS[method] : {};
  for (const [name, wanted] of Object.entries(known)) {
    const { dtype = "", shape = [] } = tensors.get(`coder.${name}`) ?? {};
    const sizes = wanted.map((size) => ({ bits: nBits, dims })[size] ?? size);
    const fits =
      shape.length === sizes.length && sizes.every((size, i) => size === "any" || size === shape[i]);
    if (!dtype.startsWith("F") || !fits) {
      throw new FormatError(
        `damaged: the coder's ${name} is ${dtype} [${shape}], expected floats [${sizes}]`,
      );
    }
  }
}

async function digest(bytes) {
  const subtle = globalThis.crypto?.subtle;
  return hex(subtle ? new Uint8Array(await subtle.digest("SHA-256", bytes)) : sha256(bytes));
}

function allFinite(numbers) {
  // F16 numbers are read as 16 bits: NaN and infinity have all exponent bits set.
  const finite = numbers instanceof Uint16Array ? (x) => (x & 0x7c00) !== 0x7c00 : Number.isFinite;
  return numbers.every(finite);
}
