// node coder_rules.mjs [FILE ...]: the rules that JavaScript has for coders, and the checksums of those of files.
import { readFileSync } from "node:fs";
import { coderChecksum } from "../../src/embits/page/site/coder_checksum.js";
import { ARRAYS, DEFAULTS, PARAMETERS } from "../../src/embits/page/site/coder_rules.js";
import { readContents } from "../../src/embits/page/site/contents.js";

const checksums = process.argv.slice(2).map((path) => coderChecksum(readContents(new Uint8Array(readFileSync(path)))));
console.log(JSON.stringify({ arrays: ARRAYS, defaults: DEFAULTS, parameters: PARAMETERS, checksums }));
