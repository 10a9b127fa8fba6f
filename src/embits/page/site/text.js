/** UTF-8 as words use it. */
import { FormatError } from "./format.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
const LONE_SURROGATE = /\p{Surrogate}/u;

/** The UTF-8 of a word; null if it has none. */
export function toUTF8(word) {
  return LONE_SURROGATE.test(word) ? null : encoder.encode(word);
}

/** The word of a row, given its UTF-8. */
export function toText(bytes, row) {
  try {
    return decoder.decode(bytes);
  } catch {
    throw new FormatError(`damaged: word ${row} is not valid UTF-8`);
  }
}

/** The order of two byte strings: negative, 0 or positive. */
export function compare(a, b) {
  const shorter = Math.min(a.length, b.length);
  for (let i = 0; i < shorter; i++) if (a[i] !== b[i]) return a[i] - b[i];
  return a.length - b.length;
}

/** The `most` smallest rows of the places from `start` to `stop`, ascending. */
export function firstRows(rowAt, start, stop, most) {
  const first = []; // sorted; in most files the first rows are the frequent words
  for (let place = start; place < stop; place++) {
    const row = rowAt(place);
    if (first.length === most && !(row < first[most - 1])) continue;
    const at = first.findIndex((other) => other > row);
    first.splice(at < 0 ? first.length : at, 0, row);
    first.length = Math.min(first.length, most);
  }
  return first;
}
