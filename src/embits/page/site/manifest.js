/** The manifest of a collection: which files it consists of, in row order. */
import { CODER, MANIFEST, MAX_MANIFEST, MAX_ROWS } from "./constants.js";
import { FormatError, hex, parseJSON, sha256 } from "./format.js";

const NUMBERS = ["bits", "dims", "generation", "next_piece", "next_number"];

const fail = (problem) => {
  throw new FormatError(`${MANIFEST} ${problem}`);
};

/** The manifest of the bytes of its file, checked; its pieces are plain objects. */
export function parseManifest(bytes) {
  const body = parsed(bytes);
  if (body.get("format") !== "embits collection") fail("is not the manifest of a collection");
  const version = body.get("version") ?? null;
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
    if (bytes.length > MAX_MANIFEST) fail("is too long");
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    const body = parseJSON(text, numberOf);
    if (body instanceof Map) return body;
  } catch {
    // it is not JSON
  }
  return fail("is damaged: restore it from a copy");
}

/** A number as it is written, if it is not a whole one that JavaScript has. */
class Literal {
  constructor(text) {
    this.text = text;
  }
}

const numberOf = (text) => (/^-?\d+$/.test(text) && Number.isSafeInteger(Number(text)) ? Number(text) : new Literal(text));

/** JSON with sorted names and without spaces, all but ASCII escaped: what the checksum is taken of. */
function canonical(value) {
  if (Array.isArray(value)) return `[${value.map(canonical).join()}]`;
  if (value instanceof Map) {
    const entries = [...value].sort(([a], [b]) => (a < b ? -1 : 1));
    return `{${entries.map(([name, each]) => `${canonical(name)}:${canonical(each)}`).join()}}`;
  }
  if (value instanceof Literal) return value.text;
  const escaped = (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
  return JSON.stringify(value).replace(/[\u007f-\uffff]/g, escaped);
}

function facts(body) {
  if (body.get("dims") === 0) fail("has no coder yet: it is fitted on the first rows that are added");
  const get = checked(body, FACTS, "it does not describe a collection");
  const pieces = body.get("pieces");
  const given = (name, usual) => (body.has(name) ? body.get(name) : usual);
  const [columns, past] = [given("columns", new Map()), given("past", [])];
  const areKinds = columns instanceof Map && [...columns].every(([name, kind]) => name && isText(kind) && KIND.test(kind));
  const arePast = Array.isArray(past) && past.every(isText);
  if (!areKinds || !arePast || !Array.isArray(pieces) || !isWhole(body)) {
    fail("is damaged: it does not describe a collection");
  }
  const found = {
    nBits: get("bits"),
    dims: get("dims"),
    method: get("method"),
    ids: get("ids") ?? null,
    keep: get("keep") ?? null,
    checksum: get("coder"),
    coder: get("coder_file") ?? CODER,
    generation: get("generation"),
    log: get("log") ?? null,
    nextNumber: get("next_number"),
    pieces: pieces.map(pieceOf),
  };
  if ((body.get("version") === 3) !== (found.log !== null)) fail("is damaged: it does not name the log");
  checkPieces(found, get("next_piece"));
  return found;
}

/** Whether `rows` is a whole number, if it is there. */
function isWhole(body) {
  const rows = body.has("rows") ? body.get("rows") : 0;
  return rows instanceof Literal ? /^-?\d+$/.test(rows.text) : typeof rows === "number";
}

/** Check the values of names, and return what gets them. Names that end in ? may be missing. */
function checked(entry, rules, problem) {
  for (const [name, isGood] of Object.entries(rules)) {
    const value = entry instanceof Map ? entry.get(name.replace("?", "")) : undefined;
    if (!(name.endsWith("?") && (value ?? null) === null) && !isGood(value)) fail(`is damaged: ${problem}`);
  }
  return (name) => entry.get(name) ?? undefined;
}

function pieceOf(entry) {
  const get = checked(entry, PIECE, "it does not list the pieces");
  const [columns, removed] = ["columns", "removed"].map((name) => {
    if (get(name) === undefined) return null;
    const rules = name === "removed" ? { ...FILE, rows: isNumber } : FILE;
    const of = checked(get(name), rules, `it does not list the ${name === "removed" ? "removed rows" : "columns"}`);
    return { file: of("file"), rows: of("rows"), sha256: of("sha256") };
  });
  const [file, rows, header] = [get("file"), get("rows"), get("header")];
  if ((header === undefined && !file.endsWith(".parquet")) || removed?.rows > rows) fail("is damaged: it does not list the pieces");
  return { file, rows, first: get("first") ?? 0, header, columns, removed };
}

/** A file that is listed twice, or a name or number that the next change would use again. */
function checkPieces({ pieces, coder, ids, generation, log, nextNumber }, nextPiece) {
  const files = pieces.flatMap(({ file, columns, removed }) => [file, columns?.file, removed?.file].filter(isText));
  const others = new Set([MANIFEST, CODER, coder]);
  const isReused = [...files, log].some((file) => Number(/^(?:piece|log)-(\d+)\.\w+$/.exec(file)?.[1] ?? -1) >= nextPiece);
  const isLater = pieces.some(({ removed }) => Number(/\.removed-(\d+)$/.exec(removed?.file)?.[1] ?? 0) > generation);
  const end = Math.max(0, ...pieces.map(({ first, rows }) => first + rows));
  if (new Set([...files, ...others]).size < files.length + others.size || isReused || isLater || (ids === "numbers" && end > nextNumber)) {
    fail("is damaged: it lists a file twice, or the next change would use a name or number again");
  }
}

const isNumber = (value) => Number.isSafeInteger(value) && value >= 0 && value <= MAX_ROWS;
const isChecksum = (value) => typeof value === "string" && /^[0-9a-f]{64}$/.test(value);
// A file name: never a path that leads out of the folder.
const isName = (value) => typeof value === "string" && /^[A-Za-z0-9_][A-Za-z0-9_.-]{0,200}$/.test(value);

const isText = (value) => typeof value === "string";
const isOneOf = (...values) => (value) => values.includes(value);
const FILE = { file: isName, sha256: isChecksum };
const PIECE = { file: isName, rows: isNumber, "first?": isNumber, "header?": isChecksum, "column?": isText };
const KIND = /^(list of )?(string|int|float|bool|date|timestamp|timestamp UTC|null)$/;
const FACTS = {
  ...Object.fromEntries(NUMBERS.map((name) => [name, isNumber])),
  method: isText,
  coder: isText,
  "ids?": isOneOf("given", "numbers"),
  "keep?": isOneOf("float16", "int8"),
  "log?": (value) => isText(value) && /^log-\d{8,200}\.jsonl$/.test(value),
  "coder_file?": (value) => isText(value) && /^_coder-\d{8,200}\.safetensors$/.test(value),
  "fitted_rows?": isNumber,
  "refit_at?": isNumber,
};
