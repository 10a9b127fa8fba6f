// node node_benchmark.mjs FILE: processor time of a query in Node, by metric and kernel. Run by
// benchmarks/page.py. Kernels take turns; the ratio is the median of the turns.
import { readFileSync } from "node:fs";

const site = new URL("../../src/embits/page/site/", import.meta.url);
const { open } = await import(new URL("embits.js", site));
const { simdRoom } = await import(new URL("simd.js", site));

const TURNS = 15;
const QUERIES = 10;
const file = readFileSync(process.argv[2]);
const room = await simdRoom(readFileSync(new URL("kernel.wasm", site)), file.length);
room.bytes.set(file);
const [simd, plain] = [open(room.bytes, room.countDifferences), open(file)];
const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];

/** Processor time of a query, in ms. */
function turn(bits, metric, queries) {
  const before = process.cpuUsage();
  for (const query of queries) bits.search(query, { metric });
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000 / queries.length;
}

for (const metric of ["hamming", "asymmetric", "decoded"]) {
  const queries = Array.from({ length: QUERIES }, (_, i) =>
    metric === "asymmetric" ? simd.decode(100 * i) : simd.code(100 * i).slice(),
  );
  for (const bits of [simd, plain]) turn(bits, metric, queries); // engines compile code that runs often
  const turns = Array.from({ length: TURNS }, () => [simd, plain].map((bits) => turn(bits, metric, queries)));
  const [fast, slow, ratio] = [([a]) => a, ([, b]) => b, ([a, b]) => b / a].map((of) => median(turns.map(of)));
  const times = `${fast.toFixed(1).padStart(8)} ms SIMD ${slow.toFixed(1).padStart(6)} ms JavaScript`;
  console.log(`${`Node, ${metric}`.padEnd(36)}${times}, ratio ${ratio.toFixed(1)}`);
}
