/**
 * The tokenizer of a text encoder (docs/file-format.md): normalizes a text, cuts it into words, and finds the
 * ids of their tokens. It gives the ids of the Python package `tokenizers` without special tokens around them.
 */
import { MAX_ADDED, MAX_GROWTH, MAX_SPLIT, MAX_TOKENIZER, MAX_TOKENS, MAX_WORK, MERGE_WORK } from "./constants.js";
import { checkJSON, FormatError } from "./format.js";
import { normalizerOf } from "./normalizers.js";
import { preTokenizerOf } from "./pre_tokenizers.js";
import { modelOf } from "./token_models.js";
import { SPACE, WORD } from "./unicode.js";

const MAX_RANK = 2 ** 22;

const damaged = (problem = "the tokenizer is not one that embits wrote") => {
  throw new FormatError(`damaged: ${problem}`);
};

/** The tokenizer of the bytes that embits writes; they are compressed, so this returns a promise. */
export async function readTokenizer(bytes, count = MAX_TOKENS) {
  const text = await inflated(bytes, Math.min(MAX_TOKENIZER, 2 ** 20 + 512 * count));
  const maxValues = 100_000 + 16 * count;
  try {
    const about = JSON.parse(checkJSON(text, maxValues, 10_000 + count));
    checkWork(about, Math.min(maxValues, MAX_TOKENS));
    return tokenizerOf(about);
  } catch (error) {
    if (error instanceof FormatError) throw error;
    return damaged();
  }
}

/** Refuse what would take much more time or memory than the tokenizers in use. */
function checkWork({ tokenizer, tokens, separator, scores }, maxTokens) {
  const listed = tokens?.split(separator, maxTokens + 2) ?? [];
  if (listed.length > maxTokens + 1) damaged();
  const { vocab } = tokenizer.model;
  const scored = Array.isArray(vocab) ? vocab.map(([token]) => token) : scores === undefined ? [] : listed;
  const letters = (all) => all.reduce((sum, token) => sum + token.length, 0);
  const added = (tokenizer.added_tokens ?? []).map(({ content }) => content);
  const isLong = letters(added) > MAX_ADDED || letters(scored) > 2 ** 17 + 16 * scored.length;
  if (isLong || growthOf(tokenizer.normalizer) > MAX_GROWTH) {
    damaged("the tokenizer would take much time or memory");
  }
}

/** How many characters a normalizer makes of one, at most. */
function growthOf(normalizer) {
  const { normalizers, pattern, content, prepend } = normalizer ?? {};
  const [before, after] = [pattern?.String?.length ?? 0, content?.length ?? 0];
  const own = Math.max(1, before ? Math.ceil(after / before) : after + 1) * Math.max(1, prepend?.length ?? 0);
  return (normalizers ?? []).reduce((growth, each) => growth * growthOf(each), own);
}

async function inflated(bytes, most) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const reader = stream.getReader();
  const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });
  let [text, size, sums] = ["", 0, [1, 0]];
  try {
    for (let { value, done } = await reader.read(); !done; { value, done } = await reader.read()) {
      size += value.length;
      if (size > most) break;
      text += decoder.decode(value, { stream: true });
      sums = adler32(sums, value);
    }
    text += decoder.decode();
  } catch {
    damaged();
  }
  if (size > most) {
    await reader.cancel();
    damaged();
  }
  // Some engines ignore what follows the end of the compressed data.
  const end = bytes.length < 4 ? null : new DataView(bytes.buffer, bytes.byteOffset + bytes.length - 4);
  if (end?.getUint32(0) !== ((sums[1] << 16) | sums[0]) >>> 0) damaged();
  return text;
}

/** The two sums of Adler-32 (RFC 1950), with more bytes added. */
function adler32([a, b], bytes) {
  for (const byte of bytes) {
    a = (a + byte) % 65521;
    b = (b + a) % 65521;
  }
  return [a, b];
}

