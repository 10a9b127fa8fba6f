// node tokens.mjs FOLDER: the ids of the tokens of each text of texts.json, by each tokenizer NAME.bin.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const { readTokenizer } = await import(new URL("../../src/embits/page/site/tokenizer.js", import.meta.url));

const folder = process.argv[2];
const texts = JSON.parse(readFileSync(join(folder, "texts.json"), "utf8"));
const found = {};
for (const name of readdirSync(folder).filter((name) => name.endsWith(".bin"))) {
  try {
    const tokenizer = await readTokenizer(readFileSync(join(folder, name)));
    found[name.slice(0, -4)] = texts.map((text) => tokenizer.encode(text));
  } catch (error) {
    if (error.name !== "FormatError") throw error;
    found[name.slice(0, -4)] = error.message;
  }
}
console.log(JSON.stringify(found));
