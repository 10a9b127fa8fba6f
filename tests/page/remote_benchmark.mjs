// node remote_benchmark.mjs FOLDER: what openRemote reads of FILE.safetensors for queries.json, and how many of the rows of an
// exact search it finds. Run by benchmarks/remote_search.py.
import { createReadStream, readdirSync, readFileSync, statSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

const { open, openRemote } = await import(new URL("../../src/embits/page/site/embits.js", import.meta.url));

const folder = process.argv[2];
const queries = JSON.parse(readFileSync(join(folder, "queries.json"), "utf8")).map((each) => Float32Array.from(each));
const server = createServer((request, response) => {
  const path = join(folder, request.url.slice(1));
  const [, start, stop] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range).map(Number);
  const size = statSync(path).size;
  const end = Math.min(stop, size - 1);
  response.writeHead(206, { "Content-Range": `bytes ${start}-${end}/${size}` });
  createReadStream(path, { start, end }).pipe(response);
});
await new Promise((done) => server.listen(0, "127.0.0.1", done));
const median = (numbers) => [...numbers].sort((a, b) => a - b)[numbers.length >> 1];
const kB = (bytes) => `${Math.round(bytes / 1000).toLocaleString("en")} kB`;

for (const name of readdirSync(folder).filter((name) => name.endsWith(".safetensors"))) {
  const address = `http://127.0.0.1:${server.address().port}/${name}`;
  const options = { metric: "asymmetric", k: 10 };
  const local = open(readFileSync(join(folder, name)));
  const [opening, first, requests, found] = [[], [], [], []];
  for (const query of queries) {
    const remote = await openRemote(address);
    opening.push(remote.bytesRead);
    const rows = await remote.search(query, options);
    first.push(remote.bytesRead);
    requests.push(remote.requests);
    const exact = new Set(local.search(query, options).map(({ row }) => row));
    found.push(rows.filter(({ row }) => exact.has(row)).length / exact.size);
  }
  const shared = await openRemote(address);
  for (const query of queries) await shared.search(query, options);
  const mean = found.reduce((sum, each) => sum + each, 0) / found.length;
  console.log(
    `${kB(statSync(join(folder, name)).size)}, ${local.cells} cells: opening ${kB(median(opening))}, with the first query ` +
      `${kB(median(first))} in ${median(requests)} requests (medians); ${queries.length} queries of one visit ` +
      `${kB(shared.bytesRead)}; recall ${mean.toFixed(3)}`,
  );
}
server.close();
server.closeAllConnections();
