/** The texts that answer a question, updated while typing. */
import { count, h, link, section, time, wordText } from "../dom.js";
import { problem } from "../neighbors.js";

const FIRST = 10;
const MORE = 50;

export function askView({ ask, go, say, facts, latest }) {
  const answer = h("div", { class: "answer" });
  let typed = "";
  const input = h("input", {
    id: "question",
    type: "search",
    dir: "auto",
    placeholder: "Type a question",
    autocomplete: "off",
    enterkeyhint: "search",
    input: () => put(false),
    change: () => put(true),
  });
  const label = h("label", { for: "question" }, `Search ${count(facts().words)} texts`);
  const field = h("div", { class: "field large" }, label, input);

  function put(committed) {
    typed = input.value;
    go({ q: typed }, { committed });
  }

  async function update({ q, k }) {
    if (q !== typed) input.value = typed = q;
    if (q.trim() === "") {
      answer.replaceChildren();
      return say();
    }
    const most = Number(k) === MORE ? MORE : FIRST;
    const found = await latest(ask("ask", { question: q, k: most }));
    if (found.error) return answer.replaceChildren(problem(found.error, null, facts()));
    if (!found.answers.length) {
      answer.replaceChildren(h("p", { class: "hint" }, "No text is similar enough."));
      return say();
    }
    const more =
      found.answers.length === FIRST && most === FIRST
        ? h("a", { class: "more", href: link({ q, k: MORE }) }, `Show ${MORE}`)
        : null;
    answer.replaceChildren(h("ol", { class: "answers" }, ...found.answers.map(item)), h("div", { class: "after" }, more));
    say(`${found.answers.length} texts: ${time(found.ms)}, ${facts().kernel}`);
  }

  return { title: ({ q }) => q || "Search", element: section("Search", field, answer), update };
}

function item({ id, title, text, url, score }) {
  const name = wordText(title || id);
  const href = safe(url);
  return h(
    "li",
    {},
    h("h2", {}, href ? h("a", { href }, name) : name),
    h("p", { dir: "auto" }, text),
    h("p", { class: "small" }, `${title ? `${id} · ` : ""}${score.toFixed(2).replace("-", "−")}`),
  );
}

/** A link of a text, if it leads to a page: others, such as javascript:, are not shown as links. */
function safe(url) {
  try {
    return url && ["http:", "https:"].includes(new URL(url, location.href).protocol) ? url : null;
  } catch {
    return null;
  }
}
