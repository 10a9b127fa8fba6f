/** The parts of one embits file: its facts, codes and words, checked, and the check of every byte. */
import { cellsOf, checkCell } from "./cells.js";
import { NumberIds, UuidIds } from "./fixed_ids.js";
import { digest, FormatError, parseJSON, readLayout } from "./format.js";
import { lengthsOf } from "./lengths.js";
import { PackedVocabulary } from "./packed.js";
import { RowNumbers, Vocabulary } from "./vocabulary.js";

const WORD_TENSORS = ["words", "word_codes", "word_starts", "word_rows", "word_links"];

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
  const words = vocabularyOf(tensors, length, metadata.format_version);
  const lengths = lengthsOf(tensors, metadata, length);
  const cells = cellsOf(tensors, length, facts.nBits);
  const order = cells && tensors.get("cells.order");
  if (order && (order.dtype !== "U32" || order.shape.join() !== String(length) || order.data.some((row) => row >= length))) {
    throw new FormatError("damaged: the order of the rows");
  }
  const settings = textSettings(metadata);
  return { facts, tensors, header, codes: codes.data, width, length, words, lengths, metadata, cells, order: order?.data ?? null, settings };
}

/** The settings of a text encoder; null if the file is none. */
function textSettings({ text }) {
  if (text === undefined) return null;
  const found = parsed(text);
  if (!(found instanceof Map)) throw new FormatError("damaged: the settings of the text encoder are no JSON object");
  const plain = (value) =>
    value instanceof Map ? Object.fromEntries([...value].map(([name, each]) => [name, plain(each)])) : value;
  return plain(found);
}

/** What the metadata of a file say of its codes. */
export function factsOf({ bits, dims, method, writer, params }) {
  const whole = [bits, dims].every((text) => /^0*[1-9]\d{0,14}$/.test(text ?? ""));
  const given = parsed(params);
  if (!whole || method === undefined || writer === undefined || !(given instanceof Map)) {
    throw new FormatError("damaged: bits, dims, method, params or writer are missing or wrong");
  }
  return { nBits: Number(bits), dims: Number(dims), method, writer, params: Object.fromEntries(given) };
}

function parsed(text) {
  try {
    return parseJSON(text ?? "");
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
  if (tensors.has("word_numbers")) return new NumberIds(tensors, rows);
  if (tensors.has("word_uuids")) return new UuidIds(tensors, rows);
  return WORD_TENSORS.some((name) => tensors.has(name))
    ? new PackedVocabulary(tensors, rows)
    : new RowNumbers(rows);
}

// The arrays of each coder. Other methods may have any arrays: searching does not need them.
const CODERS = {
  paper: { W: ["bits", "dims"], c: ["dims"], loss_curve: ["any", 2] },
  lsh: { planes: ["bits", "dims"], decoder: ["bits", "dims"], offset: ["dims"] },
  sign: { decoder: ["bits", "dims"], offset: ["dims"] },
  neural: {
    W: ["bits", "dims"],
    t: ["bits"],
    decoder: ["bits", "more"],
    offset: ["more"],
    loss_curve: ["any", 3],
    look: [3],
    net_A: ["any", "bits"],
    net_G: ["any", "any"],
    net_M: ["dims", "any"],
    net_alpha: ["any"],
    net_a: ["any"],
    net_beta: ["any"],
    net_g: ["any"],
    net_c: ["dims"],
    net_o: ["dims"],
    layer_S: ["any", "dims"],
    layer_U: ["bits", "any"],
    layer_sigma: ["any"],
    layer_u: ["any"],
    layer_upsilon: ["bits"],
  },
};
const BYTES = ["net_A", "net_G", "net_M", "layer_S", "layer_U"]; // int8; all others are floats

/** Check the types and shapes of the coder's arrays. */
export function checkCoder({ facts: { method, nBits, dims }, tensors, metadata }) {
  if (metadata.left_out?.split(",").includes("coder")) return;
  const known = Object.hasOwn(CODERS, method) ? CODERS[method] : {};
  for (const [name, wanted] of Object.entries(known)) {
    const tensor = tensors.get(`coder.${name}`);
    if (!tensor && name.startsWith("layer_")) continue; // encoders without a hidden layer
    const { dtype = "", shape = [] } = tensor ?? {};
    const sizes = wanted.map((size) => ({ bits: nBits, dims, more: dims + 1 })[size] ?? size);
    const fits =
      shape.length === sizes.length && sizes.every((size, i) => size === "any" || size === shape[i]);
    const [kind, first] = BYTES.includes(name) ? ["int8", "I8"] : ["floats", "F"];
    if (!dtype.startsWith(first) || !fits) {
      throw new FormatError(
        `damaged: the coder's ${name} is ${dtype} [${shape}], expected ${kind} [${sizes}]`,
      );
    }
  }
}

/** Check every byte of a file, or throw FormatError. */
export async function verifyContents({ tensors, metadata, codes, width, facts, words, cells, order }) {
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
  if (!cells) return;
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
