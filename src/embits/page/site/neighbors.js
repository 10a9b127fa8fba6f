/** A query and its closest words, each with its bits and its similarity. */
import { strip } from "./bits.js";
import { amount, h, link, wordText } from "./dom.js";

/** The table; the query's own bits are on top, aligned with the bits of the others. */
export function neighborTable({ caption, queryLabel, code, neighbors, nBits, metric }) {
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
        h("td", { class: "bits" }, code ? strip(code, nBits) : null),
        h(
          "th",
          { scope: "col", class: "share" },
          metric === "decoded" ? "estimated cosine" : "bits that agree",
        ),
      ),
    ),
    h("tbody", {}, ...neighbors.map((each) => row(each, nBits, metric))),
  );
}

function row({ word, similarity, code }, nBits, metric) {
  const bar = h("span", { class: "bar", "aria-hidden": "true" });
  const chance = metric === "decoded" ? 0 : 0.5; // where the bar begins
  bar.style.inlineSize = `${(100 * Math.min(Math.max(similarity - chance, 0), 1)) / (1 - chance)}%`;
  return h(
    "tr",
    {},
    h("th", { scope: "row", class: "name" }, h("a", { href: link({ word, metric }) }, wordText(word))),
    h("td", { class: "bits" }, strip(code, nBits)),
    h(
      "td",
      { class: "share" },
      h("span", { class: "number" }, amount(similarity, metric)),
      h("span", { class: "track", "aria-hidden": "true" }, bar),
    ),
  );
}

const NOT_HERE = {
  word: "is not in the vocabulary.",
  text: "is not a text of this file.",
  id: "is not an id of this file.",
  row: "is not a row of this file.",
};

/**
 * The message for an unknown word, with links to others; or for a question that has no answer. It
 * is a quiet hint while the visitor is typing.
 */
export function problem({ word, near, message, instead, typing }, linkTo, { noun }) {
  const kind = typing ? { class: "hint", role: "status" } : { class: "problem", role: "alert" };
  const say = (...parts) => h("div", kind, ...parts);
  if (word === undefined)
    return say(`${message[0].toUpperCase()}${message.slice(1)}.`, instead ? " " : "", instead ?? "");
  const links = near.map((each) => h("a", { href: linkTo(each) }, wordText(each)));
  const parts = [wordText(word.trim() || word), ` ${NOT_HERE[noun]}`];
  if (!links.length) return say(...parts);
  if (noun === "text")
    return say(...parts, " Texts that contain it:", h("ul", {}, ...links.map((each) => h("li", {}, each))));
  return say(...parts, ...links.flatMap((each, i) => [i ? ", " : " Did you mean ", each]), "?");
}
