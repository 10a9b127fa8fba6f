/** Words that are not in the vocabulary: other letter cases, words spelled alike, and the error. */

const encoder = new TextEncoder();
const EDITS = 2;
const NEAR = 64; // near spellings among which the likeliest are chosen

/** A word is not in the vocabulary. */
export class UnknownWordError extends Error {
  name = "UnknownWordError";
  #suggest;

  constructor(word, suggest = () => []) {
    super(`there is no word or id '${word}'`);
    this.word = word;
    this.#suggest = suggest;
  }

  /** Up to three words that are spelled alike; they are looked for when this is first read. */
  get suggestions() {
    const found = this.#suggest();
    this.#suggest = () => found;
    return found;
  }
}

/** A word as the vocabulary has it: as given, or in lower case; null if it has neither. */
export function existingWord(words, word) {
  return [word, word.toLowerCase()].find((each) => words.find(each) !== null) ?? null;
}

/**
 * Up to `most` words: other letter cases first, then the likeliest. Few edits (in bytes) and an
 * early row count for a word, because words are usually in the order of their frequency; another
 * first letter counts against it.
 */
export function nearSpellings(words, word, most = 3) {
  if (words.pieces) return nearInPieces(words, word, most);
  const cases = [word.toLowerCase(), word.toUpperCase(), capitalized(word), titled(word)];
  const near = cases.map((each) => words.find(each)).filter((row) => row !== null);
  near.sort((a, b) => a - b);
  const wanted = encoder.encode(word);
  if (words.bytes && wanted.length > 0 && wanted.length <= 64) {
    const within = wanted.length <= 4 ? 1 : EDITS;
    const found = Array.from({ length: within + 1 }, () => []);
    for (let row = 0; row < words.length; row++) {
      if (Math.abs(words.byteLength(row) - wanted.length) > within) continue;
      const edits = distance(words.bytes(row), wanted, within);
      if (edits <= within && found[edits].length < NEAR) found[edits].push(row);
      if (found[1].length === NEAR && found[0].length === 0) break; // no others are considered
    }
    const costs = new Map();
    found.forEach((rows, edits) =>
      rows.forEach((row) => {
        const differs = lower(words.bytes(row)[0]) !== lower(wanted[0]);
        if (costs.size < NEAR) costs.set(row, 8 * Math.max(edits, 1) + 12 * differs + 32 - Math.clz32(row + 1));
      }),
    );
    near.push(...[...costs.keys()].sort((a, b) => costs.get(a) - costs.get(b) || a - b));
  }
  return [...new Set(near)].slice(0, most).map((row) => words.at(row));
}

/** In a collection: the near spellings of each piece in turn. */
function nearInPieces(words, word, most) {
  const near = words.pieces.flatMap((piece) => nearSpellings(piece, word, most));
  return [...new Set(near)].filter((each) => words.find(each) !== null).slice(0, most);
}

const lower = (byte) => (byte >= 65 && byte <= 90 ? byte + 32 : byte); // of ASCII
const capitalized = (word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase();
const titled = (word) => word.replace(/\p{L}+/gu, capitalized);

/**
 * The edit distance of two byte strings, with a swap of neighbors as one edit; any number above
 * `within` if the distance is larger than that.
 */
function distance(a, b, within) {
  let row = Uint8Array.from({ length: b.length + 1 }, (_, j) => j);
  let above = new Uint8Array(b.length + 1);
  let aboveThat = new Uint8Array(b.length + 1);
  for (let i = 1; i <= a.length; i++) {
    [aboveThat, above, row] = [above, row, aboveThat];
    let least = (row[0] = i);
    for (let j = 1; j <= b.length; j++) {
      const replaced = above[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      row[j] = Math.min(above[j] + 1, row[j - 1] + 1, replaced);
      if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) {
        row[j] = Math.min(row[j], aboveThat[j - 2] + 1);
      }
      least = Math.min(least, row[j]);
    }
    if (least > within) return within + 1;
  }
  return row[b.length];
}
