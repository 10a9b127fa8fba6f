// Builds site/kernel.wasm from kernel.wat; with --check, only says whether it is up to date.
import { readFileSync, writeFileSync } from "node:fs";
import wabt from "wabt";

const page = new URL("../../src/embits/page/", import.meta.url);
const source = readFileSync(new URL("kernel.wat", page), "utf8");
const built = (await wabt()).parseWat("kernel.wat", source, { simd: true }).toBinary({}).buffer;
const target = new URL("site/kernel.wasm", page);

if (process.argv.includes("--check")) {
  const fresh = Buffer.compare(readFileSync(target), Buffer.from(built)) === 0;
  console.log(fresh ? "kernel.wasm is up to date" : "kernel.wasm is not what kernel.wat builds");
  process.exit(fresh ? 0 : 1);
}
writeFileSync(target, built);
console.log(`kernel.wasm: ${built.length} bytes`);
