/**
 * Reads a collection (docs/file-format.md): the manifest, the coder, then the pieces one by one. The
 * codes of the rows that are left are copied into one array, so a search is that of a single file.
 * Of a piece, only its ids stay in memory; columns and kept vectors are not read.
 */
import { coderChecksum } from "./coder_checksum.js";
import { checkCoder } from "./coder_rules.js";
import { ENCODER, MANIFEST } from "./constants.js";
import { readContents, verifyContents, vocabularyOf } from "./contents.js";
import { digest, FormatError, isBytes, plainBytes } from "./format.js";
import { readLog } from "./log.js";
import { parseManifest } from "./manifest.js";
import { PieceWords } from "./pieces.js";
import { countDifferences } from "./search.js";
import { openTextEncoder } from "./text_encoder.js";
import { RowNumbers } from "./vocabulary.js";

const MAX_TRIES = 100;

class MissingFile extends FormatError {}

/** The parts of a collection and the kernel that searches it. */
export async function readCollection(read, { room, verify }) {
  let manifest = await readBytes(read, MANIFEST);
  for (let tries = 1; ; tries++) {
    try {
      return await opened(read, parseManifest(manifest), room, verify);
    } catch (error) {
      if (!(error instanceof MissingFile)) throw error;
      const latest = await readBytes(read, MANIFEST);
      // A writer may have replaced the file since the manifest was read.
      if (tries === MAX_TRIES || areEqual(latest, manifest)) throw error;
      manifest = latest;
    }
  }
}

async function opened(read, manifest, room, verify) {
  const coder = await naming(manifest.coder, () => readCoder(read, manifest, verify));
  const { width, facts } = coder;
  const { log, pieces } = manifest;
  const logged = log && (await naming(log, async () => readLog(await readBytes(read, log), manifest, width)));
  const count = logged ? logged.ids.length : 0;
  const length = pieces.reduce((sum, piece) => sum + piece.rows - (piece.removed?.rows ?? 0), count);
  const { memory, codes, lengths } = await memoryOf(length, width, room);
  const [ids, removed] = [[], []];
  let withLengths = 0;
  let size = 0;
  let at = 0;
  for (const entry of [...pieces, ...(logged ? [{ file: log }] : [])]) {
    const isLog = entry.file === log;
    const piece = isLog ? logged : await naming(entry.file, () => readPiece(read, entry, manifest, verify));
    removed.push(isLog ? [] : await removedRows(read, entry));
    ids.push(piece.ids);
    if (piece.lengths) {
      copyRows(piece.lengths, 1, removed.at(-1), lengths, at / width);
      withLengths++;
    }
    at = copyRows(piece.codes, width, removed.at(-1), codes, at);
    size += piece.size;
  }
  const kernel = memory?.countDifferences ?? countDifferences;
  const words = new PieceWords(ids, removed);
  if (verify) checkIds(words, { ...manifest, nextNumber: manifest.nextNumber + count });
  if (verify) await naming(ENCODER, () => checkEncoder(read));
  if (withLengths && withLengths < ids.length) {
    throw new FormatError("damaged: some pieces have lengths and others have none");
  }
  const contents = { facts, tensors: coder.tensors, codes, width, length, words };
  return { kernel, contents: { ...contents, lengths: withLengths ? lengths : null }, size };
}

/** Memory for the codes and the lengths of the rows that the manifest lists. */
async function memoryOf(length, width, room) {
  try {
    const memory = await room?.(length * width);
    return { memory, codes: memory?.bytes ?? new Uint8Array(length * width), lengths: new Float32Array(length) };
  } catch (error) {
    if (!(error instanceof RangeError)) throw error;
    throw new FormatError(`the manifest lists ${length} rows, which fit in no memory`);
  }
}

/** Check that no id is there twice, and that numbers are those of rows that were added. */
function checkIds(words, { ids, nextNumber }) {
  const known = new Set();
  for (let row = 0; row < words.length; row++) {
    const id = words.at(row);
    if (known.has(id)) throw new FormatError(`damaged: the id '${id}' appears twice`);
    known.add(id);
    if (ids === "numbers" && !(/^(0|[1-9]\d{0,18})$/.test(id) && BigInt(id) < BigInt(nextNumber))) {
      throw new FormatError(`damaged: the id '${id}' is not that of a row that was added`);
    }
  }
}

async function checkEncoder(read) {
  const bytes = await readBytes(read, ENCODER).catch((error) => {
    if (!(error instanceof MissingFile)) throw error;
  });
  if (bytes) await (await openTextEncoder(bytes)).verify();
}

/** What `run` gives. The message of its FormatError names the file. */
async function naming(file, run) {
  try {
    return await run();
  } catch (error) {
    if (error instanceof FormatError && !error.message.includes(file)) error.message = `${file}: ${error.message}`;
    throw error;
  }
}

