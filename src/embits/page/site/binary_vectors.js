/** Codes with words: look up, search, encode and decode. See embits.js. */
import {
  checkChoice,
  checkCode,
  checkCount,
  checkOptions,
  checkQuery,
  checkReading,
  checkRow,
  checkString,
  checkVector,
  keyList,
  metricFor,
  parseBound,
} from "./arguments.js";
import { CellRows, signsOf } from "./cells.js";
import { coderOf, combinedQuery, decodedQuery, floatQuery, neighbor, prepareQuery, secondLookSize } from "./coder.js";
import { ROWS_PER_PASSED, WORD_METRICS } from "./constants.js";
import { allowedRows, Selection } from "./filters.js";
import { cosine, norm } from "./matrix.js";
import { bestRows, lookAgain, rowsScoring } from "./scores.js";
import { countDifferences, select, selectWithin } from "./search.js";
import { existingWord, nearSpellings, UnknownWordError } from "./spelling.js";
import { subwordsOf } from "./subwords.js";

const { fround } = Math;

/** Packed codes with words; without words, the row numbers are the words. */
export class BinaryVectors {
  #kernel;
  #distances;
  #lazyCoder = null;
  #subwords;
  #verify;
  #cells;
  #order; // the rows of the codes, if they are stored in cells
  #places = null;

