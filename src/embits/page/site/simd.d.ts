import type { Kernel } from "./embits.js";

/** Memory for a file, and the WebAssembly kernel that searches it. */
export interface Room {
  /** Copy the bytes of the file here. */
  bytes: Uint8Array;
  countDifferences: Kernel;
}

/** Memory for `size` bytes; null if this engine has no SIMD or not that much memory. */
export function simdRoom(kernelBytes: Uint8Array, size: number): Promise<Room | null>;
