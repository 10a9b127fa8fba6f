/** Arithmetic of the coders, in float64. Matrices are typed arrays, row by row. */

/** The numbers of a tensor; 16-bit floats are converted. */
export function numbers({ dtype, data }) {
  return dtype === "F16" ? Float32Array.from(data, halfToNumber) : data;
}

function halfToNumber(bits) {
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  const size =
    exponent === 31
      ? fraction
        ? NaN
        : Infinity
      : exponent
        ? 2 ** (exponent - 25) * (1024 + fraction)
        : 2 ** -24 * fraction;
  return bits & 0x8000 ? -size : size;
}

/** matrix · vector, for rows of `stride` numbers of which the first are used. */
export function times(matrix, vector, stride = vector.length) {
  return Float64Array.from({ length: matrix.length / stride }, (_, row) => dot(matrix, row * stride, vector));
}

/** Bits in {0, 1} · matrix + offset: the sum of the rows of the bits that are set. */
export function sumOfRows(matrix, code, offset) {
  const sum = Float64Array.from(offset);
  for (let bit = 0, at = 0; at < matrix.length; bit++, at += sum.length) {
    if (!(code[bit >> 3] & (128 >> (bit & 7)))) continue;
    for (let i = 0; i < sum.length; i++) sum[i] += matrix[at + i];
  }
  return sum;
}

export function norm(vector) {
  return Math.sqrt(vector.reduce((sum, x) => sum + x * x, 0));
}

/** Whether each row of matrix · vector, without rounding, is 0 or more; float32 numbers. */
export function signsOfProduct(matrix, vector) {
  const longest = norm(vector);
  return Array.from({ length: matrix.length / vector.length }, (_, row) => {
    const at = row * vector.length;
    const sum = dot(matrix, at, vector);
    // Products of float32 are exact in float64: only their sums are rounded.
    const products = () => Array.from(vector, (x, i) => x * matrix[at + i]);
    const error = vector.length * 2 ** -51 * longest * norm(matrix.subarray(at, at + vector.length));
    return (Math.abs(sum) > error ? sum : exactSum(products())) >= 0;
  });
}

/** The bits of a code, packed, first bit highest. */
export function packed(signs) {
  const code = new Uint8Array(Math.ceil(signs.length / 8));
  signs.forEach((sign, i) => {
    if (sign) code[i >> 3] |= 128 >> (i & 7);
  });
  return code;
}

/** a · b, summed in the order of the native code: in eight parts. */
export function inner(a, b) {
  const sums = new Float64Array(8);
  for (let i = 0; i < a.length; i++) sums[i & 7] += a[i] * b[i];
  const [s, t, u, v, w, x, y, z] = sums;
  return s + t + (u + v) + (w + x + (y + z));
}

/** The cosine of two vectors; 0 for a vector of zeros. */
export function cosine(a, b) {
  return a.reduce((sum, x, i) => sum + x * b[i], 0) / (norm(a) * norm(b) || 1);
}

function dot(matrix, at, vector) {
  let sum = 0;
  for (let i = 0; i < vector.length; i++) sum += matrix[at + i] * vector[i];
  return sum;
}

// Shewchuk's sum: parts that do not overlap hold the sum exactly, the largest part last.
function exactSum(values) {
  const parts = [];
  for (let x of values) {
    let kept = 0;
    for (let y of parts) {
      if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
      const high = x + y;
      const low = y - (high - x);
      if (low) parts[kept++] = low;
      x = high;
    }
    parts.length = kept;
    if (x) parts.push(x);
  }
  return parts.at(-1) ?? 0;
}
