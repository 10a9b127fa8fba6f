/** Opens one file. The page needs no more: it loads neither collections nor remote files. */
import { BinaryVectors } from "./binary_vectors.js";
import { checkCoder } from "./coder_rules.js";
import { readContents, verifyContents } from "./contents.js";
import { FormatError, plainBytes } from "./format.js";
import { countDifferences } from "./search.js";

/** Open a file from its bytes. It checks the header and copies nothing. */
export function openFile(source, given) {
  const kernel = given ?? countDifferences;
  if (typeof kernel !== "function") throw new TypeError("the kernel is not a function");
  const bytes = plainBytes(source);
  const contents = readContents(bytes);
  if (contents.settings) throw new FormatError("a text encoder: open it with openTextEncoder");
  checkCoder(contents);
  return new BinaryVectors(contents, kernel, bytes.length, () => verifyContents(contents));
}
