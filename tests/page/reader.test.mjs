// The JavaScript reader: golden files, keys and queries. Run by tests/page/test_page.py.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const site = new URL("../../src/embits/page/site/", import.meta.url);
const golden = new URL("../golden/", import.meta.url);
const { open, openTextEncoder, UnknownWordError } = await import(new URL("embits.js", site));
const { simdRoom } = await import(new URL("simd.js", site));
const { nearSpellings } = await import(new URL("spelling.js", site));

const kernel = readFileSync(new URL("kernel.wasm", site));
const read = (name) => new Uint8Array(readFileSync(new URL(name, golden)));
const expected = JSON.parse(readFileSync(new URL("golden.json", golden), "utf8"));
const files = Object.keys(expected);
// The golden files of each method: opened and checked, whatever coder they hold.
const others = readdirSync(golden).filter((name) => /^v1-.*\.safetensors$/.test(name));

async function inRoom(bytes) {
  const room = await simdRoom(kernel, bytes.length);
  room.bytes.set(bytes);
  return open(room.bytes, room.countDifferences);
}

for (const name of others) {
  test(`${name} opens and is whole`, async () => {
    const bits = open(read(name));
    await bits.verify();
    assert.equal(bits.length, 8);
  });
}

for (const name of files) {
  test(`${name} holds what Python found in it, with either kernel`, async () => {
    const facts = expected[name];
    for (const bits of [open(read(name)), await inRoom(read(name))]) {
      await bits.verify();
      assert.deepEqual(
        [bits.length, bits.nBits, bits.dims, bits.method],
        [facts.words, facts.bits, facts.dims, facts.method],
      );
      assert.deepEqual(
        facts.first,
        facts.first.map((_, row) => bits.words.at(row)),
      );
      for (const [word, neighbors] of Object.entries(facts.neighbors)) {
        assert.deepEqual(
          bits.mostSimilar(word, { k: 20 }).map(({ word, similarity }) => [word, similarity]),
          neighbors,
        );
      }
      if (facts.analogy.length) {
        const [a, b, c] = facts.first;
        assert.deepEqual(
          bits.mostSimilar([b, c], { negative: [a], k: 9 }).map(({ word, similarity }) => [word, similarity]),
          facts.analogy,
        );
      }
    }
  });
}

const version2 = JSON.parse(readFileSync(new URL("v2.json", golden), "utf8"));

for (const [name, facts] of Object.entries(version2)) {
  test(`${name} holds what Python found in it`, async () => {
    const bits = open(read(name));
    const { words } = bits;
    await bits.verify();
    assert.deepEqual(
      Array.from({ length: bits.length }, (_, row) => words.at(row)),
      facts.words,
    );
    facts.words.forEach((word, row) => assert.equal(words.find(word), row));
    for (const absent of ["queen\0", "nowhere", "\ud800", "7", "07", String(2n ** 64n), "-1"])
      assert.equal(words.find(absent), facts.words.includes(absent) ? facts.words.indexOf(absent) : null);
    for (const [prefix, found] of Object.entries(facts.prefixes))
      assert.deepEqual(
        words.startingWith(prefix, 5).map((row) => words.at(row)),
        found,
      );
    for (const [word, found] of Object.entries(facts.spellings))
      if (words.find(word) === null) assert.deepEqual(nearSpellings(words, word), found, word);
    assert.equal(Buffer.from(bits.codes).toString("hex"), facts.codes);
    const [asked, ...rest] = [1, ...facts.neighbors];
    if (rest.length) {
      const neighbors = bits.mostSimilar(asked, { k: 4 });
      assert.deepEqual(
        neighbors.map(({ word, similarity }) => [word, similarity]),
        rest,
      );
    }
  });
}

const near = (found, expected) => {
  assert.equal(found.length, expected.length);
  found.forEach((value, i) => assert.ok(Math.abs(value - expected[i]) < 2e-4, `${value} in place of ${expected[i]}`));
};
const version3 = JSON.parse(readFileSync(new URL("v3.json", golden), "utf8"));

for (const [name, facts] of Object.entries(version3).filter(([name, { codes }]) => codes && /^v3/.test(name))) {
  test(`${name} holds what Python found in it`, async () => {
    const bits = open(read(name));
    await bits.verify();
    assert.deepEqual(facts.ids, facts.ids.map((_, row) => bits.words.at(row)));
    assert.equal(facts.ids.map((id) => Buffer.from(bits.code(id)).toString("hex")).join(""), facts.codes);
    const ends = [facts.ids[0], facts.ids.at(-1)];
    if (!name.includes("similarity")) ends.forEach((id, i) => near(bits.decode(id), facts.floats[i]));
  });
}