function tokenizerOf(about) {
  const { tokenizer } = about;
  const { ids, tables } = tablesOf(about);
  const normalize = normalizerOf(tokenizer.normalizer);
  const cut = preTokenizerOf(tokenizer.pre_tokenizer);
  const model = modelOf(tokenizer.model, tables);
  const added = addedTokens(tokenizer.added_tokens ?? [], ids, normalize);
  const size = added.ids.reduce((most, id) => Math.max(most, id + 1), tables.size);

  /** The ids of a text's tokens. Lone surrogates, which UTF-8 does not have, are left out. */
  function encode(text) {
    const whole = text.replace(/\p{Surrogate}/gu, "");
    const found = [];
    const words = (piece, isFirst) => {
      for (const word of cut(piece, isFirst)) {
        if (word !== "") for (const id of model(word)) found.push(id);
      }
    };
    const known = (id) => found.push(id);
    added.raw(whole, known, (piece, isFirst) =>
      added.normalized(normalize(piece), known, (part, i) => words(part, isFirst && i)),
    );
    return found;
  }
  return { encode, size, ids };
}

// -- tables ---------------------------------------------------------------------------------------

/** The id of each token, and the scores or merges of the model. */
function tablesOf({ tokenizer: { model }, tokens, separator, scores, merges }) {
  if (tokens === undefined) return plainTables(model);
  const all = tokens.split(separator);
  const ids = new Map(all.map((token, id) => [token, id]));
  const tables = { ids, size: all.length };
  if (scores !== undefined) tables.scores = scoresOf(scores, all.length);
  else if (ids.size !== all.length) damaged("two tokens are the same");
  if (model.type === "BPE") tables.merges = mergeTable(groupsOf(merges ?? [], all, ids, model), all.length);
  return { ids, tables };
}

/** The tables of a `tokenizer.json` that was kept as it is. */
function plainTables(model) {
  const { vocab, merges = [] } = model;
  const isList = Array.isArray(vocab);
  const ids = new Map(isList ? vocab.map(([token], id) => [token, id]) : Object.entries(vocab));
  const size = isList ? vocab.length : Math.max(0, ...Array.from(ids.values(), (id) => id + 1));
  const whole = [...ids.values()].every((id) => Number.isSafeInteger(id) && id >= 0 && id < MAX_TOKENIZER);
  if (!whole) damaged("an id of a token is not a whole number");
  const tables = { ids, size };
  if (isList) tables.scores = Float64Array.from(vocab, ([, score]) => readByRust(score));
  const prefix = (model.continuing_subword_prefix ?? "").length;
  const triples = merges.map(([left, right]) => {
    const triple = [ids.get(left), ids.get(right), ids.get(left + right.slice(prefix))];
    return triple.includes(undefined) ? damaged("a merge has an unknown token") : triple;
  });
  if (model.type === "BPE") tables.merges = mergeTable(triples, size);
  return { ids, tables };
}

function scoresOf(text, count) {
  const [size, ...bytes] = [Number(text[0]), ...Uint8Array.from(atob(text.slice(1)), (c) => c.charCodeAt(0))];
  if (![4, 8].includes(size) || bytes.length !== size * count) damaged("the scores of the tokens do not fit");
  const planes = new Uint8Array(bytes.length);
  bytes.forEach((byte, i) => (planes[(i % count) * size + Math.floor(i / count)] = byte));
  const scores = size === 4 ? new Float32Array(planes.buffer) : new Float64Array(planes.buffer);
  return Float64Array.from(scores, readByRust);
}

/** A number as `tokenizers` reads it from JSON: digits / 10ⁿ, which may round twice. It decides between equal sums. */
function readByRust(number) {
  const [, sign, whole, decimals = "", power = "0"] = /^(-?)(\d+)(?:\.(\d+))?(?:e([+-]\d+))?$/.exec(String(number)) ?? [];
  const places = decimals.length - Number(power);
  if (whole === undefined || places < 0 || places > 22) return number;
  return Number(`${sign}${whole}${decimals}`) / Number(`1e${places}`);
}

