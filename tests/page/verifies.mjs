// node verifies.mjs FOLDER: for each file or collection there, why the check of every byte refuses it, or
// what it answers; names that start with "encoder" are text encoders. Errors of other types than FormatError are
// reported as `error`.
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { FormatError, open, openTextEncoder } from "../../src/embits/page/site/embits.js";

const TEXTS = ["the music of a river", "Boats, lakes; GUITARS", "xylophone"];
const WORDS = ["queen", "word7", "the", "7", "0", "absent"];
const SHOWN = 40;
const UNABLE = /JavaScript has no coder|searched by codes only|does not undo the whitening|need frequencies/;
const plain = (numbers) => Array.from(numbers, (x) => (Number.isFinite(x) ? x : null));

/** What a function gives; undefined if JavaScript says that it cannot do this. */
function able(run) {
  try {
    return run();
  } catch (error) {
    if (error instanceof FormatError || !UNABLE.test(error.message)) throw error;
    return undefined;
  }
}

async function encoded(bytes) {
  const encoder = await openTextEncoder(bytes);
  await encoder.verify();
  const vectors = able(() => encoder.encode(TEXTS));
  return vectors ? { vectors: vectors.map(plain) } : {};
}

async function collection(folder) {
  const read = (name) => {
    const path = join(folder, name);
    return existsSync(path) ? new Uint8Array(readFileSync(path)) : null;
  };
  return open(read, { verify: true });
}

function answered(bits) {
  const ids = Array.from({ length: Math.min(bits.length, SHOWN) }, (_, row) => bits.words.at(row));
  const found = { length: bits.length, ids, rows: WORDS.map((word) => bits.words.find(word) ?? -1) };
  if (bits.lengths) found.lengths = plain(bits.lengths.subarray(0, SHOWN));
  if (bits.length) {
    const nearest = bits.nearest(bits.code(0), 5);
    found.nearest = [nearest.map(({ row }) => row), nearest.map(({ distance }) => distance)];
  }
  if (bits.dims > 4096) return found;
  const vector = new Float32Array(bits.dims).map((_, i) => Math.sin(i));
  found.code = able(() => Array.from(bits.encode(vector)));
  found.scores = able(() => plain(bits.search(vector, { k: 5 }).map(({ score }) => score)));
  if (bits.length && !bits.lengths) found.decoded = able(() => plain(bits.decode(bits.code(0).slice())));
  return found;
}

async function examined(name) {
  const path = join(process.argv[2], name);
  if (statSync(path).isDirectory()) return answered(await collection(path));
  const bytes = new Uint8Array(readFileSync(path));
  if (name.startsWith("encoder")) return encoded(bytes);
  const bits = open(bytes);
  await bits.verify();
  return answered(bits);
}

const found = {};
for (const name of readdirSync(process.argv[2])) {
  try {
    found[name] = await examined(name);
  } catch (error) {
    found[name] = error instanceof FormatError ? { refused: error.message } : { error: error.stack };
  }
}
console.log(JSON.stringify(found));
