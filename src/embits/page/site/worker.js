/**
 * The worker holds the file and searches it, so that typing never waits for a search.
 * A request is { id, question, details }, a reply { id, answer } or { id, error }.
 */
import { QUESTIONS, SHARING } from "./constants.js";
import { openFile } from "./open_file.js";
import { simdRoom } from "./simd.js";
import { openTextEncoder } from "./text_encoder.js";

const PROGRESS_EVERY_MS = 60;
const PART = 1 << 18;
const WARM_UP = 10; // searches before the first request: engines compile code that runs often
const WARM_UP_MS = 150;
const MAX_UNPACKED = 1 << 24; // bytes of texts that are decoded when the file is opened
const CONTAINING_MS = 100; // for texts that contain what is typed
const LONG = /[\p{L}\p{N}_]{4,}/gu; // words that an answer may share with a question, other than QUESTIONS
let bits = null;
let noun = "word"; // what a row is called
let decodes = false; // whether the metric "decoded" works
let texts = null; // of a collection of texts: { encoder, least, rows }, a row as [title, text, url]

const questions = {
  /** Read a file, from the page's folder ({ url, size, cache }) or from the visitor ({ file }). */
  async load({ url, file, size, cache, plain, encoder, texts: textsURL }) {
    const more = encoder && textsURL ? await Promise.all([encoder, textsURL].map(downloaded)) : null;
    const total = file ? file.size : size;
    const source = file ? file.stream() : await download(url);
    const room = plain ? null : await simdRoom(await kernel(), total);
    const bytes = room?.bytes ?? new Uint8Array(total);
    const length = await fill(bytes, source);
    self.postMessage({ progress: { done: length, total } });
    const start = performance.now();
    const opened = openFile(bytes.subarray(0, length), room?.countDifferences);
    const first = opened.words.startingWith("", 8).map((row) => opened.words.at(row)); // reads the whole word order
    for (let i = 0; i < WARM_UP && opened.length && performance.now() - start < WARM_UP_MS; i++) {
      opened.nearest(opened.code(0), 10);
    }
    const asked = more && (await textsOf(more, opened));
    [bits, texts] = [opened, asked];
    noun = texts ? "text" : nounOf(bits, first);
    if (noun === "text" && !texts && bits.tensors.get("words").bytes.length < MAX_UNPACKED) bits.words.bytes(0);
    decodes = canDecode(bits);
    const ms = performance.now() - start;
    const parts = [[bytes, url], ...(more ?? []).map((each, i) => [each, [encoder, textsURL][i]])];
    if (cache) keep(parts, cache).catch(() => self.postMessage({ kept: false }));
    return { ...describe(), first, ms };
  },

  /**
   * Words that start with the typed text; if there are too few, also those that start with it in
   * lower case, and texts that contain it.
   */
  suggest({ prefix, most }) {
    let rows = bits.words.startingWith(prefix, most);
    if (!rows.length) rows = bits.words.startingWith((prefix = prefix.trim()), most);
    const lower = prefix.toLowerCase();
    if (rows.length < most && lower !== prefix) {
      for (const row of bits.words.startingWith(lower, most - rows.length))
        if (!rows.includes(row)) rows.push(row);
    }
    if (noun === "text" && prefix !== "") rows.push(...containing(prefix, most - rows.length, rows));
    return rows.map((row) => bits.words.at(row));
  },

  /** The texts that answer a question; none if no text is similar enough, or if no word of it is known. */
  ask({ question, k }) {
    const start = performance.now();
    const vector = texts.encoder.encode(question);
    const found = vector.some((x) => x !== 0) ? bits.search(vector, { k }) : [];
    const asked = new Set(longWords(question));
    const answers = found
      .map(({ word, row, score }) => {
        const [title, text, url] = texts.rows[row];
        return { id: word, score, title, text, url };
      })
      .filter(({ score, title, text }) => {
        const shares = longWords(`${title} ${text}`).some((each) => asked.has(each));
        return score >= (shares ? SHARING * texts.least : texts.least);
      });
    return { answers, ms: performance.now() - start };
  },

  closest({ word, k, metric }) {
    const found = existing(word);
    const ask = () => bits.mostSimilar(found, { k, metric });
    return { word: found, code: bits.code(found).slice(), ...timed(ask) };
  },

  analogy({ a, b, c, k, metric }) {
    const [from, to, like] = [a, b, c].map(existing);
    const ask = () => bits.mostSimilar([to, like], { negative: [from], k, metric });
    // The sum of decoded vectors has no code.
    const code = metric === "decoded" ? null : bits.combine([to, like], [from]);
    return { a: from, b: to, c: like, code, ...timed(ask) };
  },

  compare({ a, b }) {
    const [one, other] = [existing(a), existing(b)];
    return {
      a: one,
      b: other,
      codes: [one, other].map((word) => bits.code(word).slice()),
      similarity: bits.similarity(one, other),
      cosine: decodes ? bits.similarity(one, other, { metric: "decoded" }) : null,
    };
  },

  /** The paper's figure: the closest and the furthest words. */
  picture({ word, most }) {
    const found = existing(word);
    const half = Math.min(most, Math.floor((bits.length - 1) / 2));
    const closest = timed(() => bits.mostSimilar(found, { k: half }));
    const furthest = timed(() => bits.mostSimilar(found, { k: half, furthest: true }));
    return {
      word: found,
      code: bits.code(found).slice(),
      closest: closest.neighbors,
      furthest: furthest.neighbors.reverse(),
      ms: closest.ms + furthest.ms,
    };
  },

  /** Words that are spelled like an unknown one, or texts that contain it. */
  near: ({ word }) =>
    noun === "text" ? containing(word, 3).map((row) => bits.words.at(row)) : bits.suggest(word.trim()),

  async verify() {
    const start = performance.now();
    await bits.verify();
    return { ms: performance.now() - start };
  },
};

