/** The choice of the metric, with the names of Python's `most_similar` and of the command line. */
import { h } from "./dom.js";

const METRICS = {
  hamming: "the share of equal bits",
  decoded: "the estimated cosine of the vectors rebuilt from the codes",
};

/** Two radio buttons; hidden if the codes of the file cannot be decoded. */
export function metricChoice({ facts, onMetric }) {
  const meaning = h("span", { class: "small" });
  const inputs = Object.keys(METRICS).map((value) =>
    h("input", { type: "radio", name: "metric", value, change: () => onMetric(value) }),
  );
  const labels = inputs.map((input) => h("label", {}, input, h("span", {}, input.value)));
  return {
    element: h(
      "fieldset",
      { class: "metric", hidden: !facts().decodes },
      h("legend", {}, "Metric"),
      h("span", { class: "choice" }, ...labels),
      meaning,
    ),
    set metric(metric = "hamming") {
      for (const input of inputs) input.checked = input.value === metric;
      meaning.textContent = METRICS[metric] ?? "";
    },
  };
}
