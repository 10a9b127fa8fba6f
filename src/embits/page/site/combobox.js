/**
 * A text field that suggests words of the vocabulary: the combobox of the ARIA practices, with a
 * list, arrow keys, Enter, Escape and pointer.
 */
import { h, wordText } from "./dom.js";

const MOST = 8;
let made = 0;

/**
 * @param {object} options
 * @param {string} options.label the label of the field
 * @param {string} options.placeholder what the empty field says
 * @param {(question: string, details: object) => Promise<string[]>} options.ask asks the worker
 * @param {(word: string, committed: boolean) => void} options.onWord called while typing, and with
 *   `committed` when a word is chosen
 */
export function combobox({ label, placeholder, ask, onWord, large = false }) {
  const id = `combobox-${++made}`;
  const list = h("ul", {
    id: `${id}-list`,
    role: "listbox",
    "aria-label": `Words for: ${label}`,
    class: "suggestions",
    hidden: true,
  });
  const input = h("input", {
    id,
    type: "text",
    role: "combobox",
    placeholder,
    dir: "auto",
    "aria-autocomplete": "list",
    "aria-expanded": "false",
    "aria-controls": `${id}-list`,
    autocomplete: "off",
    autocapitalize: "none",
    autocorrect: "off",
    spellcheck: "false",
    enterkeyhint: "search",
  });
  const clear = h(
    "button",
    {
      type: "button",
      class: "clear",
      tabindex: "-1", // as that of a search field: keys have other ways
      "aria-label": `Clear: ${label}`,
      pointerdown: (event) => event.preventDefault(),
      click: () => {
        put("");
        close();
        input.focus();
      },
    },
    "×",
  );
  const element = h(
    "div",
    { class: large ? "field large" : "field" },
    h("label", { for: id }, label),
    h("div", { class: "box" }, input, clear),
    list,
  );
  let offered = [];
  let active = -1;
  let asked = 0;

  // A field drops the line breaks of a text: what it shows stands for the text itself.
  let kept = { word: "", text: "" };
  const put = (word) => {
    input.value = word;
    kept = { word, text: input.value };
  };
  const current = () => (input.value === kept.text ? kept.word : input.value);

  const options = () => [...list.children];
  const close = () => {
    list.hidden = true;
    active = -1;
    asked++; // a reply that is still pending is ignored
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  };
  const choose = (word) => {
    put(word);
    close();
    onWord(word, true);
  };
  const mark = (index) => {
    active = index;
    options().forEach((option, i) => option.setAttribute("aria-selected", String(i === active)));
    options()[active]?.scrollIntoView({ block: "nearest" });
    if (active < 0) input.removeAttribute("aria-activedescendant");
    else input.setAttribute("aria-activedescendant", `${id}-${active}`);
  };
  const show = (words) => {
    const marked = offered[active]; // stays marked if it is still in the list
    offered = words;
    const option = (word, i) =>
      h(
        "li",
        {
          id: `${id}-${i}`,
          role: "option",
          "aria-selected": "false",
          pointerdown: (event) => event.preventDefault(),
          click: () => choose(word),
        },
        wordText(word),
      );
    list.replaceChildren(...words.map(option));
    list.hidden = words.length === 0;
    input.setAttribute("aria-expanded", String(!list.hidden));
    mark(words.indexOf(marked));
  };
  const refresh = async () => {
    const mine = ++asked;
    const words = input.value === "" ? [] : await ask("suggest", { prefix: current(), most: MOST });
    if (mine === asked && document.activeElement === input) show(words);
  };

  input.addEventListener("input", () => {
    if (input.value !== "") onWord(current(), false);
    refresh();
  });
  input.addEventListener("focus", () => input.select());
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return; // an input method is composing the word
    const open = !list.hidden;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!open) refresh();
      else {
        const step = event.key === "ArrowDown" ? 1 : -1;
        const places = options().length + 1; // one of them is the field itself
        mark(((active + 1 + step + places) % places) - 1);
      }
    } else if (event.key === "Enter" && input.value !== "") {
      choose(offered[active] ?? current());
    } else if (event.key === "Escape" && open) {
      event.preventDefault();
      close();
    }
  });

  return {
    element,
    get word() {
      return current();
    },
    set word(word) {
      if (current() === word) return;
      put(word);
      close();
    },
    focus: () => input.focus(),
  };
}
