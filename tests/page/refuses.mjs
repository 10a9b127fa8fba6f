// node refuses.mjs FOLDER: for each file there, whether the JavaScript reader refuses it.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { FormatError, open } from "../../src/embits/page/site/embits.js";

const refused = {};
for (const name of readdirSync(process.argv[2])) {
  try {
    await open(new Uint8Array(readFileSync(join(process.argv[2], name)))).verify();
    refused[name] = false;
  } catch (error) {
    if (!(error instanceof FormatError)) throw error;
    refused[name] = true;
  }
}
console.log(JSON.stringify(refused));
