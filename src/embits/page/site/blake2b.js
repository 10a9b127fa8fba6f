/** BLAKE2b (RFC 7693) without a key; numbers of 64 bits are pairs of 32, the lower half first. */

const BLOCK = 128;
const IV = Uint32Array.of(
  0xf3bcc908, 0x6a09e667, 0x84caa73b, 0xbb67ae85, 0xfe94f82b, 0x3c6ef372, 0x5f1d36f1, 0xa54ff53a,
  0xade682d1, 0x510e527f, 0x2b3e6c1f, 0x9b05688c, 0xfb41bd6b, 0x1f83d9ab, 0x137e2179, 0x5be0cd19,
);
const SIGMA = [
  "0123456789abcdef", "ea489fd61c02b753", "b8c052fdae367194", "7931dcbe265a40f8", "905724afe1bc683d",
  "2c6a0b834d75fe19", "c51fed4a0763928b", "db7ec13950f4862a", "6fe9b308c2d714a5", "a2847615fb9e3cd0",
].map((row) => Array.from(row, (digit) => 2 * parseInt(digit, 16)));
const MIXED = [
  [0, 4, 8, 12], [1, 5, 9, 13], [2, 6, 10, 14], [3, 7, 11, 15],
  [0, 5, 10, 15], [1, 6, 11, 12], [2, 7, 8, 13], [3, 4, 9, 14],
].map((places) => places.map((place) => 2 * place));

/** The hash of texts and bytes, one after another, of so many bytes. */
export function blake2b(parts, size) {
  const state = IV.slice();
  state[0] ^= 0x01010000 ^ size;
  const block = new Uint8Array(BLOCK);
  let [filled, total] = [0, 0];
  for (const part of parts) {
    const bytes = typeof part === "string" ? new TextEncoder().encode(part) : part;
    for (let at = 0; at < bytes.length; ) {
      if (filled === BLOCK) {
        compress(state, block, total, false);
        filled = 0;
      }
      const some = bytes.subarray(at, at + BLOCK - filled);
      block.set(some, filled);
      [filled, at, total] = [filled + some.length, at + some.length, total + some.length];
    }
  }
  compress(state, block.fill(0, filled), total, true);
  const view = new DataView(new ArrayBuffer(64));
  state.forEach((word, i) => view.setUint32(4 * i, word, true));
  return new Uint8Array(view.buffer, 0, size);
}

function compress(state, block, total, isLast) {
  const view = new DataView(block.buffer);
  const m = new Uint32Array(32);
  for (let i = 0; i < 32; i++) m[i] = view.getUint32(4 * i, true);
  const v = new Uint32Array(32);
  v.set(state);
  v.set(IV, 16);
  v[24] ^= total >>> 0;
  v[25] ^= Math.floor(total / 2 ** 32);
  if (isLast) [v[28], v[29]] = [~v[28], ~v[29]];
  for (let round = 0; round < 12; round++) {
    const order = SIGMA[round % 10];
    for (let i = 0; i < 8; i++) {
      mix(v, MIXED[i], m, order[2 * i], 32, 24);
      mix(v, MIXED[i], m, order[2 * i + 1], 16, 63);
    }
  }
  for (let i = 0; i < 16; i++) state[i] ^= v[i] ^ v[i + 16];
}

/** a = a + b + m; d = (d ^ a) turned right; c = c + d; b = (b ^ c) turned right. */
function mix(v, places, m, at, turnD, turnB) {
  const a = places[0];
  const b = places[1];
  const c = places[2];
  const d = places[3];
  add(v, a, v[b], v[b + 1]);
  add(v, a, m[at], m[at + 1]);
  turn(v, d, v[d] ^ v[a], v[d + 1] ^ v[a + 1], turnD);
  add(v, c, v[d], v[d + 1]);
  turn(v, b, v[b] ^ v[c], v[b + 1] ^ v[c + 1], turnB);
}

function add(v, at, low, high) {
  const sum = v[at] + low;
  v[at] = sum;
  v[at + 1] += high + (sum > 0xffffffff ? 1 : 0);
}

function turn(v, at, low, high, by) {
  if (by === 32) {
    v[at] = high;
    v[at + 1] = low;
  } else if (by < 32) {
    v[at] = (low >>> by) | (high << (32 - by));
    v[at + 1] = (high >>> by) | (low << (32 - by));
  } else turn(v, at, high, low, by - 32);
}