  constructor({ facts, tensors, codes, width, length, words, lengths, cells, order }, kernel, size, verify) {
    Object.assign(this, facts, { tensors, codes, width, length, words, lengths, size });
    this.#subwords = subwordsOf(tensors, this.dims);
    this.#kernel = kernel;
    this.#distances = new Uint32Array(length);
    this.#verify = verify;
    [this.#cells, this.#order] = [cells ?? null, order ?? null];
  }

  /** How many cells the codes are stored in; 0 without cells. */
  get cells() {
    return this.#cells?.length ?? 0;
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
    if (row !== null) {
      const place = this.#placeOf(row);
      return this.codes.subarray(place * this.width, (place + 1) * this.width);
    }
    const vector = this.#subwords?.vector(key);
    if (!vector) throw this.#unknown(key);
    return this.encode(vector);
  }

  /** Where the code of a row is stored. */
  #placeOf(row) {
    if (!this.#order) return row;
    if (!this.#places) {
      this.#places = new Uint32Array(this.length);
      this.#order.forEach((each, place) => (this.#places[each] = place));
    }
    return this.#places[row];
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
    return select(this.#rowDistances(code), k, 8 * this.width, furthest, allowed);
  }

  /** The Hamming distance of each row to a code. */
  #rowDistances(code) {
    this.#kernel(this.codes, this.width, code, this.#distances);
    if (!this.#order) return this.#distances;
    const rows = new Uint32Array(this.length);
    this.#order.forEach((row, place) => (rows[row] = this.#distances[place]));
    return rows;
  }

  /** The best rows of the cells that are nearest to a query; null to read all rows. */
  #inCells(query, k, { recall, probes }, allowed) {
    if (recall === undefined && probes === undefined) return null;
    if (!this.#cells && probes !== undefined) throw new TypeError("probes needs a file with cells: make them with embits cells");
    const passed = allowed ? allowed.reduce((sum, one) => sum + one, 0) : this.length;
    if (!this.#cells || query.scaled || passed * ROWS_PER_PASSED < this.length) return null;
    const counts = { k: Math.min(k, passed), isFloats: !query.code, passed, n: this.length };
    const levels = recall === undefined ? null : this.#cells.levels(recall, counts);
    const wanted = probes && Math.ceil((probes * this.length) / Math.max(passed, 1));
    if (recall !== undefined && levels === null) return null;
    const { width, nBits } = this;
    const most = allowed ? this.#cells.mostRows(passed) : Infinity;
    const rows = new CellRows(query, { k: Math.min(k, passed), width, nBits, allowed, kernel: this.#kernel });
    const visits = this.#cells.visits(query.weights ?? signsOf(query.code, nBits), { probes: wanted, levels, most });
    for (let next = visits.next(); !next.done; next = visits.next(rows.kth)) {
      for (const cell of next.value) {
        const [start, end] = [this.#cells.starts[cell], this.#cells.starts[cell + 1]];
        rows.add(this.codes.subarray(start * width, end * width), this.#order.subarray(start, end));
      }
    }
    return rows.found.map(({ code, score, ...each }) =>
      score === undefined ? each : { ...each, score: fround(fround(score) + query.offset) },
    );
  }

  /**
   * The k best rows of a query, ties in row order: [{ word, row, score }], the larger the better, with `distance` for
   * "hamming". Without `metric`, a float vector is compared as "asymmetric", and a code, a word or a row by "hamming".
   * Both "hamming", whose scores are shares of equal bits, and "decoded" also take a float vector, which is encoded first.
   * The scores of "asymmetric" and "decoded" estimate the cosine; those of "dot" the inner product, if the file has lengths.
   * `where` has the rows that may be found, `exclude` those that may not: booleans, row numbers, ids or a Selection.
   * `secondLook` is how many of the best rows are scored again, by the cosine of the query and the
   * decoded row: by default as the coder was fitted, with 0 none. `recall` is the share of the neighbors to
   * find in a file with cells, and `probes` the number of cells to read; without them all rows are read.
   */
  search(query, options = {}) {
    checkOptions(options, ["k", "metric", "where", "exclude", "secondLook", "recall", "probes"], "search");
    const { k = 10 } = options;
    checkCount(k, "k");
    checkReading(options);
    const given = checkQuery(query);
    const metric = metricFor(options.metric, given);
    const prepared = this.#prepared(given, metric);
    const look = secondLookSize(options.secondLook, metric, k, () => this.#coder);
    const size = Math.max(k, look);
    const allowed = this.#allowed(options);
    const scan = () => (prepared.code ? this.#nearest(prepared.code, k, false, allowed) : this.#best(prepared, size, allowed));
    const best = this.#inCells(prepared, size, options, allowed) ?? scan();
    if (!look) return this.#named(best);
    const rebuilt = (row) => this.#coder.rebuilt(this.code(row));
    const rows = best.map(({ row }) => row);
    return this.#named(lookAgain(rows, prepared.vector(), k, rebuilt));
  }

  /**
   * All rows within a distance of a query, or of at least a similarity, best first, as `search`
   * returns them. With "hamming" (the default) the similarity is the share of equal bits; with "asymmetric" and
   * "decoded" it is the lowest score.
   */
  within(query, options = {}) {
    checkOptions(options, ["distance", "similarity", "metric", "where", "exclude"], "within");
    const metric = metricFor(options.metric ?? "hamming");
    const prepared = this.#prepared(checkQuery(query), metric);
    const bound = parseBound(options, metric, this.nBits);
    const allowed = this.#allowed(options);
    if (!prepared.code) return this.#named(this.#scoring(prepared, bound, allowed));
    return this.#named(selectWithin(this.#rowDistances(prepared.code), bound, allowed));
  }

  #prepared(query, metric) {
    if (metric === "dot") return this.#dotQuery(checkVector(query, this.dims));
    return prepareQuery(query, metric, { dims: this.dims, codeOf: (key) => this.code(key), coder: () => this.#coder });
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
    return this.#scored(bestRows, weights, k, allowed, scaled, offset);
  }

  #scoring({ weights, offset, scaled }, similarity, allowed) {
    const slack = 1e-6 * Math.max(1, Math.abs(similarity)); // above what rounding to float32 takes away
    const lowest = similarity - offset - slack;
    const found = this.#scored(rowsScoring, weights, lowest, allowed, scaled, offset);
    return found.filter(({ score }) => score >= fround(similarity));
  }

  /** The rows that bestRows or rowsScoring finds among all codes, as they are stored. */
  #scored(find, weights, bound, allowed, scaled, offset) {
    const order = this.#order;
    const stored = (values) => (order && values ? values.constructor.from(order, (row) => values[row]) : values);
    const lengths = scaled && { ...scaled, lengths: stored(scaled.lengths) };
    const [kernel, distances] = [this.#kernel, this.#distances];
    const found = find(this.codes, this.width, weights, bound, kernel, distances, stored(allowed), lengths);
    const rows = found.map(({ row, score }) => ({ row: order ? order[row] : row, score: fround(fround(score) + offset) }));
    return order ? rows.sort((a, b) => b.score - a.score || a.row - b.row) : rows;
  }

  #named(found) {
    return found.map((each) => neighbor(this.words.at(each.row), each, this.nBits));
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
