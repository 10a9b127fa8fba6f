// Collections, filters and radius in the JavaScript reader: arguments and damage. Run by test_page.py.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const site = new URL("../../src/embits/page/site/", import.meta.url);
const golden = new URL("../golden/", import.meta.url);
const embits = await import(new URL("embits.js", site));
const { open, BinaryVectors, FormatError, Selection, UnknownWordError } = embits;
const { parseManifest } = await import(new URL("manifest.js", site));
const { simdRoom } = await import(new URL("simd.js", site));

const wasm = readFileSync(new URL("kernel.wasm", site));
const read = (name) => new Uint8Array(readFileSync(new URL(name, golden)));
const words = open(read("lsh-100-bits.safetensors"));
const names = readdirSync(new URL("collection-v1/", golden));
const files = () => new Map(names.map((name) => [name, read(`collection-v1/${name}`)]));
const reader = (some) => (name) => some.get(name) ?? null;

function assertRefused(wrong) {
  for (const [call, kind, message] of wrong) {
    assert.throws(call, (error) => error instanceof kind && error.message.includes(message), message);
  }
}

// -- filters and radius ---------------------------------------------------------------------------

test("filters are booleans, rows, ids or selections, and say what is wrong", () => {
  const n = words.length;
  const search = (options) => () => words.search("queen", options);
  assertRefused([
    [search({ where: "queen" }), TypeError, "where is 'queen', expected an array of"],
    [search({ where: null }), TypeError, "where is null"],
    [search({ where: 3 }), TypeError, "where is 3"],
    [search({ where: new Uint8Array(n) }), TypeError, "where is a Uint8Array"],
    [search({ where: [true] }), RangeError, `where is a mask of 1 rows, but there are ${n}`],
    [search({ where: Array(n).fill(1) }), TypeError, "where is a mask of numbers, expected true and false"],
    [search({ where: [1, "queen"] }), TypeError, "where has 'queen'"],
    [search({ where: ["queen", 1] }), TypeError, "where has 1"],
    [search({ where: [true, 1] }), TypeError, "where has 1"],
    [search({ where: [[1]] }), TypeError, "where has an array"],
    [search({ exclude: [n] }), RangeError, `exclude has row ${n}, but there are ${n} rows`],
    [search({ exclude: [-1] }), RangeError, "exclude has row -1"],
    [search({ exclude: [0.5] }), RangeError, "exclude has row 0.5"],
    [search({ where: ["nowhere"] }), UnknownWordError, "'nowhere'"],
    [() => words.select({ k: 3 }), TypeError, "select has no option 'k'"],
  ]);
});

test("all forms of a filter give the same rows", () => {
  const rows = [3, 5, 7, 11];
  const ids = rows.map((row) => words.words.at(row));
  const mask = Array.from({ length: words.length }, (_, row) => rows.includes(row));
  const wanted = words.search("queen", { where: rows });
  assert.deepEqual(
    wanted.map(({ row }) => row).sort((a, b) => a - b),
    rows,
  );
  const selection = words.select({ where: rows });
  assert.ok(selection instanceof Selection && selection.length === 4);
  for (const where of [
    ids,
    mask,
    new Set(rows),
    new Set(ids),
    Uint32Array.from(rows),
    [3, 3, 11, 7, 5],
    selection,
  ])
    assert.deepEqual(words.search("queen", { where }), wanted);
  assert.deepEqual(words.search("queen", { where: [] }), []);
  assert.equal(words.search("queen", { exclude: [], k: 1e6 }).length, words.length);
  assert.equal(words.select({ exclude: ["nowhere", "queen"] }).length, words.length - 1);
  assert.equal(words.select().length, words.length);
});

