/** The size of the floats and of the file, drawn to scale. */
import { count, h, megabytes, time } from "../dom.js";

const TEXT = ["words", "word_numbers", "word_uuids"];
const KINDS = [
  ["codes", () => "codes", (name) => name === "codes" || name === "padding"],
  ["text", (noun) => `${noun}s`, (name) => TEXT.includes(name)],
  ["order", () => "index", (name) => name.startsWith("word_")],
  ["subwords", () => "subwords", (name) => name.startsWith("subwords.")],
  ["coder", () => "coder", (name) => name.startsWith("coder.")],
  ["header", () => "header", () => true],
];

export function sizeView({ facts, say }) {
  const element = h("section", { "aria-label": "Size" });

  function update() {
    const { words, noun, dims, nBits, size, parts } = facts();
    const floats = words * dims * 4;
    const largest = Math.max(floats, size, 1);
    const ratio = floats / size;
    const shares = grouped(parts, size, noun);
    const others = shares.slice(1, -1).map(({ label }) => label);
    const file = square(
      "bits",
      size / largest,
      shares.map(({ kind, bytes }) => {
        const stripe = h("span", { class: `stripe ${kind}` });
        stripe.style.blockSize = `${(100 * bytes) / size}%`;
        return stripe;
      }),
    );
    element.replaceChildren(
      h(
        "h1",
        { class: "statement" },
        ratio >= 1 ? `${ratio.toFixed(1)} times smaller, in one file` : "One file, ready to search",
      ),
      h(
        "div",
        { class: "scale" },
        h(
          "figure",
          {},
          square("floats", floats / largest),
          h(
            "figcaption",
            {},
            h("strong", {}, megabytes(floats)),
            ` as floats: ${count(words)} × ${count(dims)} × 4 bytes`,
          ),
        ),
        h(
          "figure",
          {},
          file,
          h(
            "figcaption",
            {},
            h("strong", {}, megabytes(size)),
            ` as this file: ${count(nBits)} bits per ${noun}${others.length ? ", with " : ""}${list(others)}`,
          ),
        ),
      ),
      h("h2", {}, "Contents of the file"),
      h(
        "table",
        { class: "parts" },
        h("caption", { class: "visually-hidden" }, "Parts of the file and their bytes"),
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            h("th", { scope: "col" }, "part"),
            h("th", { scope: "col" }, "size"),
            h("th", { scope: "col" }, `bytes per ${noun}`),
          ),
        ),
        h(
          "tbody",
          {},
          ...shares.map(({ kind, label, bytes }) =>
            h(
              "tr",
              {},
              h("th", { scope: "row" }, h("span", { class: `cell ${kind}`, "aria-hidden": "true" }), label),
              h("td", {}, megabytes(bytes)),
              h("td", {}, words ? (bytes / words).toFixed(1) : "–"),
            ),
          ),
        ),
      ),
      h(
        "p",
        { class: "small" },
        "Areas are to scale. At 10 Mbit/s, the floats download in ",
        `${seconds(floats)} and the file in ${seconds(size)}.`,
      ),
    );
    say(`${megabytes(floats)} as floats, ${megabytes(size)} as this file`);
  }

  return { title: () => "Size", element, update };
}

const seconds = (bytes) => time(bytes / 1250);

function square(kind, share, children = []) {
  const element = h("div", { class: `square ${kind}`, "aria-hidden": "true" }, ...children);
  element.style.inlineSize = `${100 * Math.sqrt(share)}%`;
  return element;
}

const list = (names) =>
  names.length > 1 ? `${names.slice(0, -1).join(", ")} and ${names.at(-1)}` : names.join("");

function grouped(parts, size, noun) {
  const groups = KINDS.map(([kind, label]) => ({ kind, label: label(noun), bytes: 0 }));
  for (const { name, bytes } of parts) groups[KINDS.findIndex(([, , has]) => has(name))].bytes += bytes;
  groups.at(-1).bytes += size - parts.reduce((sum, { bytes }) => sum + bytes, 0); // the header
  return groups.filter(({ bytes }) => bytes > 0);
}