for (const [name, facts] of Object.entries(version3).filter(([, { vectors }]) => vectors)) {
  test(`${name} gives the vectors that it gave in Python`, async () => {
    const encoder = await openTextEncoder(read(name));
    const texts = ["the music of a river", "Boats, lakes; GUITARS", "日本 xylophone", ""];
    texts.forEach((text, i) => near(encoder.encode(text), facts.vectors[i]));
  });
}

test("Node's buffers are read as they are, at any offset, and left as they were", () => {
  const buffer = readFileSync(new URL("paper-64-bits.safetensors", golden));
  const shifted = Buffer.concat([Buffer.from("abc"), buffer]).subarray(3);
  for (const bytes of [
    buffer,
    buffer,
    shifted,
    buffer.buffer.slice(buffer.byteOffset, buffer.byteOffset + buffer.length),
  ]) {
    assert.equal(open(bytes).words.at(1), "queen");
  }
  assert.deepEqual(new Uint8Array(buffer), read("paper-64-bits.safetensors"));
});

test("every word is found at its row, and no other", () => {
  const bits = open(read("lsh-100-bits.safetensors"));
  for (let row = 0; row < bits.length; row++) assert.equal(bits.words.find(bits.words.at(row)), row);
  for (const absent of ["", "quee\0", "quen", "\ud800", "zzz", "日本"])
    assert.equal(bits.words.find(absent), null);
  assert.throws(() => bits.mostSimilar("nowhere"), UnknownWordError);
});

test("suggestions are the words that start so, in row order", () => {
  const { words } = open(read("lsh-100-bits.safetensors"));
  const all = Array.from({ length: words.length }, (_, row) => words.at(row));
  for (const prefix of ["", "q", "que", "queen", "word1", "日", "👩", " ", "<", "\ufeff", "nothing"]) {
    const rows = all.flatMap((word, row) => (word.startsWith(prefix) ? [row] : []));
    for (const most of [1, 3, 500])
      assert.deepEqual(words.startingWith(prefix, most), rows.slice(0, most), prefix);
  }
});

test("rows without words go by their number", () => {
  const { words } = open(read("lsh-256-bits-rows.safetensors"));
  assert.deepEqual(
    [words.find("7"), words.find("60"), words.find("07"), words.find("x")],
    [7, null, null, null],
  );
  assert.deepEqual(words.startingWith("5", 4), [5, 50, 51, 52]);
  assert.deepEqual(words.startingWith("0", 4), [0]);
  assert.deepEqual(words.startingWith("", 3), [0, 1, 2]);
});

test("near spellings are offered", () => {
  const { words } = open(read("lsh-100-bits.safetensors"));
  assert.deepEqual(nearSpellings(words, "QUEEN").slice(0, 2), ["queen", "Queen"]);
  assert.ok(nearSpellings(words, "qeen").includes("queen"));
});

test("two swapped letters are one edit", () => {
  const all = ["queens", "the", "queen", "tea"];
  const bytes = all.map((word) => new TextEncoder().encode(word));
  const words = {
    length: all.length,
    at: (row) => all[row],
    find: (word) => (all.includes(word) ? all.indexOf(word) : null),
    bytes: (row) => bytes[row],
    byteLength: (row) => bytes[row].length,
  };
  assert.deepEqual(nearSpellings(words, "teh"), ["the", "tea"]);
  assert.equal(nearSpellings(words, "quene")[0], "queen");
});

// -- arguments ------------------------------------------------------------------------------------

