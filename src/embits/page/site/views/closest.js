/** The closest words, updated while typing. */
import { combobox } from "../combobox.js";
import { beginning, h, link, megabytes, section, time, typeA, wordText } from "../dom.js";
import { metricChoice } from "../metric.js";
import { neighborTable, problem } from "../neighbors.js";

const FIRST = 10;
const MORE = 50;

export function closestView({ ask, go, say, facts, latest }) {
  const answer = h("div", { class: "answer" });
  const { noun } = facts();
  let state = {};
  const field = combobox({
    label: `Closest ${noun}s to`,
    placeholder: typeA(noun),
    large: true,
    ask,
    onWord: (word, committed) => go({ word, metric: state.metric }, { committed }),
  });

  const choice = metricChoice({
    facts,
    onMetric: (metric) => go({ ...state, metric }, { committed: true }),
  });

  async function update({ word, k, metric }) {
    state = { word, k, metric };
    field.word = word;
    choice.metric = metric;
    const most = Number(k) === MORE ? MORE : FIRST;
    const found = await latest(ask("closest", { word, k: most, metric }));
    if (found.error) {
      const instead = h("a", { href: link({ word, k }) }, "Search by bits");
      return answer.replaceChildren(
        problem({ ...found.error, instead }, (each) => link({ word: each, metric }), facts()),
      );
    }
    const table = neighborTable({
      caption: `The ${found.neighbors.length} ${noun}s closest to ${found.word}`,
      queryLabel: wordText(found.word),
      code: found.code,
      neighbors: found.neighbors,
      nBits: facts().nBits,
      metric,
    });
    const more =
      most === FIRST && facts().words > FIRST + 1
        ? h("a", { class: "more", href: link({ word: found.word, k: MORE, metric }) }, `Show ${MORE}`)
        : null;
    answer.replaceChildren(table, h("div", { class: "after" }, more));
    const codes = megabytes(facts().codeBytes);
    say(
      `${found.neighbors.length} closest to `,
      wordText(beginning(found.word)),
      `: ${time(found.ms)}, ${codes} of bits, ${facts().kernel}`,
    );
  }

  return {
    title: ({ word }) => word,
    element: section(`Closest ${noun}s`, field.element, choice.element, answer),
    update,
  };
}
