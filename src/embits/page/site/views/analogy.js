/** a is to b as c is to what? */
import { combobox } from "../combobox.js";
import { h, link, time, wordText } from "../dom.js";
import { neighborTable, unknownWord } from "../neighbors.js";

export function analogyView({ ask, go, say, facts, latest }) {
  const answer = h("div", { class: "answer" });
  const state = () => Object.fromEntries(Object.entries(fields).map(([name, field]) => [name, field.word]));
  const field = (label) =>
    combobox({
      label,
      suggest: (prefix, most) => ask("suggest", { prefix, most }),
      onWord: (_, committed) => go(state(), { committed }),
    });
  const fields = { a: field("This word"), b: field("is to this one"), c: field("as this one") };

  async function update({ a, b, c }) {
    Object.assign(fields.a, { word: a });
    Object.assign(fields.b, { word: b });
    Object.assign(fields.c, { word: c });
    const found = await latest(ask("analogy", { a, b, c, k: 10 }));
    if (found.error) {
      const instead = (each) =>
        link(
          Object.fromEntries(
            Object.entries({ a, b, c }).map(([name, word]) => [
              name,
              word === found.error.word ? each : word,
            ]),
          ),
        );
      return answer.replaceChildren(unknownWord(found.error, instead));
    }
    const formula = h(
      "span",
      { class: "formula" },
      "(",
      wordText(found.b),
      " and not ",
      wordText(found.a),
      ") or ",
      wordText(found.c),
    );
    answer.replaceChildren(
      neighborTable({
        caption: `${found.a} is to ${found.b} as ${found.c} is to these words`,
        queryLabel: formula,
        code: found.code,
        neighbors: found.neighbors,
        nBits: facts().nBits,
      }),
    );
    const best = found.neighbors[0]?.word ?? "nothing";
    say(wordText(found.c), " is to ", wordText(best), `: ${time(found.ms)}`);
  }

  const question = h(
    "div",
    { class: "sentence" },
    fields.a.element,
    fields.b.element,
    fields.c.element,
    h("p", { class: "to-what" }, "is to …"),
  );
  return {
    title: ({ a, b, c }) => `${a} : ${b} = ${c} : ?`,
    element: h(
      "section",
      { "aria-label": "Analogy" },
      h("h1", { class: "visually-hidden" }, "Analogy"),
      question,
      answer,
    ),
    update,
  };
}
