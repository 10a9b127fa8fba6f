/**
 * Exact top-k search over packed codes. A kernel computes the Hamming distance of each row, and
 * `select` finds the nearest rows. This kernel is plain JavaScript: it runs everywhere, and
 * the WebAssembly kernel (simd.js) is tested against it.
 */

const BITS_OF_BYTE = Uint8Array.from({ length: 256 }, (_, byte) => {
  let bits = 0;
  for (let rest = byte; rest; rest >>= 1) bits += rest & 1;
  return bits;
});

/** Write the Hamming distances of all codes to a query into `out` (Uint32Array, one per row). */
export function countDifferences(codes, width, query, out) {
  if (width % 4 === 0 && codes.byteOffset % 4 === 0) {
    countByWords(codes, width / 4, query, out);
  } else {
    countByBytes(codes, width, query, out);
  }
}
countDifferences.kernel = "JavaScript";

function countByBytes(codes, width, query, out) {
  for (let row = 0, at = 0; row < out.length; row++) {
    let bits = 0;
    for (let i = 0; i < width; i++) bits += BITS_OF_BYTE[codes[at++] ^ query[i]];
    out[row] = bits;
  }
}

function countByWords(codes, words, query, out) {
  const all = new Int32Array(codes.buffer, codes.byteOffset, codes.length / 4);
  const wanted = new Int32Array(query.slice().buffer);
  out.fill(0);
  let word = 0;
  for (; word + 8 <= words; word += 8) addEight(all, words, wanted, word, out);
  for (; word < words; word++) addOne(all, words, wanted, word, out);
}

// 256 bits per pass, with the query in local variables: 3 times as fast as a loop over the words.
function addEight(all, words, wanted, word, out) {
  const rows = out.length;
  const [a, b, c, d, e, f, g, h] = wanted.subarray(word, word + 8);
  for (let row = 0, at = word; row < rows; row++, at = (at + words) | 0) {
    const bytes =
      (bitsOfBytes(all[at] ^ a) +
        bitsOfBytes(all[at + 1] ^ b) +
        bitsOfBytes(all[at + 2] ^ c) +
        bitsOfBytes(all[at + 3] ^ d) +
        bitsOfBytes(all[at + 4] ^ e) +
        bitsOfBytes(all[at + 5] ^ f) +
        bitsOfBytes(all[at + 6] ^ g) +
        bitsOfBytes(all[at + 7] ^ h)) |
      0;
    out[row] += sumOfBytes(bytes);
  }
}

function addOne(all, words, wanted, word, out) {
  const query = wanted[word] | 0;
  for (let row = 0, at = word; row < out.length; row++, at = (at + words) | 0) {
    out[row] += sumOfBytes(bitsOfBytes(all[at] ^ query));
  }
}

/** The set bits of each byte of a 32-bit word, in that byte. */
function bitsOfBytes(x) {
  x = (x - ((x >>> 1) & 0x55555555)) | 0;
  x = ((x & 0x33333333) + ((x >>> 2) & 0x33333333)) | 0;
  return (x + (x >>> 4)) & 0x0f0f0f0f;
}

function sumOfBytes(x) {
  const pairs = (x & 0x00ff00ff) + ((x >>> 8) & 0x00ff00ff);
  return (pairs + (pairs >>> 16)) & 0xffff;
}

/**
 * The k rows with the smallest distances, nearest first; with `furthest`, with the largest,
 * furthest first. Ties are in row order. `allowed`, if given, has a 1 for each row that may be found.
 * One pass over the distances; only the result is sorted.
 */
export function select(distances, k, mostBits, furthest = false, allowed = null) {
  const most = Math.min(k, distances.length);
  if (!most) return [];
  const [sign, shift] = furthest ? [-1, mostBits] : [1, 0];
  const rows = [];
  const counts = new Uint32Array(mostBits + 2); // of the rows that are kept, by rank
  let kth = mostBits + 1; // the k-th smallest rank; rows at it or beyond cannot enter
  let within = 0; // kept rows up to it
  for (let row = 0; row < distances.length; row++) {
    const rank = shift + sign * distances[row];
    if (rank >= kth || (allowed && !allowed[row])) continue;
    rows.push(row);
    counts[rank]++;
    within++;
    while (within - counts[kth] >= most) within -= counts[kth--];
  }
  return rows
    .map((row) => ({ row, distance: distances[row] }))
    .filter(({ distance }) => shift + sign * distance <= kth)
    .sort((a, b) => sign * (a.distance - b.distance) || a.row - b.row)
    .slice(0, most);
}

/** All rows up to a distance, nearest first, ties in row order. */
export function selectWithin(distances, bound, allowed = null) {
  const found = [];
  distances.forEach((distance, row) => {
    if (distance <= bound && (!allowed || allowed[row])) found.push({ row, distance });
  });
  return found.sort((a, b) => a.distance - b.distance || a.row - b.row);
}