test("within needs one bound in its range", () => {
  const within = (options) => () => words.within("queen", options);
  assertRefused([
    [within(), TypeError, "a distance or a similarity, one of them"],
    [within({ distance: 3, similarity: 0.5 }), TypeError, "one of them"],
    [within({ distance: 101 }), RangeError, "distance is 101, expected 0 to 100"],
    [within({ distance: -1 }), RangeError, "distance is -1"],
    [within({ distance: 1.5 }), RangeError, "distance is 1.5, expected a whole number"],
    [within({ distance: "3" }), TypeError, "distance is '3', expected a number"],
    [within({ similarity: 1.1 }), RangeError, "similarity is 1.1, expected 0 to 1"],
    [within({ similarity: NaN }), RangeError, "similarity is NaN"],
    [within({ distance: 3, metric: "decoded" }), TypeError, "the metric 'decoded' has no distance"],
    [within({ similarity: -2, metric: "decoded" }), RangeError, "similarity is -2, expected -1 to 1"],
    [within({ distance: 3, metric: "cosine" }), RangeError, "metric is 'cosine'"],
    [within({ distance: 3, k: 1 }), TypeError, "within has no option 'k'"],
    [() => words.within("nowhere", { distance: 3 }), UnknownWordError, "'nowhere'"],
  ]);
  assert.equal(words.within("queen", { distance: 100 }).length, words.length);
  assert.equal(words.within("queen", { similarity: 1 })[0].distance, 0);
});

test("similar words by decoded vectors need hamming for the furthest", () => {
  assertRefused([
    [() => words.mostSimilar("queen", { metric: "asymmetric" }), RangeError, "metric is 'asymmetric'"],
    [() => words.mostSimilar("queen", { metric: "decoded", furthest: true }), TypeError, "furthest needs"],
    [() => words.similarity("queen", "king", { metric: "cosine" }), RangeError, "metric is 'cosine'"],
  ]);
  assert.ok(Math.abs(words.similarity("queen", "queen", { metric: "decoded" }) - 1) < 1e-6);
});

test("a word is resolved to the file's letter case, and an unknown one has suggestions", () => {
  assert.equal(words.resolve("queen"), "queen");
  assert.equal(words.resolve("qUeEn"), "queen");
  assert.throws(
    () => words.resolve("qeen"),
    (error) => error instanceof UnknownWordError && error.suggestions.includes("queen"),
  );
  assert.throws(() => words.suggest(7), TypeError);
});

// -- collections ----------------------------------------------------------------------------------

test("a collection of a server or of files is the same, with either kernel", async () => {
  const all = files();
  const served = (name) => (all.has(name) ? new Response(all.get(name)) : new Response("", { status: 404 }));
  const plain = await open(reader(all));
  const others = [
    await open(served),
    await open(async (name) => all.get(name)?.slice().buffer, { verify: true }),
    await open(served, { room: (size) => simdRoom(wasm, size) }),
    await open(served, { room: async () => null }),
  ];
  await plain.verify();
  for (const other of others) {
    assert.deepEqual(other.codes, plain.codes);
    assert.deepEqual(other.search(0, { k: 99 }), plain.search(0, { k: 99 }));
  }
  assert.deepEqual(
    others.map((other) => other.kernel),
    ["JavaScript", "JavaScript", "WebAssembly SIMD", "JavaScript"],
  );
});

test("a missing or damaged file of a collection is named", async () => {
  for (const name of names) {
    const without = files();
    without.delete(name);
    const isNamed = (error) => error instanceof FormatError && error.message.includes(name);
    await assert.rejects(open(reader(without)), isNamed);
    for (let at = 0; at < files().get(name).length; at += 7) {
      const damaged = files();
      damaged.get(name)[at] ^= 1;
      await assert.rejects(open(reader(damaged), { verify: true }), isNamed, `${name}, byte ${at}`);
    }
  }
});

test("a function that fails because there is no such file says that it is missing", async () => {
  for (const error of [{ code: "ENOENT" }, { name: "NotFound" }, { name: "NotFoundError" }]) {
    const all = files();
    const failing = (name) => all.get(name) ?? Promise.reject(Object.assign(new Error("no such file"), error));
    const opened = await open(failing, { verify: true }); // it has no text encoder
    assert.equal(opened.length, (await open(reader(all))).length);
    all.delete("_coder.safetensors");
    await assert.rejects(open(failing), (error) => error instanceof FormatError && error.message.includes("is missing"));
  }
  const denied = Object.assign(new Error("no access"), { code: "EACCES" });
  await assert.rejects(open(() => Promise.reject(denied)), denied);
});

test("a file that was replaced is looked for in the new manifest", async () => {
  const all = files();
  let reads = 0;
  const old = new TextDecoder().decode(all.get("_embits.json"));
  const rows = (await open(reader(all))).length;
  const changing = (name) => {
    if (name !== "_embits.json") return all.get(name) ?? null;
    reads++;
    return reads > 1 ? all.get(name) : new TextEncoder().encode(outdated(old));
  };
  assert.equal((await open(changing)).length, rows);
  assert.equal(reads, 2);
});

