/** The closest words, updated while typing. */
import { combobox } from "../combobox.js";
import { h, link, megabytes, time, wordText } from "../dom.js";
import { neighborTable, unknownWord } from "../neighbors.js";

const FIRST = 10;
const MORE = 50;

export function closestView({ ask, go, say, facts, latest }) {
  const answer = h("div", { class: "answer" });
  const field = combobox({
    label: "Closest words to",
    large: true,
    suggest: (prefix, most) => ask("suggest", { prefix, most }),
    onWord: (word, committed) => go({ word }, { committed }),
  });

  async function update({ word, k }) {
    field.word = word;
    const most = Number(k) === MORE ? MORE : FIRST;
    const found = await latest(ask("closest", { word, k: most }));
    if (found.error) return answer.replaceChildren(unknownWord(found.error, (each) => link({ word: each })));
    const table = neighborTable({
      caption: `The ${found.neighbors.length} words closest to ${found.word}`,
      queryLabel: wordText(found.word),
      code: found.code,
      neighbors: found.neighbors,
      nBits: facts().nBits,
    });
    const more =
      most === FIRST && facts().words > FIRST + 1
        ? h("a", { class: "more", href: link({ word: found.word, k: MORE }) }, `Show ${MORE}`)
        : null;
    answer.replaceChildren(table, h("div", { class: "after" }, more));
    const codes = megabytes(facts().codeBytes);
    say(
      `${found.neighbors.length} closest to `,
      wordText(found.word),
      `: ${time(found.ms)}, ${codes} of bits, ${facts().kernel}`,
    );
  }

  return {
    title: ({ word }) => word,
    element: h(
      "section",
      { "aria-label": "Closest words" },
      h("h1", { class: "visually-hidden" }, "Closest words"),
      field.element,
      answer,
    ),
    update,
  };
}
