/** Codes with words: look up, search, encode and decode. See embits.js. */
import {
  checkChoice,
  checkCode,
  checkCount,
  checkOptions,
  checkQuery,
  checkRow,
  checkString,
  checkVector,
  keyList,
  wantedBound,
} from "./arguments.js";
import { coderOf, combinedQuery, decodedQuery, floatQuery } from "./coder.js";
import { allowedRows, Selection } from "./filters.js";
import { cosine, norm } from "./matrix.js";
import { bestRows, lookAgain, rowsScoring } from "./scores.js";
import { countDifferences, select, selectWithin } from "./search.js";
import { existingWord, nearSpellings, UnknownWordError } from "./spelling.js";
import { subwordsOf } from "./subwords.js";

const METRICS = ["hamming", "asymmetric", "decoded", "dot"];
const WORD_METRICS = ["hamming", "decoded"];
const COSINES = ["asymmetric", "decoded"]; // metrics whose scores estimate the cosine
const FITTED_K = 10;
const { fround } = Math;

/** Packed codes with words; without words, the row numbers are the words. */
export class BinaryVectors {
  #kernel;
  #distances;
  #lazyCoder = null;
  #subwords;
  #verify;

  constructor({ facts, tensors, codes, width, length, words, lengths }, kernel, size, verify) {
    Object.assign(this, facts, { tensors, codes, width, length, words, lengths, size });
    this.#subwords = subwordsOf(tensors, this.dims);
    this.#kernel = kernel;
    this.#distances = new Uint32Array(length);
    this.#verify = verify;
  }

  /** The name of the search kernel: "JavaScript" or "WebAssembly SIMD". */
  get kernel() {
    return this.#kernel.kernel;
  }

  // -- words, codes and floats ---------------------------------------------------------------------

  /**
   * The packed code of a word or a row: a view of the file, do not write to it. If the file has
   * fastText's subwords, an unknown word has the code of its n-grams.
   */
  code(key) {
    if (key instanceof Uint8Array) return checkCode(key, this.nBits);
    const row = this.#find(key);
    if (row !== null) return this.codes.subarray(row * this.width, (row + 1) * this.width);
    const vector = this.#subwords?.vector(key);
    if (!vector) throw this.#unknown(key);
    return this.encode(vector);
  }

