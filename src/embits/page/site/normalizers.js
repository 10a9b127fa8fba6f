/** What a tokenizer does to a text before it cuts it: the normalizers of `tokenizer.json`, as functions of a string. */
import { regularExpression, unknownPart } from "./patterns.js";
import {
  cleaned,
  lowered,
  normalized,
  SPACE,
  withoutMarks,
  withoutNonspacing,
  withSpacesAroundChinese,
} from "./unicode.js";

const BYTES = bytesAsCharacters();
const utf8 = new TextEncoder();

/** GPT-2's character for each byte: itself if it can be seen, otherwise one from U+0100 on. */
function bytesAsCharacters() {
  let next = 256;
  const isSeen = (byte) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(isSeen(byte) ? byte : next++));
}

/** A text as one character for each byte of its UTF-8. */
export const inBytes = (text) => Array.from(utf8.encode(text), (byte) => BYTES[byte]).join("");

const NORMALIZERS = {
  Sequence: ({ normalizers }) => {
    const steps = normalizers.map(normalizerOf);
    return (text) => steps.reduce((done, step) => step(done), text);
  },
  BertNormalizer: ({ clean_text, handle_chinese_chars, strip_accents, lowercase }) => {
    const stripped = strip_accents ?? lowercase;
    return (text) => {
      if (clean_text) text = cleaned(text);
      if (handle_chinese_chars) text = withSpacesAroundChinese(text);
      if (stripped) text = withoutNonspacing(normalized(text, "NFD"));
      return lowercase ? lowered(text) : text;
    };
  },
  NFC: () => (text) => normalized(text, "NFC"),
  NFD: () => (text) => normalized(text, "NFD"),
  NFKC: () => (text) => normalized(text, "NFKC"),
  NFKD: () => (text) => normalized(text, "NFKD"),
  Lowercase: () => lowered,
  StripAccents: () => withoutMarks,
  Strip: ({ strip_left, strip_right }) => {
    const [left, right] = [new RegExp(`^[${SPACE}]+`), new RegExp(`[${SPACE}]+$`)];
    return (text) => {
      if (strip_left) text = text.replace(left, "");
      return strip_right ? text.replace(right, "") : text;
    };
  },
  Nmt: () => (text) =>
    text
      .replace(/[\x01-\x08\x0b\x0e-\x1f\x7f\x8f\x9f]/g, "")
      .replace(/[\t\n\f\r\u1680\u200b-\u200f\u2028\u2029\u2581\ufeff\ufffd]/g, " "),
  Prepend: ({ prepend }) => (text) => (text ? prepend + text : text),
  Replace: ({ pattern, content }) => {
    const found = regularExpression(pattern);
    return (text) => text.replace(found, () => content);
  },
  ByteLevel: () => inBytes,
};

/** The function of a normalizer's settings; null leaves a text as it is. */
export function normalizerOf(settings) {
  if (settings === null || settings === undefined) return (text) => text;
  const make = Object.hasOwn(NORMALIZERS, settings.type) ? NORMALIZERS[settings.type] : null;
  return make ? make(settings) : unknownPart("normalizer", settings.type);
}
