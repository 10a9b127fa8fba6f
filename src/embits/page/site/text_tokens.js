/** From a text to the tokens of a text encoder: by its tokenizer, or by the words of its file. */
import { FormatError } from "./format.js";
import { norm } from "./matrix.js";
import { subwordsOf } from "./subwords.js";
import { readTokenizer } from "./tokenizer.js";

const LETTERS = "[\\p{L}\\p{N}]+";
const SIGN = "[^\\p{L}\\p{N}_\\t-\\r\\x1c- \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000]";
const MAX_PHRASE = 4; // words
const UNDERSCORE = 95;

/** What finds the tokens of texts: `of(text)` returns { tokens, vectors }, with vectors for words that have only subwords. */
export async function tokensOf({ facts, tensors, length, words, settings }) {
  const rows = tensors.get("text.rows");
  const count = rows ? rows.data.length : length;
  const packed = tensors.get("text.tokenizer");
  const isPlain = !packed || (packed.dtype === "U8" && packed.shape.length === 1);
  if (!isPlain || (!packed && (!words.bytes || rows))) throw new FormatError("damaged: the text encoder has neither a tokenizer nor words");
  if (!packed) return wordTokens(words, subwordsOf(tensors, facts.dims), count);
  const tokenizer = await readTokenizer(packed.bytes, count);
  if (tokenizer.size > count) {
    throw new FormatError(
      `the tokenizer does not fit its table: it has the token ${tokenizer.size - 1}, and the table has ${count} tokens`,
    );
  }
  const unknown = Number(settings.get("unknown") ?? -1);
  const of = (text) => ({ tokens: tokenizer.encode(text).filter((token) => token !== unknown), vectors: [] });
  return { of, count, areWords: false };
}

/** Words of a file: as they are written, in lower case, in parts, and phrases such as new_york. */
function wordTokens(words, subwords, count) {
  const wordPattern = () => new RegExp(`${LETTERS}(?:['’\\-_.]${LETTERS})*|${SIGN}`, "gu");
  const partPattern = new RegExp(`${LETTERS}|['’]${LETTERS}|${SIGN}`, "gu");
  let longest = 0;

  const rowOf = (word) => words.find(word) ?? words.find(word.toLowerCase());

  /** The row of the longest phrase that starts at a word, and the number of its words. */
  function phrase(all, at) {
    longest ||= longestPhrase(words);
    for (let n = Math.min(longest, all.length - at); n > 1; n--) {
      const row = rowOf(all.slice(at, at + n).join("_"));
      if (row !== null) return [row, n];
    }
    return [rowOf(all[at]), 1];
  }

  function of(text) {
    const [tokens, vectors] = [[], []];
    const all = text.replace(/\p{Surrogate}/gu, "").match(wordPattern()) ?? [];
    for (let at = 0; at < all.length; ) {
      const [row, used] = phrase(all, at);
      at += used;
      if (row !== null) {
        tokens.push(row);
        continue;
      }
      const word = all[at - 1];
      const parts = word.match(partPattern) ?? [];
      const known = parts.length > 1 ? parts.map(rowOf).filter((each) => each !== null) : [];
      tokens.push(...known);
      const vector = known.length ? null : subwords?.vector(word.toLowerCase());
      const size = vector ? norm(vector) : 0;
      if (vector) vectors.push(size ? vector.map((x) => x / size) : vector);
    }
    return { tokens, vectors };
  }
  return { of, count, areWords: true };
}

/** Words of the longest phrase of a vocabulary. */
function longestPhrase(words) {
  let most = 0;
  for (let row = 0; row < words.length; row++) {
    const bytes = words.bytes(row);
    const first = bytes.findIndex((byte) => byte !== UNDERSCORE);
    if (!bytes.subarray(first).includes(UNDERSCORE)) continue;
    const last = bytes.findLastIndex((byte) => byte !== UNDERSCORE);
    if (!bytes.subarray(first, last).includes(UNDERSCORE)) continue;
    most = Math.max(
      most,
      bytes.reduce((sum, byte) => sum + (byte === UNDERSCORE), 0),
    );
  }
  return Math.min(most + 1, MAX_PHRASE);
}
