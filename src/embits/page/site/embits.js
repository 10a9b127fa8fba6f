/**
 * embits files and collections in JavaScript: open, look up words, search, verify. For browsers and
 * Node, without dependencies. Opening a file builds nothing: codes and words are views of its bytes.
 *
 *     import { open } from "./embits.js";
 *     const bits = open(await (await fetch("glove.safetensors")).arrayBuffer());
 *     bits.mostSimilar("queen", { k: 3 });      // [{ word: "princess", row, similarity: 0.80 }, …]
 *     bits.mostSimilar(["paris", "japan"], { negative: ["france"] });   // (b AND NOT a) OR c
 *     bits.similarity("car", "automobile");     // the share of equal bits
 *     bits.search(vector);                      // a Float32Array: [{ word, row, score }, …]
 *     bits.search(vector, { secondLook: 100 }); // the best 100 again, decoded
 *     bits.search("queen");                     // by Hamming distance: [{ word, row, distance, score }, …]
 *     bits.within("queen", { similarity: 0.7 });       // all rows of at least this similarity
 *     await bits.verify();                      // checks every byte
 *     const news = await open((name) => fetch(`news/${name}`));   // the folder of a collection
 *     const remote = await openRemote("https://example.org/texts.safetensors");   // a file with cells: see remote.js
 *     const textEncoder = await openTextEncoder(await fetch("encoder.safetensors"));
 *     bits.search(textEncoder.encode("a question"));   // see text_encoder.js
 *
 * In Node, use `open(readFileSync("glove.safetensors"))`. Types are in embits.d.ts. simd.js makes the
 * search two to four times faster. A damaged file throws FormatError, an unknown word
 * UnknownWordError, and a wrong argument TypeError or RangeError.
 */
import { checkOptions } from "./arguments.js";
import { BinaryVectors } from "./binary_vectors.js";
import { readCollection } from "./collection.js";
import { Selection } from "./filters.js";
import { FormatError, isBytes } from "./format.js";
import { openFile } from "./open_file.js";
import { openRemote } from "./remote.js";
import { UnknownWordError } from "./spelling.js";
import { openTextEncoder, StaticTextEncoder } from "./text_encoder.js";

export { BinaryVectors, FormatError, openRemote, openTextEncoder, Selection, StaticTextEncoder, UnknownWordError };

/**
 * Open a file from its bytes, or a collection: then `source` is a function that takes the name of a file in
 * its folder and returns its bytes or a Response (or a promise of them), and open returns a promise.
 *
 * A file takes the kernel as its second argument. A collection takes { room, verify }: `room` is a
 * function of a size, such as simdRoom of simd.js, and `verify` checks every byte.
 */
export function open(source, second) {
  if (typeof source === "function") return openCollection(source, second);
  if (!isBytes(source)) {
    throw new TypeError(
      "open takes the bytes of a file (an ArrayBuffer or a Uint8Array), or a function that reads the files of a collection",
    );
  }
  return openFile(source, second);
}

async function openCollection(read, options = {}) {
  checkOptions(options, ["room", "verify"], "open");
  const { kernel, contents, size } = await readCollection(read, options);
  const verify = async () => void (await readCollection(read, { verify: true }));
  return new BinaryVectors(contents, kernel, size, verify);
}
