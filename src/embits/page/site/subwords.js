/** Vectors of words that a fastText model does not have, from their n-grams. */
import { MAX_NGRAM } from "./constants.js";
import { FormatError } from "./format.js";
import { numbers } from "./matrix.js";
import { toUTF8 } from "./text.js";

const [HASH_OF_NOTHING, HASH_PRIME] = [2166136261, 16777619]; // FNV-1a
const { fround } = Math;

/** The subwords of a file; null if it has none. */
export function subwordsOf(tensors, dims) {
  if (![...tensors.keys()].some((name) => name.startsWith("subwords."))) return null;
  const [buckets, lengths] = ["buckets", "lengths"].map((name) => tensors.get(`subwords.${name}`));
  const [minn = 0, maxn = 0] = lengths?.dtype === "U32" && lengths.shape.join() === "2" ? lengths.data : [];
  const isMatrix = buckets?.dtype === "F16" && buckets.shape.length === 2 && buckets.shape[1] === dims;
  if (!isMatrix || !buckets.shape[0] || !(minn <= maxn && maxn >= 1 && maxn <= MAX_NGRAM)) {
    throw new FormatError("damaged: the subwords are not buckets of vectors with two lengths");
  }
  return new Subwords(buckets, minn, maxn);
}

class Subwords {
  #buckets;
  #lengths;

  constructor(buckets, minn, maxn) {
    this.#buckets = buckets;
    this.#lengths = [minn, maxn];
  }

  /** The mean of the rows of a word's n-grams, a Float32Array; null if the word has none. */
  vector(word) {
    const [count, dims] = this.#buckets.shape;
    const rows = ngramBuckets(word, ...this.#lengths, count);
    if (!rows.length) return null;
    const sum = new Float32Array(dims); // in float32 and in this order, as in Python
    for (const row of rows) {
      const part = this.#buckets.data.subarray(row * dims, (row + 1) * dims);
      numbers({ dtype: this.#buckets.dtype, data: part }).forEach((x, i) => (sum[i] += x));
    }
    const mean = sum.map((x) => x * fround(1 / rows.length));
    if (mean.every(Number.isFinite)) return mean;
    throw new FormatError(`damaged: the subwords of '${word}' are not finite`);
  }
}

/** The bucket of each n-gram of `<word>`, as fastText hashes them. */
export function ngramBuckets(word, minn, maxn, count) {
  if (word === "</s>" || toUTF8(word) === null) return []; // fastText's end of sentence has no n-grams
  const characters = Array.from(`<${word}>`, toUTF8);
  const buckets = [];
  for (let start = 0; start < characters.length; start++) {
    let hash = HASH_OF_NOTHING;
    for (let n = 1; n <= maxn && start + n <= characters.length; n++) {
      // fastText extends the sign of bytes from 128 on.
      for (const byte of characters[start + n - 1]) hash = Math.imul(hash ^ ((byte << 24) >> 24), HASH_PRIME);
      const isLoneMark = n === 1 && (start === 0 || start + n === characters.length);
      if (n >= minn && !isLoneMark) buckets.push((hash >>> 0) % count);
    }
  }
  return buckets;
}
