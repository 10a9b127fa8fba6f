/** The regular expressions of `tokenizer.json`, in the words of JavaScript; others are refused. */
import { FormatError } from "./format.js";
import { LETTER, NUMBER, OTHER, SPACE } from "./unicode.js";

export function unknownPart(part, type) {
  throw new FormatError(`JavaScript does not know the tokenizer's ${part} '${String(type).slice(0, 60)}'`);
}

const END = "(?:'[sS\u017f]|'[tT]|'[rR][eE]|'[vV][eE]|'[mM]|'[lL][lL]|'[dD])"; // (?i:…): ſ is an s
const AFTER = `(?:(?![\\r\\n]|${LETTER}|${NUMBER})[^])?${LETTER}+`; // a letter's sign before it
const SIGNS = `(?: ?${OTHER}+[\\r\\n]*)`;
const SPACES = `[${SPACE}]*[\\r\\n]+|[${SPACE}]+(?![^${SPACE}])|[${SPACE}]+`;
const gpt = (digits) => `${END}|${AFTER}|${NUMBER}${digits}|${SIGNS}|${SPACES}`;

// The patterns that tokenizers in use have, and the same in JavaScript.
const KNOWN = {
  // GPT-2, also that of ByteLevel
  "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+": `'s|'t|'re|'ve|'m|'ll|'d| ?${LETTER}+| ?${NUMBER}+| ?${OTHER}+|[${SPACE}]+(?![^${SPACE}])|[${SPACE}]+`,
  // GPT-4 and Llama 3
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}{1,3}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+":
    gpt("{1,3}"),
  // Qwen
  "(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\\r\\n\\p{L}\\p{N}]?\\p{L}+|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+":
    gpt(""),
  " {2,}": " {2,}",
  "\\s+": `[${SPACE}]+`,
  "\\s": `[${SPACE}]`,
  "\\p{N}": NUMBER,
  "\\p{N}{1,3}": `${NUMBER}{1,3}`,
  "\\d": "\\p{Nd}",
};

export const GPT2 = Object.keys(KNOWN)[0];

/** A regular expression of a pattern: { String } or { Regex }. */
export function regularExpression(pattern) {
  if (typeof pattern?.String === "string") {
    return new RegExp(pattern.String.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"), "gu");
  }
  const known = Object.hasOwn(KNOWN, pattern?.Regex) ? KNOWN[pattern.Regex] : null;
  return known === null ? unknownPart("pattern", pattern?.Regex) : new RegExp(known, "gu");
}
