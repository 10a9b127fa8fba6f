/**
 * The WebAssembly SIMD kernel, and memory for a file that the kernel searches in place.
 *
 *     const room = await simdRoom(kernelBytes, file.size);   // null without SIMD
 *     room.bytes.set(fileBytes);
 *     const bits = open(room.bytes, room.countDifferences);
 */
import { countDifferences as plain } from "./search.js";

const PAGE = 65_536;
const QUERY_AT = 0; // the first page of the memory holds the query and its mask
const OUT_AT = PAGE; // the second holds the distances of one stretch of rows
const FILE_AT = 2 * PAGE; // then the file, and two pages because the kernel reads past its end
const STRETCH = PAGE / 4;
// Bytes of a code: it fits with its mask or weights, and its sums fit in 16 bits.
const MAX_WIDTH = PAGE / 4;
const MAX_WEIGHTED_WIDTH = 2048;
const BLOCK = 16; // bytes that the kernel reads at once

/**
 * Memory for a file of `size` bytes, and the kernel that searches it; null if this engine has no
 * SIMD or not that much memory.
 */
export async function simdRoom(kernelBytes, size) {
  const pages = Math.ceil((FILE_AT + size) / PAGE) + 2;
  if (typeof WebAssembly !== "object" || !WebAssembly.validate(kernelBytes)) return null;
  let memory;
  try {
    memory = new WebAssembly.Memory({ initial: pages, maximum: pages });
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
  const { instance } = await WebAssembly.instantiate(kernelBytes, { page: { memory } });
  const { distances, weighted } = instance.exports;
  const stretch = new Uint32Array(memory.buffer, OUT_AT, STRETCH);

  function scan(kernel, codes, width, out) {
    for (let row = 0; row < out.length; row += STRETCH) {
      const rows = Math.min(STRETCH, out.length - row);
      kernel(codes.byteOffset + row * width, rows, width, QUERY_AT, OUT_AT);
      out.set(rows < STRETCH ? stretch.subarray(0, rows) : stretch, row);
    }
  }

  function countDifferences(codes, width, query, out) {
    if (codes.buffer !== memory.buffer || width > MAX_WIDTH) return plain(codes, width, query, out);
    const blocks = Math.ceil(width / BLOCK);
    const padded = new Uint8Array(memory.buffer, QUERY_AT, BLOCK * (blocks + 1)).fill(0);
    padded.set(query);
    padded.fill(255, BLOCK * blocks, BLOCK * blocks + width - BLOCK * (blocks - 1));
    scan(distances, codes, width, out);
  }

  // The code and its planes of weights, block by block; returns false where it cannot run.
  function weighDifferences(codes, width, planes, out) {
    if (codes.buffer !== memory.buffer || width > MAX_WEIGHTED_WIDTH) return false;
    const blocks = Math.ceil(width / BLOCK);
    const query = new Uint8Array(memory.buffer, QUERY_AT, BLOCK * planes.length * blocks).fill(0);
    planes.forEach((plane, p) => {
      for (let i = 0; i < width; i++) {
        query[BLOCK * (Math.floor(i / BLOCK) * planes.length + p) + (i % BLOCK)] = plane[i];
      }
    });
    scan(weighted, codes, width, out);
    return true;
  }
  countDifferences.kernel = "WebAssembly SIMD";
  countDifferences.weighDifferences = weighDifferences;
  return { bytes: new Uint8Array(memory.buffer, FILE_AT, size), countDifferences };
}
