/**
 * Cells (docs/file-format.md): codes are stored in groups that lie close together, so that a search reads few of
 * them. A query reads the cells whose centers are nearest, and stops when the next one is too far from it.
 */
import { ACCESS_BYTES, CHECK_BYTES, COPY_COST, FAR_K, KS, MAX_CELL_BITS } from "./constants.js";
import { digest, FormatError, hex } from "./format.js";
import { bestRows } from "./scores.js";
import { countDifferences, select } from "./search.js";

const UNIT = 7; // centers are whole numbers from -7 to 7
const [MIDDLE, TOP] = [64, 63]; // queries are rounded to 64 - 63 … 64 + 63
const PLACE_WEIGHT = 0.7;
const FIRST = 4; // cells that are read before a query looks at its k-th row
const [LIKE, UNLIKE, SERIES] = [1, 1 + KS.length, 1 + 2 * KS.length]; // the curves of queries like the rows, unlike them, and what follows
const FEWEST = -1e24; // a margin below it reads all cells
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
  if (names.length !== 5 || !names.includes("cells.order") || nBits > MAX_CELL_BITS) fail("a tensor of the cells is missing, or there is one too many");
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
    const series = [...recalls].map((recall) => Math.floor(recall / 2));
    const hasAll = Array.from({ length: SERIES + 1 }, (_, i) => series.includes(i)).every(Boolean);
    const isLast = series.at(-3) < SERIES && series.at(-1) === SERIES;
    if (series[0] !== 0 || (series.at(-1) && !(hasAll && isLast))) fail("the curve of the cells");
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
   * Where a query of k rows stops, so that it finds this share of those of all cells: `margin` if its nearest cell is as
   * close as `near`, `farMargin` if it is only as close as `far`. Null to read all cells. `passed` of n rows pass a filter.
   */
  levels(recall, { k, isFloats, passed, n }) {
    const column = isFloats ? 2 : 1;
    const isFar = passed < n;
    const ks = [k, Math.floor((k * n) / Math.max(passed, 1))];
    const last = this.curve.length - 4;
    if (this.curve[last] < 2) return this.#levelsOfOne(recall, ks, column, isFar);
    const least = (first) => {
      const values = KS.map((_, i) => this.#at(recall, first + i, column));
      const logs = KS.map(Math.log);
      const ends = ks.map((each) => between(Math.log(Math.max(each, 1)), logs, values));
      return Math.min(...ends, ...values.filter((_, i) => ks[0] < KS[i] && KS[i] < ks[1]));
    };
    const like = least(LIKE);
    const farMargin = Math.min(like, least(UNLIKE));
    const margin = isFar ? farMargin : like;
    if (margin < FEWEST) return null;
    return { margin, farMargin, near: this.curve[last - 4 + column], far: this.curve[last + column] };
  }

  /** As `levels`, by a curve of 10 neighbors alone, as version 0.3 measured it. */
  #levelsOfOne(recall, [k, ofAll], column, isFar) {
    const { curve, nBits } = this;
    if (recall > curve[curve.length - 4] || recall === 1) return null;
    let margin = this.#at(recall, 0, column);
    const unit = Math.sqrt(nBits);
    if (isFar || ofAll > FAR_K) margin = Math.min(margin, (2 * Math.log10(1 - recall) - 2.4 - (isFar ? 2 : 0)) * unit);
    margin -= unit * Math.max(0, Math.log10(10 / k), Math.log10(k / FAR_K) / 2);
    return { margin, farMargin: margin, near: -Infinity, far: -Infinity };
  }

  #at(recall, series, column) {
    const [recalls, values] = [[], []];
    for (let at = 0; at < this.curve.length; at += 4) {
      if (Math.floor(this.curve[at] / 2) !== series) continue;
      recalls.push(this.curve[at] - 2 * series);
      values.push(this.curve[at + column]);
    }
    return recall > recalls.at(-1) ? 10 * FEWEST : between(recall, recalls, values);
  }

  /** How many rows of cells a query reads before all rows that pass a filter would take less. */
  mostRows(passed) {
    return Math.trunc(passed * (1 + COPY_COST + ACCESS_BYTES / Math.ceil(this.nBits / 8)));
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
  *visits(weights, { probes, levels, most = Infinity }) {
    const { cells, closeness, size } = this.order(weights);
    let kth = -Infinity;
    if (probes !== undefined) {
      for (let [read, stop] = [0, probes]; read < this.length && (!read || kth === -Infinity); stop = read + 1) {
        kth = yield Array.from(cells.subarray(read, stop));
        read = stop;
      }
      return;
    }
    const margin = levels && marginOf(levels, closeness[cells[0]]);
    for (let [read, end, rows] = [0, FIRST, 0]; ; end *= 2) {
      let stop = Math.min(end, this.length);
      const isFar = (place) => closeness[cells[place]] - fround(kth / size) - this.#costs[place] < margin;
      if (levels && rows <= most) while (stop > 0 && isFar(stop - 1)) stop--;
      for (let place = read; place < stop; place++) rows += this.starts[cells[place] + 1] - this.starts[cells[place]];
      if (rows > most) stop = Math.min(end, this.length);
      if (stop > read) kth = yield Array.from(cells.subarray(read, stop));
      read = Math.max(read, stop);
      if (read < end || read >= this.length) return;
    }
  }
}

/** The margin of a query whose nearest cell is so close. */
function marginOf({ margin, farMargin, near, far }, closeness) {
  const share = closeness >= near ? 1 : fround(closeness - far) / fround(near - far);
  return farMargin + Math.max(share, 0) * (margin - farMargin);
}

/** A value between those of ascending points; that of the first or the last one beyond them. */
function between(x, points, values) {
  const next = points.findIndex((point) => point >= x);
  if (next < 0) return values.at(-1);
  if (!next || points[next] === x) return values[next];
  const share = (x - points[next - 1]) / (points[next] - points[next - 1]);
  return values[next - 1] + share * (values[next] - values[next - 1]);
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
