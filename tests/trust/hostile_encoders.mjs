// node hostile_encoders.mjs FOLDER: for each file of a text encoder there, whether it encoded texts, and whether
// the check of every byte refuses it. Ends with an error if anything but FormatError is thrown, or if a vector
// is not one.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { FormatError, openTextEncoder } from "../../src/embits/page/site/embits.js";

const TEXTS = ["the music of a river", "Boats, lakes; GUITARS", "日本 xylophone", "", "a".repeat(300)];

/** Whether there was an answer; errors of other types than FormatError end the run. */
async function answers(ask) {
  try {
    await ask();
    return true;
  } catch (error) {
    if (error instanceof FormatError) return false;
    throw error;
  }
}

async function encodeAll(bytes) {
  const encoder = await openTextEncoder(bytes);
  for (const vector of encoder.encode(TEXTS)) {
    assert.ok(vector instanceof Float32Array && vector.length === encoder.dims);
  }
}

const found = {};
for (const name of readdirSync(process.argv[2])) {
  const bytes = new Uint8Array(readFileSync(join(process.argv[2], name)));
  try {
    const start = performance.now();
    const answered = await answers(() => encodeAll(bytes));
    const refused = !(await answers(async () => (await openTextEncoder(bytes)).verify()));
    const seconds = (performance.now() - start) / 1000;
    assert.ok(seconds < 5, `${seconds} s`);
    found[name] = { answered, refused };
  } catch (error) {
    throw new Error(`${name}: ${error.stack}`);
  }
}
console.log(JSON.stringify(found));
