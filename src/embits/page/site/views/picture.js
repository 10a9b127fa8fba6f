/** The paper's figure: the bits of the 50 closest words above, of the 50 furthest below. */
import { colours, drawn, paintRows, sharp } from "../bits.js";
import { combobox } from "../combobox.js";
import { beginning, count, h, link, percent, section, time, typeA, wordText } from "../dom.js";
import { problem } from "../neighbors.js";

const EACH = 50;
const GAP = 3; // empty rows between the halves
const MAX_ZOOM = 24;
const LABEL = 18; // characters of a word beside its row

export function pictureView({ ask, go, say, facts, latest }) {
  const answer = h("div", { class: "answer" });
  const field = combobox({
    label: "The bits around",
    placeholder: typeA(facts().noun),
    large: true,
    ask,
    onWord: (word, committed) => go({ picture: word, metric: chosen }, { committed }),
  });

  let chosen;

  async function update({ picture: word, metric }) {
    field.word = word;
    chosen = metric;
    const found = await latest(ask("picture", { word, most: EACH }));
    if (found.error)
      return answer.replaceChildren(problem(found.error, (each) => link({ picture: each, metric }), facts()));
    answer.replaceChildren(...figure(found, facts()));
    say(
      `${found.closest.length} closest and ${found.furthest.length} furthest of `,
      wordText(beginning(found.word)),
      `: ${time(found.ms)}`,
    );
  }

  return {
    title: ({ picture }) => `${picture} in bits`,
    element: section("Bit picture", field.element, answer),
    update,
  };
}

function figure({ word, closest, furthest }, { nBits, noun }) {
  const rows = [...closest, ...Array(GAP).fill(null), ...furthest];
  const canvas = h("canvas", {
    class: "picture",
    role: "img",
    tabindex: "0",
    "aria-label": `Bits of the ${closest.length} closest ${noun}s to ${word} above and the ${furthest.length} furthest below. Plus and minus zoom, arrows move.`,
  });
  const readout = h(
    "p",
    { class: "readout small" },
    `Red is a 1, white a 0. Stripes are bits that close ${noun}s share.`,
  );
  const map = zoomable(canvas, rows, nBits, (...parts) => readout.replaceChildren(...parts));
  const button = (label, sign, act) => h("button", { type: "button", "aria-label": label, click: act }, sign);
  const tools = h(
    "div",
    { class: "tools", role: "group", "aria-label": "Zoom" },
    button("Zoom out", "−", () => map.zoom(1 / 1.6)),
    button("Zoom in", "+", () => map.zoom(1.6)),
    button("Fit the whole picture", "Fit", map.fit),
  );
  return [
    h(
      "div",
      { class: "frame" },
      h("p", { class: "edge" }, "closest"),
      canvas,
      h("p", { class: "edge" }, "furthest"),
    ),
    h("div", { class: "under" }, readout, tools),
    h(
      "details",
      {},
      h("summary", {}, `The ${count(closest.length + furthest.length)} ${noun}s`),
      h("div", { class: "two-lists" }, wordList("Closest", closest), wordList("Furthest", furthest)),
    ),
  ];
}

function wordList(title, words) {
  return h(
    "div",
    {},
    h("h2", {}, title),
    h(
      "ol",
      {},
      ...words.map(({ word, similarity }) =>
        h(
          "li",
          {},
          h("a", { href: link({ picture: word }) }, wordText(word)),
          h("span", { class: "number" }, percent(similarity)),
        ),
      ),
    ),
  );
}

