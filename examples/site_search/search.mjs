// node search.mjs SITE QUERY: the pages closest to a query, found in Node as the page finds them.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { open } from "embits";
import { embed } from "./embed.mjs";

const [site, query] = process.argv.slice(2);
if (!query) {
  console.error("usage: node search.mjs SITE QUERY");
  process.exit(1);
}
const { data } = JSON.parse(readFileSync(join(site, "site.json"), "utf8"));
const bits = open(readFileSync(join(site, data, "codes.safetensors")));
const pages = JSON.parse(readFileSync(join(site, data, "pages.json"), "utf8"));
for (const { row, score } of bits.search(await embed([query]), { k: 5 })) {
  console.log(`${score.toFixed(3)}\t${pages[row].title}\t${pages[row].url}`);
}
