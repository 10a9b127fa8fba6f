/**
 * The searched codes of NearLossless: threshold, then flip bits while the error of the rebuilt
 * vector falls. Everything is in whole numbers (and three float32 operations), so a vector has the
 * same code as in Python. docs/near-lossless.md has the error that falls.
 */
import { inner, norm, packed, times } from "./matrix.js";

const UNIT_BITS = 14; // a vector of norm 1 is 2¹⁴ whole numbers long
const MAX_INTEGER = 20; // places of the weights before they are combined
const [MAX_NORM, MAX_GRAM, MAX_LENGTH] = [14, 14, 27]; // places of the results
const SWEEPS = 8;
const TO_INTEGER = 1.5 * 2 ** 52; // adding it rounds, half to even
const { fround } = Math;

const rint = (x) => x + TO_INTEGER - TO_INTEGER;
const ldexp = (x, places) => x * 2 ** places;

/**
 * The function that encodes a vector. W (bits × dims) and t (bits) are the thresholds, `decoder`
 * (bits × dims) and `offset` (dims) rebuild the direction, `length` and `pull` draw its length.
 */
export function searchedEncoder({ W, t, decoder, offset, length, pull }) {
  const bits = t.length;
  const w = integers(W);
  const d = integers(decoder);
  const o = Float64Array.from(offset, (x) => 2 * rint(ldexp(x, d.places)));
  for (let at = 0; at < d.data.length; at++) o[at % o.length] += d.data[at];
  const gram = products(d.data, o.length, d.data);
  const places = 2 * d.places + 2; // of 2 D and 2 o: four times as much
  const largest = ldexp(maxOf(bits, (i) => gram[i * bits + i]), -places);
  const norm = ldexp(Math.sqrt(maxOf(bits, (i) => dot(w.data, i, w.data, i, o.length))), -w.places);
  const weightBits = placesOf(MAX_NORM, norm);
  const gramBits = Math.min(
    placesOf(MAX_GRAM, largest),
    placesOf(MAX_LENGTH, length + bits * largest),
    weightBits + UNIT_BITS,
  );
  const rounded = (numbers, from) => numbers.map((x) => rint(ldexp(x, gramBits - from)));
  const coder = {
    weights: w.data.map((x) => rint(ldexp(x, weightBits - w.places))),
    thresholds: rounded(Float64Array.from(t), 0),
    gram: rounded(gram, places),
    centre: rounded(products(d.data, o.length, o), places),
    shift: weightBits + UNIT_BITS - gramBits,
    excess: rint(ldexp(dot(o, 0, o, 0, o.length), gramBits - places)) - rint(ldexp(length, gramBits)),
    pull: fround(ldexp(pull / 4, -gramBits)),
  };
  return (vector) => packed(search(coder, scoresOf(coder, unitIntegers(vector))).map((sign) => sign > 0));
}

/** A vector whitened by a mean, then a matrix, at norm 1: sums of whole numbers are exact. */
export function whitened(vector, whitening) {
  const unit = exactUnit(vector).map((x) => rint(ldexp(x, MAX_INTEGER)));
  if (!unit.some((x) => x)) return unit;
  const centered = unit.map((x, i) => x - rint(ldexp(whitening[i], MAX_INTEGER)));
  return exactUnit(times(integers(whitening.subarray(unit.length)).data, centered)).map(fround);
}

function exactUnit(vector) {
  const { data } = integers(vector);
  const length = norm(data) || 1;
  return data.map((x) => x / length);
}

/** Numbers as whole numbers of at most 20 bits, and their binary places. */
function integers(numbers) {
  const places = placesOf(
    MAX_INTEGER,
    maxOf(numbers.length, (i) => Math.abs(numbers[i])),
  );
  return { data: Float64Array.from(numbers, (x) => rint(ldexp(x, places))), places };
}

/** The binary places at which `value`, as a whole number, is at most 2 ** most. */
function placesOf(most, value) {
  if (!(value > 0)) return 0;
  let exponent = Math.ceil(Math.log2(value));
  while (value >= 2 ** exponent) exponent++;
  while (value < 2 ** (exponent - 1)) exponent--;
  return most - exponent;
}

function maxOf(length, value) {
  let most = 0;
  for (let i = 0; i < length; i++) most = Math.max(most, value(i));
  return most;
}

/** Row i of a with row j of b. */
function dot(a, i, b, j, length) {
  let sum = 0;
  for (let at = i * length, other = j * length, end = at + length; at < end; at++, other++)
    sum += a[at] * b[other];
  return sum;
}

/** All products of rows of a with rows of b. */
function products(a, length, b) {
  const columns = b.length / length;
  return Float64Array.from({ length: (a.length / length) * columns }, (_, at) =>
    dot(a, Math.floor(at / columns), b, at % columns, length),
  );
}

/** A vector as whole numbers of norm 2¹⁴; its squares are summed in the order of the native code. */
function unitIntegers(vector) {
  const length = Math.sqrt(inner(vector, vector));
  const scale = length > 1e-30 ? 2 ** UNIT_BITS / length : 0;
  return Float64Array.from(vector, (x) => rint(x * scale));
}

function scoresOf({ weights, thresholds, shift }, row) {
  const half = shift ? 2 ** (shift - 1) : 0;
  return thresholds.map(
    (threshold, i) => Math.floor((dot(weights, i, row, 0, row.length) + half) / 2 ** shift) - threshold,
  );
}

/** The signs of a code, 1 or -1 for each bit. */
function search({ gram, centre, excess, pull }, scores) {
  const bits = scores.length;
  const signs = scores.map((score) => (score >= 0 ? 1 : -1));
  const product = products(gram, bits, signs);
  for (let i = 0; i < bits; i++) excess += signs[i] * (product[i] + 2 * centre[i]); // |y|² - length
  for (let sweep = 0, flipped = true; sweep < SWEEPS && flipped; sweep++) {
    flipped = false;
    for (let i = 0; i < bits; i++) {
      const own = gram[i * bits + i];
      const grown = 4 * (own - signs[i] * (product[i] + centre[i])); // of |y|² by the flip
      const along = signs[i] * (scores[i] - product[i]) + own;
      const bend = fround(fround(grown) * fround(2 * excess + grown));
      if (fround(fround(along) + fround(pull * bend)) >= 0) continue;
      excess += grown;
      for (let j = 0, at = i * bits; j < bits; j++) product[j] -= 2 * signs[i] * gram[at + j];
      signs[i] = -signs[i];
      flipped = true;
    }
  }
  return signs;
}
