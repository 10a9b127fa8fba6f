/**
 * The search for bits under a net: they are flipped one by one while -2 cos(x, y) - pulls · s falls, x
 * being the vector and y what the net rebuilds. Each round tries the few flips that the slopes promise
 * most of. Floats and doubles are rounded where the native code rounds them, so a vector has the same
 * code as in Python.
 */
import { inner, packed } from "./matrix.js";

const LEAST_GAIN = 1e-6;
const { fround } = Math;

/**
 * The function that flips bits of the code of a vector of norm 1. W (bits × dims), t (bits), `decoder` (bits × dims) and
 * `offset` (dims) are those of the search before, `rounds` the most flips, and `tries` those that each
 * round tries. With the hidden `layer` of an encoder, bits start as what they are drawn to.
 */
export function netSearch({ net, W, t, decoder, offset, layer, rounds, tries }) {
  const pullsOf = puller({ W, t, decoder, offset, layer });
  return (unit, code) => {
    const search = { net, unit, pulls: pullsOf(unit), tries: Math.min(tries, net.bits) };
    const found = layer ? packed(Array.from(search.pulls, (pull) => pull >= 0)) : code.slice();
    let current = measured(net.state(found), unit);
    for (let round = 0; round < rounds; round++) {
      const best = bestFlip(search, current);
      if (!best) break;
      current = best.state;
      found[best.bit >> 3] ^= 128 >> (best.bit & 7);
    }
    return found;
  };
}

/** A vector at norm 1; one of zeros stays. */
export function unitVector(vector) {
  const norm = Math.sqrt(inner(vector, vector));
  return Float32Array.from(vector, (x) => (norm > 0 ? x / norm : 0));
}

/** What draws each bit beside its part in the rebuilt vector: 2 (W x - t - D (x - o)), and a layer's part. */
function puller({ W, t, decoder, offset, layer }) {
  const [bits, dims] = [t.length, offset.length];
  const o = Float64Array.from(offset);
  for (let at = 0; at < decoder.length; at++) o[at % dims] += decoder[at] / 2;
  const weights = Float32Array.from(W, (w, at) => 2 * (w - decoder[at] / 2));
  const bias = new Float32Array(bits);
  for (let bit = 0, at = 0; bit < bits; bit++) {
    let along = 0;
    for (let i = 0; i < dims; i++) along += (decoder[at++] / 2) * o[i];
    bias[bit] = 2 * (along - t[bit]);
  }
  return (unit) => {
    const pulls = times(weights, unit).map((sum, bit) => sum + bias[bit]);
    if (!layer) return pulls;
    const { S, U, sigma, u, upsilon } = layer;
    const h = times(S, unit).map((sum, i) => Math.max(fround(fround(sum * sigma[i]) + u[i]), 0));
    const more = times(U, h);
    return pulls.map((pull, bit) => pull + fround(more[bit] * upsilon[bit]));
  };
}

/** matrix · vector in float32, each sum from the first product to the last. */
function times(matrix, vector) {
  const sums = new Float32Array(matrix.length / vector.length);
  for (let row = 0, at = 0; row < sums.length; row++) {
    let sum = 0;
    for (let i = 0; i < vector.length; i++) sum = fround(sum + fround(vector[i] * matrix[at++]));
    sums[row] = sum;
  }
  return sums;
}

/** A state with |y|² and x · y. */
function measured(state, unit) {
  const squared = Math.max(inner(state.vector, state.vector), 1e-18);
  return { ...state, squared, along: inner(state.vector, unit) };
}

/** The flip that gains most, { bit, state }, or null if none gains. */
function bestFlip(search, state) {
  const { net, unit, pulls } = search;
  const cosine = state.along / Math.sqrt(state.squared);
  let [best, least] = [null, -LEAST_GAIN];
  for (const bit of promising(search, state)) {
    const other = measured(net.flipped(state, bit), unit);
    const pull = state.inputs[bit] ? 2 * pulls[bit] : -2 * pulls[bit];
    const change = 2 * (cosine - other.along / Math.sqrt(other.squared)) + pull;
    if (change < least) [best, least] = [{ bit, state: other }, change];
  }
  return best;
}

/** The bits whose flips promise most, by the slopes and what a flip adds to |y|². */
function promising({ net, unit, pulls, tries }, state) {
  const norm = fround(Math.sqrt(state.squared));
  const share = fround(state.along / state.squared);
  const byVector = unit.map((x, i) => fround(-2 * fround(x - fround(share * state.vector[i]))) / norm);
  const slopes = net.slopes(state, byVector);
  const squared = fround(state.squared);
  const changes = slopes.map((slope, bit) => {
    const along = 2 * fround(slope - pulls[bit]);
    return (state.inputs[bit] ? -along : along) + fround((2 * net.squares[bit]) / squared);
  });
  const chosen = []; // a sort would depend on the engine where a change is no number
  changes.forEach((change, bit) => {
    let at = chosen.length;
    while (at > 0 && change < changes[chosen[at - 1]]) at--;
    if (at < tries) chosen.splice(at, 0, bit);
    if (chosen.length > tries) chosen.pop();
  });
  return chosen;
}
