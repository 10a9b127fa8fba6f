/**
 * embits files in JavaScript: open, look up words, search, verify. For browsers and Node, with no
 * dependency and nothing built at open: codes and words are used where they lie in the bytes.
 *
 *     import { open } from "./embits.js";
 *     const bits = open(await (await fetch("glove.safetensors")).arrayBuffer());
 *     bits.mostSimilar("queen", { k: 3 });      // [{ word: "princess", row, similarity: 0.80 }, …]
 *     bits.mostSimilar(["paris", "japan"], { negative: ["france"] });   // (b AND NOT a) OR c
 *     bits.similarity("car", "automobile");     // the share of bits that agree
 *     await bits.verify();                      // every byte against its checksum
 *
 * In Node, `open(readFileSync("glove.safetensors"))`. Types are in embits.d.ts. simd.js makes the
 * search about ten times faster. Damage throws FormatError, a word that is not there
 * UnknownWordError.
 */
import { FormatError, hex, parseJSON, readLayout, sha256 } from "./format.js";
import { countDifferences, select } from "./search.js";
import { RowNumbers, Vocabulary } from "./vocabulary.js";

export { FormatError };

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
  // Node's Buffer slices without copying, unlike any other array of bytes: take a plain view.
  const plain =
    bytes instanceof ArrayBuffer
      ? new Uint8Array(bytes)
      : new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
  // Views of numbers need aligned bytes, which a part of another buffer may not be.
  return new BinaryVectors(plain.byteOffset % 8 ? plain.slice() : plain, kernel);
}

/** Packed codes that go by words, or by row numbers where there are none. */
export class BinaryVectors {
  #kernel;
  #distances;

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
    this.words = vocabularyOf(tensors, this.length);
    checkCoder(this);
    this.#kernel = kernel;
    this.#distances = new Uint32Array(this.length);
  }

  /** What counts the differing bits: "JavaScript" or "WebAssembly SIMD". */
  get kernel() {
    return this.#kernel.kernel;
  }

  /** The packed code of a word or a row: a view of the file, not to be written to. */
  code(key) {
    if (key instanceof Uint8Array) return key;
    const row = typeof key === "number" ? key : this.words.find(key);
    if (row === null) throw new UnknownWordError(key);
    if (!(row >= 0 && row < this.length)) throw new RangeError(`row ${row} of ${this.length} codes`);
    return this.codes.subarray(row * this.width, (row + 1) * this.width);
  }

  /** Sokal-Michener similarity, (n11 + n00) / n: the share of bits that agree. */
  similarity(a, b) {
    const distance = new Uint32Array(1);
    countDifferences(this.code(a).slice(), this.width, this.code(b), distance);
    return 1 - distance[0] / this.nBits;
  }

  /**
   * Words joined as the paper joins them for analogies, b - a + c as (b AND NOT a) OR c: the first
   * positive, without the bits of the negatives, with the bits of the other positives.
   */
  combine(positive, negative = []) {
    const code = this.code(positive[0]).slice();
    for (const key of negative) this.code(key).forEach((byte, i) => (code[i] &= ~byte));
    for (const key of positive.slice(1)) this.code(key).forEach((byte, i) => (code[i] |= byte));
    return code;
  }

  /** The k nearest rows of a code (or the furthest), ties in row order: [{ row, distance }]. */
  nearest(code, k = 10, { furthest = false } = {}) {
    if (code.length !== this.width)
      throw new RangeError(`a code of ${code.length} bytes, expected ${this.width}`);
    this.#kernel(this.codes, this.width, code, this.#distances);
    return select(this.#distances, k, 8 * this.width, furthest);
  }

  /** The closest words, those asked about left out: [{ word, row, similarity }]. */
  mostSimilar(positive, { negative = [], k = 10, furthest = false } = {}) {
    const wanted = Array.isArray(positive) ? positive : [positive];
    const asked = new Set(
      [...wanted, ...negative].map((key) => (typeof key === "string" ? this.words.find(key) : key)),
    );
    return this.nearest(this.combine(wanted, negative), k + asked.size, { furthest })
      .filter(({ row }) => !asked.has(row))
      .slice(0, k)
      .map(({ row, distance }) => ({ word: this.words.at(row), row, similarity: 1 - distance / this.nBits }));
  }

  /** Read every byte and check it, or throw FormatError. */
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

function vocabularyOf(tensors, rows) {
  const parts = ["words", "word_ends", "word_order"].map((name) => tensors.get(name));
  if (parts.every((part) => !part)) return new RowNumbers(rows);
  if (!parts.every((part) => part)) {
    throw new FormatError("damaged: of words, word_ends and word_order, one is missing");
  }
  return new Vocabulary(...parts, rows);
}

// What each coder of the format must have learned. A method this reader has not heard of may
// carry anything: the codes are searched without it.
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
  // F16 comes as its 16 bits: NaN and infinity have all bits of the exponent set.
  const finite = numbers instanceof Uint16Array ? (x) => (x & 0x7c00) !== 0x7c00 : Number.isFinite;
  return numbers.every(finite);
}
