/**
 * Unicode as the Python package `tokenizers` knows it, whatever version the browser has: it removes marks of
 * Unicode 8, splits at punctuation of Unicode 8 and normalizes by Unicode 9. The tables are made by
 * tests/page/unicode_tables.py.
 */
import { MARKS, NEW_LETTERS, NONSPACING, NOT_NORMALIZED, PUNCTUATION, REMOVED } from "./unicode_tables.js";

/** Code points in hexadecimal, "300-36f 483", as the inside of a regular expression's class. */
const inClass = (ranges) =>
  ranges
    .split(" ")
    .map((range) => range.replace(/[0-9a-f]+/g, "\\u{$&}"))
    .join("");
const anyOf = (ranges, flags = "gu") => new RegExp(`[${inClass(ranges)}]`, flags);

/** White space, as the inside of a class. `\s` has U+FEFF too, and not U+0085. */
export const SPACE = "\\t-\\r \\x85\\xa0\\u1680\\u2000-\\u200a\\u2028\\u2029\\u202f\\u205f\\u3000";
const NEW = inClass(NEW_LETTERS);
/** A letter and a number, as alternatives of one character. */
export const LETTER = `(?:(?![${NEW}])\\p{L})`;
export const NUMBER = `(?:(?![${NEW}])\\p{N})`;
/** A character that is none of space, letter and number. */
export const OTHER = `(?:[^${SPACE}\\p{L}\\p{N}]|[${NEW}])`;
export const WORD = `(?:(?![${NEW}])[\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}])`;
/** A character that is neither of a word nor a space. */
export const NO_WORD = `(?:[^${SPACE}\\p{Alphabetic}\\p{M}\\p{Nd}\\p{Pc}\\p{Join_Control}]|[${NEW}])`;

const frozen = new RegExp(`[${inClass(NOT_NORMALIZED)}]+|[^${inClass(NOT_NORMALIZED)}]+`, "gu");
const isFrozen = anyOf(NOT_NORMALIZED, "u");
const nonspacing = anyOf(NONSPACING);
const marks = anyOf(MARKS);
const removed = anyOf(REMOVED);
const spaces = new RegExp(`[${SPACE}]`, "gu");
const chinese =
  /[\u4e00-\u9fff\u3400-\u4dbf\u{20000}-\u{2a6df}\u{2a700}-\u{2b73f}\u{2b740}-\u{2b81f}\u{2b920}-\u{2ceaf}\uf900-\ufaff\u{2f800}-\u{2fa1f}]/gu;

export const punctuation = anyOf(PUNCTUATION);
export const space = spaces;

/** A text in one of the forms NFC, NFD, NFKC and NFKD. Characters that Unicode 9 lacks stay as they are. */
export function normalized(text, form) {
  if (!isFrozen.test(text)) return text.normalize(form);
  return text.replace(frozen, (part) => (isFrozen.test(part) ? part : part.normalize(form)));
}

export const withoutNonspacing = (text) => text.replace(nonspacing, "");
export const withoutMarks = (text) => text.replace(marks, "");

/** A text without control characters, and with plain spaces. */
export const cleaned = (text) => text.replace(removed, "").replace(spaces, " ");

export const withSpacesAroundChinese = (text) => text.replace(chinese, " $& ");

/** Each character in lower case by itself: a sigma at the end of a word is one as elsewhere. */
export const lowered = (text) => text.replaceAll("Σ", "σ").toLowerCase();
