// The JavaScript reader refuses damaged files, and its checksums and JSON. Run by tests/page/test_page.py.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const site = new URL("../../src/embits/page/site/", import.meta.url);
const golden = new URL("../golden/", import.meta.url);
const { open, FormatError } = await import(new URL("embits.js", site));
const { hex, parseJSON, sha256 } = await import(new URL("format.js", site));

const read = (name) => new Uint8Array(readFileSync(new URL(name, golden)));

test("every truncation is refused", () => {
  const whole = read("lsh-3-bits-u64.safetensors");
  for (let length = 0; length < whole.length; length++)
    assert.throws(() => open(whole.slice(0, length)), FormatError, `${length}`);
  assert.throws(() => open(Uint8Array.of(...whole, 0)), FormatError);
});

test("a flipped bit is noticed: in the header at open, in the tensors by verify", async () => {
  const whole = read("lsh-3-bits-u64.safetensors");
  const dataStart = 8 + Number(new DataView(whole.buffer).getBigUint64(0, true));
  for (let at = 0; at < whole.length; at++) {
    const bytes = whole.slice();
    bytes[at] ^= 1 << (at % 8);
    if (at < dataStart) assert.throws(() => open(bytes), FormatError, `byte ${at}`);
    else await assert.rejects(async () => open(bytes).verify(), FormatError, `byte ${at}`);
  }
});

test("verify works without crypto.subtle, as on a page over plain http", async (context) => {
  if (globalThis.crypto) context.mock.getter(globalThis.crypto, "subtle", () => undefined);
  const whole = read("paper-64-bits.safetensors");
  await open(whole).verify();
  whole[whole.length - 1] ^= 1;
  await assert.rejects(() => open(whole).verify(), FormatError);
});

test("other files are refused for what they are", () => {
  for (const bytes of [
    new Uint8Array(0),
    new Uint8Array(100),
    new Uint8Array(100).fill(255),
    new TextEncoder().encode("word 0.1 0.2\n".repeat(10)),
  ]) {
    assert.throws(() => open(bytes), FormatError);
  }
});

test("SHA-256 is SHA-256", () => {
  for (const length of [0, 1, 55, 56, 63, 64, 65, 1000]) {
    const bytes = randomBytes(length);
    assert.equal(hex(sha256(bytes)), createHash("sha256").update(bytes).digest("hex"));
  }
});

test("JSON is read as JSON.parse reads it, and names that appear twice are refused", () => {
  for (const text of [
    '{"a":[],"b":{},"c":[1,-2.5e3,{"x":null}],"d":"\\u00e9\\n"}',
    "[]",
    "3",
    " [ true , false ] ",
    '"x"',
  ]) {
    const plain = (value) =>
      value instanceof Map
        ? Object.fromEntries([...value].map(([key, each]) => [key, plain(each)]))
        : Array.isArray(value)
          ? value.map(plain)
          : value;
    assert.deepEqual(plain(parseJSON(text)), JSON.parse(text));
  }
  const bad = [
    '{"a":1,"a":2}',
    '[{"a":{"b":1,"b":1}}]',
    '{"a":1,}',
    "[1,]",
    "{",
    "[1",
    "1 2",
    "",
    '{"a"}',
    "nul",
    '"\\x"',
    "01",
    "[,]",
    "[1 2]",
    "[".repeat(9999),
  ];
  for (const text of bad) assert.throws(() => parseJSON(text), FormatError, text);
});
