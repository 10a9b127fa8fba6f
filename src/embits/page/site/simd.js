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
const MAX_WIDTH = PAGE / 4; // bytes of a code: it fits with its mask, and its sums fit in 16 bits

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
  const { distances } = instance.exports;
  const stretch = new Uint32Array(memory.buffer, OUT_AT, STRETCH);

  function countDifferences(codes, width, query, out) {
    if (codes.buffer !== memory.buffer || width > MAX_WIDTH) return plain(codes, width, query, out);
    const blocks = Math.ceil(width / 16);
    const padded = new Uint8Array(memory.buffer, QUERY_AT, 16 * (blocks + 1)).fill(0);
    padded.set(query);
    padded.fill(255, 16 * blocks, 16 * blocks + width - 16 * (blocks - 1));
    for (let row = 0; row < out.length; row += STRETCH) {
      const rows = Math.min(STRETCH, out.length - row);
      distances(codes.byteOffset + row * width, rows, width, QUERY_AT, OUT_AT);
      out.set(rows < STRETCH ? stretch.subarray(0, rows) : stretch, row);
    }
  }
  countDifferences.kernel = "WebAssembly SIMD";
  return { bytes: new Uint8Array(memory.buffer, FILE_AT, size), countDifferences };
}
