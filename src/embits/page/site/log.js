/** The log of a collection: rows that were added a few at a time, after those of its pieces. */
import { FormatError, hex, sha256 } from "./format.js";
import { RowNumbers, Vocabulary } from "./vocabulary.js";
import { compare } from "./text.js";

/** The rows of a log, as those of a piece. */
export function readLog(bytes, { log, ids, nextNumber }, width) {
  try {
    const changes = wholeLines(bytes, log);
    const codes = Uint8Array.from(changes.flatMap((change) => [...atob(change.codes)]), (unit) => unit.charCodeAt(0));
    const lengths = changes[0].lengths ? Float32Array.from(changes.flatMap((change) => change.lengths)) : null;
    const count = codes.length / width;
    const words =
      ids === "numbers" ? new RowNumbers(count, nextNumber) : indexed(changes.flatMap((change) => change.ids));
    if (words.length === count && (lengths?.length ?? count) === count) {
      return { ids: words, codes, lengths, size: bytes.length };
    }
  } catch {
    // it is damaged
  }
  throw new FormatError(`damaged: ${log}, or a part of it: restore it from a copy`);
}

/** What the lines say. One that was not written completely is the last, and is left out. */
function wholeLines(bytes, name) {
  const changes = [];
  for (let start = 0, end; start < bytes.length; start = end + 1) {
    end = bytes.indexOf(10, start);
    const change = end < 0 ? null : parsed(bytes.subarray(start, end), name, changes.length);
    if (change === null) {
      checkTorn(bytes.subarray(start), name, changes.length);
      break;
    }
    changes.push(change);
  }
  return changes;
}

function parsed(line, name, number) {
  const salt = new TextEncoder().encode(`${name}\t${number}\t`);
  const salted = new Uint8Array(salt.length + Math.max(0, line.length - 65));
  salted.set(salt);
  salted.set(line.subarray(65), salt.length);
  const digest = new TextDecoder().decode(line.subarray(0, 65));
  if (digest !== `${hex(sha256(salted))}\t`) return null;
  return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(line.subarray(65)).split("\t")[0]);
}

/** Of an incomplete line, the end is missing, or the first bytes or a sector are zeros. */
function checkTorn(rest, name, number) {
  const hasEnd = rest.at(-1) === 10 || (rest.at(-1) > 0 && parsed(rest.subarray(0, -1), name, number));
  let [zeros, most] = [0, 0];
  for (const byte of rest) most = Math.max(most, (zeros = byte ? 0 : zeros + 1));
  let isFollowed = false;
  for (let at = rest.indexOf(10), i = 1; at >= 0; i++) {
    const next = rest.indexOf(10, at + 1);
    isFollowed ||= next >= 0 && parsed(rest.subarray(at + 1, next), name, number + i) !== null;
    at = next;
  }
  if (isFollowed || (hasEnd && rest[0] && most < 512)) throw new FormatError("a line does not match its checksum");
}

/** Ids with the order by which they are found. */
function indexed(words) {
  const encoded = words.map((word) => new TextEncoder().encode(word));
  const text = Uint8Array.from(encoded.flatMap((bytes) => [...bytes]));
  let end = 0;
  const ends = Uint32Array.from(encoded, (bytes) => (end += bytes.length));
  const order = Uint32Array.from(words.keys()).sort((a, b) => compare(encoded[a], encoded[b]));
  const tensor = (dtype, data) => ({ dtype, shape: [data.length], data });
  return new Vocabulary(tensor("U8", text), tensor("U32", ends), tensor("U32", order), words.length);
}
