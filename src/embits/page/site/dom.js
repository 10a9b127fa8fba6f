/** Creates elements. Words of a file only become text nodes: nothing in them can run. */

/** An element with attributes (functions become listeners) and children (strings become text). */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null));
  return element;
}

/** The section of a view, with a heading for screen readers. */
export const section = (title, ...children) =>
  h("section", { "aria-label": title }, h("h1", { class: "visually-hidden" }, title), ...children);

export const byId = (id) => document.getElementById(id);

/** A word of the file, with its own text direction, isolated from the surrounding text. */
export function wordText(word, attributes = {}) {
  const blank = word.trim() === "";
  return h(
    "bdi",
    { dir: "auto", ...attributes, class: `word ${attributes.class ?? ""}` },
    blank ? `“${word}”` : word,
  );
}

/** What an empty field says. */
export const typeA = (noun) => `Type ${noun === "id" ? "an" : "a"} ${noun}`;

/** The beginning of a text, for places with room for one line. */
export function beginning(text, most = 28) {
  const letters = [...text.slice(0, 4 * most)];
  return letters.length > most ? letters.slice(0, most - 1).join("").trimEnd() + "…" : text;
}

/** A link to a state of the page: `link({ word: "queen" })` is "#word=queen". */
export const link = (state) =>
  "#" + new URLSearchParams(Object.entries(state).filter(([, value]) => value !== undefined));

/** A similarity as its metric has it: the share of equal bits, or a cosine. */
export const amount = (similarity, metric) =>
  metric === "decoded" ? similarity.toFixed(3).replace("-", "−") : percent(similarity);

export const percent = (share, digits = 1) => `${(100 * share).toFixed(digits)} %`;
export const count = (number) => number.toLocaleString("en");

/** A readable size in units of 1000, as on the command line. */
export function megabytes(size) {
  for (const unit of ["B", "kB", "MB"]) {
    if (size < 1000) return unit === "B" ? `${size} B` : `${size.toFixed(1)} ${unit}`;
    size /= 1000;
  }
  return `${size.toFixed(1)} GB`;
}

/** A readable time. */
export const time = (ms) =>
  ms < 10 ? `${ms.toFixed(1)} ms` : ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(1)} s`;
