/**
 * Files with cells on a web server, read by HTTP range requests: the header and the centers of the cells first, then only
 * the cells that a query reads. What was read is kept and checked.
 *
 *     const bits = await openRemote("https://example.org/texts.safetensors");
 *     await bits.search(vector, { k: 5 });   // [{ word, row, score }, …]
 */
import { checkCode, checkCount, checkOptions, checkQuery, checkReading, metricFor } from "./arguments.js";
import { CellRows, cellsOf, checkCell, signsOf } from "./cells.js";
import { coderOf, neighbor, prepareQuery, secondLookSize } from "./coder.js";
import { checkCoder } from "./coder_rules.js";
import { COSINES } from "./constants.js";
import { factsOf } from "./contents.js";
import { allowedRows } from "./filters.js";
import { digest, FormatError, headerLength, parseJSON, readPlaces, tensorOf } from "./format.js";
import { RemoteIds } from "./remote_ids.js";
import { lookAgain } from "./scores.js";

const FIRST_BYTES = 1 << 14; // usually more than the header
const CACHE_BYTES = 1 << 26; // of cells
const RECALL = 0.95;
const METRICS = ["hamming", ...COSINES]; // lengths are not read
const { fround } = Math;

/** Open a file with cells at an address. Options: `fetch`, the function that makes requests, and `cacheBytes`. */
export async function openRemote(url, options = {}) {
  checkOptions(options, ["fetch", "cacheBytes"], "openRemote");
  const source = new RemoteFile(url, options.fetch ?? globalThis.fetch);
  const first = await source.start(FIRST_BYTES);
  const needed = 8 + headerLength(first, source.size);
  const start = needed > first.length ? await source.read(0, needed) : first;
  const { metadata, places } = readPlaces(start.slice(), source.size);
  const tensors = new RemoteTensors(source, places, parsedChecksums(metadata.sha256));
  const names = [...places.keys()].filter((name) => name.startsWith("cells.") && name !== "cells.order");
  if (!names.length) {
    throw new FormatError(`${url}: the file has no cells: make them with embits cells, or read it whole with open`);
  }
  await Promise.all(names.map((name) => tensors.load(name)));
  return new RemoteVectors(source, tensors, metadata, checkCount(options.cacheBytes ?? CACHE_BYTES, "cacheBytes"));
}

function parsedChecksums(text) {
  try {
    return parseJSON(text);
  } catch {
    throw new FormatError("damaged: the checksums are no JSON object");
  }
}

/** Parts of a file at an address; the whole file, once, if the server has no ranges. */
class RemoteFile {
  #whole = null;
  #tag = null;
  size = 0;
  bytesRead = 0;
  requests = 0;

  constructor(url, fetch) {
    Object.assign(this, { url: String(url), fetch });
  }

