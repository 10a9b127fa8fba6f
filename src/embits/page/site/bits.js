/** Draws codes: red is a 1, white a 0, as in the paper's figure. */
import { h } from "./dom.js";

/** Bit i of a packed code, first bit highest. */
export const bit = (code, i) => (code[i >> 3] >> (7 - (i & 7))) & 1;

/** The current colours of the page, light or dark. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(
    ["one", "zero", "picture-zero", "ink", "line", "surface"].map((name) => [
      name,
      style.getPropertyValue(`--${name}`).trim(),
    ]),
  );
}

/** Call `draw` now, and again when the colours or the element's size change. */
export function drawn(canvas, draw) {
  let frame = 0;
  const again = () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(() => canvas.isConnected && draw());
  };
  const scheme = matchMedia("(prefers-color-scheme: dark)");
  scheme.addEventListener("change", again);
  new ResizeObserver(again).observe(canvas);
  again();
  return again;
}

/** Match a canvas to the pixels of the screen; returns its context, in CSS pixels. */
export function sharp(canvas, height = canvas.clientHeight) {
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return { context, width, height };
}

/** A code as one line of cells, hidden from screen readers: the percentage next to it is read. */
export function strip(code, nBits) {
  // One pixel per bit; the style sheet scales it to the width of its column.
  const canvas = h("canvas", { class: "strip", width: nBits, height: 1, "aria-hidden": "true" });
  const draw = () => paintRows(canvas, [code], nBits, colours());
  draw();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => canvas.isConnected && draw());
  return canvas;
}

/** Paint codes as rows of pixels; null leaves a row empty. */
export function paintRows(canvas, codes, nBits, { one, zero }) {
  canvas.width = nBits;
  canvas.height = codes.length;
  const context = canvas.getContext("2d");
  codes.forEach((code, y) => {
    if (!code) return;
    context.fillStyle = zero;
    context.fillRect(0, y, nBits, 1);
    context.fillStyle = one;
    for (let x = 0; x < nBits; x++) if (bit(code, x)) context.fillRect(x, y, 1, 1);
  });
}
