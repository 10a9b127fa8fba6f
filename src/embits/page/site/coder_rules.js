/**
 * What a reader checks of a coder (docs/file-format.md): its parameters, the types and shapes of its arrays, and their
 * values. The tables are those of Python; a test compares them.
 */
import { LARGEST } from "./constants.js";
import { FormatError, parseJSON } from "./format.js";
import { numbers } from "./matrix.js";

export const MAX_WEIGHT = 1e18; // larger numbers are damage
const MOST_LOOKS = [2 ** 16, 1024, 64]; // rows, flips and tries of a net's search
const DEFAULT_BITS = 256;

const DECODER = { decoder: ["bits", "dims"], offset: ["dims"] };
const NEAR_LOSSLESS = {
  W: ["bits", "dims"],
  t: ["bits"],
  decoder: ["bits", "more"],
  offset: ["more"],
  search: [6],
  whitening: ["more", "dims"],
  loss_curve: ["any", 3],
};

/** The arrays of each coder. `hidden`, `inputs` and `units` are free, and the same in all arrays. */
export const ARRAYS = {
  "near-lossless": NEAR_LOSSLESS,
  neural: {
    ...NEAR_LOSSLESS,
    look: [3],
    net_A: ["hidden", "bits"],
    net_G: ["hidden", "hidden"],
    net_M: ["dims", "inputs"],
    net_alpha: ["hidden"],
    net_a: ["hidden"],
    net_beta: ["hidden"],
    net_g: ["hidden"],
    net_c: ["dims"],
    net_o: ["dims"],
    layer_S: ["units", "dims"],
    layer_U: ["bits", "units"],
    layer_sigma: ["units"],
    layer_u: ["units"],
    layer_upsilon: ["bits"],
  },
  paper: { W: ["bits", "dims"], c: ["dims"], loss_curve: ["any", 2], mean: ["dims"], scale: [1] },
  lsh: { planes: ["bits", "dims"], ...DECODER },
  sign: DECODER,
  itq: { W: ["bits", "dims"], mean: ["dims"], ...DECODER },
  sparse: { atoms: ["bits", "dims"], mean: ["dims"], threshold: [1], ...DECODER },
};

/** Arrays that a file may lack, and the number that fills them. */
export const DEFAULTS = {
  "near-lossless": { search: 0, whitening: 0 },
  neural: { search: 0, whitening: 0, layer_S: 0, layer_U: 0, layer_sigma: 0, layer_u: 0, layer_upsilon: 0 },
  paper: { mean: 0, scale: 1 },
};
const EMPTY = ["search", "whitening"]; // may be there without rows
const BYTES = ["net_A", "net_G", "net_M", "layer_S", "layer_U"]; // int8; all others are floats

const SEED = { n_bits: ["int"], random_state: ["int", "null"] };

/** The types of the parameters of each coder. */
export const PARAMETERS = {
  "near-lossless": { ...SEED, target: ["str"], steps: ["int", "null"], batch_size: ["int", "null"], device: ["str"] },
  neural: { ...SEED, target: ["str"], prefer: ["str"], effort: ["str"], device: ["str", "null"] },
  paper: {
    ...SEED,
    lambda_reg: ["float"],
    learning_rate: ["float"],
    momentum: ["float"],
    batch_size: ["int"],
    epochs: ["int"],
    clip: ["bool"],
  },
  lsh: SEED,
  sign: { n_bits: ["int", "null"], strict: ["bool"] },
  itq: { ...SEED, iterations: ["int"] },
  sparse: { ...SEED, iterations: ["int"], density: ["float"] },
};

const damaged = (problem) => {
  throw new FormatError(`damaged: ${problem}`);
};
export const own = (table, method) => (Object.hasOwn(table, method) ? table[method] : {});

/** JSON whose whole numbers are BigInt, so that 1 and 1.0 differ. */
export const typedJSON = (text) => parseJSON(text, (literal) => (/^-?\d+$/.test(literal) ? BigInt(literal) : Number(literal)));

/** Check the parameters of a coder, and the types and shapes of its arrays. */
export function checkCoder({ facts: { method, nBits, dims }, tensors, metadata }) {
  const hasArrays = [...tensors.keys()].some((name) => name.startsWith("coder."));
  const isLeftOut = !hasArrays && (metadata.left_out ?? "").split(",").includes("coder");
  checkParameters(method, typedJSON(metadata.params), isLeftOut ? null : nBits);
  if (!isLeftOut) checkArrays(method, tensors, nBits, dims);
}

