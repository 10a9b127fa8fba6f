/**
 * The page: opens the file, shows the view that the link names, and updates the link.
 * The state is the query string after the # of the address: `word=queen`.
 */
import { scriptURL, startWorker } from "./ask.js";
import { byId, count, h, link, megabytes, time, wordText } from "./dom.js";
import { analogyView } from "./views/analogy.js";
import { askView } from "./views/ask.js";
import { closestView } from "./views/closest.js";
import { compareView } from "./views/compare.js";
import { pictureView } from "./views/picture.js";
import { sizeView } from "./views/size.js";

// The first parameter of `needs` names the view; the others are required too.
const VIEWS = {
  q: { label: "Search", make: askView, needs: ["q"] },
  word: { label: "Closest", make: closestView, needs: ["word"] },
  compare: { label: "Compare", make: compareView, needs: ["compare", "with"] },
  a: { label: "Analogy", make: analogyView, needs: ["a", "b", "c"] },
  picture: { label: "Picture", make: pictureView, needs: ["picture"] },
  size: { label: "Size", make: sizeView, needs: ["size"] },
};
const EXAMPLES = {
  word: ["queen"],
  compare: ["car", "automobile"],
  a: ["france", "paris", "japan"],
  picture: ["queen"],
};

const PATIENCE_MS = 250;
const SITE = document.title;

let facts = null;
let shown = { name: null, view: null };
let asked = 0;
let typing = false;
let settled = true; // whether the visitor has finished a word
let writing = 0;
let starts = {};

const ask = startWorker({
  onProgress({ done, total }) {
    byId("progress").value = total ? done / total : 1;
    if (done === total) performance.mark("embits-there"); // all bytes are loaded; "embits-ready" follows
    byId("amount").textContent = `${megabytes(done)} of ${megabytes(total)}`;
  },
  onKept(kept) {
    byId("kept").textContent = kept
      ? "Stored on this device: works offline. Nothing you type is sent anywhere."
      : "Everything runs in this tab. Nothing you type is sent anywhere.";
  },
});

const context = {
  ask,
  say: (...parts) => byId("status").replaceChildren(...parts),
  facts: () => facts,
  /**
   * Show another state. Typing adds one history entry, which is written at a pause because
   * browsers allow 100 writes in 30 seconds; `committed` ends the entry.
   */
  go(state, { committed }) {
    const address = link(state);
    const write = () => {
      if (address !== location.hash) history[typing ? "replaceState" : "pushState"](null, "", address);
      typing = !committed;
    };
    clearTimeout(writing);
    settled = committed;
    if (committed) write();
    else writing = setTimeout(write, PATIENCE_MS);
    show(address);
  },
  /**
   * Resolve to an answer, or to { error }, with suggestions for an unknown word. The promise never
   * settles after a newer request. An unknown word waits a little: the visitor may be typing.
   */
  latest(promise) {
    const mine = ++asked;
    const newest = () => mine === asked;
    return new Promise((resolve) => {
      promise.then(
        (answer) => newest() && resolve(answer),
        async ({ name, word, message }) => {
          if (name !== "UnknownWordError") return newest() && resolve({ error: { message } });
          await new Promise((done) => setTimeout(done, PATIENCE_MS));
          const near = newest() ? await ask("near", { word }) : [];
          if (!newest()) return;
          context.say();
          resolve({ error: { word, near, typing: !settled } });
        },
      );
    });
  },
};

// -- the state ------------------------------------------------------------------------------------

/** Whether a view makes sense: questions for texts with an encoder, which then have no others but the size; analogies for words. */
function isOffered(key) {
  if (facts?.asks) return key === "q" || key === "size";
  return key !== "q";
}

function stateOf(address) {
  const given = Object.fromEntries(new URLSearchParams(address.slice(1)));
  const name = Object.keys(VIEWS).find((key) => key in given && isOffered(key)) ?? (facts?.asks ? "q" : "word");
  const filled = VIEWS[name].needs.map((key, i) => [key, given[key] || starts[name][i]]);
  return { name, state: { ...given, ...Object.fromEntries(filled) } };
}

function show(address = location.hash) {
  if (!facts) return;
  const { name, state } = stateOf(address);
  if (facts.words === 0 && name !== "size") {
    byId("view").replaceChildren(h("p", { class: "problem" }, `This file contains no ${facts.noun}s.`));
    shown = { name: null, view: null };
    byId("tabs").hidden = true;
    return context.say();
  }
  if (shown.name !== name) {
    shown = { name, view: VIEWS[name].make(context) };
    byId("view").replaceChildren(shown.view.element);
  }
  byId("welcome").hidden = true;
  document.title = `${shown.view.title(state)} · ${SITE}`;
  showTabs(name, state);
  shown.view.update(state);
}

function showTabs(name, state) {
  const word = state.word ?? state.picture ?? state.compare ?? state.b;
  const carried = { word: word && { word }, picture: word && { picture: word } };
  const tab = ([key, { label, needs }]) => {
    const metric = state.metric ?? (key === "a" && facts.decodes ? "decoded" : undefined);
    const start = Object.fromEntries(needs.map((need, i) => [need, starts[key][i]]));
    const target = { ...(carried[key] ?? start), metric };
    return h(
      "a",
      { href: link(key === name ? state : target), "aria-current": key === name ? "page" : null },
      label,
    );
  };
  const tabs = byId("tabs");
  const focused = [...tabs.children].indexOf(document.activeElement);
  // Analogies are about words.
  const offered = Object.entries(VIEWS).filter(
    ([key]) => isOffered(key) && (key !== "a" || name === "a" || facts.noun === "word"),
  );
  tabs.replaceChildren(...offered.map(tab));
  tabs.children[focused]?.focus();
  tabs.hidden = false;
}

