/** The ids of rows of a file at an address: of each row that is asked for, only the bytes that its id needs. */
import { BLOCK, STEP } from "./constants.js";
import { uuidText } from "./fixed_ids.js";
import { FormatError, tensorOf } from "./format.js";
import { packedWidth, prefixCodes, readWord } from "./packed.js";
import { toText } from "./text.js";

const PAGE = 4096;

/** Ids as the file stores them: numbers, UUIDs, text, or row numbers. */
export class RemoteIds {
  #source;
  #tensors;
  #length;
  #pages = new Map();

  constructor(source, tensors, length) {
    [this.#source, this.#tensors, this.#length] = [source, tensors, length];
  }

  /** The id of a row. */
  async at(row) {
    const numbers = this.#tensors.place("word_numbers");
    if (numbers) return this.#number(numbers, row);
    if (this.#tensors.has("word_uuids")) return uuidText(await this.#bytes("word_uuids", 16 * row, 16 * row + 16));
    return this.#tensors.has("words") ? this.#text(row) : String(row);
  }

  async #number({ dtype, shape }, row) {
    const counts = shape[0] === 1 && this.#length !== 1;
    const size = dtype === "U64" ? 8 : 4;
    const at = counts ? 0 : size * row;
    const bytes = await this.#bytes("word_numbers", at, at + size);
    const { data } = tensorOf({ dtype }, bytes.slice());
    return String(BigInt(data[0]) + BigInt(counts ? row : 0));
  }

  async #text(row) {
    if (!this.#tensors.has("word_codes")) throw new FormatError("damaged: there are words, but no word_codes");
    const place = await this.#placeOf(row);
    const block = Math.floor(place / BLOCK);
    const size = this.#size("words");
    const width = packedWidth(8 * size);
    const [first, next] = await Promise.all(
      [block, block + 1].map((each) =>
        each < Math.ceil(this.#length / BLOCK) ? this.#packed("word_starts", each, width) : 8 * size,
      ),
    );
    const start = Math.floor(first / 8);
    const text = await this.#bytes("words", start, Math.min(size, Math.ceil(next / 8)));
    const codes = await this.#tensors.with(() => prefixCodes(this.#tensors.get("word_codes")));
    return toText(readWord(text, codes, first - 8 * start, place % BLOCK), row);
  }

  /** The place of a row in sorted order: word_rows leads there, and word_links make the way short. */
  async #placeOf(row) {
    if (!this.#tensors.has("word_rows")) return row;
    const width = packedWidth(this.#length - 1);
    let jumped = false;
    for (let [at, steps] = [row, 0]; steps <= this.#length + 1; steps++) {
      const next = await this.#packed("word_rows", at, width);
      if (next === row) return at;
      if (!jumped && at % STEP === 0) {
        jumped = true;
        at = await this.#packed("word_links", at / STEP, width);
      } else at = next;
      if (at >= this.#length) break;
    }
    throw new FormatError(`damaged: row ${row} has no word`);
  }

  /** Number i of packed numbers. */
  async #packed(name, i, width) {
    const first = Math.floor((i * width) / 8);
    const bytes = await this.#bytes(name, first, Math.ceil(((i + 1) * width) / 8));
    const number = bytes.reduce((sum, byte, at) => sum + byte * 2 ** (8 * at), 0);
    return Math.floor(number / 2 ** ((i * width) % 8)) % 2 ** width;
  }

  #size(name) {
    const { start, stop } = this.#tensors.place(name);
    return stop - start;
  }

  /** Bytes of a tensor, from pages that are kept. */
  async #bytes(name, start, stop) {
    const size = this.#size(name);
    if (!(start >= 0 && start <= stop && stop <= size)) throw new FormatError(`damaged: ${name} points outside`);
    const [first, last] = [Math.floor(start / PAGE), Math.max(Math.floor((stop - 1) / PAGE), Math.floor(start / PAGE))];
    const pages = await Promise.all(
      Array.from({ length: last - first + 1 }, (_, i) => this.#page(name, first + i, size)),
    );
    const bytes = new Uint8Array(pages.reduce((sum, page) => sum + page.length, 0));
    pages.reduce((at, page) => (bytes.set(page, at), at + page.length), 0);
    return bytes.subarray(start - first * PAGE, stop - first * PAGE);
  }

  #page(name, page, size) {
    const key = `${name} ${page}`;
    if (!this.#pages.has(key)) {
      const { start } = this.#tensors.place(name);
      const read = this.#source.read(start + page * PAGE, start + Math.min(size, (page + 1) * PAGE));
      read.catch(() => this.#pages.delete(key));
      this.#pages.set(key, read);
    }
    return this.#pages.get(key);
  }
}
