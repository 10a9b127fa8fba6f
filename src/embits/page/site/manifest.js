/** The manifest of a collection: which files it consists of, in row order. */
import { FormatError, hex, parseJSON, sha256 } from "./format.js";

export const MANIFEST = "_embits.json";
const CODER = "_coder.safetensors";
const MAX_ROWS = 2 ** 48;
const NUMBERS = ["bits", "dims", "generation", "next_piece", "next_number"];

const fail = (problem) => {
  throw new FormatError(`${MANIFEST} ${problem}`);
};

/** The manifest of the bytes of its file, checked; its pieces are plain objects. */
export function parseManifest(bytes) {
  const body = parsed(bytes);
  if (body.get("format") !== "embits collection") fail("is not the manifest of a collection");
  const version = body.get("version");
  if (![1, 2, 3].includes(version)) {
    fail(`is of version ${version}; this reader knows versions 1 to 3: use a newer embits`);
  }
  const checksum = body.get("sha256");
  body.delete("sha256");
  if (hex(sha256(new TextEncoder().encode(canonical(body)))) !== checksum)
    fail("does not match its checksum");
  return facts(body);
}

function parsed(bytes) {
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    const body = parseJSON(text, (literal) => (/^\d+$/.test(literal) ? Number(literal) : NaN));
    if (body instanceof Map) return body;
  } catch {
    // it is not JSON
  }
  return fail("is damaged: restore it from a copy");
}

/** JSON with sorted names and without spaces, all but ASCII escaped: what the checksum is taken of. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (value instanceof Map) {
    const entries = [...value].sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([name, each]) => `${canonical(name)}:${canonical(each)}`).join()}}`;
  }
  const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, escaped);
}

function facts(body) {
  if (body.get("dims") === 0) fail("has no coder yet: it is fitted on the first rows that are added");
  const ids = body.get("ids") ?? null;
  const pieces = body.get("pieces");
  const isWhole = NUMBERS.every((name) => isNumber(body.get(name)));
  const isText = ["method", "coder"].every((name) => typeof body.get(name) === "string");
  if (!isWhole || !isText || ![null, "given", "numbers"].includes(ids) || !Array.isArray(pieces)) {
    fail("is damaged: it does not describe a collection");
  }
  const [nBits, dims, method] = ["bits", "dims", "method"].map((name) => body.get(name));
  const coder = body.get("coder_file") ?? CODER;
  if (!isName(coder)) fail("is damaged: it does not name the coder");
  const log = body.get("log") ?? null;
  if ((body.get("version") === 3) !== isName(log)) fail("is damaged: it does not name the log");
  const [generation, nextNumber] = ["generation", "next_number"].map((name) => body.get(name));
  return { nBits, dims, method, ids, coder, generation, log, nextNumber, pieces: pieces.map(pieceOf) };
}

function pieceOf(entry) {
  const get = (name) => (entry instanceof Map ? entry.get(name) : undefined);
  const [file, rows, first, header] = [get("file"), get("rows"), get("first") ?? 0, get("header")];
  const isPiece = isName(file) && isNumber(rows) && isNumber(first);
  if (!isPiece || !(header === undefined ? file.endsWith(".parquet") : isChecksum(header))) {
    fail("is damaged: it does not list the pieces");
  }
  return { file, rows, first, header, removed: removedOf(get("removed"), rows) };
}

function removedOf(entry, rows) {
  if (entry === undefined) return null;
  const [file, count, sum] = ["file", "rows", "sha256"].map((name) => entry?.get?.(name));
  if (!isName(file) || !isNumber(count) || count > rows || !isChecksum(sum)) {
    fail("is damaged: it does not list the removed rows");
  }
  return { file, rows: count, sha256: sum };
}

const isNumber = (value) => Number.isSafeInteger(value) && value >= 0 && value <= MAX_ROWS;
const isChecksum = (value) => typeof value === "string" && /^[0-9a-f]{64}$/.test(value);
// A file name: never a path that leads out of the folder.
const isName = (value) => typeof value === "string" && /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}$/.test(value);
