// node encode_texts.mjs FOLDER: the vectors, and codes where there are some, of each text of texts.json by each
// text encoder NAME.safetensors; or what opening it says.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

const site = new URL("../../src/embits/page/site/", import.meta.url);
const { open, openTextEncoder } = await import(new URL("embits.js", site));

const folder = process.argv[2];
const texts = JSON.parse(readFileSync(join(folder, "texts.json"), "utf8"));

function codeOf(encoder, text) {
  try {
    return [...encoder.encodeCode(text)];
  } catch (error) {
    return error.message;
  }
}

async function answers(file) {
  try {
    const encoder = await openTextEncoder(file);
    const codes = texts.map((text) => codeOf(encoder, text));
    const { dims, nBits, length } = encoder;
    await encoder.verify();
    return { dims, nBits, length, vectors: encoder.encode(texts).map((vector) => [...vector]), codes };
  } catch (error) {
    if (!(error instanceof TypeError) && error.name !== "FormatError" && !/need frequencies/.test(error.message)) throw error;
    return error.message;
  }
}

const found = {};
for (const name of readdirSync(folder).filter((name) => name.endsWith(".safetensors"))) {
  const file = readFileSync(join(folder, name));
  found[name.replace(".safetensors", "")] = await answers(file);
  try {
    open(file);
  } catch (error) {
    found.open = error.message;
  }
}
console.log(JSON.stringify(found));
