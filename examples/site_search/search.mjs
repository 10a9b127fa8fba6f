// node search.mjs SITE QUERY: the texts closest to a query, found in Node as the page finds them.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { open } from "embits";
import { embed } from "./embed.mjs";

const [site, query] = process.argv.slice(2);
const bits = open(readFileSync(join(site, "texts.safetensors")));
const texts = JSON.parse(readFileSync(join(site, "texts.json"), "utf8"));
for (const { row, score } of bits.search(await embed([query]), { k: 5, metric: "asymmetric" })) {
  console.log(`${score.toFixed(3)}\t${texts[row]}`);
}
