/** Ids of files of version 2 that are whole numbers or UUIDs, stored in row order. */
import { checkCount, checkRow, checkString } from "./arguments.js";
import { FormatError, hex } from "./format.js";
import { PackedNumbers } from "./packed.js";

const encoder = new TextEncoder();
const NUMBER = /^(0|[1-9]\d{0,19})$/;
const UUID = /^[\da-f]{8}(-[\da-f]{4}){3}-[\da-f]{12}$/;

const fail = (problem) => {
  throw new FormatError(`damaged: ${problem}`);
};

/** Ids with an order; without word_rows, they ascend. */
class FixedIds {
  #rows = null;

  constructor(tensors, length) {
    this.length = length;
    if (tensors.has("word_rows"))
      this.#rows = new PackedNumbers(tensors.get("word_rows"), length, length - 1, "word_rows");
  }

  /** The id of a row. */
  at(row) {
    return this.text(checkRow(row, this.length));
  }

  /** The row of an id, or null. */
  find(word) {
    const wanted = this.key(checkString(word, "the word"));
    if (wanted === null) return null;
    let [low, high] = [0, this.length];
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      if (this.key(this.text(this.#rowAt(middle))) < wanted) low = middle + 1;
      else high = middle;
    }
    return low < this.length && this.text(this.#rowAt(low)) === word ? this.#rowAt(low) : null;
  }

  /** The first `most` rows, in row order, whose ids start with `prefix`. */
  startingWith(prefix, most = 8) {
    checkString(prefix, "the prefix");
    checkCount(most, "most");
    const rows = [];
    for (let row = 0; row < this.length && rows.length < most; row++)
      if (this.text(row).startsWith(prefix)) rows.push(row);
    return rows;
  }

  bytes(row) {
    return encoder.encode(this.at(row));
  }

  byteLength(row) {
    return this.at(row).length;
  }

  /** Check all ids. Strictly increasing ids are distinct, so their rows are a permutation. */
  verify() {
    for (let place = 1; place < this.length; place++) {
      const [before, after] = [place - 1, place].map((each) => this.key(this.text(this.#rowAt(each))));
      if (!(before < after)) fail("the ids are not in order");
    }
    if (this.length) this.#rowAt(0);
  }

  #rowAt(place) {
    const row = this.#rows ? this.#rows.at(place) : place;
    return row < this.length ? row : fail(`the ids point at row ${row} of ${this.length}`);
  }
}

/** Whole numbers below 2^64. One number in the file: the ids count up from it. */
export class NumberIds extends FixedIds {
  #numbers;
  #first = null;

  constructor(tensors, length) {
    super(tensors, length);
    const { dtype, shape, data } = tensors.get("word_numbers");
    const isNumbers = ["U32", "U64"].includes(dtype) && shape.length === 1;
    if (!isNumbers || (data.length !== length && !(length && data.length === 1))) {
      fail(`the ids are ${dtype} [${shape}]`);
    }
    if (data.length < length && tensors.get("word_rows")?.data.length) fail("ids that count up have word_rows");
    this.#numbers = data;
    if (data.length === 1) this.#first = BigInt(data[0]);
    if (this.#first !== null && this.#first + BigInt(length) > 1n << 64n) fail("the ids are too large");
  }

  text(row) {
    return String(this.#first === null ? this.#numbers[row] : this.#first + BigInt(row));
  }

  key(word) {
    return NUMBER.test(word) ? BigInt(word) : null;
  }
}

/** The text of a UUID's 16 bytes. */
export const uuidText = (bytes) => hex(bytes).replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-");

/** UUIDs in lower case with hyphens. */
export class UuidIds extends FixedIds {
  #uuids;

  constructor(tensors, length) {
    super(tensors, length);
    const { dtype, shape, data } = tensors.get("word_uuids");
    if (dtype !== "U8" || shape[0] !== length || shape[1] !== 16) fail(`the ids are ${dtype} [${shape}]`);
    this.#uuids = data;
  }

  text(row) {
    return uuidText(this.#uuids.subarray(16 * row, 16 * row + 16));
  }

  key(word) {
    return UUID.test(word) ? word : null;
  }
}
