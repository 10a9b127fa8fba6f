/** embits files in JavaScript: open, look up words, search, verify. See embits.js. */

/** The file is damaged, or is not one that embits wrote. */
export class FormatError extends Error {}

/** A word is not in the vocabulary. */
export class UnknownWordError extends Error {
  constructor(word: string);
  word: string;
}

/** Writes the Hamming distance of each code to the query into `out`, one number per row. */
export interface Kernel {
  (codes: Uint8Array, width: number, query: Uint8Array, out: Uint32Array): void;
  /** The name of the kernel. */
  kernel: string;
  /**
   * Adds up the weights (0 to 15) of the bits that differ, for float queries: `planes` are the code
   * and the bits of weights 8, 4, 2 and 1. Returns false if it cannot run for these codes.
   */
  weighDifferences?(codes: Uint8Array, width: number, planes: Uint8Array[], out: Uint32Array): boolean;
}

export interface Words {
  readonly length: number;
  /** The word of a row; throws RangeError if there is no such row. */
  at(row: number): string;
  /** The row of a word, or null. */
  find(word: string): number | null;
  /** The first rows, in row order, whose words start with a prefix. */
  startingWith(prefix: string, most?: number): number[];
  /** Check all words, or throw FormatError. */
  verify(): void;
}

export interface Tensor {
  name: string;
  dtype: "U8" | "F16" | "U32" | "F32" | "U64" | "F64";
  shape: number[];
  /** The numbers, as a view of the file; F16 numbers as 16 bits each. */
  data: Uint8Array | Uint16Array | Uint32Array | Float32Array | BigUint64Array | Float64Array;
  bytes: Uint8Array;
}

export interface Neighbor {
  word: string;
  row: number;
  /** Sokal-Michener similarity: the share of equal bits, in [0, 1]. */
  similarity: number;
}

/** A row by Hamming distance: the smallest is the best. */
export interface Distance {
  word: string;
  row: number;
  distance: number;
}

/** A row by an estimate of the cosine: the largest is the best. */
export interface Score {
  word: string;
  row: number;
  score: number;
}

/** A word (string), a row (number) or a packed code. */
export type Key = string | number | Uint8Array;

/**
 * Packed codes with words; without words, the row numbers are the words.
 *
 * An unknown word throws UnknownWordError, an argument of a wrong type TypeError, and a row, code or
 * count out of range RangeError.
 */
export class BinaryVectors {
  private constructor();
  readonly length: number;
  readonly nBits: number;
  /** Bytes of a code. */
  readonly width: number;
  /** Dimensions of the float vectors behind the codes. */
  readonly dims: number;
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly writer: string;
  /** Bytes of the file. */
  readonly size: number;
  /** All codes in row order: a view of the file. */
  readonly codes: Uint8Array;
  readonly words: Words;
  readonly tensors: Map<string, Tensor>;
  /** The name of the search kernel. */
  readonly kernel: string;
  /** The packed code of a word or row: a view of the file, do not write to it. */
  code(key: Key): Uint8Array;
  /** The share of equal bits. */
  similarity(a: Key, b: Key): number;
  /** (b AND NOT a) OR c: the first positive without the negatives, with the other positives. */
  combine(positive: Key | Key[], negative?: Key | Key[]): Uint8Array;
  /** The k nearest rows of a code (or the furthest, furthest first), ties in row order. */
  nearest(
    code: Uint8Array,
    k?: number,
    options?: { furthest?: boolean },
  ): { row: number; distance: number }[];
  /**
   * The k best rows of a query, ties in row order. "hamming" (the default) counts the bits that
   * differ; a float vector is encoded first. "asymmetric" weighs the bits by a float vector,
   * "decoded" by the vector rebuilt from the query's code.
   */
  search(query: Float32Array | Key, options?: { k?: number; metric?: "hamming" }): Distance[];
  search(query: Float32Array, options: { k?: number; metric: "asymmetric" }): Score[];
  search(query: Float32Array | Key, options: { k?: number; metric: "decoded" }): Score[];
  /** The packed code of a float vector, as Python computes it. */
  encode(vector: Float32Array): Uint8Array;
  /** The float vector rebuilt from a code. */
  decode(key: Key): Float32Array;
  /** The closest words, without the words of the query. */
  mostSimilar(
    positive: Key | Key[],
    options?: { negative?: Key | Key[]; k?: number; furthest?: boolean },
  ): Neighbor[];
  /** Check every byte, or reject with FormatError. */
  verify(): Promise<void>;
}

/** Check the header of a file's bytes and return its BinaryVectors; throws FormatError. */
export function open(bytes: ArrayBuffer | Uint8Array, kernel?: Kernel): BinaryVectors;
