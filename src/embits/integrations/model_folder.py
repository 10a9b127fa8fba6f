"""A folder as Hugging Face's libraries have it.

    model.safetensors   the file that `embits.load` opens; without codes, of a coder alone
    config.json         what the file holds, for people and programs that only look
    README.md           the model card

Nothing in it is pickled, and nothing but the first two is read. `config.json` decides nothing:
where it does not agree with the file, the folder is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from embits.binary_vectors import BinaryVectors, load
from embits.errors import FormatError
from embits.file import store
from embits.file.atomic import atomic_write
from embits.integrations import model_card

MODEL, CONFIG, CARD = "model.safetensors", "config.json", "README.md"
_LONGEST_CONFIG = 1 << 16  # ours has a few hundred bytes


def write_folder(
    bits: BinaryVectors,
    folder: Path,
    name: str,
    figures: Mapping[str, Any] | None = None,
    card: Mapping[str, Any] | None = None,
) -> None:
    """Write the three files, each whole or not at all; a card of the user's own stays.

    Args:
        bits: What to keep.
        folder: Made if it is not there.
        name: What the card says that `from_pretrained` is called with.
        figures: What was measured, for the card.
        card: More of its front matter.
    """
    text = model_card.write(bits, name, figures or {}, card or {})  # refused before a file is
    folder.mkdir(parents=True, exist_ok=True)
    bits.save(folder / MODEL)
    config = _config(store.open_file(folder / MODEL))
    _write_text(folder / CONFIG, json.dumps(config, indent=2, sort_keys=True) + "\n")
    if model_card.may_replace(folder / CARD):
        _write_text(folder / CARD, text)


def open_folder(folder: Path, *, verify: bool = False) -> BinaryVectors:
    """Open a folder that `write_folder` wrote.

    Raises:
        FormatError: A file is missing, damaged, or does not agree with the other.
    """
    for name in (MODEL, CONFIG):
        if not (folder / name).is_file():  # a pipe of that name would keep us waiting
            raise FormatError(
                f"{folder}: no {name} in it, which save_pretrained would have written"
            )
    bits = load(folder / MODEL, verify)
    said = _read_config(folder / CONFIG)
    for key, value in _config(store.open_file(folder / MODEL)).items():
        if said.get(key) != value:
            raise FormatError(
                f"{folder}: {CONFIG} says that {key} is {shortened(said.get(key))}, "
                f"{MODEL} that it is {shortened(value)}"
            )
    return bits


def _config(contents: store.Contents) -> dict[str, Any]:
    """What `config.json` says of a file."""
    return {
        "library_name": "embits",
        "model_type": "embits",
        "format_version": store.VERSION,
        "method": contents.method,
        "n_bits": contents.n_bits,
        "dims": contents.dims,
        "rows": len(contents.codes),
        "params": dict(contents.params),
    }


def _read_config(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        raw = file.read(_LONGEST_CONFIG + 1)
    try:
        if len(raw) > _LONGEST_CONFIG:
            raise ValueError(f"longer than {_LONGEST_CONFIG} bytes")
        config = json.loads(raw.decode())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: not the JSON of a configuration ({error!s:.100})") from None
    if not isinstance(config, dict):
        raise FormatError(f"{path}: {shortened(config)}, expected a JSON object")
    return config


def _write_text(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())
