// node bombs.mjs FILE: opens the file, and writes [error, seconds, megabytes] of what it took.
import { readFileSync } from "node:fs";
import { FormatError } from "../../src/embits/page/site/format.js";
import { parseManifest } from "../../src/embits/page/site/manifest.js";
import { openTextEncoder } from "../../src/embits/page/site/text_encoder.js";

const path = process.argv[2];
const bytes = readFileSync(path);
const [before, start] = [process.resourceUsage().maxRSS, process.cpuUsage()];
let message = "";
try {
  if (path.endsWith(".manifest")) parseManifest(bytes);
  else (await openTextEncoder(bytes)).encode("a text of some words");
} catch (error) {
  if (!(error instanceof FormatError)) throw error;
  ({ message } = error);
}
const { user, system } = process.cpuUsage(start);
const used = (process.resourceUsage().maxRSS - before) / 1024;
console.log(JSON.stringify([message, (user + system) / 1e6, used]));