async function readCoder(read, manifest, verify) {
  const coder = readContents(await readBytes(read, manifest.coder));
  refuseEncoder(coder);
  checkCoder(coder);
  checkFacts(coder.facts, manifest, manifest.coder);
  if (verify) {
    await verifyContents(coder);
    if (manifest.checksum && coderChecksum(coder) !== manifest.checksum) {
      throw new FormatError(`${manifest.coder} is not the coder of this collection`);
    }
  }
  return coder;
}

async function readPiece(read, entry, manifest, verify) {
  if (entry.header === undefined) {
    throw new FormatError(
      `${entry.file} is Parquet, which embits.js does not read: save the collection as a file`,
    );
  }
  const bytes = await readBytes(read, entry.file);
  const contents = readContents(bytes);
  refuseEncoder(contents);
  if ((await digest(contents.header)) !== entry.header || contents.length !== entry.rows) {
    throw new FormatError(`${entry.file} is not the file that the manifest lists`);
  }
  checkFacts(contents.facts, manifest, entry.file);
  if (manifest.keep && !contents.tensors.has("floats")) throw new FormatError(`damaged: ${entry.file} keeps no floats`);
  if (verify) {
    await verifyContents(contents, true);
    if (entry.columns) await checkColumns(read, entry.columns);
  }
  const { lengths, order, width } = contents;
  const codes = order ? inRowOrder(contents.codes, width, order) : contents.codes;
  return { ids: idsOf(contents, entry, manifest), codes, lengths, size: bytes.length };
}

function refuseEncoder({ settings }) {
  if (settings) throw new FormatError("it is a text encoder: open it with openTextEncoder");
}

/** Check the bytes of the columns of a piece, which are not read otherwise. */
async function checkColumns(read, { file, sha256 }) {
  if ((await digest(await readBytes(read, file))) !== sha256) throw new FormatError(`${file} does not match its checksum`);
}

/** Codes that are stored in cells, in the order of their rows. */
function inRowOrder(codes, width, order) {
  const rows = new Uint8Array(codes.length);
  order.forEach((row, place) => rows.set(codes.subarray(place * width, (place + 1) * width), row * width));
  return rows;
}

/** The ids of a piece, in memory of their own: that of the codes is given back. */
function idsOf({ tensors, length, words, metadata }, entry, manifest) {
  if (!(words instanceof RowNumbers)) {
    const own = [...tensors].filter(([name]) => name.startsWith("word"));
    const copies = new Map(own.map(([name, tensor]) => [name, copied(tensor)]));
    return vocabularyOf(copies, length, metadata.format_version);
  }
  if (manifest.ids === "numbers") return new RowNumbers(length, entry.first);
  throw new FormatError(`damaged: the rows have ids, but ${entry.file} has none`);
}

function copied(tensor) {
  const bytes = tensor.bytes.slice();
  return { ...tensor, bytes, data: new tensor.data.constructor(bytes.buffer) };
}

async function removedRows(read, { file, rows, removed }) {
  if (!removed) return [];
  const bitmap = await readBytes(read, removed.file);
  const isWhole = bitmap.length === Math.ceil(rows / 8) && (await digest(bitmap)) === removed.sha256;
  const found = [];
  for (let row = 0; isWhole && row < 8 * bitmap.length; row++) {
    if (bitmap[row >> 3] & (128 >> (row & 7))) found.push(row);
  }
  if (!isWhole || found.length !== removed.rows || !((found.at(-1) ?? -1) < rows)) {
    throw new FormatError(`damaged: ${removed.file}, the removed rows of ${file}`);
  }
  return found;
}

/** Copy the codes but for removed rows; returns where the next ones go. */
function copyRows(from, width, removed, to, at) {
  let start = 0;
  for (const row of [...removed, from.length / width]) {
    to.set(from.subarray(start * width, row * width), at);
    at += (row - start) * width;
    start = row + 1;
  }
  return at;
}

function checkFacts(facts, manifest, name) {
  if (["nBits", "dims", "method"].some((fact) => facts[fact] !== manifest[fact])) {
    throw new FormatError(`${name} is not of this collection: its bits, dims or method are others`);
  }
}

/** The bytes of a file: what `read` gives may be a Response of `fetch`, or the bytes. */
async function readBytes(read, name) {
  const given = await orNull(read, name);
  if (given === null || given === undefined || given.status === 404) {
    throw new MissingFile(`${name} is missing: it is not a collection, or the file is lost`);
  }
  if (given.ok === false) throw new Error(`the server returned status ${given.status} for ${name}`);
  const bytes = typeof given.arrayBuffer === "function" ? await given.arrayBuffer() : given;
  if (isBytes(bytes)) return plainBytes(bytes);
  throw new TypeError(`no bytes of ${name}: expected a Response, an ArrayBuffer, a Uint8Array or null`);
}

/** What `read` gives; null if it fails because there is no such file in Node, Deno or a browser's folder. */
async function orNull(read, name) {
  try {
    return await read(name);
  } catch (error) {
    if (error?.code === "ENOENT" || error?.name === "NotFound" || error?.name === "NotFoundError") return null;
    throw error;
  }
}

const areEqual = (a, b) => a.length === b.length && a.every((byte, i) => byte === b[i]);
