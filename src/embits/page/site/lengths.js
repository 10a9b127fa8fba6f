/** The lengths of vectors: a byte each on a log scale. Byte b > 0 is 2 ** (base + (b - 1) / 16). */
import { FormatError } from "./format.js";

const STEPS = 16; // of a doubling
const MAX_BASE = 1024;

/** The lengths of a file as a Float32Array, or null if it has none. */
export function lengthsOf(tensors, metadata, rows) {
  const tensor = tensors.get("lengths");
  if (!tensor) return null;
  const text = metadata.lengths_base ?? "";
  const base = Number(text);
  const isWhole = /^(0|-?[1-9]\d{0,3})$/.test(text) && Math.abs(base) <= MAX_BASE;
  if (tensor.dtype !== "U8" || tensor.shape.join() !== String(rows) || !isWhole) {
    throw new FormatError("damaged: lengths are not a byte for each row, with their base");
  }
  const scale = lengthScale(base);
  return Float32Array.from(tensor.data, (step) => scale[step]);
}

/** The numbers that bytes stand for. */
export const lengthScale = (base) =>
  Float32Array.from({ length: 256 }, (_, b) => (b ? 2 ** (base + (b - 1) / STEPS) : 0));
