/**
 * How a tokenizer cuts a text into words: the pre-tokenizers of `tokenizer.json`, as functions of a piece, a
 * string, and whether it begins the text. They return pieces.
 */
import { inBytes } from "./normalizers.js";
import { GPT2, regularExpression, unknownPart } from "./patterns.js";
import { NO_WORD, NUMBER, punctuation, space, WORD } from "./unicode.js";

const BEHAVIORS = {
  Isolated: (parts) => parts.map(({ text }) => text),
  Removed: (parts) => parts.filter(({ found }) => !found).map(({ text }) => text),
  Contiguous: (parts) => joined(parts, (part, before) => part.found === before),
  MergedWithPrevious: (parts) => joined(parts, (part, before) => part.found && !before),
  MergedWithNext: (parts) =>
    joined(parts.reverse(), (part, before) => part.found && !before, true).reverse(),
};

/** Parts of which some are joined to the one before. Nothing before the first part was found. */
function joined(parts, isJoined, backwards = false) {
  const pieces = [];
  let before = false;
  for (const part of parts) {
    if (pieces.length && isJoined(part, before)) {
      const last = pieces.length - 1;
      pieces[last] = backwards ? part.text + pieces[last] : pieces[last] + part.text;
    } else pieces.push(part.text);
    before = part.found;
  }
  return pieces;
}

/** A function that cuts a piece at all places where a pattern is found. */
function cutting(pattern, behavior, invert = false) {
  const name = behavior?.replace(/(?:^|_)([a-z])/g, (_, letter) => letter.toUpperCase());
  const keep = Object.hasOwn(BEHAVIORS, name ?? "") ? BEHAVIORS[name] : unknownPart("way to split", behavior);
  return (piece) => {
    const parts = [];
    let end = 0;
    for (const { 0: match, index } of piece.matchAll(pattern)) {
      if (match === "") continue;
      if (index > end) parts.push({ text: piece.slice(end, index), found: invert });
      parts.push({ text: match, found: !invert });
      end = index + match.length;
    }
    if (end < piece.length) parts.push({ text: piece.slice(end), found: invert });
    return keep(parts);
  };
}

const withoutSpaces = cutting(space, "Removed");
const atPunctuation = cutting(punctuation, "Isolated");

const PRE_TOKENIZERS = {
  Sequence: ({ pretokenizers }) => {
    const steps = pretokenizers.map(preTokenizerOf);
    return (piece, isFirst) =>
      steps.reduce((pieces, step) => flat(pieces, (each, i) => step(each, isFirst && i === 0)), [piece]);
  },
  BertPreTokenizer: () => (piece) => flat(withoutSpaces(piece), atPunctuation),
  WhitespaceSplit: () => withoutSpaces,
  Whitespace: () => cutting(new RegExp(`${WORD}+|(?:${NO_WORD})+`, "gu"), "Removed", true),
  Punctuation: ({ behavior = "Isolated" }) => cutting(punctuation, behavior),
  Digits: ({ individual_digits }) =>
    cutting(new RegExp(NUMBER, "gu"), individual_digits ? "Isolated" : "Contiguous"),
  CharDelimiterSplit: ({ delimiter }) => cutting(regularExpression({ String: delimiter }), "Removed"),
  Split: ({ pattern, behavior, invert }) => cutting(regularExpression(pattern), behavior, invert),
  ByteLevel: ({ add_prefix_space, use_regex = true }) => {
    const cut = use_regex ? cutting(regularExpression({ Regex: GPT2 }), "Isolated") : (piece) => [piece];
    const isAdded = (piece) => add_prefix_space && !piece.startsWith(" ");
    return (piece) => cut(isAdded(piece) ? ` ${piece}` : piece).map(inBytes);
  },
  Metaspace: ({ replacement, prepend_scheme, add_prefix_space, split = true }) => {
    const scheme = add_prefix_space === false ? "never" : (prepend_scheme ?? "always");
    const cut = cutting(regularExpression({ String: replacement }), "MergedWithNext");
    return (piece, isFirst) => {
      const text = piece.replaceAll(" ", replacement);
      const isAdded = scheme === "always" || (scheme === "first" && isFirst);
      const whole = isAdded && !text.startsWith(replacement) ? replacement + text : text;
      return split ? cut(whole) : [whole];
    };
  },
};

const flat = (pieces, cut) => pieces.flatMap((piece, i) => (piece === "" ? [] : cut(piece, i)));

/** The function of a pre-tokenizer's settings; null leaves a piece whole. */
export function preTokenizerOf(settings) {
  if (settings === null || settings === undefined) return (piece) => [piece];
  const make = Object.hasOwn(PRE_TOKENIZERS, settings.type) ? PRE_TOKENIZERS[settings.type] : null;
  return make ? make(settings) : unknownPart("pre-tokenizer", settings.type);
}
