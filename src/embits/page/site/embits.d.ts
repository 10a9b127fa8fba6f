/** embits files and collections in JavaScript: open, look up words, search, verify. See embits.js. */

/** The file is damaged, or is not one that embits wrote. */
export class FormatError extends Error {}

/** A word is not in the vocabulary. */
export class UnknownWordError extends Error {
  constructor(word: string, suggest?: () => string[]);
  word: string;
  /** Up to three words that are spelled alike; they are looked for when this is first read. */
  readonly suggestions: string[];
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

/** Memory for codes or a file, and the kernel that searches it: see simd.js. */
export interface Room {
  /** Copy the bytes of the file here. */
  bytes: Uint8Array;
  countDifferences: Kernel;
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
  dtype: "I8" | "U8" | "F16" | "U32" | "F32" | "U64" | "F64";
  shape: number[];
  /** The numbers, as a view of the file; F16 numbers as 16 bits each. */
  data: Int8Array | Uint8Array | Uint16Array | Uint32Array | Float32Array | BigUint64Array | Float64Array;
  bytes: Uint8Array;
}

export interface Neighbor {
  word: string;
  row: number;
  /**
   * Sokal-Michener similarity: the share of equal bits, in [0, 1]. With the metric "decoded", an
   * estimate of the cosine.
   */
  similarity: number;
}

/** A row of a search. */
export interface Score {
  word: string;
  row: number;
  /** The larger the better: an estimate of the cosine; with "dot", of the inner product. */
  score: number;
}

/** A row by Hamming distance; its `score` is the share of equal bits. */
export interface Distance extends Score {
  /** The bits that differ: the smaller the better. */
  distance: number;
}

/** A word (string), a row (number) or a packed code. */
export type Key = string | number | Uint8Array;

/** The float vector of a query. */
export type Vector = Float32Array | readonly number[];

/** A set of rows, made by `select`: a filter that is parsed once for many searches. */
export class Selection {
  private constructor();
  /** How many rows are selected. */
  readonly length: number;
  /** A 1 for each row that is selected. */
  readonly mask: Uint8Array;
}

/** Rows: a boolean for each row, row numbers, ids, or a Selection. */
export type Rows =
  | readonly boolean[]
  | readonly number[]
  | readonly string[]
  | ReadonlySet<number>
  | ReadonlySet<string>
  | Uint32Array
  | Int32Array
  | Float64Array
  | Selection;

export interface Filter {
  /** The rows that may be found; all by default. */
  where?: Rows;
  /** The rows that may not be found. */
  exclude?: Rows;
}

export interface SecondLook {
  /**
   * How many of the best rows are scored again, by the cosine of the query and the decoded row. By default
   * as the coder was fitted: files of the method "neural" say how many, others none. 0: none.
   */
  secondLook?: number;
}

/** The bound of `within`: the largest Hamming distance, or the lowest share of equal bits, 0 to 1. */
export type Bound =
  { distance: number; similarity?: undefined } | { similarity: number; distance?: undefined };

export interface Reading {
  /** The share of the neighbors to find in a file with cells, 0 to 1. Without cells all rows are read. */
  recall?: number;
  /** How many cells to read; more if they hold fewer than k rows. */
  probes?: number;
}

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
  /** Bytes of the file, or of the pieces of a collection. */
  readonly size: number;
  /** All codes as a view of the file: in row order, or cell by cell. */
  readonly codes: Uint8Array;
  /** How many cells the codes are stored in; 0 without cells. */
  readonly cells: number;
  readonly words: Words;
  /** The lengths of the vectors, or null if the file does not have them. */
  readonly lengths: Float32Array | null;
  /** The arrays of the file; of a collection, those of its coder. */
  readonly tensors: Map<string, Tensor>;
  /** The name of the search kernel. */
  readonly kernel: string;
  /**
   * The packed code of a word or row: a view of the file, do not write to it. If the file has
   * fastText's subwords, an unknown word has the code of its n-grams.
   */
  code(key: Key): Uint8Array;
  /** Up to `most` words (3) that are spelled like a word: in other letter case or with up to two edits. */
  suggest(word: string, most?: number): string[];
  /** The word as the file has it, as given or in lower case; with subwords, any word that has a code. */
  resolve(word: string): string;
  /** The packed code of a float vector, as Python computes it. */
  encode(vector: Float32Array): Uint8Array;
  /** The float vector rebuilt from a code; that of a word or row has its true length, if it is stored. */
  decode(key: Key): Float32Array;
  /** Parse a filter once, for many searches. */
  select(filter?: Filter): Selection;
  /** The k nearest rows of a code (or the furthest, furthest first), ties in row order. */
  nearest(
    code: Uint8Array,
    k?: number,
    options?: { furthest?: boolean },
  ): { row: number; distance: number }[];
  /**
   * The k best rows of a query, ties in row order. Without a metric, a float vector is compared as "asymmetric",
   * and a code, a word or a row by "hamming". "asymmetric" weighs the bits by a float vector. "hamming" counts the
   * bits that differ; a float vector is encoded first. "decoded" weighs the bits by the vector rebuilt from the
   * query's code. "dot" estimates the inner product, if the file has lengths.
   */
  search(query: Vector, options?: Filter & Reading & SecondLook & { k?: number; metric?: "asymmetric" }): Score[];
  search(query: Key, options?: Filter & Reading & { k?: number; metric?: "hamming" }): Distance[];
  search(query: Vector | Key, options: Filter & Reading & { k?: number; metric: "hamming" }): Distance[];
  search(query: Vector | Key, options: Filter & Reading & SecondLook & { k?: number; metric: "decoded" }): Score[];
  search(query: Vector, options: Filter & { k?: number; metric: "dot" }): Score[];
  search(query: Vector | Key, options?: Filter & Reading & { k?: number; metric?: undefined }): Score[];
  /**
   * All rows within a distance of a query, or of at least a similarity, best first, by "hamming" unless told. With
   * "asymmetric" and "decoded", `similarity` is the lowest score, from -1 to 1.
   */
  within(query: Vector | Key, options: Filter & Bound & { metric?: "hamming" }): Distance[];
  within(query: Vector, options: Filter & { similarity: number; metric: "asymmetric" | "dot" }): Score[];
  within(query: Vector | Key, options: Filter & { similarity: number; metric: "decoded" }): Score[];
  /** The share of equal bits; with "decoded", the cosine of the vectors rebuilt from the codes. */
  similarity(a: Key, b: Key, options?: { metric?: "hamming" | "decoded" }): number;
  /** (b AND NOT a) OR c: the first positive without the negatives, with the other positives. */
  combine(positive: Key | Key[], negative?: Key | Key[]): Uint8Array;
  /**
   * The closest words, without the words of the query. "decoded" adds and subtracts the vectors
   * rebuilt from the codes; `furthest` needs "hamming".
   */
  mostSimilar(
    positive: Key | Key[],
    options?: Filter & {
      negative?: Key | Key[];
      k?: number;
      furthest?: boolean;
      metric?: "hamming" | "decoded";
    },
  ): Neighbor[];
  /** Check every byte, or reject with FormatError; of a collection, the files as they are now. */
  verify(): Promise<void>;
}

