/** Codes drawn as pictures: red is a 1, white a 0, as in the paper's figure. */
import { h } from "./dom.js";

/** Bit i of a packed code, first bit highest. */
export const bit = (code, i) => (code[i >> 3] >> (7 - (i & 7))) & 1;

/** The page's colours, as they are now: light or dark. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  return Object.fromEntries(
    ["one", "zero", "picture-zero", "ink", "line", "surface"].map((name) => [
      name,
      style.getPropertyValue(`--${name}`).trim(),
    ]),
  );
}

/** Run `draw` now, and again when the colours or the element's size change. */
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

/** Give a canvas as many pixels as the screen has for it; returns its context, in CSS pixels. */
export function sharp(canvas, height = canvas.clientHeight) {
  const ratio = devicePixelRatio || 1;
  const width = canvas.clientWidth;
  canvas.width = Math.max(1, Math.round(width * ratio));
  canvas.height = Math.max(1, Math.round(height * ratio));
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  return { context, width, height };
}

/** A code as one line of cells. It says nothing a screen reader needs: the share beside it does. */
export function strip(code, nBits) {
  // One pixel a bit, scaled by the style sheet: cheap, and always as wide as its column.
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
