// node hostile.mjs FOLDER: for each file there, whether all questions were answered, and whether the
// check of every byte refuses it. Ends with an error if anything but FormatError is thrown, or if an answer
// is not one: a row that does not exist, a word that is not a string, a number that is not one.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { FormatError, open, UnknownWordError } from "../../src/embits/page/site/embits.js";

const KEYS = ["international7", "q1", "日本3", "the 32", "", "x".repeat(600), "absent", "quen", "3", "12000"];

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

function askAll(bytes) {
  const bits = open(bytes);
  const isRow = (row) => assert.ok(Number.isInteger(row) && row >= 0 && row < bits.length, `row ${row}`);
  // In this order, words are decoded one by one before `suggest` decodes all of them.
  for (const key of KEYS) {
    const row = bits.words.find(key);
    if (row !== null) isRow(row);
    bits.words.startingWith(key.slice(0, 3), 5).forEach(isRow);
  }
  for (let row = 0; row < bits.length; row++) assert.equal(typeof bits.words.at(row), "string");
  // A header may claim 2³¹ dimensions; a vector of so many is no question that anybody asks.
  const vector = new Float32Array(Math.min(bits.dims, 4096)).map((_, i) => Math.sin(i));
  const hamming = { metric: "hamming" };
  const options = [{}, hamming, { metric: "dot" }, { ...hamming, recall: 0.5 }, { recall: 0.9 }];
  for (const each of vector.length === bits.dims ? options : []) {
    try {
      for (const { row, score } of bits.search(vector, { k: 5, ...each })) {
        isRow(row);
        assert.ok(!Number.isNaN(score), `score ${score}`);
      }
    } catch (error) {
      if (!/searched by codes only|needs lengths/.test(error.message)) throw error;
    }
  }
  for (const key of [...KEYS, 0, bits.length - 1]) {
    if (key === -1) continue;
    try {
      for (const { word, row, similarity } of bits.mostSimilar(key, { k: 5 })) {
        isRow(row);
        assert.equal(typeof word, "string");
        assert.ok(Number.isFinite(similarity), `similarity ${similarity}`);
      }
    } catch (error) {
      if (!(error instanceof UnknownWordError) && !(bits.length === 0 && error instanceof RangeError)) throw error;
      error.suggestions?.forEach((word) => assert.equal(typeof word, "string"));
    }
  }
}

const found = {};
for (const name of readdirSync(process.argv[2])) {
  const bytes = new Uint8Array(readFileSync(join(process.argv[2], name)));
  try {
    const answered = await answers(() => askAll(bytes));
    const refused = !(await answers(() => open(bytes).verify()));
    found[name] = { answered, refused };
  } catch (error) {
    throw new Error(`${name}: ${error.stack}`);
  }
}
console.log(JSON.stringify(found));
