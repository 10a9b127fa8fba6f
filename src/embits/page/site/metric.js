/** The choice of the metric: plain words for visitors; links have the names that Python has. */
import { h } from "./dom.js";

const METRICS = {
  hamming: { label: "bits", meaning: "the share of bits that agree; 50 % is chance" },
  decoded: { label: "rebuilt vectors", meaning: "estimated cosine: slower, and usually closer in meaning" },
};

/** Two radio buttons; hidden if the codes of the file cannot be decoded. */
export function metricChoice({ facts, onMetric }) {
  const meaning = h("span", { class: "small" });
  const inputs = Object.keys(METRICS).map((value) =>
    h("input", { type: "radio", name: "metric", value, change: () => onMetric(value) }),
  );
  const labels = inputs.map((input) => h("label", {}, input, h("span", {}, METRICS[input.value].label)));
  return {
    element: h(
      "fieldset",
      { class: "metric", hidden: !facts().decodes },
      h("legend", {}, "Compare by"),
      h("span", { class: "choice" }, ...labels),
      meaning,
    ),
    set metric(metric = "hamming") {
      for (const input of inputs) input.checked = input.value === metric;
      meaning.textContent = METRICS[metric]?.meaning ?? "";
    },
  };
}
