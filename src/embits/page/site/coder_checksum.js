/** The checksum that the manifest of a collection has of its coder (docs/file-format.md). */
import { blake2b } from "./blake2b.js";
import { ARRAYS, DEFAULTS, own } from "./coder_rules.js";
import { hex } from "./format.js";
import { numbers } from "./matrix.js";

const TYPES = { I8: "|i1", F16: "<f2", F32: "<f4", F64: "<f8" };

/** The checksum of a coder in the manifest of a collection. */
export function coderChecksum({ facts: { method, nBits, dims }, tensors }) {
  const parts = [`${method} ${dims} ${nBits}`];
  const names = Object.keys(own(ARRAYS, method)).sort((a, b) => (a < b ? -1 : 1));
  for (const name of names) {
    const tensor = tensors.get(`coder.${name}`);
    const usual = own(own(DEFAULTS, method), name);
    if (!tensor || (typeof usual === "number" && numbers(tensor).every((x) => x === usual))) continue;
    const shape = tensor.shape.length === 1 ? `(${tensor.shape},)` : `(${tensor.shape.join(", ")})`;
    parts.push(` ${name} ${TYPES[tensor.dtype]} ${shape}`, tensor.bytes);
  }
  return hex(blake2b(parts, 16));
}
