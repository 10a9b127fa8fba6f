/** The parts of one embits file: its facts, codes and words, checked, and the check of every byte. */
import { cellsOf, checkCell } from "./cells.js";
import { checkLearned, typedJSON } from "./coder_rules.js";
import { MAX_SIZE } from "./constants.js";
import { NumberIds, UuidIds } from "./fixed_ids.js";
import { digest, FormatError, parseJSON, readLayout } from "./format.js";
import { lengthsOf } from "./lengths.js";
import { PackedVocabulary } from "./packed.js";
import { RowNumbers, Vocabulary } from "./vocabulary.js";

const WORD_TENSORS = ["words", "word_codes", "word_starts", "word_rows", "word_links", "word_numbers", "word_uuids"];
const SCALE_BYTES = 4; // of the scale of a vector that is kept in 8 bits a dimension

/** Check the header of a file's bytes; return its parts, which are views of the bytes. */
export function readContents(bytes) {
  const { metadata, tensors, header } = readLayout(bytes);
  const facts = factsOf(metadata);
  const codes = tensors.get("codes");
  const width = Math.ceil(facts.nBits / 8);
  if (codes?.dtype !== "U8" || codes.shape.length !== 2 || codes.shape[1] !== width) {
    throw new FormatError(`damaged: no codes of ${facts.nBits} bits`);
  }
  const length = codes.shape[0];
  const settings = textSettings(metadata);
  const hasNoWords = settings && tensors.has("text.tokenizer"); // whatever tensors there are
  const words = hasNoWords ? new RowNumbers(length) : vocabularyOf(tensors, length, metadata.format_version);
  const lengths = lengthsOf(tensors, metadata, length);
  const cells = settings ? null : cellsOf(tensors, length, facts.nBits);
  if (!settings && Boolean(cells) !== (metadata.format_version === "4")) {
    throw new FormatError(`damaged: cells in format version ${metadata.format_version}, or none in 4`);
  }
  if (!settings) checkColumns(tensors, length, facts.dims);
  const order = cells && tensors.get("cells.order");
  if (order && (order.dtype !== "U32" || order.shape.join() !== String(length) || order.data.some((row) => row >= length))) {
    throw new FormatError("damaged: the order of the rows");
  }
  return { facts, tensors, header, codes: codes.data, width, length, words, lengths, metadata, cells, order: order?.data ?? null, settings };
}

/** Check the shapes of the columns and of the vectors that are kept. */
function checkColumns(tensors, length, dims) {
  for (const [name, { shape }] of tensors) {
    if (name.startsWith("column.") && shape.join() !== String(length)) {
      throw new FormatError(`damaged: the column '${name.slice(7)}' has shape [${shape}] for ${length} rows`);
    }
  }
  const kept = tensors.get("floats");
  const width = { F16: dims, U8: dims + SCALE_BYTES }[kept?.dtype];
  if (kept && kept.shape.join() !== `${length},${width}`) throw new FormatError(`damaged: floats are ${kept.dtype} [${kept.shape}]`);
}

/** The settings of a text encoder, typed JSON; null if the file is none. */
function textSettings({ text, format_version }) {
  if (text === undefined) return null;
  const found = parsed(text, typedJSON);
  if (!(found instanceof Map) || ["1", "2"].includes(format_version)) throw new FormatError("damaged: the settings of the text encoder are no JSON object");
  return found;
}

/** What the metadata of a file say of its codes. */
export function factsOf({ bits, dims, method, writer, params }) {
  const whole = [bits, dims].every((text) => /^[1-9]\d{0,14}$/.test(text ?? "") && Number(text) <= MAX_SIZE);
  const given = parsed(params);
  if (!whole || method === undefined || writer === undefined || !(given instanceof Map)) {
    throw new FormatError("damaged: bits, dims, method, params or writer are missing or wrong");
  }
  return { nBits: Number(bits), dims: Number(dims), method, writer, params: Object.fromEntries(given) };
}

function parsed(text, parse = parseJSON) {
  try {
    return parse(text ?? "");
  } catch {
    return null;
  }
}

/** The words of the tensors of a file, or row numbers. */
export function vocabularyOf(tensors, rows, version) {
  if (version !== "1") return packedVocabularyOf(tensors, rows);
  const parts = ["words", "word_ends", "word_order"].map((name) => tensors.get(name));
  if (parts.every((part) => !part)) return new RowNumbers(rows);
  if (!parts.every((part) => part)) {
    throw new FormatError("damaged: of words, word_ends and word_order, one is missing");
  }
  return new Vocabulary(...parts, rows);
}

function packedVocabularyOf(tensors, rows) {
  const names = WORD_TENSORS.filter((name) => tensors.has(name));
  const fixed = { word_numbers: NumberIds, word_uuids: UuidIds };
  for (const [name, Ids] of Object.entries(fixed)) {
    if (!names.includes(name)) continue;
    if (names.some((each) => each !== name && each !== "word_rows")) {
      throw new FormatError(`damaged: the ids are of several kinds: ${names.join(", ")}`);
    }
    return new Ids(tensors, rows);
  }
  return names.length ? new PackedVocabulary(tensors, rows) : new RowNumbers(rows);
}

/** Check every byte of a file, or throw FormatError; a piece of a collection has no coder of its own. */
export async function verifyContents({ tensors, metadata, codes, width, facts, words, cells, order, settings }, isPiece = false) {
  const checksums = parsed(metadata.sha256);
  for (const { name, dtype, data, bytes } of tensors.values()) {
    if ((await digest(bytes)) !== checksums?.get(name)) {
      throw new FormatError(`damaged: the bytes of tensor '${name}' do not match its checksum`);
    }
    if (dtype.startsWith("F") && !allFinite(data)) {
      throw new FormatError(`damaged: tensor '${name}' contains NaN or infinity`);
    }
  }
  const spare = (1 << (8 * width - facts.nBits)) - 1;
  for (let at = width - 1; spare && at < codes.length; at += width) {
    if (codes[at] & spare) throw new FormatError("damaged: a code has a padding bit set");
  }
  words.verify();
  if (settings) return;
  if (!isPiece) checkLearned(facts.method, tensors);
  const kept = tensors.get("floats");
  for (let row = 0; kept?.dtype === "U8" && row < kept.shape[0]; row++) {
    const scale = new DataView(kept.bytes.buffer, kept.bytes.byteOffset + row * kept.shape[1], SCALE_BYTES);
    if (!Number.isFinite(scale.getFloat32(0, true))) throw new FormatError("damaged: the scales of floats hold NaN or infinity");
  }
  if (!cells) return;
  const isWrong = (byte) => byte >> 4 === 0 || (byte & 15) === 0;
  if (tensors.get("cells.centers").data.some(isWrong)) throw new FormatError("damaged: the centers of the cells");
  const seen = new Uint8Array(order.length);
  order.forEach((row) => (seen[row] = 1));
  if (seen.includes(0)) throw new FormatError("damaged: the order of the rows");
  for (let cell = 0; cell < cells.length; cell++) {
    const [start, end] = [cells.starts[cell], cells.starts[cell + 1]];
    await checkCell(cells, cell, codes.subarray(start * width, end * width), order.subarray(start, end));
  }
}

function allFinite(numbers) {
  // F16 numbers are read as 16 bits: NaN and infinity have all exponent bits set.
  const finite = numbers instanceof Uint16Array ? (x) => (x & 0x7c00) !== 0x7c00 : Number.isFinite;
  return numbers.every(finite);
}