test("keys that are neither words, rows nor codes are refused", () => {
  const bits = open(read("lsh-100-bits.safetensors"));
  const rows = bits.length;
  const wrong = [
    [() => bits.mostSimilar(1.5), RangeError, `row 1.5 of ${rows} rows`],
    [() => bits.mostSimilar(-1), RangeError, `row -1 of ${rows} rows`],
    [() => bits.mostSimilar(rows), RangeError, `from 0 to ${rows - 1}`],
    [() => bits.mostSimilar(NaN), RangeError, "row NaN"],
    [() => bits.mostSimilar(null), TypeError, "positive has null, expected a word"],
    [() => bits.mostSimilar(undefined), TypeError, "positive has undefined"],
    [() => bits.mostSimilar([]), TypeError, "positive is empty"],
    [() => bits.mostSimilar(["queen", null]), TypeError, "positive has null"],
    [() => bits.mostSimilar([["queen"]]), TypeError, "positive has an array"],
    [() => bits.mostSimilar(new Float32Array(16)), TypeError, "positive has a Float32Array"],
    [() => bits.mostSimilar(new Uint8Array(5)), RangeError, "a code of 5 bytes, expected 13"],
    [() => bits.mostSimilar(new Uint8Array(13).fill(255)), RangeError, "bits set after its 100 bits"],
    [() => bits.mostSimilar("queen", { negative: null }), TypeError, "negative has null"],
    [() => bits.mostSimilar("queen", { negative: [2.5] }), RangeError, "row 2.5"],
    [() => bits.similarity("queen", null), TypeError, "the word is null, expected a string"],
    [() => bits.similarity("queen"), TypeError, "the word is undefined"],
    [() => bits.code(0.5), RangeError, "row 0.5"],
    [() => bits.code(7n), TypeError, "the word is 7"],
    [() => bits.combine(["queen"], "nowhere"), UnknownWordError, "there is no word or id 'nowhere'"],
    [() => bits.nearest("queen"), TypeError, "the code is 'queen', expected a Uint8Array"],
  ];
  for (const [call, kind, message] of wrong) {
    assert.throws(call, (error) => error instanceof kind && error.message.includes(message), message);
  }
});

test("counts and options are checked, and unknown options are refused", () => {
  const bits = open(read("lsh-100-bits.safetensors"));
  const code = bits.code("queen");
  const wrong = [
    [() => bits.mostSimilar("queen", { topn: 3 }), TypeError, "mostSimilar has no option 'topn'"],
    [() => bits.mostSimilar("queen", 3), TypeError, "the options of mostSimilar are 3"],
    [() => bits.mostSimilar("queen", null), TypeError, "the options of mostSimilar are null"],
    [() => bits.mostSimilar("queen", ["man"]), TypeError, "are an array, expected an object"],
    [() => bits.mostSimilar("queen", { k: -1 }), RangeError, "k is -1, expected a whole number"],
    [() => bits.mostSimilar("queen", { k: 1.5 }), RangeError, "k is 1.5"],
    [() => bits.mostSimilar("queen", { k: "3" }), RangeError, "k is '3'"],
    [() => bits.mostSimilar("queen", { furthest: 1 }), TypeError, "furthest is 1, expected true or false"],
    [() => bits.nearest(code, 1.5), RangeError, "k is 1.5"],
    [() => bits.nearest(code, 3, { k: 3 }), TypeError, "nearest has no option 'k'"],
    [() => bits.words.startingWith("q", -1), RangeError, "most is -1"],
  ];
  for (const [call, kind, message] of wrong) {
    assert.throws(call, (error) => error instanceof kind && error.message.includes(message), message);
  }
  assert.deepEqual(bits.mostSimilar("queen", { k: 0 }), []);
  assert.deepEqual(bits.words.startingWith("q", 0), []);
});

test("queries of a search are checked", () => {
  const bits = open(read("lsh-100-bits.safetensors"));
  const vector = new Float32Array(bits.dims).fill(0.5);
  const asymmetric = { metric: "asymmetric" };
  const wrong = [
    [() => bits.search(vector, { metric: "cosine" }), RangeError, "metric is 'cosine', expected 'hamming' or"],
    [() => bits.search(vector, { topn: 3 }), TypeError, "search has no option 'topn'"],
    [() => bits.search(vector, { k: -1 }), RangeError, "k is -1"],
    [() => bits.search(vector.slice(1)), RangeError, `a vector of ${bits.dims - 1} dimensions, expected ${bits.dims}`],
    [() => bits.search(vector.fill(NaN).slice()), RangeError, "NaN or infinity"],
    [() => bits.search(new Float64Array(bits.dims)), TypeError, "the vector is a Float64Array"],
    [() => bits.search("queen", { secondLook: 9 }), TypeError, "'asymmetric' or 'decoded', found 'hamming'"],
    [() => bits.search(vector, { recall: 2 }), RangeError, "recall is 2, expected 0 to 1"],
    [() => bits.search(vector, { recall: 1, probes: 1 }), TypeError, "recall and probes are given"],
    [() => bits.search("queen", asymmetric), TypeError, "the vector is 'queen', expected a Float32Array"],
    [() => bits.search(bits.code("queen"), asymmetric), TypeError, "the vector is a Uint8Array"],
    [() => bits.search(new Uint8Array(5), { metric: "decoded" }), RangeError, "a code of 5 bytes"],
    [() => bits.search("nowhere"), UnknownWordError, "there is no word or id 'nowhere'"],
    [() => bits.search(), TypeError, "the query is undefined, expected a vector (Float32Array), a code"],
    [() => bits.search(["queen"]), TypeError, "the query is an array, expected a vector"],
    [() => bits.search([1, 2]), RangeError, "a vector of 2 dimensions"],
    [() => bits.search(Array(bits.dims).fill(1e39)), RangeError, "NaN or infinity"],
    [() => bits.within({}, { distance: 3 }), TypeError, "the query is a Object, expected a vector"],
    [() => bits.encode([1, 2]), TypeError, "the vector is an array"],
    [() => bits.decode(null), TypeError, "the word is null"],
  ];
  for (const [call, kind, message] of wrong) {
    assert.throws(call, (error) => error instanceof kind && error.message.includes(message), message);
  }
  assert.deepEqual(bits.search("queen", { k: 0, metric: "decoded" }), []);
  assert.equal(bits.search("queen", { k: 1 })[0].distance, 0);
});

