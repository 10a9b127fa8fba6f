// Copied into a folder where the npm package is installed: what it answers there, as JSON.
import { readFileSync } from "node:fs";
import { open } from "embits";
import about from "embits/package.json" with { type: "json" };
import { simdRoom } from "embits/simd.js";

const file = readFileSync("words.safetensors");
const wasm = readFileSync(new URL(import.meta.resolve("embits/kernel.wasm")));
const room = await simdRoom(wasm, file.length);
room.bytes.set(file);
const answers = [open(file), open(room.bytes, room.countDifferences)].map((bits) =>
  bits.mostSimilar("queen"),
);
const collection = await open((name) => readFileSync(`collection/${name}`), { verify: true });
console.log(JSON.stringify({ version: about.version, answers, rows: collection.length }));
