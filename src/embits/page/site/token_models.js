/** WordPiece, BPE and Unigram: the ids of the tokens of a word, as the package `tokenizers` finds them. */
import { FormatError } from "./format.js";
import { MergeQueue } from "./merge_queue.js";
import { unknownPart } from "./patterns.js";

const UNKNOWN_PENALTY = 10; // of a character that no token has, below the lowest score
const utf8 = new TextEncoder();

const noUnknown = (token) => {
  throw new FormatError(`damaged: the tokenizer has no unknown token '${String(token).slice(0, 40)}'`);
};

/** The ids of the tokens `<0x0A>` of the bytes of a text, or null if one is missing. */
function byteTokens(ids, text) {
  const found = Array.from(utf8.encode(text), (byte) =>
    ids.get(`<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`),
  );
  return found.includes(undefined) ? null : found;
}

/** The longest tokens from left to right. */
function wordPiece({ unk_token, continuing_subword_prefix: prefix, max_input_chars_per_word: most }, ids) {
  const unknown = () => [ids.get(unk_token) ?? noUnknown(unk_token)];
  return (word) => {
    const characters = Array.from(word);
    if (characters.length > most) return unknown();
    const found = [];
    for (let start = 0; start < characters.length; ) {
      let end = characters.length;
      let id;
      for (; end > start && id === undefined; end--) {
        const part = characters.slice(start, end).join("");
        id = ids.get(start ? prefix + part : part);
      }
      if (id === undefined) return unknown();
      found.push(id);
      start = end + 1;
    }
    return found;
  };
}

/** Pairs of tokens are merged, the pair of lowest rank first. */
function bpe(model, ids, merges) {
  const { unk_token, fuse_unk, byte_fallback, ignore_merges, dropout } = model;
  const [prefix, suffix] = [model.continuing_subword_prefix ?? "", model.end_of_word_suffix ?? ""];
  if (dropout) unknownPart("setting", "dropout");

  /** The ids of the characters of a word. */
  function characters(word) {
    const found = [];
    let unknown = null;
    const all = Array.from(word);
    all.forEach((character, i) => {
      const text = (i ? prefix : "") + character + (i === all.length - 1 ? suffix : "");
      const id = ids.get(text);
      const bytes = id === undefined && byte_fallback ? byteTokens(ids, text) : null;
      if (bytes) return found.push(...bytes); // before an unknown character that waits, as in Rust
      if (id === undefined && typeof unk_token !== "string") return;
      if (unknown !== null && (id !== undefined || !fuse_unk)) found.push(unknown);
      unknown = id === undefined ? (ids.get(unk_token) ?? noUnknown(unk_token)) : null;
      if (id !== undefined) found.push(id);
    });
    if (unknown !== null) found.push(unknown);
    return found;
  }

  return (word) => {
    const whole = ignore_merges ? ids.get(word) : undefined;
    return whole === undefined ? merged(Int32Array.from(characters(word)), merges) : [whole];
  };
}

/** Merge pairs of `tokens` until no pair is in `merges`: a map from left × size + right to rank. */
function merged(tokens, { ranks, made, size }) {
  const count = tokens.length;
  const next = Int32Array.from(tokens, (_, i) => i + 1);
  const previous = Int32Array.from(tokens, (_, i) => i - 1);
  const queue = new MergeQueue();
  const propose = (at) => {
    if (at < 0 || next[at] >= count) return;
    const rank = ranks.get(tokens[at] * size + tokens[next[at]]);
    if (rank !== undefined) queue.push(rank, at);
  };
  for (let at = 0; at + 1 < count; at++) propose(at);
  for (let top = queue.pop(); top; top = queue.pop()) {
    const { rank, at } = top;
    const right = next[at];
    if (tokens[at] < 0 || right >= count) continue;
    const found = ranks.get(tokens[at] * size + tokens[right]);
    if (found === undefined || made[found] !== made[rank]) continue; // the pair has changed
    tokens[at] = made[rank];
    tokens[right] = -1;
    next[at] = next[right];
    if (next[right] < count) previous[next[right]] = at;
    propose(previous[at]);
    propose(at);
  }
  return Array.from(tokens.filter((token) => token >= 0));
}

/** The tokens with the highest sum of scores. */
function unigram({ unk_id, byte_fallback }, ids, scores) {
  const lowest = scores.reduce((least, score) => Math.min(least, score), Infinity) - UNKNOWN_PENALTY;
  const beginnings = new Set();
  for (const token of ids.keys()) for (let end = 1; end <= token.length; end++) beginnings.add(token.slice(0, end));
  const unknown = () => (Number.isInteger(unk_id) ? unk_id : noUnknown(unk_id));

  /** Where the best way to each place begins, and with which token. */
  function best(word) {
    const score = new Float64Array(word.length + 1);
    const starts = new Int32Array(word.length + 1).fill(-1);
    const tokens = new Int32Array(word.length + 1);
    const offer = (start, end, id, value) => {
      if (starts[end] >= 0 && !(value > score[end])) return;
      [score[end], starts[end], tokens[end]] = [value, start, id];
    };
    for (let start = 0; start < word.length; ) {
      const step = word.codePointAt(start) > 0xffff ? 2 : 1;
      let single = false;
      for (let end = start + 1; end <= word.length; end++) {
        const part = word.slice(start, end);
        if (!beginnings.has(part)) break;
        const id = ids.get(part);
        if (id === undefined) continue;
        offer(start, end, id, scores[id] + score[start]);
        single ||= end === start + step;
      }
      if (!single) offer(start, start + step, unknown(), lowest + score[start]);
      start += step;
    }
    return { starts, tokens };
  }

  return (word) => {
    const { starts, tokens } = best(word);
    const parts = [];
    let joined = false; // unknown characters beside each other are one
    for (let end = word.length; end > 0; end = starts[end]) {
      const part = word.slice(starts[end], end);
      const isUnknown = tokens[end] === unk_id;
      if (isUnknown && joined) parts.push(part + parts.pop());
      else parts.push(part);
      joined = isUnknown;
    }
    return parts.reverse().flatMap((part) => {
      return ids.get(part) ?? (byte_fallback ? byteTokens(ids, part) : null) ?? unknown();
    });
  };
}

/** The function from a word to ids of a model's settings and tables. */
export function modelOf(model, { ids, scores, merges }) {
  if (model.type === "WordPiece") return wordPiece(model, ids);
  if (model.type === "BPE") return bpe(model, ids, merges);
  return model.type === "Unigram" ? unigram(model, ids, scores) : unknownPart("model", model.type);
}