/** Merges by their tokens: the rank of each pair, and the token that each rank makes. */
function mergeTable(triples, size) {
  if (triples.length > MAX_RANK) damaged("the tokenizer has too many merges");
  const ranks = new Map(triples.map(([left, right], rank) => [left * size + right, rank]));
  return { ranks, made: Int32Array.from(triples, ([, , token]) => token), size };
}

/** Merges as [left, right, made], from the places where tokens are split. */
function groupsOf(numbers, tokens, ids, model) {
  const prefix = model.continuing_subword_prefix ?? "";
  const triples = [];
  let [made, room] = [-1, MAX_WORK];
  for (let at = 0; at < numbers.length; ) {
    made += numbers[at] + 1;
    const count = numbers[at + 1];
    const token = tokens[made];
    const listed = numbers.slice(at + 2, at + 2 + count);
    if (token === undefined || !(count >= 0) || listed.length !== count) damaged();
    const ends = characterEnds(token);
    room -= MERGE_WORK + ends.length * Math.max(ends.length, count);
    if (room < 0) damaged("the tokenizer has too many merges");
    if (count) for (const place of listed) triples.push(split(token, ends[place - 1]) ?? damaged());
    else if (ends.length <= MAX_SPLIT) {
      const found = ends.slice(0, -1).map((end) => split(token, end));
      triples.push(...found.filter(Boolean).sort(([a, b], [c, d]) => a - c || b - d));
    }
    at += 2 + count;
  }
  return triples;

  /** The merge of the two parts of a token; undefined if one of them is no token. */
  function split(token, end) {
    if (end === undefined) return damaged();
    const left = ids.get(token.slice(0, end));
    const right = left === undefined ? left : ids.get(prefix + token.slice(end));
    return right === undefined ? right : [left, right, made];
  }
}

/** Where each character of a token ends. */
function characterEnds(token) {
  const ends = [];
  for (let end = 1; end <= token.length; end++) {
    if (!(token.codePointAt(end - 1) > 0xffff)) ends.push(end);
  }
  return ends;
}

// -- added tokens ---------------------------------------------------------------------------------

/** Functions that cut out the tokens that were added to a vocabulary: from texts, and from normalized ones. */
function addedTokens(settings, ids, normalize) {
  const tokens = settings
    .filter(({ content }) => content !== "")
    .map((each) => ({ ...each, id: ids.get(each.content) ?? each.id }));
  const raw = tokens.filter(({ normalized }) => !normalized).map((each) => [each.content, each]);
  const others = tokens.filter(({ normalized }) => normalized).map((each) => [normalize(each.content), each]);
  const all = tokens.map(({ id }) => id);
  if (!all.every((id) => Number.isSafeInteger(id) && id >= 0)) damaged("an added token has no id");
  return { raw: cutter(new Map(raw)), normalized: cutter(new Map(others)), ids: all };
}

const endsWithWord = new RegExp(`${WORD}$`, "u");
const startsWithWord = new RegExp(`^${WORD}`, "u");

/** A function that calls `known` with the ids of tokens in a text, and `other` with the pieces between them. */
function cutter(tokens) {
  const escaped = [...tokens.keys()]
    .filter((content) => content !== "")
    .sort((a, b) => b.length - a.length) // of those at one place, the longest is found
    .map((content) => content.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&"));
  if (!escaped.length) return (text, known, other) => text && other(text, true);
  const pattern = new RegExp(escaped.join("|"), "gu");
  return (text, known, other) => {
    let end = 0;
    for (const { 0: match, index } of text.matchAll(pattern)) {
      const { id, single_word, lstrip, rstrip } = tokens.get(match);
      let [start, stop] = [index, index + match.length];
      if (single_word && (endsWithWord.test(text.slice(0, start)) || startsWithWord.test(text.slice(stop)))) continue;
      if (lstrip) start = Math.max(end, text.slice(0, start).search(new RegExp(`[${SPACE}]*$`)));
      if (rstrip) stop += text.slice(stop).match(new RegExp(`^[${SPACE}]*`))[0].length;
      if (end < start) other(text.slice(end, start), end === 0);
      known(id);
      end = stop;
    }
    if (end < text.length) other(text.slice(end), end === 0);
  };
}
