/** The ids of a collection's rows: those of several pieces, without removed rows. */
import { checkCount, checkRow, checkString } from "./arguments.js";

export class PieceWords {
  #starts; // the stored row at which each piece starts
  #removed; // stored rows, ascending, counted over all pieces

  /** `removed` has the removed rows of each piece, ascending. */
  constructor(pieces, removed) {
    this.pieces = pieces;
    this.#starts = [0];
    for (const piece of pieces) this.#starts.push(this.#starts.at(-1) + piece.length);
    this.#removed = removed.flatMap((rows, i) => Array.from(rows, (row) => row + this.#starts[i]));
    this.length = this.#starts.at(-1) - this.#removed.length;
  }

  /** The id of a row. */
  at(row) {
    const stored = this.#stored(checkRow(row, this.length));
    const piece = firstPlace(this.#starts.length, (place) => this.#starts[place] > stored) - 1;
    return this.pieces[piece].at(stored - this.#starts[piece]);
  }

  /** The row of an id, or null. */
  find(word) {
    checkString(word, "the word");
    for (const [i, piece] of this.pieces.entries()) {
      const stored = piece.find(word);
      const row = stored === null ? null : this.#live(this.#starts[i] + stored);
      if (row !== null) return row;
    }
    return null;
  }

  /** The first `most` rows, in row order, whose ids start with `prefix`. */
  startingWith(prefix, most = 8) {
    checkString(prefix, "the prefix");
    checkCount(most, "most");
    const rows = [];
    for (const [i, piece] of this.pieces.entries()) {
      if (rows.length >= most) break;
      const stored = piece.startingWith(prefix, most + this.#removed.length);
      rows.push(...stored.map((row) => this.#live(this.#starts[i] + row)).filter((row) => row !== null));
    }
    return rows.slice(0, most);
  }

  verify() {
    for (const piece of this.pieces) piece.verify();
  }

  #stored(row) {
    const removed = this.#removed;
    return row + firstPlace(removed.length, (place) => removed[place] - place > row);
  }

  /** The row without the removed ones; null if it is removed. */
  #live(stored) {
    const before = firstPlace(this.#removed.length, (place) => this.#removed[place] >= stored);
    return this.#removed[before] === stored ? null : stored - before;
  }
}

/** Binary search: the first of `count` places that satisfies `reached`, which then all later ones do. */
function firstPlace(count, reached) {
  let [low, high] = [0, count];
  while (low < high) {
    const middle = Math.floor((low + high) / 2);
    if (reached(middle)) high = middle;
    else low = middle + 1;
  }
  return low;
}
