/** Embeds the query in the browser and finds the closest texts by a float query. */
import { open } from "./embits/embits.js";
import { simdRoom } from "./embits/simd.js";
import { env, pipeline } from "./runtime/transformers.min.js";

env.allowRemoteModels = false;
env.localModelPath = new URL("models/", document.baseURI).href;
env.backends.onnx.wasm.wasmPaths = new URL("runtime/", document.baseURI).href;
env.backends.onnx.wasm.numThreads = 1; // more need a page that is isolated from other origins

const bytes = async (url) => new Uint8Array(await (await fetch(url)).arrayBuffer());
const status = document.querySelector("[role=status]");

async function openCodes() {
  const [file, wasm] = await Promise.all([bytes("texts.safetensors"), bytes("embits/kernel.wasm")]);
  const room = await simdRoom(wasm, file.length);
  if (!room) return open(file);
  room.bytes.set(file);
  return open(room.bytes, room.countDifferences);
}

const [bits, texts, model] = await Promise.all([
  openCodes(),
  fetch("texts.json").then((response) => response.json()),
  pipeline("feature-extraction", "Xenova/all-MiniLM-L6-v2"),
]);

async function search(query) {
  const start = performance.now();
  const { data } = await model(query, { pooling: "mean", normalize: true });
  const embedded = performance.now();
  const found = bits.search(data, { k: 5, metric: "asymmetric" });
  const done = performance.now();
  document.querySelector("ol").replaceChildren(
    ...found.map(({ row }) => Object.assign(document.createElement("li"), { textContent: texts[row] })),
  );
  const ms = (time) => `${time.toFixed(1)} ms`;
  status.textContent = `Embedded in ${ms(embedded - start)}, searched ${texts.length} texts in ${ms(done - embedded)}.`;
}

document.querySelector("form").addEventListener("submit", (event) => {
  event.preventDefault();
  search(new FormData(event.target).get("query"));
});
status.textContent = "Ready.";
