/**
 * The net that decodes the bits of a file of the method "neural". With b in {0, 1}, s = 2 b - 1, and q
 * rounding to whole numbers from 0 to 63, the rebuilt vector is
 *
 *     p = q(α (A s) + a),   r = q(β (G p) + g),   y = c (M [63 b, p, r]) + o
 *
 * A, G and M are int8, so sums are exact. Floats are rounded where the native code rounds them: vectors
 * and slopes are those of Python, to the last digit.
 */
const TOP = 63; // the largest activation, and the largest number of a rounded slope
const { fround } = Math;

export class Net {
  /** int8 matrices row by row: A (hidden × bits), G (hidden × hidden), M (dims × (bits + 2 hidden)). */
  constructor({ A, G, M, alpha, a, beta, g, c, o }) {
    this.hidden = a.length;
    this.dims = c.length;
    this.bits = M.length / this.dims - 2 * this.hidden;
    const [At, Gt, Mt] = [
      [A, this.bits],
      [G, this.hidden],
      [M, M.length / this.dims],
    ].map(transposed);
    Object.assign(this, { A, G, M, At, Gt, Mt, alpha, a, beta, g, c, o });
    this.ofZeros = addRows(At, new Int8Array(this.bits).fill(-1), new Int32Array(this.hidden));
    this.squares = this.#squares();
  }

  /** The vector of a packed code. */
  decode(code) {
    return this.state(code).vector;
  }

  /** What the net makes of a code: the inputs [63 b, p, r] of its last layer, `first` = A s, and y. */
  state(code) {
    const inputs = new Uint8Array(this.bits + 2 * this.hidden);
    const twos = new Int8Array(this.bits); // from s = -1 to s = 1
    for (let bit = 0; bit < this.bits; bit++) {
      if (!(code[bit >> 3] & (128 >> (bit & 7)))) continue;
      inputs[bit] = TOP;
      twos[bit] = 2;
    }
    return this.#finished(inputs, addRows(this.At, twos, this.ofZeros.slice()));
  }

  /** The state after one bit is flipped. */
  flipped(state, bit) {
    const [inputs, first] = [state.inputs.slice(), state.first.slice()];
    const step = inputs[bit] ? -2 : 2;
    for (let j = 0, at = bit * this.hidden; j < this.hidden; j++) first[j] += step * this.At[at + j];
    inputs[bit] = inputs[bit] ? 0 : TOP;
    return this.#finished(inputs, first);
  }

  #finished(inputs, first) {
    const { bits, hidden, c, o } = this;
    const [p, r] = [inputs.subarray(bits, bits + hidden), inputs.subarray(bits + hidden)];
    activate(first, this.alpha, this.a, p);
    activate(addRows(this.Gt, p, new Int32Array(hidden)), this.beta, this.g, r);
    const sums = addRows(this.Mt, inputs, new Int32Array(this.dims));
    const vector = new Float32Array(this.dims);
    for (let i = 0; i < vector.length; i++) vector[i] = fround(fround(sums[i]) * c[i]) + o[i];
    return { inputs, first, vector };
  }

  /** The slopes of a function of y by the signs of a state; `byVector` are its slopes by y. */
  slopes({ inputs }, byVector) {
    const { bits, hidden, alpha, beta, c } = this;
    const byInput = rounded(
      this.M,
      byVector.map((slope, i) => slope * c[i]),
      inputs.length,
    );
    // A unit at 0 passes nothing on.
    const passed = (from, scale, slope) =>
      Float32Array.from(scale, (unit, j) => (inputs[from + j] ? slope(j) * unit : 0));
    const r = passed(bits + hidden, beta, (j) => byInput[bits + hidden + j]);
    const throughG = rounded(this.G, r, hidden);
    const p = passed(bits, alpha, (j) => fround(byInput[bits + j] + throughG[j]));
    const throughA = rounded(this.A, p, bits);
    return throughA.map((slope, bit) => fround(byInput[bit] * (TOP / 2)) + slope);
  }

  /** What a flip of each bit adds to |y|², but for its part along y. */
  #squares() {
    const squares = new Float64Array(this.bits);
    const inputs = this.bits + 2 * this.hidden;
    for (let i = 0; i < this.dims; i++) {
      for (let bit = 0; bit < this.bits; bit++) {
        const half = this.M[i * inputs + bit] * this.c[i] * (TOP / 2);
        squares[bit] += half * half;
      }
    }
    return Float32Array.from(squares);
  }
}

function transposed([matrix, width]) {
  const height = matrix.length / width;
  const columns = new Int8Array(matrix.length);
  for (let i = 0, at = 0; i < height; i++) {
    for (let j = 0; j < width; j++) columns[j * height + i] = matrix[at++];
  }
  return columns;
}

/**
 * `out` with x · matrix added, in whole numbers. Rows where x is 0, often half of them, are skipped, and
 * four others are added at a time: three times as fast as products of x with columns.
 */
function addRows(matrix, x, out) {
  const width = out.length;
  const used = [];
  for (let j = 0; j < x.length; j++) if (x[j]) used.push(j);
  let next = 0;
  for (; next + 4 <= used.length; next += 4) {
    const [a, b, c, d] = [used[next], used[next + 1], used[next + 2], used[next + 3]];
    const [xa, xb, xc, xd] = [x[a], x[b], x[c], x[d]];
    const [atA, atB, atC, atD] = [a * width, b * width, c * width, d * width];
    for (let i = 0; i < width; i++) {
      const four = xa * matrix[atA + i] + xb * matrix[atB + i] + xc * matrix[atC + i] + xd * matrix[atD + i];
      out[i] = (out[i] + four) | 0;
    }
  }
  for (; next < used.length; next++) {
    const [xa, at] = [x[used[next]], used[next] * width];
    for (let i = 0; i < width; i++) out[i] = (out[i] + xa * matrix[at + i]) | 0;
  }
  return out;
}

/** Whole numbers from 0 to 63 of sums, in float32. */
function activate(sums, scale, bias, out) {
  for (let i = 0; i < out.length; i++) {
    const value = fround(fround(fround(sums[i]) * scale[i]) + bias[i]);
    out[i] = fround(Math.min(value > 0 ? value : 0, TOP) + 0.5);
  }
}

/** x · matrix for slopes x, which are rounded to -63 … 63 of the largest; `width` is that of a row. */
function rounded(matrix, x, width) {
  let largest = 0;
  for (const slope of x) if (Math.abs(slope) > largest) largest = Math.abs(slope);
  const scale = largest > 0 ? fround(TOP / largest) : 0;
  const unit = fround(largest / TOP);
  const whole = Int8Array.from(x, (slope) => {
    const value = fround(slope * scale);
    const inside = value > -64 && value < 64 ? value : 0; // also if it is no number
    return Math.trunc(fround(inside + (inside >= 0 ? 0.5 : -0.5)));
  });
  return Float32Array.from(addRows(matrix, whole, new Int32Array(width)), (sum) => fround(sum) * unit);
}
