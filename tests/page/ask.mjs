// node ask.mjs FOLDER: answers the questions in FOLDER/questions.json, { name: [question, …] }. A name is
// a file or a collection in FOLDER; a question is { method, query, options }. Both kernels are asked.
import { existsSync, readFileSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";

const site = new URL("../../src/embits/page/site/", import.meta.url);
const { open } = await import(new URL("embits.js", site));
const { coderOf } = await import(new URL("coder.js", site));
const { simdRoom } = await import(new URL("simd.js", site));
const wasm = readFileSync(new URL("kernel.wasm", site));

const folder = process.argv[2];
const questions = JSON.parse(readFileSync(join(folder, "questions.json"), "utf8"));

async function opened(name, simd) {
  const path = join(folder, name);
  if (statSync(path).isDirectory()) {
    const read = (file) => (existsSync(join(path, file)) ? readFile(join(path, file)) : null);
    return open(read, simd ? { room: (size) => simdRoom(wasm, size), verify: true } : undefined);
  }
  const file = readFileSync(path);
  if (!simd) return open(file);
  const room = await simdRoom(wasm, file.length);
  room.bytes.set(file);
  return open(room.bytes, room.countDifferences);
}

const query = ({ vector, code, key }) =>
  vector ? Float32Array.from(vector) : code ? Uint8Array.from(code) : key;

const flat = (found) => ({
  rows: found.map(({ row }) => row),
  words: found.map(({ word }) => word),
  values: found.map((each) => each.distance ?? each.score ?? each.similarity),
  scores: found.map(({ score }) => score),
});

const answers = {
  code: (bits, word) => [...bits.code(word)],
  encode: (bits, vector) => [...bits.encode(vector)],
  decode: (bits, code) => [...bits.decode(code)],
  rebuilt: (bits, code) => [...coderOf(bits).rebuilt(code)],
  suggest: (bits, word) => bits.suggest(word),
  find: (bits, word) => bits.words.find(word),
  at: (bits, row) => bits.words.at(row),
  startingWith: (bits, prefix) => bits.words.startingWith(prefix, 5).map((row) => bits.words.at(row)),
};

function answer(bits, { method, query: asked, options }) {
  const given = query(asked);
  try {
    return method in answers ? answers[method](bits, given) : flat(bits[method](given, options));
  } catch (error) {
    return { error: error.message, name: error.name };
  }
}

const all = {};
for (const [name, asked] of Object.entries(questions)) {
  all[name] = {};
  for (const kernel of ["JavaScript", "WebAssembly SIMD"]) {
    const bits = await opened(name, kernel !== "JavaScript");
    if (bits.kernel !== kernel) throw new Error(`${bits.kernel}, expected ${kernel}`);
    all[name][kernel] = asked.map((each) => answer(bits, each));
  }
}
console.log(JSON.stringify(all));