  async #ask(start, stop) {
    this.requests++;
    const response = await this.fetch.call(globalThis, this.url, { headers: { Range: `bytes=${start}-${stop - 1}` } });
    if (!response.ok) throw new Error(`the server returned status ${response.status} for ${this.url}`);
    const bytes = new Uint8Array(await response.arrayBuffer());
    this.bytesRead += bytes.length;
    return { response, bytes };
  }

  /** The first bytes, and the size of the file. */
  async start(count) {
    const { response, bytes } = await this.#ask(0, count);
    this.#tag = response.headers.get("ETag");
    const range = /^bytes 0-\d+\/(\d+)$/.exec(response.headers.get("Content-Range") ?? "");
    if (response.status === 206 && range) {
      this.size = Number(range[1]);
      return bytes;
    }
    if (response.status === 206) throw new Error(`${this.url}: the server does not say how large the file is`);
    console.warn(`embits: ${this.url}: the server has no ranges; all ${bytes.length} bytes were read`);
    [this.#whole, this.size] = [bytes, bytes.length];
    return bytes;
  }

  /** The bytes from start to stop, in memory of their own. */
  async read(start, stop) {
    if (start === stop) return new Uint8Array(0);
    if (this.#whole) return this.#whole.slice(start, stop);
    const { response, bytes } = await this.#ask(start, stop);
    const tag = response.headers.get("ETag");
    if (response.status !== 206 || bytes.length !== stop - start || (this.#tag && tag && tag !== this.#tag)) {
      throw new Error(`${this.url}: the file has changed since it was opened; open it again`);
    }
    return bytes;
  }
}

class NotRead extends Error {}

/** Tensors that are read when they are needed: `get` throws NotRead, which `RemoteVectors` answers by reading them. */
class RemoteTensors extends Map {
  #read = new Map();
  #source;
  #checksums;

  constructor(source, places, checksums) {
    super(places);
    [this.#source, this.#checksums] = [source, checksums];
  }

  place(name) {
    return super.get(name);
  }

  get(name) {
    if (this.#read?.has(name) || !super.has(name)) return this.#read?.get(name);
    throw Object.assign(new NotRead(), { tensor: name });
  }

  async load(name) {
    const { start, stop, ...about } = super.get(name);
    const bytes = await this.#source.read(start, stop);
    if ((await digest(bytes)) !== this.#checksums.get(name)) {
      throw new FormatError(`damaged: the bytes of tensor '${name}' do not match its checksum`);
    }
    this.#read.set(name, tensorOf({ name, ...about }, bytes));
  }

  /** What a function returns once all tensors that it takes are read. */
  async with(use) {
    for (;;) {
      try {
        return use();
      } catch (error) {
        if (!(error instanceof NotRead)) throw error;
        await this.load(error.tensor);
      }
    }
  }
}

/** Codes in cells at an address. */
class RemoteVectors {
  #source;
  #tensors;
  #cells;
  #ids;
  #kept = new Map(); // cells as { bytes, read }, the one used last at the end
  #keptBytes = 0;
  #cacheBytes;
  #coder = null;

  constructor(source, tensors, metadata, cacheBytes) {
    Object.assign(this, factsOf(metadata), { url: source.url, size: source.size });
    const { dtype, shape } = tensors.place("codes") ?? {};
    this.width = Math.ceil(this.nBits / 8);
    if (dtype !== "U8" || shape.length !== 2 || shape[1] !== this.width) {
      throw new FormatError(`damaged: no codes of ${this.nBits} bits`);
    }
    this.length = shape[0];
    const order = tensors.place("cells.order");
    if (order?.dtype !== "U32" || order.shape.join() !== String(this.length)) {
      throw new FormatError("damaged: the order of the rows");
    }
    [this.#source, this.#tensors, this.#cacheBytes] = [source, tensors, cacheBytes];
    this.#cells = cellsOf(tensors, this.length, this.nBits);
    this.cells = this.#cells.length;
    this.#ids = new RemoteIds(source, tensors, this.length);
    checkCoder({ facts: this, tensors: new Map([...tensors.keys()].map((name) => [name, tensors.place(name)])), metadata });
  }

  /** How many bytes were read from the server so far. */
  get bytesRead() {
    return this.#source.bytesRead;
  }

  /** How many requests were made so far. */
  get requests() {
    return this.#source.requests;
  }

  /**
   * The k best rows of a vector or a code, as `search` of BinaryVectors finds them in the cells that are read: by default as many
   * as find 95 % of the neighbors. `recall: 1` reads all cells.
   */
  async search(given, options = {}) {
    checkOptions(options, ["k", "metric", "where", "exclude", "secondLook", "recall", "probes"], "search");
    const { k = 10, recall = RECALL, probes } = options;
    checkCount(k, "k");
    checkReading(options);
    const query = checkQuery(given);
    const metric = metricFor(options.metric, query, METRICS);
    if (!ArrayBuffer.isView(query)) throw new TypeError("a remote file is searched by a vector (Float32Array) or a code (Uint8Array)");
    const allowed = allowedRows(this.length, options, () => {
      throw new TypeError("where and exclude of a remote file take row numbers or booleans, not ids");
    });
    const parts = { dims: this.dims, codeOf: (code) => checkCode(code, this.nBits), coder: () => this.#opened };
    const prepared = await this.#tensors.with(() => prepareQuery(query, metric, parts));
    const look = await this.#tensors.with(() => secondLookSize(options.secondLook, metric, k, parts.coder));
    const rows = await this.#inCells(prepared, Math.max(k, look), { recall, probes, allowed });
    const best = look ? await this.#tensors.with(() => this.#lookAgain(rows, prepared, k)) : rows;
    return Promise.all(best.map(async (each) => neighbor(await this.#ids.at(each.row), each, this.nBits)));
  }

  get #opened() {
    const { method, params, nBits, dims } = this;
    return (this.#coder ??= coderOf({ method, params, tensors: this.#tensors, nBits, dims }));
  }

  #lookAgain(rows, query, k) {
    const codes = new Map(rows.map(({ row, code }) => [row, code]));
    return lookAgain([...codes.keys()], query.vector(), k, (row) => this.#opened.rebuilt(codes.get(row)));
  }

  async #inCells(query, k, { recall, probes, allowed }) {
    const { width, nBits } = this;
    const passed = allowed ? allowed.reduce((sum, one) => sum + one, 0) : this.length;
    const counts = { k: Math.min(k, passed), isFloats: !query.code, passed, n: this.length };
    const levels = probes === undefined ? this.#cells.levels(recall, counts) : null;
    const most = allowed ? this.#cells.mostRows(passed) : Infinity;
    const wanted = probes && Math.ceil((probes * this.length) / Math.max(passed, 1));
    const rows = new CellRows(query, { k: Math.min(k, passed), width, nBits, allowed });
    const visits = this.#cells.visits(query.weights ?? signsOf(query.code, nBits), { probes: wanted, levels, most });
    for (let next = visits.next(); !next.done; next = visits.next(rows.kth)) {
      for (const { codes, order } of await Promise.all(next.value.map((cell) => this.#cell(cell)))) rows.add(codes, order);
    }
    return rows.found.map(({ score, ...each }) =>
      score === undefined ? each : { ...each, score: fround(fround(score) + query.offset) },
    );
  }

  /** The codes of a cell and their rows, read and checked once while they are kept. */
  #cell(cell) {
    const bytes = (this.#cells.starts[cell + 1] - this.#cells.starts[cell]) * (this.width + 4);
    let kept = this.#kept.get(cell);
    if (kept) this.#kept.delete(cell);
    else {
      kept = { bytes, read: this.#read(cell) };
      this.#keptBytes += bytes;
      kept.read.catch(() => this.#forget(cell)); // read again the next time
    }
    this.#kept.set(cell, kept);
    for (const oldest of this.#kept.keys()) {
      if (this.#keptBytes <= this.#cacheBytes) break;
      this.#forget(oldest);
    }
    return kept.read;
  }

  #forget(cell) {
    this.#keptBytes -= this.#kept.get(cell)?.bytes ?? 0;
    this.#kept.delete(cell);
  }

  async #read(cell) {
    const [start, end] = [this.#cells.starts[cell], this.#cells.starts[cell + 1]];
    const part = (name, size) => {
      const first = this.#tensors.place(name).start;
      return this.#source.read(first + start * size, first + end * size);
    };
    const [codes, rows] = await Promise.all([part("codes", this.width), part("cells.order", 4)]);
    const order = new Uint32Array(rows.buffer, rows.byteOffset, end - start);
    await checkCell(this.#cells, cell, codes, order);
    if (order.some((row) => row >= this.length)) throw new FormatError("damaged: the order of the rows");
    return { codes, order };
  }
}