test("without a metric, vectors are compared as vectors, and codes, words and rows by Hamming distance", () => {
  const bits = open(read("lsh-100-bits.safetensors"));
  const vector = bits.decode("queen");
  const wanted = bits.search(vector, { metric: "asymmetric" });
  for (const metric of [undefined, null]) assert.deepEqual(bits.search(vector, { metric }), wanted);
  assert.deepEqual(Object.keys(wanted[0]), ["word", "row", "score"]);
  const byBits = bits.search("queen", { metric: "hamming" });
  for (const query of ["queen", bits.words.find("queen"), bits.code("queen")]) {
    assert.deepEqual(bits.search(query), byBits);
  }
  for (const { distance, score, row } of [...byBits, ...bits.within("queen", { distance: 30 })]) {
    assert.equal(score, Math.fround(bits.similarity("queen", row)));
    assert.equal(score, Math.fround(1 - distance / bits.nBits));
  }
  assert.equal("distance" in bits.within("queen", { similarity: 0.1, metric: "decoded" })[0], false);
});

test("an array of numbers is a float vector", () => {
  const bits = open(read("lsh-100-bits.safetensors"));
  const vector = bits.decode("queen");
  for (const metric of ["hamming", "asymmetric", "decoded"]) {
    assert.deepEqual(bits.search([...vector], { metric }), bits.search(vector, { metric }));
    const options = { similarity: 0.5, metric };
    assert.deepEqual(bits.within([...vector], options), bits.within(vector, options));
  }
});

test("a coder that is not known here says so, and codes are searched", () => {
  const bits = open(read("v1-sparse-64.safetensors"));
  assert.throws(() => bits.encode(new Float32Array(bits.dims)), /no coder 'sparse'/);
  assert.equal(bits.search(0, { k: 1 })[0].distance, 0);
});

test("one key stands for a list of one, for positive and negative alike", () => {
  const bits = open(read("lsh-100-bits.safetensors"));
  assert.deepEqual(bits.mostSimilar(["queen"]), bits.mostSimilar("queen"));
  assert.deepEqual(
    bits.mostSimilar("queen", { negative: "king" }),
    bits.mostSimilar(["queen"], { negative: ["king"] }),
  );
  const row = bits.words.find("queen");
  assert.deepEqual(bits.mostSimilar(row), bits.mostSimilar("queen"));
  assert.equal(bits.mostSimilar(bits.code("queen"), { k: 1 })[0].similarity, 1);
});

test("words take rows of the file and strings only", () => {
  for (const name of ["lsh-100-bits.safetensors", "lsh-256-bits-rows.safetensors"]) {
    const { words } = open(read(name));
    for (const row of [-1, words.length, 0.5, NaN]) assert.throws(() => words.at(row), RangeError, `${row}`);
    for (const row of ["0", null, undefined]) assert.throws(() => words.at(row), TypeError, `${row}`);
    for (const word of [null, undefined, 7]) {
      assert.throws(() => words.find(word), TypeError, `${word}`);
      assert.throws(() => words.startingWith(word), TypeError, `${word}`);
    }
  }
});

test("open takes bytes, and says so", () => {
  for (const bytes of ["glove.safetensors", null, undefined, [1, 2], new Float32Array(9)]) {
    assert.throws(() => open(bytes), /open takes the bytes of a file/);
  }
  assert.throws(() => open(read("lsh-100-bits.safetensors"), "simd"), TypeError);
});