/** Check parameters, typed JSON; `nBits` is null if the coder was left out. */
export function checkParameters(method, params, nBits) {
  if (!Object.hasOwn(PARAMETERS, method)) return; // searching does not need them
  if (!(params instanceof Map)) damaged("the coder's parameters are no JSON object");
  for (const [name, value] of params) {
    const types = own(PARAMETERS[method], name);
    if (!Array.isArray(types)) damaged(`method '${method}' has no parameter '${name}'`);
    if (!fits(value, types)) damaged(`the parameter ${name} has a wrong type`);
  }
  const usual = PARAMETERS[method].n_bits.includes("null") ? null : DEFAULT_BITS;
  const given = params.has("n_bits") ? params.get("n_bits") : usual;
  if (nBits !== null && given !== null && Number(given) !== nBits) damaged(`the parameter n_bits does not fit codes of ${nBits} bits`);
}

/** Whether a value is of one of the types, as Python has them: flags and whole numbers are numbers. */
function fits(value, types) {
  if (typeof value === "bigint" || typeof value === "boolean") return ["int", "float", "bool"].some((type) => types.includes(type));
  if (typeof value === "number") return types.includes("float") && Number.isFinite(value);
  return value === null ? types.includes("null") : typeof value === "string" && types.includes("str");
}

/** Check the types and shapes of a coder's arrays: tensors, or what a header says of them. */
export function checkArrays(method, tensors, nBits, dims) {
  const named = (name) => tensors.place?.(`coder.${name}`) ?? tensors.get(`coder.${name}`);
  const rows = (name) => named(name)?.shape[0] ?? 0;
  const hidden = rows("net_A");
  const sizes = { bits: nBits, dims, more: dims + 1, hidden, inputs: nBits + 2 * hidden, units: rows("layer_S") };
  for (const [name, symbols] of Object.entries(own(ARRAYS, method))) {
    const tensor = named(name);
    const wanted = symbols.map((size) => sizes[size] ?? size);
    const isOptional = name in own(DEFAULTS, method);
    const free = symbols.map((size, axis) => (size === "units" ? 0 : wanted[axis]));
    const { dtype = BYTES.includes(name) ? "I8" : "F32", shape = free } = tensor ?? (isOptional ? {} : { dtype: "", shape: [] });
    const isEmpty = EMPTY.includes(name) && isOptional && shape[0] === 0;
    const isShape =
      shape.length === wanted.length &&
      wanted.every((size, axis) => size === "any" || size === shape[axis] || (isEmpty && axis === 0));
    const [kind, first] = BYTES.includes(name) ? ["int8", "I8"] : ["floats", "F"];
    if (!dtype.startsWith(first) || !isShape) {
      damaged(`the coder's ${name} is ${dtype || "missing"} [${shape}], expected ${kind} [${wanted}]`);
    }
  }
}

/** Check the values of a coder's arrays. */
export function checkLearned(method, tensors) {
  const values = (name) => (tensors.has(`coder.${name}`) ? numbers(tensors.get(`coder.${name}`)) : []);
  for (const name of Object.keys(own(ARRAYS, method))) {
    const largest = name.startsWith("layer_") && !BYTES.includes(name) ? LARGEST : MAX_WEIGHT;
    if (!values(name).every((x) => Math.abs(x) <= largest)) damaged(`the coder's ${name} holds NaN or numbers beyond ${largest}`);
  }
  if (Object.hasOwn(own(ARRAYS, method), "search")) checkSearch(values("search"));
  if (method === "neural") checkLook(values("look"));
  if (method === "paper") checkScale(values("scale"));
}

export function checkSearch(search) {
  if (search.length && !(search[0] > 0 && search[0] < 1e6 && search[1] >= 0 && search[1] < 1e6)) {
    damaged("the coder's search holds numbers that no fit gives");
  }
  return search;
}

export function checkLook(look) {
  if (look.every((number, i) => number >= 0 && number <= MOST_LOOKS[i])) return Array.from(look, Math.trunc);
  return damaged("the coder's look holds numbers that no fit gives");
}

export function checkScale([scale = 1]) {
  return scale >= 1 ? scale : damaged(`the coder's scale is ${scale}, expected 1 or more`);
}
