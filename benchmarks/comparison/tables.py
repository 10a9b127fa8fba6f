"""Measured parts merged into one file, and a page of tables."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from provenance import provenance

NAMES = {
    "minilm": "MiniLM sentences",
    "mpnet": "MPNet sentences",
    "gnews": "GoogleNews words",
}
MAX_NAMED = 9  # rows of a machine that are named one by one
METHOD = (
    "Fitted on half of the rows, asked with 1,000 rows of the other half; U is recall@10 among the "
    "rows of the other half alone. Rows of embits are means of the seeds they name, others have "
    "one. Fits and encoding are in seconds and microseconds of processor time, on one or two "
    "threads. Fits of several methods shared a machine, so their times are rough.",
    "FAISS RQ, LSQ and PRQ score by the inner product with the decompressed row, and, as "
    '"cosine", by its cosine, which needs the length of each decompressed row.',
    "Queries are timed one at a time on one thread, medians. Times of embits include encoding the "
    "query.",
    "EDEN is an implementation of this benchmark and is searched as floats, so it is not timed. "
    "usearch is searched exactly; its bytes include the smallest graph that it accepts.",
)
COLUMNS = [  # key, heading, format
    ("recall_at_10", "recall@10", ".3f"),
    ("unseen_at_10", "U", ".3f"),
    ("recall_at_40", "recall@40", ".3f"),
    ("ndcg_at_10", "nDCG@10", ".3f"),
    ("fit_s", "fit, s", ",.1f"),
    ("encode_us", "encoding, µs a row", ",.1f"),
    ("shared_bytes", "codebook, bytes", ",.0f"),
    ("query_ms", "ms a query", ".2g"),
]


def about(device: str) -> list[str]:
    """The machine, and the versions of the packages."""
    found = provenance()
    versions = [f"{name} {number}" for name, number in found["packages"].items()]
    return [
        found["processor"] if device == "cpu" else gpu_name(device),
        f"embits {found['embits']} ({found['commit']}), {', '.join(versions)}",
    ]


def gpu_name(device: str) -> str:
    import torch

    return f"{torch.cuda.get_device_name(device)}, PyTorch {torch.__version__}"


def has_results(part: Path) -> bool:
    """Whether a file is there and not that of a run that was stopped."""
    return part.exists() and part.stat().st_size > 0


def merge(parts: Path, out: Path) -> None:
    """Write comparison.json and comparison.md from the parts that have results."""
    found = [json.loads(p.read_text()) for p in sorted(parts.glob("*.json")) if has_results(p)]
    sets: dict[str, dict[str, Any]] = {}
    for part in found:
        of = {"vectors": part["vectors"], "dims": part["dims"], "rows": []}
        sets.setdefault(part["set"], of)["rows"] += part["rows"]
        if "input" in part:
            sets[part["set"]]["input"] = part["input"]
    for result in sets.values():
        result["rows"] = mean_of_seeds(result["rows"])
        result["rows"].sort(key=lambda row: (row["bytes"], row["recall_at_10"]))
    lines = [*machines(found), *METHOD]
    whole = {"about": lines, "sets": {name: sets[name] for name in ordered(sets)}}
    text = json.dumps(whole, indent=1)
    text = re.sub(r"\{[^{}]*\}", lambda row: " ".join(row[0].split()), text)  # a row a line
    (out / "comparison.json").write_text(text + "\n")
    (out / "comparison.md").write_text(page(whole))


def mean_of_seeds(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row a method, with the number of its seeds where it has several."""
    by_method: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        by_method.setdefault(row["method"], []).append(row)
    means = []
    for method, runs in by_method.items():
        mean = {"method": method}
        for key in dict.fromkeys(key for run in runs for key in run if key != "method"):
            values = [run[key] for run in runs if key in run]
            is_one = len(set(values)) == 1
            mean[key] = values[0] if is_one else round(sum(values) / len(values), 4)
        means.append(mean | ({"seeds": len(runs)} if len(runs) > 1 else {}))
    return means


