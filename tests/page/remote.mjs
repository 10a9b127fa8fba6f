// node remote.mjs FOLDER: answers questions.json, [{ query, options }], by openRemote of file.safetensors on a server with
// ranges, on one without, and by open; and what was read. Damaged files DAMAGED-*.safetensors are searched too.
import { readdirSync, readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";

const { open, openRemote } = await import(new URL("../../src/embits/page/site/embits.js", import.meta.url));

const folder = process.argv[2];
const questions = JSON.parse(readFileSync(join(folder, "questions.json"), "utf8"));

/** A server of the folder that may have ranges; `state` can be changed while it runs. */
async function serve(state) {
  const server = createServer((request, response) => {
    const file = readFileSync(join(folder, request.url.slice(1)));
    response.setHeader("Connection", "close"); // an idle connection may be closed when it is used again
    const range = state.ranges && /^bytes=(\d+)-(\d+)$/.exec(request.headers.range ?? "");
    if (!range) return response.writeHead(200).end(file);
    const [start, stop] = [Number(range[1]), Math.min(Number(range[2]) + 1, file.length)];
    response.writeHead(206, { ETag: state.tag, "Content-Range": `bytes ${start}-${stop - 1}/${file.length}` });
    response.end(file.subarray(start, stop));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  return { address: `http://127.0.0.1:${server.address().port}/`, server };
}

const query = ({ vector, code }) => (vector ? Float32Array.from(vector) : Uint8Array.from(code));
const flat = (found) => found.map((each) => [each.row, each.word, each.distance ?? each.score]);
const ask = async (bits) => {
  const answers = [];
  for (const { query: given, options } of questions) answers.push(flat(await bits.search(query(given), options)));
  return answers;
};
const said = [];
console.warn = (text) => said.push(text);

const ranges = { ranges: true, tag: '"1"' };
const { address, server } = await serve(ranges);
const remote = await openRemote(`${address}file.safetensors`);
const opened = remote.bytesRead;
const answers = await ask(remote);
const [bytes, requests] = [remote.bytesRead, remote.requests];
await ask(remote);
const again = remote.bytesRead - bytes;
const small = await openRemote(`${address}file.safetensors`, { cacheBytes: 0 });
const uncached = await ask(small);

const plain = await serve({ ranges: false });
const whole = await openRemote(`${plain.address}file.safetensors`);
const wholeAnswers = await ask(whole);

const errors = {};
for (const name of readdirSync(folder).filter((name) => name.startsWith("damaged-"))) {
  try {
    await ask(await openRemote(address + name));
    errors[name] = "";
  } catch (error) {
    errors[name] = `${error.name}: ${error.message}`;
  }
}
const attempt = async (run) => {
  try {
    await run();
    return "";
  } catch (error) {
    return `${error.name}: ${error.message}`;
  }
};
const fresh = await openRemote(`${address}file.safetensors`);
ranges.tag = '"2"';
errors.changed = await attempt(() => ask(fresh));
errors.word = await attempt(() => fresh.search("a word"));
errors.both = await attempt(() => fresh.search(new Float32Array(fresh.dims), { recall: 0.5, probes: 3 }));
errors.dot = await attempt(() => fresh.search(new Float32Array(fresh.dims), { metric: "dot" }));

const file = readFileSync(join(folder, "file.safetensors"));
const local = open(file);
await local.verify();
server.close();
server.closeAllConnections();
plain.server.close();
plain.server.closeAllConnections();
console.log(
  JSON.stringify({
    answers,
    uncached,
    whole: wholeAnswers,
    local: await ask(local),
    opened,
    bytes,
    requests,
    again,
    size: file.length,
    cells: remote.cells,
    wholeRequests: whole.requests,
    said,
    errors,
  }),
);
