import type { Kernel } from "./embits.js";

/** Room for a file in the memory of the WebAssembly kernel, and the kernel. */
export interface Room {
  /** Where the file's bytes go. */
  bytes: Uint8Array;
  countDifferences: Kernel;
}

/** Room for `size` bytes; null where this engine has no SIMD or not that much memory. */
export function simdRoom(kernelBytes: Uint8Array, size: number): Promise<Room | null>;
