/** Two words and their bits, side by side. */
import { bit, colours, drawn, sharp } from "../bits.js";
import { combobox } from "../combobox.js";
import { amount, beginning, count, h, link, percent, section, typeA, wordText } from "../dom.js";
import { problem } from "../neighbors.js";

const LARGEST = 32; // CSS pixels of a cell

export function compareView({ ask, go, say, facts, latest }) {
  const answer = h("div", { class: "answer" });
  const field = (label) =>
    combobox({
      label,
      placeholder: typeA(facts().noun),
      ask,
      onWord: (_, committed) => go({ compare: one.word, with: other.word, metric: chosen }, { committed }),
    });
  const one = field("Compare");
  const other = field("with");
  let chosen;

  async function update({ compare: a, with: b, metric }) {
    chosen = metric;
    one.word = a;
    other.word = b;
    const found = await latest(ask("compare", { a, b }));
    if (found.error) {
      const instead = (each) =>
        link({ compare: a === found.error.word ? each : a, with: b === found.error.word ? each : b, metric });
      return answer.replaceChildren(problem(found.error, instead, facts()));
    }
    const { nBits } = facts();
    const counts = tally(found.codes, nBits);
    const agree = counts.both + counts.neither;
    const canvas = h("canvas", {
      class: "grid",
      role: "img",
      "aria-label": `${agree} of ${nBits} bits agree`,
    });
    answer.replaceChildren(
      ...texts(found),
      h(
        "div",
        { class: "verdicts" },
        verdict(percent(found.similarity), `${count(agree)} of ${count(nBits)} bits agree`),
        found.cosine === null
          ? null
          : verdict(amount(found.cosine, "decoded"), "cosine of the vectors rebuilt from the bits"),
      ),
      canvas,
      legend(found, counts),
    );
    drawn(canvas, () => paint(canvas, found.codes, nBits));
    const [first, second] = [found.a, found.b].map((word) => wordText(beginning(word)));
    say("“", first, "” and “", second, `”: ${agree} of ${nBits} bits agree`);
  }

  const question = h("div", { class: "sentence" }, one.element, other.element);
  return {
    title: (state) => `${state.compare} – ${state.with}`,
    element: section(`Compare two ${facts().noun}s`, question, answer),
    update,
  };
}

const verdict = (number, meaning) =>
  h("p", { class: "verdict" }, h("strong", {}, number), ` ${meaning}`);

/** Both texts, whole, where the fields are too short for them. */
function texts({ a, b }) {
  if (beginning(a) === a && beginning(b) === b) return [];
  return [h("div", { class: "texts" }, h("p", {}, wordText(a)), h("p", {}, wordText(b)))];
}

function tally([a, b], nBits) {
  const counts = { both: 0, neither: 0, first: 0, second: 0 };
  for (let i = 0; i < nBits; i++) counts[["neither", "second", "first", "both"][2 * bit(a, i) + bit(b, i)]]++;
  return counts;
}

function legend({ a, b }, counts) {
  const item = (kind, number, ...words) =>
    h(
      "li",
      {},
      h("span", { class: `cell ${kind}`, "aria-hidden": "true" }),
      h("span", {}, h("span", { class: "number" }, count(number)), " have ", ...words),
    );
  return h(
    "ul",
    { class: "legend" },
    item("both", counts.both, "a 1 in both"),
    item("neither", counts.neither, "a 0 in both"),
    item("first", counts.first, "a 1 in ", wordText(beginning(a)), " only"),
    item("second", counts.second, "a 1 in ", wordText(beginning(b)), " only"),
  );
}

/** One cell per bit: full if both are 1, empty if both are 0, half if one is 1. */
function paint(canvas, [a, b], nBits) {
  // About four times as wide as high: 32 × 8 cells for 256 bits, or 16 × 16 on a phone.
  let across = 2 ** Math.ceil(Math.log2(Math.sqrt(4 * nBits)));
  const smallest = nBits > 256 ? 8 : 16;
  while (across > 16 && canvas.clientWidth / across < smallest) across /= 2;
  const size = Math.min(canvas.clientWidth / across, LARGEST);
  const rows = Math.ceil(nBits / across);
  canvas.style.blockSize = `${rows * size}px`;
  const { context } = sharp(canvas, rows * size);
  const { one, zero, line } = colours();
  const gap = Math.max(1, size / 9);
  for (let i = 0; i < nBits; i++) {
    const [x, y, side] = [(i % across) * size, Math.floor(i / across) * size, size - gap];
    const [inA, inB] = [bit(a, i), bit(b, i)];
    context.fillStyle = inA && inB ? one : zero;
    context.fillRect(x, y, side, side);
    if (inA && inB) continue;
    context.strokeStyle = line;
    context.strokeRect(x + 0.5, y + 0.5, side - 1, side - 1);
    if (inA === inB) continue;
    context.fillStyle = one;
    context.beginPath();
    context.moveTo(inA ? x : x + side, inA ? y : y + side);
    context.lineTo(x + side, y);
    context.lineTo(x, y + side);
    context.fill();
  }
}