/** Words to start with: the examples if the file has them, otherwise its first words. */
async function findStarts() {
  const own = facts.first.filter((word) => word !== "");
  const has = (word) =>
    ask("suggest", { prefix: word, most: 8 }).then(
      (words) => words.includes(word),
      () => false,
    );
  for (const [name, words] of Object.entries(EXAMPLES)) {
    const all = (await Promise.all(words.map(has))).every(Boolean);
    starts[name] = all ? words : words.map((_, i) => own[i % Math.max(own.length, 1)] ?? "");
  }
  starts.size = ["1"];
  starts.q = [""];
}

// -- the file -------------------------------------------------------------------------------------

async function load(details, name) {
  const welcome = byId("welcome");
  welcome.hidden = false;
  byId("loading").hidden = false;
  byId("drop").hidden = byId("problem").hidden = true;
  byId("view").hidden = true;
  byId("explain").hidden = false;
  byId("headline").textContent = "Opening the vectors";
  try {
    facts = await ask("load", details);
  } catch (error) {
    byId("view").hidden = !facts;
    return refuse(error, name);
  }
  await findStarts();
  document.body.dataset.noun = facts.noun;
  welcome.hidden = true;
  byId("view").hidden = false;
  byId("verify").hidden = byId("copy").hidden = false;
  byId("facts").replaceChildren(
    wordText(name, { class: "file" }),
    ` ${count(facts.words)} ${facts.noun}${facts.words === 1 ? "" : "s"} × ${count(facts.nBits)} bits, ${megabytes(facts.size)}`,
  );
  shown = { name: null, view: null };
  show();
  performance.mark("embits-ready");
}

function refuse(error, name = "The file", headline = facts ? "The file could not be opened" : "No file is open") {
  byId("welcome").hidden = false;
  byId("loading").hidden = true;
  byId("headline").textContent = headline;
  byId("explain").hidden = Boolean(facts);
  byId("problem").hidden = false;
  byId("problem").replaceChildren(wordText(name), `: ${error.message}.`);
  byId("drop").hidden = Boolean(facts);
}

async function start() {
  const plain = new URLSearchParams(location.search).has("plain"); // use the JavaScript kernel, for comparison
  const page = await fetch("page.json")
    .then((response) => response.json())
    .catch(() => ({}));
  if (!page.file) {
    byId("headline").textContent = "Open an embits file";
    byId("loading").hidden = true;
    byId("drop").hidden = false;
    return;
  }
  const scope = new URL("./", location.href).href;
  await load(
    { url: page.file, size: page.bytes, cache: `embits ${scope} ${page.version}`, plain, encoder: page.encoder, texts: page.texts },
    page.name,
  );
}

function openOwn(file) {
  if (file) load({ file }, file.name);
}

// -- events ---------------------------------------------------------------------------------------

byId("choose").onclick = byId("drop").onclick = () => byId("file").click();
byId("file").onchange = ({ target }) => {
  openOwn(target.files[0]);
  target.value = "";
};
byId("skip").onclick = (event) => {
  event.preventDefault(); // the address holds the state
  byId("main").focus();
};
byId("verify").onclick = async () => {
  context.say("Checking every byte …");
  try {
    context.say(`All checksums match (${time((await ask("verify")).ms)})`);
  } catch (error) {
    refuse(error, undefined, "The file is damaged");
  }
};
byId("copy").onclick = async () => {
  const { state } = stateOf(location.hash);
  const address = new URL(link(state), location.href).href;
  await navigator.clipboard?.writeText(address).then(
    () => context.say("Link copied"),
    () => context.say(address),
  );
};
addEventListener("hashchange", () => {
  clearTimeout(writing);
  typing = false;
  settled = true;
  // The followed link is about to be removed; its target starts at the top.
  if (document.activeElement?.closest(".answer")) {
    byId("main").focus({ preventScroll: true });
    if (stateOf(location.hash).state.k === undefined) scrollTo({ top: 0 });
  }
  show();
});
addEventListener("dragover", (event) => {
  event.preventDefault();
  document.body.classList.add("dragging");
});
addEventListener("dragleave", (event) => {
  if (!event.relatedTarget) document.body.classList.remove("dragging");
});
addEventListener("drop", (event) => {
  event.preventDefault();
  document.body.classList.remove("dragging");
  const [item] = event.dataTransfer.items;
  if (item?.webkitGetAsEntry()?.isDirectory)
    refuse({ message: "a folder; drop a file, or save a collection as one file" }, item.getAsFile()?.name);
  else openOwn(event.dataTransfer.files[0]);
});

globalThis.embits = { ask }; // for the console: await embits.ask("closest", { word: "queen", k: 5 })
start();
if ("serviceWorker" in navigator && isSecureContext) {
  navigator.serviceWorker.register(scriptURL("sw.js")).catch(() => {});
}
