/** Filters of searches: the rows that may be found. */
import { shown } from "./arguments.js";

/**
 * A set of rows of a file, for `where` and `exclude` of any search: `select` makes one, so that a
 * filter of many searches is parsed once.
 */
export class Selection {
  /** `mask` has a 1 for each row that is selected. */
  constructor(mask) {
    this.mask = mask;
    this.length = mask.reduce((sum, flag) => sum + flag, 0);
  }
}

/** The mask of the rows that may be found (1 for each), or null for all rows. */
export function allowedRows(rows, { where, exclude }, rowOf) {
  if (where === undefined && exclude === undefined) return null;
  const allowed = where === undefined ? new Uint8Array(rows).fill(1) : maskOf(where, "where", rows, rowOf);
  if (exclude === undefined) return allowed;
  return maskOf(exclude, "exclude", rows, rowOf).map((flag, row) => allowed[row] & ~flag);
}

function maskOf(given, name, rows, rowOf) {
  if (given instanceof Selection) return ofRows(given.mask, name, rows);
  const list = given instanceof Set ? [...given] : given;
  if (!Array.isArray(list) && !isNumbers(list)) {
    throw new TypeError(`${name} is ${shown(given)}, ${expected(rows)}`);
  }
  if (typeof list[0] === "boolean") return ofRows(flags(list, name, rows), name, rows);
  const mask = new Uint8Array(rows);
  for (const each of list) {
    const row = rowNumber(each, typeof list[0], name, rows, rowOf);
    if (row !== null) mask[row] = 1;
  }
  if (list.length === rows && rows > 2 && !mask.includes(1, 2) && typeof list[0] === "number") {
    throw new TypeError(`${name} is a mask of numbers, expected true and false`);
  }
  return mask;
}

// A Uint8Array may be a mask, rows or a code, and 16 bits are too few for rows: both are refused.
function isNumbers(list) {
  return list instanceof Uint32Array || list instanceof Int32Array || list instanceof Float64Array;
}

function ofRows(mask, name, rows) {
  if (mask.length === rows) return mask;
  throw new RangeError(`${name} is a mask of ${mask.length} rows, but there are ${rows}`);
}

function flags(list, name, rows) {
  return Uint8Array.from(list, (flag) => {
    if (typeof flag !== "boolean") throw new TypeError(`${name} has ${shown(flag)}, ${expected(rows)}`);
    return flag;
  });
}

function rowNumber(each, kind, name, rows, rowOf) {
  if (typeof each !== kind || !["string", "number"].includes(kind)) {
    throw new TypeError(`${name} has ${shown(each)}, ${expected(rows)}`);
  }
  if (kind === "string") return rowOf(each, name);
  if (Number.isInteger(each) && each >= 0 && each < rows) return each;
  throw new RangeError(`${name} has row ${each}, but there are ${rows} rows`);
}

const expected = (rows) => `expected an array of ${rows} booleans, of row numbers or of ids`;