/** Zoom and move a picture with wheel, pinch, drag, double click and keys; one pixel per bit. */
function zoomable(canvas, rows, nBits, readOut) {
  const pixels = document.createElement("canvas");
  const view = { scale: 1, x: 0, y: 0 }; // x and y in shares of the picture
  const held = new Map();

  const draw = () => {
    const palette = colours();
    // Painted again each time: the colour scheme may have changed.
    paintRows(
      pixels,
      rows.map((row) => row?.code ?? null),
      nBits,
      { one: palette.one, zero: palette["picture-zero"] },
    );
    const { context, width, height } = sharp(canvas);
    const room = 1 - 1 / view.scale;
    view.x = Math.min(Math.max(view.x, 0), room);
    view.y = Math.min(Math.max(view.y, 0), room);
    context.imageSmoothingEnabled = view.scale * (width / nBits) < 1;
    context.drawImage(
      pixels,
      -view.x * width * view.scale,
      -view.y * height * view.scale,
      width * view.scale,
      height * view.scale,
    );
    const lineHeight = (height * view.scale) / rows.length;
    if (lineHeight < 13) return;
    context.font = `${Math.min(15, lineHeight * 0.72)}px ${getComputedStyle(canvas).fontFamily}`;
    context.textBaseline = "middle";
    const labels = rows.flatMap((row, i) => {
      const y = (i + 0.5) * lineHeight - view.y * height * view.scale;
      const seen = row && y > -lineHeight && y < height + lineHeight;
      return seen ? [{ y, text: beginning(row.word, LABEL) }] : [];
    });
    const column = Math.max(0, ...labels.map(({ text }) => context.measureText(text).width));
    context.fillStyle = palette.surface;
    context.fillRect(0, 0, column + 12, height);
    context.fillStyle = palette.ink;
    for (const { text, y } of labels) context.fillText(text, 0, y);
  };
  const again = drawn(canvas, draw);

  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return { x: (event.clientX - box.left) / box.width, y: (event.clientY - box.top) / box.height };
  };
  const zoom = (factor, at = { x: 0.5, y: 0.5 }) => {
    const scale = Math.min(Math.max(view.scale * factor, 1), MAX_ZOOM);
    view.x += at.x / view.scale - at.x / scale;
    view.y += at.y / view.scale - at.y / scale;
    view.scale = scale;
    canvas.style.touchAction = scale > 1 ? "none" : "pan-y"; // one finger scrolls the page, or the picture
    again();
  };
  const move = (x, y) => {
    view.x += x / view.scale;
    view.y += y / view.scale;
    again();
  };
  const fit = () => {
    Object.assign(view, { scale: 1, x: 0, y: 0 });
    canvas.style.touchAction = "pan-y";
    again();
  };
  const spread = () => {
    const [a, b] = [...held.values()];
    return Math.hypot(a.x - b.x, a.y - b.y);
  };

  canvas.addEventListener(
    "wheel",
    (event) => {
      // The wheel scrolls the page until the picture is zoomed or focused.
      if (!event.ctrlKey && view.scale === 1 && document.activeElement !== canvas) return;
      event.preventDefault();
      zoom(Math.exp(-event.deltaY / 300), place(event));
    },
    { passive: false },
  );
  canvas.addEventListener("dblclick", (event) => zoom(2, place(event)));
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    held.set(event.pointerId, place(event));
  });
  canvas.addEventListener("pointermove", (event) => {
    const now = place(event);
    const before = held.get(event.pointerId);
    if (before && held.size === 1) move(before.x - now.x, before.y - now.y);
    const wide = held.size === 2 ? spread() : 0;
    if (before) held.set(event.pointerId, now);
    if (wide > 0) zoom(spread() / wide, now);
    const row = rows[Math.floor((view.y + now.y / view.scale) * rows.length)];
    const i = Math.floor((view.x + now.x / view.scale) * nBits);
    if (row && i >= 0 && i < nBits)
      readOut(
        wordText(row.word),
        `: bit ${i} is ${(row.code[i >> 3] >> (7 - (i & 7))) & 1}, ${percent(row.similarity)} agree`,
      );
  });
  for (const end of ["pointerup", "pointercancel"])
    canvas.addEventListener(end, (event) => held.delete(event.pointerId));
  canvas.addEventListener("keydown", (event) => {
    const act = {
      "+": () => zoom(1.6),
      "=": () => zoom(1.6),
      "-": () => zoom(1 / 1.6),
      0: fit,
      ArrowLeft: () => move(-0.1, 0),
      ArrowRight: () => move(0.1, 0),
      ArrowUp: () => move(0, -0.1),
      ArrowDown: () => move(0, 0.1),
    }[event.key];
    if (!act || event.ctrlKey || event.metaKey || (event.key.startsWith("Arrow") && view.scale === 1)) return;
    event.preventDefault();
    act();
  });
  return { zoom, fit };
}
