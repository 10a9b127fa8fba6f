/**
 * Words and their rows in files of version 1, read directly from the file: `text` holds all words in row order as UTF-8,
 * `ends` the end of each word, `order` the rows sorted by the bytes of their words.
 */
import { checkCount, checkRow, checkString } from "./arguments.js";
import { FormatError } from "./format.js";
import { compare, firstRows, toText, toUTF8 } from "./text.js";

/** An immutable list of distinct words with an index. */
export class Vocabulary {
  #text;
  #ends;
  #order;

  constructor(text, ends, order, rows) {
    const whole = (part) => ["U32", "U64"].includes(part.dtype) && part.shape.length === 1;
    if (text.dtype !== "U8" || text.shape.length !== 1 || !whole(ends) || !whole(order)) {
      throw new FormatError("damaged: the vocabulary's arrays have wrong types");
    }
    if (ends.shape[0] !== rows || order.shape[0] !== rows) {
      throw new FormatError(`damaged: ${ends.shape[0]} words for ${rows} codes`);
    }
    [this.#text, this.#ends, this.#order] = [text.data, ends.data, order.data];
    this.length = rows;
  }

  /** The word of a row. */
  at(row) {
    checkRow(row, this.length);
    return toText(this.bytes(row), row);
  }

  /** The row of a word, or null. */
  find(word) {
    const wanted = toUTF8(checkString(word, "the word"));
    if (wanted === null) return null;
    const place = this.#firstPlace((bytes) => compare(bytes, wanted) >= 0);
    const row = place < this.length ? this.#rowAt(place) : null;
    return row !== null && compare(this.bytes(row), wanted) === 0 ? row : null;
  }

  /** The first `most` rows, in row order, whose words start with `prefix`. */
  startingWith(prefix, most = 8) {
    const wanted = toUTF8(checkString(prefix, "the prefix"));
    checkCount(most, "most");
    if (wanted === null) return [];
    const start = this.#firstPlace((bytes) => compare(bytes, wanted) >= 0);
    const stop = this.#firstPlace((bytes) => compare(bytes.subarray(0, wanted.length), wanted) > 0);
    return firstRows((place) => this.#rowAt(place), start, stop, most);
  }

  /** The length of a word in bytes, not checked: a fast way to skip most words. */
  byteLength(row) {
    return Number(this.#ends[row]) - (row ? Number(this.#ends[row - 1]) : 0);
  }

  /** The bytes of a word, as a view. */
  bytes(row) {
    const start = row ? Number(this.#ends[row - 1]) : 0;
    const end = Number(this.#ends[row]);
    if (!(start <= end && end <= this.#text.length)) {
      throw new FormatError(`damaged: word ${row} is at bytes ${start} to ${end}`);
    }
    return this.#text.subarray(start, end);
  }

  /** Check all words. */
  verify() {
    const last = this.length ? Number(this.#ends[this.length - 1]) : 0;
    if (last !== this.#text.length) throw new FormatError("damaged: the words' ends do not match their text");
    for (let row = 0; row < this.length; row++) this.at(row);
    // Strictly increasing words are distinct, so their rows are a permutation.
    for (let place = 1; place < this.length; place++) {
      const [before, after] = [this.#rowAt(place - 1), this.#rowAt(place)];
      if (compare(this.bytes(before), this.bytes(after)) >= 0) {
        throw new FormatError("damaged: the words are not in order");
      }
    }
    if (this.length) this.#rowAt(0);
  }

  #rowAt(place) {
    const row = Number(this.#order[place]);
    if (!(row < this.length))
      throw new FormatError(`damaged: the vocabulary points at row ${row} of ${this.length}`);
    return row;
  }

  /** Binary search: the first position in the order whose word satisfies `reached`. */
  #firstPlace(reached) {
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (reached(this.bytes(this.#rowAt(middle)))) high = middle;
      else low = middle + 1;
    }
    return low;
  }
}

/** The words of a file without words: row numbers, from `first` on. */
export class RowNumbers {
  constructor(rows, first = 0) {
    this.length = rows;
    this.first = first;
  }

  at(row) {
    return String(this.first + checkRow(row, this.length));
  }

  find(word) {
    checkString(word, "the word");
    const row = /^(0|[1-9]\d{0,14})$/.test(word) ? Number(word) - this.first : -1;
    return row >= 0 && row < this.length ? row : null;
  }

  startingWith(prefix, most = 8) {
    checkCount(most, "most");
    if (!/^([1-9]\d{0,14}|0?)$/.test(checkString(prefix, "the prefix"))) return [];
    const rows = [];
    const stop = this.first + this.length;
    // 7, then 70 to 79, then 700 to 799, …: in row order; without a prefix, all numbers
    let [low, span] = prefix === "" ? [this.first, this.length] : [Number(prefix), 1];
    for (; low < stop && rows.length < most; low *= 10, span *= 10) {
      const last = Math.min(low + span, stop);
      for (let id = Math.max(low, this.first); id < last && rows.length < most; id++)
        rows.push(id - this.first);
      if (prefix === "" || low === 0) break;
    }
    return rows;
  }

  verify() {}
}
