"""The model card that the Hugging Face Hub shows: a description and an example."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from embits.binary_vectors import BinaryVectors
from embits.errors import InputError
from embits.ids.keys import RowNumbers

# A card without this line belongs to its owner and is never overwritten.
MARK = "<!-- Written by embits: remove this line to keep your changes to the card. -->"
_KEY = re.compile(r"[A-Za-z][\w-]*", re.ASCII)


def write(
    bits: BinaryVectors, name: str, figures: Mapping[str, Any], front: Mapping[str, Any]
) -> str:
    """Return the text of the card.

    Args:
        bits: What it describes; without rows, a coder alone.
        name: The name for `from_pretrained` in the example.
        figures: Measured figures by name.
        front: More front matter; it may replace ours.

    Raises:
        InputError: The front matter cannot hold a key or a value.
    """
    matter = {
        "library_name": "embits",
        "tags": ["embits", "embeddings", "binary-embeddings", "quantization", bits.coder.method],
        "bits": bits.n_bits,
        "dims": bits.dims,
        "method": bits.coder.method,
    } | dict(front)
    parts = [
        "\n".join(
            ["---", *(f"{_key(key)}: {_value(value)}" for key, value in matter.items()), "---"]
        ),
        MARK,
        f"# {_title(bits)}",
        f"`{bits.coder!r}` of embits (`pip install embits`): vectors of {bits.dims} "
        f"floats ({4 * bits.dims:,} bytes) become codes of {bits.n_bits} bits "
        f"({bits.coder.n_bytes_:,} bytes).",
        "## Use",
        f"```python\n{_usage(bits, name)}```",
    ]
    if figures:
        rows = "\n".join(f"| {_cell(name)} | {_cell(value)} |" for name, value in figures.items())
        parts += ["## Figures", f"| measured | |\n|---|---|\n{rows}"]
    parts += [
        "## Files",
        "`model.safetensors` opens with `embits.load` and with any safetensors reader; `embits "
        "verify` checks every byte. Nothing in this repository runs code.",
    ]
    return "\n\n".join(parts) + "\n"


def may_replace(path: Path) -> bool:
    """Return whether there is no card, or one that still has our mark."""
    if not path.exists():
        return True
    with path.open("rb") as file:
        return MARK.encode() in file.read(1 << 20)


def _title(bits: BinaryVectors) -> str:
    if len(bits) == 0:
        return f"Coder: {bits.dims} dimensions to {bits.n_bits} bits"
    what = "vectors" if isinstance(bits.words, RowNumbers) else "words"
    return f"{len(bits):,} {what} in {bits.n_bits} bits"


def _usage(bits: BinaryVectors, name: str) -> str:
    if len(bits) == 0:
        return (
            f'import embits\n\ncoder = embits.Coder.from_pretrained("{name}")\n'
            f"codes = coder.transform(vectors)  # (n, {bits.dims}) floats to "
            f"(n, {bits.coder.n_bytes_}) uint8\nfloats = coder.inverse_transform(codes)\n"
        )
    word = "0" if isinstance(bits.words, RowNumbers) else json.dumps(bits.words[0])
    return (
        f'import embits\n\nbits = embits.BinaryVectors.from_pretrained("{name}")\n'
        f"bits.most_similar({word})\n"
        f"bits.search(vectors, k=10)  # (q, {bits.dims}) floats, or codes\n"
    )


def _key(key: Any) -> str:
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise InputError(f"the card has the key {key!r}, expected letters, digits, - and _")
    return key


def _value(value: Any) -> str:
    """Return the value as JSON, which is also YAML, on one line and unambiguous."""
    try:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError):
        raise InputError(f"the card has the value {value!r}, expected JSON") from None


def _cell(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return " ".join(text.replace("|", "\\|").split())