/** What a file of a collection is read to; null or status 404 if there is no such file. */
export type FileContents = Response | ArrayBuffer | Uint8Array | null | undefined;

/** Check the header of a file's bytes and return its BinaryVectors; throws FormatError. */
export function open(bytes: ArrayBuffer | Uint8Array, kernel?: Kernel): BinaryVectors;
/**
 * Read a collection, piece by piece. `read` is given the name of a file in the folder of the
 * collection. `room` makes memory for all codes, such as `(size) => simdRoom(wasm, size)`. `verify`
 * checks every byte.
 */
export function open(
  read: (name: string) => FileContents | Promise<FileContents>,
  options?: { room?: (size: number) => Promise<Room | null>; verify?: boolean },
): Promise<BinaryVectors>;

/** Turns texts into vectors, with a table of token codes of about a megabyte. */
export class StaticTextEncoder {
  private constructor();
  /** Dimensions of the vectors. */
  readonly dims: number;
  /** Bits of a token. */
  readonly nBits: number;
  /** How many tokens there are. */
  readonly length: number;
  /** The coder of the tokens. */
  readonly method: string;
  /**
   * The vector of a text, of length 1 unless the model's settings say otherwise. A text with no known token has the vector
   * of zeros. Lone surrogates are left out.
   */
  encode(text: string): Float32Array;
  encode(texts: readonly string[]): Float32Array[];
  /**
   * The packed code of a text, as Python's `encode_codes`, if the encoder was fitted on texts. Throws RangeError for a text
   * with no known token.
   */
  encodeCode(text: string): Uint8Array;
  /** Check every byte, or reject with FormatError. */
  verify(): Promise<void>;
}

/** Open the file of a text encoder from its bytes or a Response; rejects with FormatError. */
export function openTextEncoder(
  source: ArrayBuffer | Uint8Array | Response | Promise<ArrayBuffer | Uint8Array | Response>,
): Promise<StaticTextEncoder>;

/** A file with cells on a web server: only the cells that a search needs are read. */
export interface RemoteVectors {
  readonly url: string;
  /** Rows of the file. */
  readonly length: number;
  readonly nBits: number;
  readonly width: number;
  readonly dims: number;
  readonly method: string;
  readonly params: Record<string, unknown>;
  readonly writer: string;
  /** Bytes of the file. */
  readonly size: number;
  readonly cells: number;
  /** Bytes that were read from the server so far, and the requests for them. */
  readonly bytesRead: number;
  readonly requests: number;
  /**
   * The k best rows of a vector or a packed code, as `search` of BinaryVectors. By default as many cells are read as find
   * 95 % of the neighbors; `recall: 1` reads all. `where` and `exclude` take row numbers or booleans.
   */
  search(
    query: Vector,
    options?: Filter & Reading & SecondLook & { k?: number; metric?: "asymmetric" },
  ): Promise<Score[]>;
  search(query: Uint8Array, options?: Filter & Reading & { k?: number; metric?: "hamming" }): Promise<Distance[]>;
  search(query: Vector | Uint8Array, options: Filter & Reading & { k?: number; metric: "hamming" }): Promise<Distance[]>;
  search(
    query: Vector | Uint8Array,
    options: Filter & Reading & SecondLook & { k?: number; metric: "decoded" },
  ): Promise<Score[]>;
  search(query: Vector | Uint8Array, options?: Filter & Reading & { k?: number; metric?: undefined }): Promise<Score[]>;
}

/**
 * Open a file with cells at an address, by HTTP range requests. `fetch` makes the requests, and `cacheBytes` is how much of the
 * cells is kept in memory (64 MiB). From a server without ranges the whole file is read, once, with a warning on the console.
 */
export function openRemote(
  url: string | URL,
  options?: { fetch?: typeof globalThis.fetch; cacheBytes?: number },
): Promise<RemoteVectors>;
