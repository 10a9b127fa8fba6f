/**
 * Cells (docs/file-format.md): codes are stored in groups that lie close together, so that a search reads few of
 * them. A query reads the cells whose centers are nearest, and stops when the next one is too far from it.
 */
import { digest, FormatError, hex } from "./format.js";
import { bestRows } from "./scores.js";
import { countDifferences, select } from "./search.js";

const UNIT = 7; // centers are whole numbers from -7 to 7
const [MIDDLE, TOP] = [64, 63]; // queries are rounded to 64 - 63 … 64 + 63
const PLACE_WEIGHT = 0.7;
const FIRST = 4; // cells that are read before a query looks at its k-th row
const CHECK_BYTES = 16;
export const FAR_K = 40; // rows: the last of more is farther away than the curve says
const MAX_BITS = 16_384;
const { fround } = Math;

const fail = (problem) => {
  throw new FormatError(`damaged: ${problem}`);
};

/** The cells of a file of n rows, or null if it has none. */
export function cellsOf(tensors, n, nBits) {
  const names = [...tensors.keys()].filter((name) => name.startsWith("cells."));
  if (!names.length) return null;
  const count = tensors.get("cells.centers")?.shape[0] ?? 0;
  const part = (name, dtype, shape) => {
    const tensor = tensors.get(`cells.${name}`);
    const fits = tensor?.dtype === dtype && tensor.shape.every((size, i) => size === (shape[i] ?? size));
    return fits && tensor.shape.length === shape.length ? tensor.data : fail(`cells.${name} does not fit`);
  };
  if (names.length !== 5 || !names.includes("cells.order") || nBits > MAX_BITS) fail("a tensor of the cells is missing, or there is one too many");
  return new Cells({
    nBits,
    packed: part("centers", "U8", [count, Math.ceil(nBits / 2)]),
    curve: part("curve", "F32", [undefined, 4]),
    starts: part("starts", "U32", [count + 1]),
    checks: part("sha256", "U8", [count, CHECK_BYTES]),
    n,
  });
}

export class Cells {
  #squares;
  #costs;
  #centers;

  constructor({ nBits, packed, curve, starts, checks, n }) {
    Object.assign(this, { nBits, curve, starts, checks, length: starts.length - 1 });
    const recalls = curve.filter((_, at) => at % 4 === 0);
    const rises = recalls.length && recalls.every((recall, i) => !i || recall > recalls[i - 1]);
    if (!rises || !curve.every(Number.isFinite)) fail("the curve of the cells");
    const ascends = starts.every((start, i) => !i || start >= starts[i - 1]);
    if (this.length < 1 || starts[0] !== 0 || starts[this.length] !== n || !ascends) fail("the starts of the cells");
    this.#unpack(packed);
  }