/** The manifest with the name of a piece that is gone, and its checksum made to fit. */
function outdated(text) {
  const body = { ...JSON.parse(text.replaceAll("piece-00000003", "piece-00000002")) };
  delete body.sha256;
  const sorted = (value) =>
    Array.isArray(value)
      ? value.map(sorted)
      : value && typeof value === "object"
        ? Object.fromEntries(
            Object.keys(value)
              .sort()
              .map((key) => [key, sorted(value[key])]),
          )
        : value;
  const sha256 = createHash("sha256")
    .update(JSON.stringify(sorted(body)))
    .digest("hex");
  return JSON.stringify({ ...body, sha256 });
}

test("a manifest that lies is refused", () => {
  const text = new TextDecoder().decode(files().get("_embits.json"));
  const parse = (changed) => parseManifest(new TextEncoder().encode(changed));
  parse(text);
  for (const bad of ["", "[]", "{}", "null", text.replace('"version": 1', '"version": 2'), text.slice(0, -9)])
    assert.throws(() => parse(bad), FormatError, bad);
  for (const [from, to] of [
    ["piece-00000003.safetensors", "../secret.safetensors"],
    ['"rows": ', '"rows": -'],
    ['"ids": "given"', '"ids": "other"'],
    ['"version": 1', '"version": 3'],
    ['"version": 1', '"version": 2, "coder_file": "../secret.safetensors"'],
  ]) {
    assert.ok(text.includes(from), from);
    assert.throws(() => parse(outdated(text.replaceAll(from, to))), FormatError, from);
  }
});

test("the options of a collection and what its function returns are checked", async () => {
  const rejected = (promise, kind, message) =>
    assert.rejects(promise, (error) => error instanceof kind && error.message.includes(message), message);
  await rejected(open(reader(files()), { kernel: 1 }), TypeError, "open has no option 'kernel'");
  await rejected(open(reader(files()), { room: 1 }), TypeError, "room is 1, expected a function");
  await rejected(open(reader(files()), { verify: "yes" }), TypeError, "verify is 'yes'");
  await rejected(
    open(() => "text"),
    TypeError,
    "no bytes of _embits.json",
  );
  await rejected(
    open(() => new Response("", { status: 500 })),
    Error,
    "status 500 for _embits.json",
  );
});

// -- types ----------------------------------------------------------------------------------------

test("all public names are in embits.d.ts, and no others", () => {
  const types = readFileSync(new URL("embits.d.ts", site), "utf8");
  for (const name of Object.keys(embits))
    assert.match(types, new RegExp(`export (class|function) ${name}\\b`));
  const body = types.slice(
    types.indexOf("export class BinaryVectors"),
    types.indexOf("export type FileContents"),
  );
  const typed = [...body.matchAll(/^ {2}(?:readonly )?(\w+)[(:]/gm)].map(([, name]) => name);
  const methods = Object.getOwnPropertyNames(BinaryVectors.prototype).filter(
    (name) => name !== "constructor",
  );
  assert.deepEqual(new Set(typed), new Set([...methods, ...Object.keys(words)]));
});

test("a damaged log is refused, and an incomplete line is left out", async () => {
  const logged = readdirSync(new URL("collection-v3/", golden));
  const all = () => new Map(logged.map((name) => [name, read(`collection-v3/${name}`)]));
  const log = logged.find((name) => name.endsWith(".jsonl"));
  const whole = all().get(log);
  const opened = async (bytes) => open(reader(all().set(log, Uint8Array.from(bytes))));
  const length = (await opened(whole)).length;
  assert.equal((await opened(whole)).words.at(length - 1), "日本語");
  const line = whole.lastIndexOf(10, whole.length - 2) + 1;
  for (const size of [0, 1, 90, whole.length - line - 1]) {
    assert.equal((await opened(whole.slice(0, line + size))).length, length - 1, `${size} bytes`);
  }
  const isNamed = (error) => error instanceof FormatError && error.message.includes(log);
  for (let at = 0; at < whole.length; at += 3) {
    const damaged = whole.slice();
    damaged[at] ^= 1;
    await assert.rejects(opened(damaged), isNamed, `byte ${at}`);
  }
  const without = all();
  without.delete(log);
  await assert.rejects(open(reader(without)), isNamed);
});
