/** A query and its closest words, each with its bits and the share of equal bits. */
import { strip } from "./bits.js";
import { h, link, percent, wordText } from "./dom.js";

/** The table; the query's own bits are on top, aligned with the bits of the others. */
export function neighborTable({ caption, queryLabel, code, neighbors, nBits }) {
  return h(
    "table",
    { class: "neighbors" },
    h("caption", { class: "visually-hidden" }, caption),
    h(
      "thead",
      {},
      h(
        "tr",
        { class: "query" },
        h("th", { scope: "col", class: "name" }, queryLabel),
        h("td", { class: "bits" }, strip(code, nBits)),
        h("th", { scope: "col", class: "share" }, "bits that agree"),
      ),
    ),
    h("tbody", {}, ...neighbors.map((each) => row(each, nBits))),
  );
}

function row({ word, similarity, code }, nBits) {
  const bar = h("span", { class: "bar", "aria-hidden": "true" });
  bar.style.inlineSize = `${100 * similarity}%`;
  return h(
    "tr",
    {},
    h("th", { scope: "row", class: "name" }, h("a", { href: link({ word }) }, wordText(word))),
    h("td", { class: "bits" }, strip(code, nBits)),
    h(
      "td",
      { class: "share" },
      h("span", { class: "number" }, percent(similarity)),
      h("span", { class: "track", "aria-hidden": "true" }, bar),
    ),
  );
}

/** The message for an unknown word. */
export function unknownWord({ word, near }, linkTo) {
  const hints = near.flatMap((each, i) => [
    i ? ", " : " Did you mean ",
    h("a", { href: linkTo(each) }, wordText(each)),
  ]);
  return h(
    "p",
    { class: "problem", role: "alert" },
    wordText(word),
    " is not in the vocabulary.",
    ...hints,
    hints.length ? "?" : "",
  );
}
