/** a is to b as c is to what? */
import { combobox } from "../combobox.js";
import { beginning, h, link, section, time, typeA, wordText } from "../dom.js";
import { metricChoice } from "../metric.js";
import { neighborTable, problem } from "../neighbors.js";

export function analogyView({ ask, go, say, facts, latest }) {
  const answer = h("div", { class: "answer" });
  const toWhat = h("p", { class: "to-what" }, "…");
  let chosen;
  const words = () => Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.word]));
  const field = (label) =>
    combobox({
      label,
      placeholder: typeA(facts().noun),
      ask,
      onWord: (_, committed) => go({ ...words(), metric: chosen }, { committed }),
    });
  const fields = { a: field(`This ${facts().noun}`), b: field("is to this one"), c: field("as this one") };
  const choice = metricChoice({
    facts,
    onMetric: (metric) => go({ ...words(), metric }, { committed: true }),
  });

  async function update({ a, b, c, metric }) {
    chosen = choice.metric = metric;
    Object.assign(fields.a, { word: a });
    Object.assign(fields.b, { word: b });
    Object.assign(fields.c, { word: c });
    const found = await latest(ask("analogy", { a, b, c, k: 10, metric }));
    toWhat.replaceChildren("…");
    if (found.error) {
      const instead = h("a", { href: link({ a, b, c }) }, "Search by bits");
      const corrected = (each) =>
        link(
          Object.fromEntries(
            Object.entries({ a, b, c, metric }).map(([name, word]) => [
              name,
              word === found.error.word ? each : word,
            ]),
          ),
        );
      return answer.replaceChildren(problem({ ...found.error, instead }, corrected, facts()));
    }
    const [first, minus, plus] = metric === "decoded" ? ["", " − ", " + "] : ["(", " and not ", ") or "];
    const formula = h(
      "span",
      { class: "formula" },
      first,
      wordText(found.b),
      minus,
      wordText(found.a),
      plus,
      wordText(found.c),
    );
    answer.replaceChildren(
      neighborTable({
        caption: `${found.a} is to ${found.b} as ${found.c} is to these`,
        queryLabel: formula,
        code: found.code,
        neighbors: found.neighbors,
        nBits: facts().nBits,
        metric,
      }),
    );
    const best = found.neighbors[0]?.word ?? "nothing";
    toWhat.replaceChildren(wordText(best));
    say(wordText(beginning(found.c)), " is to ", wordText(beginning(best)), `: ${time(found.ms)}`);
  }

  const question = h(
    "div",
    { class: "sentence" },
    fields.a.element,
    fields.b.element,
    fields.c.element,
    h("div", { class: "field" }, h("span", { class: "label" }, "is to"), toWhat),
  );
  return {
    title: ({ a, b, c }) => `${a} : ${b} = ${c} : ?`,
    element: section("Analogy", question, choice.element, answer),
    update,
  };
}
