// The kernels of the JavaScript search against slow ones. Run by tests/page/test_page.py.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { readFileSync } from "node:fs";
import { test } from "node:test";

const site = new URL("../../src/embits/page/site/", import.meta.url);
const { countDifferences, select } = await import(new URL("search.js", site));
const { simdRoom } = await import(new URL("simd.js", site));

const kernel = readFileSync(new URL("kernel.wasm", site));
const bitsOf = (byte) => byte.toString(2).replaceAll("0", "").length;

test("the SIMD kernel counts as the plain one does, at every width", async () => {
  for (const width of [1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 48, 63, 64, 100, 128, 1000, 16384, 16400]) {
    for (const rows of [1, 2, 3, 4, 5, 37]) {
      const room = await simdRoom(kernel, rows * width);
      room.bytes.set(width > 1000 ? new Uint8Array(rows * width).fill(255) : randomBytes(rows * width));
      const query = width > 1000 ? new Uint8Array(width) : Uint8Array.from(randomBytes(width));
      const [plain, fast] = [new Uint32Array(rows), new Uint32Array(rows)];
      countDifferences(room.bytes, width, query, plain);
      room.countDifferences(room.bytes, width, query, fast);
      assert.deepEqual(fast, plain, `${rows} × ${width}`);
      const slow = Array.from({ length: rows }, (_, row) =>
        query.reduce(
          (sum, byte, i) => sum + (byte ^ room.bytes[row * width + i]).toString(2).replaceAll("0", "").length,
          0,
        ),
      );
      assert.deepEqual([...plain], slow);
    }
  }
  const rows = 40_000; // more than one stretch
  const room = await simdRoom(kernel, rows * 32);
  room.bytes.set(randomBytes(rows * 32));
  const [plain, fast] = [new Uint32Array(rows), new Uint32Array(rows)];
  countDifferences(room.bytes, 32, room.bytes.slice(0, 32), plain);
  room.countDifferences(room.bytes, 32, room.bytes.slice(0, 32), fast);
  assert.deepEqual(fast, plain);
});

test("the SIMD kernel adds up weights of bits, at every width", async () => {
  for (const width of [1, 2, 3, 7, 8, 15, 16, 17, 31, 32, 33, 64, 100, 128, 1000, 2048]) {
    for (const rows of [1, 2, 4, 5, 21]) {
      const room = await simdRoom(kernel, rows * width);
      const ones = width > 1000; // the largest sums
      room.bytes.set(ones ? new Uint8Array(rows * width).fill(255) : randomBytes(rows * width));
      const planes = Array.from({ length: 5 }, (_, p) =>
        ones ? new Uint8Array(width).fill(p && 255) : Uint8Array.from(randomBytes(width)),
      );
      const found = new Uint32Array(rows);
      assert.equal(room.countDifferences.weighDifferences(room.bytes, width, planes, found), true);
      const weigh = (byte, i) =>
        planes.slice(1).reduce((sum, plane, p) => sum + (8 >> p) * bitsOf((byte ^ planes[0][i]) & plane[i]), 0);
      const slow = Array.from({ length: rows }, (_, row) =>
        room.bytes.subarray(row * width, (row + 1) * width).reduce((sum, byte, i) => sum + weigh(byte, i), 0),
      );
      assert.deepEqual([...found], slow, `${rows} × ${width}`);
    }
  }
  const room = await simdRoom(kernel, 2049);
  const { weighDifferences } = room.countDifferences;
  assert.equal(weighDifferences(room.bytes, 2049, [], new Uint32Array(1)), false);
  assert.equal(weighDifferences(new Uint8Array(8), 8, [], new Uint32Array(1)), false);
});

test("the select is a sort by distance, then by row", () => {
  const distances = Uint32Array.from(randomBytes(2000), (byte) => byte % 9);
  const sorted = (sign) =>
    [...distances]
      .map((distance, row) => ({ row, distance }))
      .sort((a, b) => sign * (a.distance - b.distance) || a.row - b.row);
  for (const k of [0, 1, 10, 333, 2000, 5000]) {
    assert.deepEqual(select(distances, k, 8), sorted(1).slice(0, k));
    assert.deepEqual(select(distances, k, 8, true), sorted(-1).slice(0, k));
  }
});

test("no SIMD gives null, and the caller goes on without", async () => {
  assert.equal(await simdRoom(new Uint8Array(8), 10), null);
});
