/**
 * The rows that score highest against a float query: Σ weight · (2 bit - 1). Scores are added up in
 * float64, in the same order as in Python, so rows and scores are the same.
 *
 * With the WebAssembly kernel, most rows get no score. The score of a row is Σ |weight| minus twice
 * the |weight| of the bits that differ from the signs of the weights. The kernel adds these up
 * rounded to whole numbers from 0 to 15, which gives a bound of the score. Only rows that may reach
 * the k-th best score are scored exactly.
 */

import { cosine } from "./matrix.js";

const MAX_WEIGHT = 15;
const SHARES = [1, 0.85, 0.7, 0.55]; // of the largest weight, for 15 to stand for
const SLACK = 1e-9; // far above what rounding adds to sums in float64

/**
 * The k best rows, best first, ties in row order: [{ row, score }]. With `scaled`, { lengths, offset },
 * the score is length * (sum + offset).
 */
export function bestRows(codes, width, weights, k, kernel, distances, allowed = null, scaled = null) {
  const best = new Best(Math.min(k, distances.length));
  if (best.k) offerRows(codes, width, weights, kernel, distances, allowed, best, scaled);
  return best.sorted();
}

/** All rows that score `lowest` or more, best first, ties in row order: [{ row, score }]. */
export function rowsScoring(codes, width, weights, lowest, kernel, distances, allowed = null, scaled = null) {
  const best = new AtLeast(lowest);
  offerRows(codes, width, weights, kernel, distances, allowed, best, scaled);
  return best.sorted();
}

/**
 * The k of some rows whose vectors have the highest cosine to a query's, best first, ties in row order:
 * [{ row, score }]. `rebuilt` gives the vector of a row.
 */
export function lookAgain(rows, vector, k, rebuilt) {
  return rows
    .map((row) => ({ row, score: cosine(rebuilt(row), vector) }))
    .sort(better)
    .slice(0, k)
    .map(({ row, score }) => ({ row, score: Math.fround(score) }));
}

function offerRows(codes, width, weights, kernel, distances, allowed, best, scaled) {
  const tables = tablesOfFour(weights, width);
  const score = scorer(codes, width, tables);
  if (scaled) {
    offerScaled(scaled, score, best, distances.length, allowed);
    return;
  }
  const rounded = kernel.weighDifferences && roundWeights(weights, width);
  if (rounded && kernel.weighDifferences(codes, width, rounded.planes, distances)) {
    for (let row = 0, limit = rounded.limit(best.kth); row < distances.length; row++) {
      if (distances[row] >= limit || (allowed && !allowed[row])) continue;
      if (best.offer(row, score(row))) limit = rounded.limit(best.kth);
    }
  } else {
    offerByBytes(codes, width, tables, score, best, distances.length, allowed);
  }
}

/** Each row has a length of its own, so one limit does not serve all: every row is scored. */
function offerScaled({ lengths, offset }, score, best, rows, allowed) {
  for (let row = 0; row < rows; row++) {
    if (!allowed || allowed[row]) best.offer(row, lengths[row] * (score(row) + offset));
  }
}

/** Without the kernel: sums by whole bytes are off by rounding alone, and take half the time. */
function offerByBytes(codes, width, tables, score, best, rows, allowed) {
  const bytes = tablesOfBytes(tables, width);
  const slack = SLACK * bytes.reduce((sum, value) => Math.max(sum, Math.abs(value)), 0) * width;
  for (let row = 0, at = 0; row < rows; row++) {
    let sum = 0;
    for (let table = 0; table < bytes.length; table += 256) sum += bytes[table + codes[at++]];
    if (sum >= best.kth - slack && (!allowed || allowed[row])) best.offer(row, score(row));
  }
}

/** The 16 sums of each four bits. */
function tablesOfFour(weights, width) {
  const tables = new Float64Array(32 * width);
  weights.forEach((weight, i) => {
    for (let four = 0; four < 16; four++) {
      tables[(i >> 2) * 16 + four] += four & (8 >> (i & 3)) ? weight : -weight;
    }
  });
  return tables;
}

function tablesOfBytes(tables, width) {
  return Float64Array.from({ length: 256 * width }, (_, at) => {
    const table = (at >> 8) * 32;
    return tables[table + ((at & 255) >> 4)] + tables[table + 16 + (at & 15)];
  });
}

/** The exact score of a row, added up in the order of the native code. */
function scorer(codes, width, tables) {
  return (row) => {
    let sum = 0;
    for (let at = row * width, end = at + width, table = 0; at < end; at++, table += 32) {
      sum += tables[table + (codes[at] >> 4)];
      sum += tables[table + 16 + (codes[at] & 15)];
    }
    return sum;
  };
}

/** The k rows of highest score among those offered in row order. */
class Best {
  #kept = [];

  constructor(k) {
    this.k = k;
    this.kth = -Infinity; // rows up to this score cannot enter
  }

  /** Returns whether `kth` has changed. */
  offer(row, score) {
    if (score <= this.kth) return false;
    this.#kept.push({ row, score });
    if (this.#kept.length < 2 * this.k + 8) return false;
    this.#kept = this.sorted();
    this.kth = this.#kept[this.k - 1].score;
    return true;
  }

  sorted() {
    return this.#kept.sort(better).slice(0, this.k);
  }
}

/** All rows that score at least `kth`. */
class AtLeast {
  #kept = [];

  constructor(kth) {
    this.kth = kth;
  }

  offer(row, score) {
    if (score >= this.kth) this.#kept.push({ row, score });
    return false;
  }

  sorted() {
    return this.#kept.sort(better);
  }
}

const better = (a, b) => b.score - a.score || a.row - b.row;

/** The signs of the weights as a code, four planes of their sizes, and the limit for a score. */
function roundWeights(weights, width) {
  const sizes = Float64Array.from(weights, Math.abs);
  const largest = sizes.reduce((a, b) => Math.max(a, b), 0);
  if (largest === 0) return null;
  const whole = (size, step) => Math.min(Math.floor(size / step + 0.5), MAX_WEIGHT);
  const errorOf = (step) => sizes.reduce((sum, size) => sum + Math.abs(size - step * whole(size, step)), 0);
  const step = SHARES.map((share) => (share * largest) / MAX_WEIGHT).reduce((a, b) =>
    errorOf(b) < errorOf(a) ? b : a,
  );
  const planes = Array.from({ length: 5 }, () => new Uint8Array(width));
  let norm = 0;
  let overshoot = 0; // by how much rounded sizes can exceed the true ones
  sizes.forEach((size, i) => {
    const bit = 128 >> (i & 7);
    const rounded = whole(size, step);
    if (weights[i] > 0) planes[0][i >> 3] |= bit;
    for (let p = 0; p < 4; p++) if (rounded & (8 >> p)) planes[p + 1][i >> 3] |= bit;
    norm += size;
    overshoot += Math.max(0, rounded * step - size);
  });
  const limit = (score) => Math.floor(((norm - score) / 2 + overshoot + SLACK * norm) / step) + 1;
  return { planes, limit };
}
