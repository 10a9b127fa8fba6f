// node queries.mjs FOLDER: answers the questions in FOLDER/questions.json with either kernel.
import { readFileSync } from "node:fs";
import { join } from "node:path";

const site = new URL("../../src/embits/page/site/", import.meta.url);
const { open } = await import(new URL("embits.js", site));
const { countDifferences } = await import(new URL("search.js", site));
const { bestRows } = await import(new URL("scores.js", site));
const { simdRoom } = await import(new URL("simd.js", site));

const folder = process.argv[2];
const questions = JSON.parse(readFileSync(join(folder, "questions.json"), "utf8"));
const wasm = readFileSync(new URL("kernel.wasm", site));

const flat = (found) => ({ rows: found.map(({ row }) => row), values: found.map((x) => x.distance ?? x.score) });

function answers({ vectors, weights, k }, bits, kernel) {
  const distances = new Uint32Array(bits.length);
  let whitened = false;
  try {
    bits.decode(3);
  } catch (error) {
    whitened = error.message.includes("whitening");
  }
  return {
    each: vectors.map((numbers) => {
      const x = Float32Array.from(numbers);
      const code = bits.encode(x);
      return {
        code: [...code],
        decoded: whitened ? null : [...bits.decode(code)],
        hamming: flat(bits.search(x, { k, metric: "hamming" })),
        codes: flat(bits.search(code, { k })),
        floats: flat(bits.search(x, { k })),
        asymmetric: flat(bits.search(x, { k, metric: "asymmetric" })),
        decodedVector: flat(bits.search(x, { k, metric: "decoded" })),
        decodedCode: flat(bits.search(code, { k, metric: "decoded" })),
        dot: bits.lengths && flat(bits.search(x, { k, metric: "dot" })),
        decodedRow: whitened ? null : [...bits.decode(3)],
        similarity: bits.similarity(3, 8, { metric: "decoded" }),
      };
    }),
    // The same weights as in Python: scores and rows are equal to the last bit.
    weighted: weights.map((numbers) =>
      flat(bestRows(bits.codes, bits.width, Float32Array.from(numbers), k, kernel, distances)),
    ),
  };
}

const all = {};
for (const [name, question] of Object.entries(questions)) {
  const file = readFileSync(join(folder, name));
  const room = await simdRoom(wasm, file.length);
  room.bytes.set(file);
  all[name] = {
    plain: answers(question, open(file), countDifferences),
    simd: answers(question, open(room.bytes, room.countDifferences), room.countDifferences),
  };
}
console.log(JSON.stringify(all));
