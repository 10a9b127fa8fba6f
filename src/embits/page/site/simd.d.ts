import type { Room } from "./embits.js";

export type { Room };

/** Memory for `size` bytes; null if this engine has no SIMD or not that much memory. */
export function simdRoom(kernelBytes: Uint8Array, size: number): Promise<Room | null>;