  #unpack(packed) {
    const { nBits, length } = this;
    const half = Math.ceil(nBits / 2);
    this.#centers = new Int8Array(length * nBits);
    this.#squares = new Float32Array(length);
    for (let cell = 0; cell < length; cell++) {
      let squares = 0;
      for (let bit = 0; bit < nBits; bit++) {
        const byte = packed[cell * half + (bit >> 1)];
        const value = (bit & 1 ? byte & 15 : byte >> 4) - 8;
        this.#centers[cell * nBits + bit] = value;
        squares += value * value;
      }
      this.#squares[cell] = squares / (UNIT * UNIT);
    }
    const mean = this.#squares.reduce((sum, x) => sum + x, 0) / length;
    const spread = PLACE_WEIGHT * Math.sqrt(Math.max(nBits - mean, 1));
    this.#costs = Float32Array.from({ length }, (_, place) => spread * Math.log1p(place));
  }

  /**
   * The margin at which this share of the neighbors is found; null to read all cells. Rows that are farther away
   * than those it was measured with (`isFar`: a filter, many rows) need a lower one.
   */
  margin(recall, isFloats, isFar) {
    const measured = this.#measured(recall, isFloats);
    if (!isFar || measured === null) return measured;
    return Math.min(measured, (2 * Math.log10(1 - recall) - 2.4) * Math.sqrt(this.nBits));
  }

  #measured(recall, isFloats) {
    const { curve } = this;
    const column = isFloats ? 2 : 1;
    const last = curve.length / 4 - 1;
    if (recall > curve[4 * last]) return null;
    let next = 0;
    while (next < last && curve[4 * next] < recall) next++;
    if (!next || curve[4 * next] === recall) return curve[4 * next + column];
    const [a, b] = [curve[4 * next - 4], curve[4 * next]];
    const [low, high] = [curve[4 * next - 4 + column], curve[4 * next + column]];
    return low + ((high - low) * (recall - a)) / (b - a);
  }

  /** The cells, nearest to a query first, and how close they are. */
  order(weights) {
    const { nBits, length } = this;
    const largest = weights.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
    const scale = largest > 0 ? fround(TOP / largest) : 0;
    const unit = fround(largest / (TOP * UNIT));
    const rounded = Int32Array.from(weights, (x) => Math.trunc(fround(MIDDLE + 0.5 + fround(x * scale))) - MIDDLE);
    const squares = weights.reduce((sum, x) => sum + x * x, 0);
    const size = squares > 0 ? fround(Math.sqrt(squares / nBits)) : 1;
    const closeness = new Float32Array(length);
    for (let cell = 0, at = 0; cell < length; cell++) {
      let sum = 0;
      for (let bit = 0; bit < nBits; bit++) sum += rounded[bit] * this.#centers[at++];
      closeness[cell] = (sum * unit) / size - this.#squares[cell] / 4;
    }
    const cells = Uint32Array.from(closeness, (_, cell) => cell);
    cells.sort((a, b) => closeness[b] - closeness[a] || a - b);
    return { cells, closeness, size };
  }

  /**
   * The cells that a query reads, some at a time: yields arrays of them, and is told the score of the k-th row found so far.
   * The weights of a code are -1 and 1. Probes are followed by single cells until there are k rows.
   */
  *visits(weights, { probes, margin }) {
    const { cells, closeness, size } = this.order(weights);
    let kth = -Infinity;
    if (probes !== undefined) {
      for (let [read, stop] = [0, probes]; read < this.length && (!read || kth === -Infinity); stop = read + 1) {
        kth = yield Array.from(cells.subarray(read, stop));
        read = stop;
      }
      return;
    }
    for (let [read, end] = [0, FIRST]; ; end *= 2) {
      let stop = Math.min(end, this.length);
      const isFar = (place) => closeness[cells[place]] - fround(kth / size) - this.#costs[place] < margin;
      if (margin !== null) while (stop > 0 && isFar(stop - 1)) stop--;
      if (stop > read) kth = yield Array.from(cells.subarray(read, stop));
      read = Math.max(read, stop);
      if (read < end || read >= this.length) return;
    }
  }
}

/** Check the bytes of a cell, its codes and the rows in `order`, or throw FormatError. */
export async function checkCell(cells, cell, codes, order) {
  const rows = new Uint8Array(order.buffer, order.byteOffset, order.byteLength);
  const bytes = new Uint8Array(codes.length + rows.length);
  bytes.set(codes);
  bytes.set(rows, codes.length);
  const check = cells.checks.subarray(CHECK_BYTES * cell, CHECK_BYTES * (cell + 1));
  if (!(await digest(bytes)).startsWith(hex(check))) fail("the bytes of a cell do not match its checksum");
}

/** The k best rows of the cells that were read, added block by block, ties in row order: those of a code, or of weights. */
export class CellRows {
  #found = [];
  rowsRead = 0;

  constructor({ code, weights }, { k, width, nBits, allowed = null, kernel = countDifferences }) {
    Object.assign(this, { code, weights, k, width, nBits, allowed, kernel });
  }

  /** Add the codes of a cell, whose rows are in `order`. */
  add(codes, order) {
    const { width, k } = this;
    this.rowsRead += order.length;
    const distances = new Uint32Array(order.length);
    const allowed = this.allowed && Uint8Array.from(order, (row) => this.allowed[row]);
    let best;
    if (this.code) {
      this.kernel(codes, width, this.code, distances);
      best = select(distances, k, 8 * width, false, allowed).map(({ row, distance }) => ({ row, distance, score: -distance }));
    } else best = bestRows(codes, width, this.weights, k, this.kernel, distances, allowed);
    for (const each of best) {
      each.code = codes.subarray(each.row * width, (each.row + 1) * width);
      each.row = order[each.row];
    }
    this.#found = [...this.#found, ...best].sort((a, b) => b.score - a.score || a.row - b.row).slice(0, k);
  }

  /** The score of the k-th row, as cells compare it. */
  get kth() {
    if (!this.k) return Infinity;
    if (this.#found.length < this.k) return -Infinity;
    const { score } = this.#found[this.k - 1];
    return this.code ? this.nBits + 2 * score : score;
  }

  /** [{ row, distance, code }] or [{ row, score, code }]. */
  get found() {
    return this.#found.map(({ score, distance, ...each }) =>
      distance === undefined ? { ...each, score } : { ...each, distance },
    );
  }
}

/** The signs of a code, as weights. */
export const signsOf = (code, nBits) =>
  Float32Array.from({ length: nBits }, (_, i) => (code[i >> 3] & (128 >> (i & 7)) ? 1 : -1));