self.onmessage = async ({ data: { id, question, details } }) => {
  try {
    self.postMessage({ id, answer: await questions[question](details) });
  } catch (error) {
    const { name, message, word } = error;
    self.postMessage({ id, error: { name, message, word } });
  }
};

function timed(ask) {
  const start = performance.now();
  const neighbors = ask();
  const ms = performance.now() - start;
  return { neighbors: neighbors.map((each) => ({ ...each, code: bits.code(each.row).slice() })), ms };
}

/** The word as the file has it; spaces around it count only if the file has them. */
function existing(word) {
  try {
    return bits.resolve(word);
  } catch (error) {
    if (word === word.trim()) throw error;
    return bits.resolve(word.trim());
  }
}

/** Whether the metric "decoded" works: the file has its coder, and JavaScript has its method. */
function canDecode(bits) {
  try {
    bits.search(new Uint8Array(bits.width), { k: 1, metric: "decoded", secondLook: 0 });
    return true;
  } catch {
    return false;
  }
}

/** What the rows are called: words, texts (most have spaces or are long), ids or row numbers. */
function nounOf({ tensors }, first) {
  if (![...tensors.keys()].some((name) => name.startsWith("word"))) return "row";
  if (tensors.has("word_numbers") || tensors.has("word_uuids")) return "id";
  const texts = first.filter((word) => word.length > 40 || /\S\s+\S/.test(word));
  return 2 * texts.length > first.length ? "text" : "word";
}

/** The first rows whose texts contain some letters, in any case, of those that are read in time. */
function containing(letters, most, without = []) {
  const wanted = letters.toLowerCase();
  const rows = [];
  const stop = performance.now() + CONTAINING_MS;
  for (let row = 0; row < bits.length && rows.length < most && performance.now() < stop; row++) {
    if (bits.words.at(row).toLowerCase().includes(wanted) && !without.includes(row)) rows.push(row);
  }
  return rows;
}

function describe() {
  const parts = [...bits.tensors.values()].map(({ name, bytes }) => ({ name, bytes: bytes.length }));
  const { length, nBits, dims, method, size, kernel, codes } = bits;
  const facts = { words: length, noun, decodes, asks: Boolean(texts), nBits, dims, method, size, kernel, parts };
  return { ...facts, codeBytes: codes.length };
}

async function download(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(`the server returned status ${response.status} for the vectors`);
  return response.body;
}

/** The bytes of a file of the page. */
async function downloaded(url) {
  return new Uint8Array(await new Response(await download(url)).arrayBuffer());
}

/** The text encoder and the texts of a page. */
async function textsOf([encoder, file], { length }) {
  const { least, rows } = JSON.parse(new TextDecoder().decode(file));
  if (rows.length !== length) throw new Error(`${rows.length} texts for ${length} codes: write the page again`);
  return { encoder: await openTextEncoder(encoder), least, rows };
}

/** The words of four or more letters that say what a text is about. */
function longWords(text) {
  return (text.toLowerCase().match(LONG) ?? []).filter((word) => !QUESTIONS.includes(word));
}

async function kernel() {
  return new Uint8Array(await (await fetch("kernel.wasm")).arrayBuffer());
}

/**
 * Read a stream into `bytes`, through one small buffer if the stream supports it: otherwise its
 * parts create as much garbage as the file is large. A file longer than expected is an error.
 */
async function fill(bytes, stream) {
  const { read, cancel } = reader(stream);
  let done = 0;
  let said = 0;
  for (let part = await read(); part; part = await read()) {
    if (done + part.length > bytes.length) {
      cancel();
      throw new Error(`the file is longer than the expected ${bytes.length} bytes`);
    }
    bytes.set(part, done);
    done += part.length;
    if (performance.now() - said > PROGRESS_EVERY_MS) {
      said = performance.now();
      self.postMessage({ progress: { done, total: bytes.length } });
    }
  }
  return done;
}

function reader(stream) {
  try {
    const byob = stream.getReader({ mode: "byob" });
    let buffer = new ArrayBuffer(PART);
    const read = async () => {
      const { value, done } = await byob.read(new Uint8Array(buffer));
      if (done) return null;
      buffer = value.buffer; // the stream returns the same memory
      return value;
    };
    return { read, cancel: () => byob.cancel() };
  } catch {
    const plain = stream.getReader();
    return { read: async () => (await plain.read()).value ?? null, cancel: () => plain.cancel() };
  }
}

/** Cache the vectors and texts for offline use; they are taken from memory, not downloaded again. */
async function keep(parts, cacheName) {
  if (!self.caches) return;
  await new Promise((done) => setTimeout(done, 500)); // after the first searches
  const cache = await caches.open(cacheName);
  for (const [bytes, url] of parts) {
    if (!(await cache.match(url))) await cache.put(url, new Response(inParts(bytes)));
  }
  self.postMessage({ kept: true });
}

/** A stream of the bytes; it copies one part at a time. */
function inParts(bytes) {
  let at = 0;
  return new ReadableStream({
    pull(controller) {
      if (at >= bytes.length) return controller.close();
      controller.enqueue(bytes.slice(at, at + PART));
      at += PART;
    },
  });
}
