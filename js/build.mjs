// Copies the reader from the browser page to dist/, for `npm pack` and `npm publish`: embits.js and
// simd.js with all modules that they import, their types, the kernel and the licence.
import { copyFileSync, mkdirSync, readFileSync, rmSync } from "node:fs";

const here = new URL("./", import.meta.url);
const site = new URL("../src/embits/page/site/", here);
const dist = new URL("dist/", here);
const IMPORTS = /(?:import|export)\s[^"']*?from "\.\/([\w.]+)"/g;

const version = /__version__ = "(.+)"/.exec(
  readFileSync(new URL("../src/embits/_version.py", here), "utf8"),
)[1];
const found = JSON.parse(readFileSync(new URL("package.json", here), "utf8")).version;
if (found !== version) throw new Error(`js/package.json is of version ${found}, embits of ${version}`);

const names = ["embits.js", "simd.js"];
for (const name of names) {
  const imported = readFileSync(new URL(name, site), "utf8").matchAll(IMPORTS);
  for (const [, other] of imported) if (!names.includes(other)) names.push(other);
}
rmSync(dist, { recursive: true, force: true });
mkdirSync(dist);
for (const name of [...names, "embits.d.ts", "simd.d.ts", "kernel.wasm"]) {
  copyFileSync(new URL(name, site), new URL(name, dist));
}
copyFileSync(new URL("../LICENSE", here), new URL("LICENSE", here));
