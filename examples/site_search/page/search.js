/** Embeds the query in the browser and lists the closest pages. Queries wait until the model is loaded. */
const form = document.querySelector("form");
const list = document.querySelector("ol");
const say = (text) => (document.querySelector("[role=status]").textContent = text);
let isLoaded = false;
let turn = 0; // of the latest query: an earlier one that is answered late is not shown

async function get(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`${url}: ${response.status} ${response.statusText}`);
  return response;
}
const bytes = async (url) => new Uint8Array(await (await get(url)).arrayBuffer());
const json = async (url) => (await get(url)).json();

/** Wait until the service worker has stored the site. Without one, all files come from the network. */
async function stored() {
  try {
    const { active, installing, waiting } = await navigator.serviceWorker.register("sw.js");
    const worker = installing ?? waiting;
    if (active || !worker) return;
    await new Promise((done) => {
      const look = () => ["activated", "redundant"].includes(worker.state) && done();
      worker.addEventListener("statechange", look);
      look();
    });
  } catch {
    // A page without HTTPS, or a private window: the search works, but not offline.
  }
}

async function openCodes(url) {
  const [{ open }, { simdRoom }] = await Promise.all([import("./embits/embits.js"), import("./embits/simd.js")]);
  const [file, wasm] = await Promise.all([bytes(url), bytes("embits/kernel.wasm")]);
  const room = await simdRoom(wasm, file.length);
  if (!room) return open(file);
  room.bytes.set(file);
  return open(room.bytes, room.countDifferences);
}

async function openModel() {
  const { env, pipeline } = await import("./runtime/transformers.min.js");
  env.allowRemoteModels = false;
  env.useBrowserCache = false; // the service worker stores the model
  env.localModelPath = new URL("models/", document.baseURI).href;
  env.backends.onnx.wasm.wasmPaths = new URL("runtime/", document.baseURI).href;
  env.backends.onnx.wasm.numThreads = 1; // more need a page that is isolated from other origins
  return pipeline("feature-extraction", "Xenova/all-MiniLM-L6-v2");
}

async function load() {
  const { data, megabytes } = await json("site.json");
  if (!turn) say(`Loading the model, ${megabytes} MB. You can type already.`);
  await stored();
  const all = [openCodes(`${data}/codes.safetensors`), json(`${data}/pages.json`), openModel()];
  const [bits, pages, model] = await Promise.all(all);
  return { bits, pages, model };
}

function shown({ title, url, text }) {
  const item = document.createElement("li");
  const link = Object.assign(document.createElement("a"), { href: url, textContent: title });
  const place = Object.assign(document.createElement("cite"), { textContent: url });
  item.append(link, place, Object.assign(document.createElement("p"), { textContent: text }));
  return item;
}

async function search(query) {
  const mine = ++turn;
  list.replaceChildren();
  if (!query) return say("The query is empty: type a few words.");
  say(isLoaded ? "Searching." : "The model is loading. Your query is answered as soon as it is there.");
  try {
    const { bits, pages, model } = await loaded;
    const start = performance.now();
    const { data } = await model(query, { pooling: "mean", normalize: true });
    if (mine !== turn) return;
    const found = bits.search(data, { k: 5 });
    const ms = performance.now() - start;
    list.replaceChildren(...found.map(({ row }) => shown(pages[row])));
    say(`The ${found.length} closest of ${pages.length.toLocaleString("en")} pages, in ${ms.toFixed(0)} ms.`);
  } catch (error) {
    if (mine === turn) say(`This query could not be answered: ${error.message}. Reload the page to try again.`);
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  search(form.elements.query.value.trim());
});

const loaded = load();
loaded.then(
  () => ((isLoaded = true), turn || say("Ready.")),
  (error) => turn || say(`The search could not be loaded: ${error.message}. Reload the page to try again.`),
);
// A form that was sent before this script ran has put its query into the address.
const sent = new URLSearchParams(location.search).get("query")?.trim();
if (sent) search((form.elements.query.value = sent));
