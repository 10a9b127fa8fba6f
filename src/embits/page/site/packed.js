/**
 * The words of files of version 2 (docs/file-format.md). They are sorted, share the beginning of the
 * word before, and are written with three prefix codes. Nothing is built when a file is opened.
 */
import { checkCount, checkRow, checkString } from "./arguments.js";
import { BLOCK, MAX_CODE_BITS, STEP } from "./constants.js";
import { FormatError } from "./format.js";
import { compare, firstRows, toText, toUTF8 } from "./text.js";

const CONTINUED = 254; // this symbol of a number: add 254, and the next symbol
const MAX_TEXT = 2 ** 32;
const [SHARED, SIZE, BYTE] = [0, 1, 2];

const fail = (problem) => {
  throw new FormatError(`damaged: ${problem}`);
};

/** Bits of packed numbers up to `most`. */
export const packedWidth = (most) => (most > 0 ? Math.floor(Math.log2(most)) + 1 : 0);

/** Numbers of `width` bits, one after another, the lowest bit first. */
export class PackedNumbers {
  #bytes;
  #width;

  constructor(tensor, count, most, name) {
    this.#width = packedWidth(most);
    const size = Math.ceil((count * this.#width) / 8);
    if (tensor?.dtype !== "U8" || tensor.shape.length !== 1 || tensor.data.length !== size) {
      fail(`${name} does not have ${size} bytes`);
    }
    this.#bytes = tensor.data;
  }

  at(i) {
    const first = i * this.#width;
    const shift = first % 8;
    let [number, scale] = [0, 1];
    for (let at = (first - shift) / 8; scale < 2 ** (shift + this.#width); at++, scale *= 256) {
      number += this.#bytes[at] * scale;
    }
    return Math.floor(number / 2 ** shift) % 2 ** this.#width;
  }
}

/** The three codes: how many symbols have 1 to 15 bits, and the symbols in order. */
export function prefixCodes({ dtype, shape, data }) {
  if (dtype !== "U8" || shape.length !== 1) fail("the words' codes have a wrong type");
  let start = 0;
  const codes = [SHARED, SIZE, BYTE].map(() => {
    const counts = data.subarray(start, start + MAX_CODE_BITS);
    const room = counts.reduce((sum, count, i) => sum + count * 2 ** (MAX_CODE_BITS - 1 - i), 0);
    if (counts.length < MAX_CODE_BITS || room > 2 ** MAX_CODE_BITS) fail("the words' codes are no prefix codes");
    const first = start + MAX_CODE_BITS;
    start = first + counts.reduce((sum, count) => sum + count, 0);
    return { counts, symbols: data.subarray(first, start), table: null };
  });
  if (start !== data.length) fail(`the words' codes have ${data.length} bytes, expected ${start}`);
  return codes;
}

/** For all 15 bits that can follow: the symbol that they start with × 16 + its length, or 0 for none. */
function decodingTable({ counts, symbols }) {
  const table = new Uint16Array(2 ** MAX_CODE_BITS);
  let [at, index] = [0, 0];
  counts.forEach((count, i) => {
    const span = 2 ** (MAX_CODE_BITS - 1 - i);
    for (const stop = index + count; index < stop; at += span)
      table.fill(symbols[index++] * 16 + i + 1, at, at + span);
  });
  return table;
}

/** Decodes words one after another; `word` is the last one, and changes with the next. */
class WordReader {
  #text;
  #codes;
  #buffer = new Uint8Array(64);
  #size = 0;

  constructor(text, codes, at) {
    [this.#text, this.#codes, this.at] = [text, codes, at];
  }

  next(isFirst) {
    const shared = isFirst ? 0 : this.#number(SHARED);
    const size = this.#number(SIZE);
    if (shared > this.#size || size > 8 * this.#text.length - this.at) fail("a word cannot be decoded");
    this.#size = shared + size;
    if (this.#size > this.#buffer.length) {
      const larger = new Uint8Array(2 * this.#size);
      larger.set(this.#buffer);
      this.#buffer = larger;
    }
    for (let i = shared; i < this.#size; i++) this.#buffer[i] = this.#symbol(BYTE);
    return this.#buffer.subarray(0, this.#size);
  }

  #number(code) {
    let [sum, symbol] = [0, CONTINUED];
    while (symbol === CONTINUED) sum += symbol = this.#symbol(code);
    return sum;
  }

  #symbol(code) {
    const text = this.#text;
    const table = (this.#codes[code].table ??= decodingTable(this.#codes[code]));
    const shift = this.at % 8;
    const byte = (this.at - shift) / 8;
    // Bytes behind the end count as 0.
    const bits = (text[byte] << 16) | (text[byte + 1] << 8) | text[byte + 2];
    const entry = table[(bits >> (9 - shift)) & (2 ** MAX_CODE_BITS - 1)];
    this.at += entry % 16;
    if (entry === 0 || this.at > 8 * text.length) fail("a word cannot be decoded");
    return entry >> 4;
  }
}

/** The bytes of a word of a block that starts at a bit of `text`. */
export function readWord(text, codes, bit, inBlock) {
  const reader = new WordReader(text, codes, bit);
  let bytes = reader.next(true);
  for (let i = 0; i < inBlock; i++) bytes = reader.next(false);
  return bytes;
}

/** An immutable list of distinct words with an index. */
export class PackedVocabulary {
  #text;
  #codes;
  #starts;
  #rows = null; // without them, rows are in the order of their words
  #links;
  #plain = null;

  constructor(tensors, length) {
    const named = (name) => tensors.get(name) ?? fail(`there are words, but no ${name}`);
    const text = named("words");
    if (text.dtype !== "U8" || text.shape.length !== 1) fail("the words have a wrong type");
    this.#text = text.data;
    this.length = length;
    this.#codes = prefixCodes(named("word_codes"));
    const blocks = Math.ceil(length / BLOCK);
    this.#starts = new PackedNumbers(named("word_starts"), blocks, 8 * text.data.length, "word_starts");
    if (!tensors.has("word_rows") && !tensors.has("word_links")) return;
    this.#rows = new PackedNumbers(named("word_rows"), length, length - 1, "word_rows");
    const links = Math.ceil(length / STEP);
    this.#links = new PackedNumbers(named("word_links"), links, length - 1, "word_links");
  }

  /** The word of a row. */
  at(row) {
    checkRow(row, this.length);
    return toText(this.#plain ? this.bytes(row) : this.#bytesAt(this.#placeOf(row)), row);
  }

  /** The row of a word, or null. */
  find(word) {
    const wanted = toUTF8(checkString(word, "the word"));
    if (wanted === null) return null;
    const place = this.#firstPlace(wanted);
    if (place === this.length || compare(this.#bytesAt(place), wanted) !== 0) return null;
    return this.#rowAt(place);
  }

  /** The first `most` rows, in row order, whose words start with `prefix`. */
  startingWith(prefix, most = 8) {
    const wanted = toUTF8(checkString(prefix, "the prefix"));
    checkCount(most, "most");
    if (wanted === null) return [];
    // UTF-8 has no byte 255: all words that start with the prefix are below.
    const stop = this.#firstPlace(Uint8Array.of(...wanted, 255));
    return firstRows((place) => this.#rowAt(place), this.#firstPlace(wanted), stop, most);
  }

  /** The length of a word in bytes. */
  byteLength(row) {
    const { ends } = this.#unpacked();
    return ends[row] - (row ? ends[row - 1] : 0);
  }

  /** The bytes of a word, as a view. The first call decodes all words. */
  bytes(row) {
    const { text, ends } = this.#unpacked();
    return text.subarray(row ? ends[row - 1] : 0, ends[row]);
  }

  /** Check all words. */
  verify() {
    const rows = new Uint8Array(this.length);
    let before = null;
    const end = this.#scan((bytes, place, start) => {
      if (place % BLOCK === 0 && this.#starts.at(place / BLOCK) !== start) fail("a block starts elsewhere");
      if (before !== null && compare(before, bytes) >= 0) fail("the words are not in order");
      before = bytes.slice();
      const row = this.#rowAt(place);
      toText(bytes, row);
      rows[row]++;
    });
    if (Math.ceil(end / 8) !== this.#text.length) fail("bytes follow the last word");
    if (rows.some((count) => count !== 1)) fail("the words' order is not a permutation of the rows");
    for (let place = 0; this.#rows && place < this.length; place += STEP) this.#checkLink(place);
  }

  /** The cycle from the place that a link names leads to the place of the link, and to no other link. */
  #checkLink(place) {
    const before = this.#links.at(place / STEP);
    let at = before % STEP ? this.length : this.#rowAt(before);
    for (let steps = 0; at % STEP && steps < this.length; steps++) at = this.#rowAt(at);
    if (at !== place) fail("the links of the words do not match their order");
  }

  #rowAt(place) {
    const row = this.#rows && place < this.length ? this.#rows.at(place) : place;
    if (!(row < this.length)) fail(`the vocabulary points at row ${row} of ${this.length}`);
    return row;
  }

  /**
   * Rows are a permutation of places: from a row, its cycle leads back to the place before. The
   * first link on the way is a shortcut to a place behind it.
   */
  #placeOf(row) {
    if (!this.#rows) return row;
    let jumped = false;
    for (let [at, steps] = [row, 0]; steps <= this.length + 1; steps++) {
      const next = this.#rowAt(at);
      if (next === row) return at;
      if (!jumped && at % STEP === 0) {
        jumped = true;
        at = this.#links.at(at / STEP);
      } else at = next;
    }
    return fail(`row ${row} has no word`);
  }

  #reader(block) {
    return new WordReader(this.#text, this.#codes, this.#starts.at(block));
  }

  #bytesAt(place) {
    const inBlock = place % BLOCK;
    return readWord(this.#text, this.#codes, this.#starts.at((place - inBlock) / BLOCK), inBlock);
  }

  /** The first place whose word is not below `wanted`. */
  #firstPlace(wanted) {
    let [low, high] = [0, Math.ceil(this.length / BLOCK)];
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (compare(this.#reader(middle).next(true), wanted) <= 0) low = middle;
      else high = middle;
    }
    const stop = Math.min(this.length, (low + 1) * BLOCK);
    const reader = high ? this.#reader(low) : null;
    for (let place = low * BLOCK; place < stop; place++) {
      if (compare(reader.next(place % BLOCK === 0), wanted) >= 0) return place;
    }
    return stop;
  }

  /** Call a function with the bytes, the place and the first bit of each word; return the last bit. */
  #scan(visit) {
    const reader = new WordReader(this.#text, this.#codes, 0);
    for (let place = 0; place < this.length; place++) {
      const start = reader.at;
      visit(reader.next(place % BLOCK === 0), place, start);
    }
    return reader.at;
  }

  #unpacked() {
    if (this.#plain) return this.#plain;
    const ends = new Float64Array(this.length);
    this.#scan((bytes, place) => (ends[this.#rowAt(place)] = bytes.length));
    for (let row = 1; row < this.length; row++) ends[row] += ends[row - 1];
    const size = this.length ? ends[this.length - 1] : 0;
    if (size > MAX_TEXT) fail(`the words have ${size} bytes`); // a hostile file can say so in few bytes
    const text = new Uint8Array(size);
    this.#scan((bytes, place) => {
      const row = this.#rowAt(place);
      const start = row ? ends[row - 1] : 0;
      if (bytes.length !== ends[row] - start) fail(`row ${row} has two words`);
      text.set(bytes, start);
    });
    return (this.#plain = { text, ends });
  }
}