def machines(found: list[dict[str, Any]]) -> list[str]:
    """Where each method was fitted, and where queries were timed."""
    fitted: dict[str, list[dict[str, Any]]] = {}
    for part in found:
        fitted.setdefault("; ".join(part["about"]), []).append(part)
    lines = [f"{where}: {', '.join(fitted_methods(parts))}" for where, parts in fitted.items()]
    timed = sorted({part["timed"] for part in found if "timed" in part})
    return [*lines, *(f"Queries: {where}" for where in timed)]


def fitted_methods(parts: list[dict[str, Any]]) -> list[str]:
    """The methods of a machine without their sizes, or each row of one that measured few."""
    rows = [(row["method"], part["set"]) for part in parts for row in part["rows"]]
    if len(rows) <= MAX_NAMED:
        return [f"{method} of {NAMES.get(of, of)}" for method, of in rows]
    size = r"( [\d.]+( bit)?)?(, (float.*|Ham.*|dec.*|cos.*))?$"
    return sorted({re.sub(size, "", method) for method, _ in rows})


def ordered(sets: dict[str, Any]) -> list[str]:
    return sorted(sets, key=lambda name: (name not in NAMES, [*NAMES, name].index(name)))


def page(whole: dict[str, Any]) -> str:
    lines = ["# Quantizers on unseen rows", "", *(f"- {line}" for line in whole["about"])]
    lines += ["", "## Recall@10", "", *summary(whole["sets"])]
    for name, result in whole["sets"].items():
        title = f"{NAMES.get(name, name)}, {result['vectors']:,} × {result['dims']}"
        lines += ["", f"## {title}", "", *table(result["rows"])]
    return "\n".join(lines) + "\n"


def summary(sets: dict[str, dict[str, Any]]) -> list[str]:
    """Recall@10 on all sets: methods of any size by their bytes, then those of bits a dimension."""
    heads = [NAMES.get(name, name) for name in sets]
    by_size: dict[tuple[float, str], dict[str, str]] = {}
    by_bits: dict[str, dict[str, str]] = {}
    for name, result in sets.items():
        for row in result["rows"]:
            method, recall = row["method"], f"{row['recall_at_10']:.3f}"
            if sized := re.match(
                r"(NearLossless|Neural[a-z ]*|FAISS \w*Q|ScaNN) [\d.]+(?! bit)(.*)", method
            ):
                by_size.setdefault((row["bytes"], "".join(sized.groups())), {})[name] = recall
            else:
                by_bits.setdefault(method, {})[name] = f"{recall} ({row['bytes']:g} bytes)"
    lines = [f"| bytes | method | {' | '.join(heads)} |", "|---:|---|" + "---:|" * len(sets)]
    for (size, method), found in sorted(by_size.items()):
        lines.append(f"| {size:g} | {method} | {cells(found, sets)} |")
    lines += ["", f"| method | {' | '.join(heads)} |", "|---|" + "---:|" * len(sets)]
    return lines + [f"| {method} | {cells(found, sets)} |" for method, found in by_bits.items()]


def cells(found: dict[str, str], sets: dict[str, Any]) -> str:
    return " | ".join(found.get(name, "–") for name in sets)


def table(rows: list[dict[str, Any]]) -> list[str]:
    columns = [column for column in COLUMNS if any(column[0] in row for row in rows)]
    heads = [name for _, name, _ in columns]
    return [
        f"| bytes | method | {' | '.join(heads)} |",
        "|---:|---|" + "---:|" * len(columns),
        *(line(row, columns) for row in rows),
    ]


def line(row: dict[str, Any], columns: list[tuple[str, str, str]]) -> str:
    values = [format(row[key], style) if key in row else "–" for key, _, style in columns]
    return f"| {row['bytes']:g} | {row['method']} | {' | '.join(values)} |"