  /** The row of a word or a row number; null for an unknown word. */
  #find(key) {
    return typeof key === "number"
      ? checkRow(key, this.length)
      : this.words.find(checkString(key, "the word"));
  }

  #unknown(word) {
    return new UnknownWordError(word, () => this.suggest(word));
  }

  /** Up to `most` words that are spelled like a word, in other letter case or with up to two edits. */
  suggest(word, most = 3) {
    return nearSpellings(this.words, checkString(word, "the word"), checkCount(most, "most"));
  }

  /** The word as the file has it, as given or in lower case; with subwords, any word that has a code. */
  resolve(word) {
    const found = existingWord(this.words, checkString(word, "the word"));
    if (found === null && !this.#subwords?.vector(word)) throw this.#unknown(word);
    return found ?? word;
  }

  get #coder() {
    return (this.#lazyCoder ??= coderOf(this));
  }

  /** The packed code of a float vector. */
  encode(vector) {
    return this.#coder.encode(checkVector(vector, this.dims));
  }

  /**
   * The float vector rebuilt from the code of a word, a row or a packed code. A word or row has its
   * true length if the file has lengths.
   */
  decode(key) {
    if (this.#coder.has("whitening")) throw new Error("JavaScript does not undo the whitening of this coder");
    const vector = this.#coder.decode(this.code(key));
    const row = this.lengths && !(key instanceof Uint8Array) ? this.#find(key) : null;
    if (row === null) return vector;
    const length = norm(vector);
    return length ? vector.map((x) => (x / length) * this.lengths[row]) : vector;
  }

  // -- search --------------------------------------------------------------------------------------

  /** Parse a filter once, for many searches: a Selection is then given as `where` or `exclude`. */
  select(options = {}) {
    checkOptions(options, ["where", "exclude"], "select");
    return new Selection(this.#allowed(options) ?? new Uint8Array(this.length).fill(1));
  }

  #allowed(options) {
    return allowedRows(this.length, options, (id, name) => {
      const row = this.words.find(id);
      // To leave out what is not there changes nothing.
      if (row === null && name !== "exclude") throw this.#unknown(id);
      return row;
    });
  }

  /** The k nearest rows of a code (or the furthest), ties in row order: [{ row, distance }]. */
  nearest(code, k = 10, options = {}) {
    checkCode(code, this.nBits);
    checkCount(k, "k");
    checkOptions(options, ["furthest"], "nearest");
    return this.#nearest(code, k, options.furthest, null);
  }

  #nearest(code, k, furthest, allowed) {
    this.#kernel(this.codes, this.width, code, this.#distances);
    return select(this.#distances, k, 8 * this.width, furthest, allowed);
  }

  /**
   * The k best rows of a query, ties in row order. "hamming" and "decoded" take a float vector, which
   * is encoded first, or a code, a word or a row: [{ word, row, distance }], and for "decoded"
   * [{ word, row, score }]. "asymmetric" takes a float vector: [{ word, row, score }]. Scores
   * estimate the cosine; those of "dot" the inner product, if the file has lengths. `where` has the rows
   * that may be found, `exclude` those that may not: booleans, row numbers, ids or a Selection.
   * `secondLook` is how many of the best rows are scored again, by the cosine of the query and the
   * decoded row: by default as the coder was fitted, with 0 none.
   */
  search(query, options = {}) {
    checkOptions(options, ["k", "metric", "where", "exclude", "secondLook"], "search");
    const { k = 10, metric = "hamming" } = options;
    checkCount(k, "k");
    const asked = this.#query(query, metric);
    const look = this.#look(metric, options.secondLook, k);
    const allowed = this.#allowed(options);
    if (asked.code) return this.#named(this.#nearest(asked.code, k, false, allowed));
    const found = this.#best(asked, Math.max(k, look), allowed);
    if (!look) return this.#named(found);
    const rebuilt = (row) => this.#coder.rebuilt(this.code(row));
    const rows = found.map(({ row }) => row);
    return this.#named(lookAgain(rows, asked.vector(), k, rebuilt));
  }

  /** How many rows of a search are looked at a second time: the coder's number is that for ten. */
  #look(metric, given, k) {
    if (given === undefined) {
      return COSINES.includes(metric) ? Math.ceil((this.#coder.secondLook * Math.max(k, FITTED_K)) / FITTED_K) : 0;
    }
    if (checkCount(given, "secondLook") && !COSINES.includes(metric)) {
      throw new TypeError(`secondLook needs the metric 'asymmetric' or 'decoded', found '${metric}'`);
    }
    return given;
  }

  /**
   * All rows within a distance of a query, or of at least a similarity, best first, as `search`
   * returns them. With "hamming" the similarity is the share of equal bits; with "asymmetric" and
   * "decoded" it is the lowest score.
   */
  within(query, options = {}) {
    checkOptions(options, ["distance", "similarity", "metric", "where", "exclude"], "within");
    const { metric = "hamming" } = options;
    const asked = this.#query(query, metric);
    const bound = wantedBound(options, metric, this.nBits);
    const allowed = this.#allowed(options);
    if (!asked.code) return this.#named(this.#scoring(asked, bound, allowed));
    this.#kernel(this.codes, this.width, asked.code, this.#distances);
    return this.#named(selectWithin(this.#distances, bound, allowed));
  }

  /** What is searched for: { code }, or { weights, offset } and the `vector` of a second look. */
  #query(given, metric) {
    checkChoice(metric, METRICS, "metric");
    const query = checkQuery(given);
    const isCode = !ArrayBuffer.isView(query) || query instanceof Uint8Array;
    if (metric === "dot") return this.#dotQuery(checkVector(query, this.dims));
    if (metric === "asymmetric") return this.#floatQuery(checkVector(query, this.dims));
    const code = isCode ? this.code(query) : this.encode(query);
    if (metric === "hamming") return { code };
    if (!isCode && query.every((x) => x === 0)) return this.#floatQuery(query);
    return { ...decodedQuery(this.#coder, code), vector: () => this.#coder.rebuilt(code) };
  }

  #floatQuery(vector) {
    return { ...floatQuery(this.#coder, vector), vector: () => this.#coder.direction(vector) };
  }

  /** A query for inner products: { weights, offset, scaled }, whose offset is part of the sums. */
  #dotQuery(vector) {
    if (!this.lengths) throw new TypeError("the metric 'dot' needs lengths, which the file does not have");
    const { weights, offset } = floatQuery(this.#coder, vector);
    const length = fround(norm(vector));
    const scaled = { lengths: this.lengths, offset: fround(offset * length) };
    return { weights: weights.map((weight) => weight * length), offset: 0, scaled };
  }

  #best({ weights, offset, scaled }, k, allowed) {
    const found = bestRows(
      this.codes,
      this.width,
      weights,
      k,
      this.#kernel,
      this.#distances,
      allowed,
      scaled,
    );
    return found.map(({ row, score }) => ({ row, score: fround(fround(score) + offset) }));
  }

  #scoring({ weights, offset, scaled }, similarity, allowed) {
    const slack = 1e-6 * Math.max(1, Math.abs(similarity)); // above what rounding to float32 takes away
    const lowest = similarity - offset - slack;
    const found = rowsScoring(
      this.codes,
      this.width,
      weights,
      lowest,
      this.#kernel,
      this.#distances,
      allowed,
      scaled,
    );
    return found
      .map(({ row, score }) => ({ row, score: fround(fround(score) + offset) }))
      .filter(({ score }) => score >= fround(similarity));
  }

  #named(found) {
    return found.map((each) => ({ word: this.words.at(each.row), ...each }));
  }

  // -- similar words -------------------------------------------------------------------------------

  /**
   * Sokal-Michener similarity, (n11 + n00) / n: the share of equal bits. With the metric "decoded",
   * the cosine of the vectors rebuilt from the codes.
   */
  similarity(a, b, options = {}) {
    checkOptions(options, ["metric"], "similarity");
    const { metric = "hamming" } = options;
    if (checkChoice(metric, WORD_METRICS, "metric") === "decoded")
      return cosine(...[a, b].map((key) => this.#coder.decode(this.code(key))));
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

  /**
   * The closest words, without the words of the query: [{ word, row, similarity }]. "decoded" adds
   * and subtracts the vectors rebuilt from the codes; its similarities estimate the cosine.
   */
  mostSimilar(positive, options = {}) {
    checkOptions(options, ["negative", "k", "furthest", "metric", "where", "exclude"], "mostSimilar");
    const { negative = [], k = 10, furthest = false, metric = "hamming" } = options;
    checkCount(k, "k");
    checkChoice(metric, WORD_METRICS, "metric");
    if (furthest && metric !== "hamming") throw new TypeError("furthest needs the metric 'hamming'");
    const code = this.combine(positive, negative);
    const [wanted, unwanted] = [keyList(positive, "positive"), keyList(negative, "negative")];
    const keys = [...wanted, ...unwanted].filter((key) => typeof key !== "object");
    const query = new Set(keys.map((key) => this.#find(key)).filter((row) => row !== null));
    const allowed = this.#allowed(options);
    const found =
      metric === "hamming"
        ? this.#nearest(code, k + query.size, furthest, allowed)
        : this.#best(this.#combined(wanted, unwanted), k + query.size, allowed);
    return found
      .filter(({ row }) => !query.has(row))
      .slice(0, k)
      .map(({ row, distance, score }) => ({
        word: this.words.at(row),
        row,
        similarity: score ?? 1 - distance / this.nBits,
      }));
  }

  #combined(wanted, unwanted) {
    if (wanted.length === 1 && !unwanted.length) return decodedQuery(this.#coder, this.code(wanted[0]));
    const vectors = (keys) => keys.map((key) => this.decode(key));
    return combinedQuery(this.#coder, vectors(wanted), vectors(unwanted));
  }

  /** Check every byte, or throw FormatError; of a collection, the files as they are now. */
  async verify() {
    await this.#verify();
  }
}
