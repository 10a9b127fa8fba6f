"""Model folders in the layout of Hugging Face's libraries.

    model.safetensors   the file that `embits.load` opens; for a coder alone, it has no codes
    config.json         a summary of the file, for people and other programs
    README.md           the model card

Nothing is pickled, and only the first two files are read. A folder whose `config.json` contradicts
the file is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from embits.binary_vectors import BinaryVectors
from embits.collection import load
from embits.errors import FormatError, InputError
from embits.file import store
from embits.file.atomic import atomic_write
from embits.file.overwrite import is_embits_file
from embits.integrations.hugging_face import card as model_card

MODEL, CONFIG, CARD = "model.safetensors", "config.json", "README.md"
MAX_CONFIG_BYTES = 1 << 16  # ours has a few hundred


def write_folder(
    bits: BinaryVectors,
    folder: Path,
    name: str,
    figures: Mapping[str, Any] | None = None,
    card: Mapping[str, Any] | None = None,
) -> None:
    """Write the three files, each atomically; a card that the user edited is kept.

    Args:
        bits: What to write.
        folder: Created if it does not exist.
        name: The name for `from_pretrained` in the card's example.
        figures: Measured figures for the card.
        card: More front matter for the card.

    Raises:
        InputError: The folder holds the model of another library, or the card's front matter is
            wrong.
        OSError: A file could not be written.
    """
    text = model_card.write(
        bits, name, figures or {}, card or {}
    )  # raises before a file is written
    _check_files_are_ours(folder)
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
        if not (folder / name).is_file():  # not `exists`: a pipe would block
            raise FormatError(
                f"{folder}: it has no {name}, which save_pretrained would have written"
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
    """Return the contents of `config.json` for a file."""
    return {
        "library_name": "embits",
        "model_type": "embits",
        "format_version": contents.version,
        "method": contents.method,
        "n_bits": contents.n_bits,
        "dims": contents.dims,
        "rows": len(contents.codes),
        "params": dict(contents.params),
    }


def _check_files_are_ours(folder: Path) -> None:
    for name, is_ours in ((CONFIG, _is_our_config), (MODEL, is_embits_file)):
        path = folder / name
        if path.exists() and not is_ours(path):
            raise InputError(f"{path} exists, and embits did not write it: choose another folder")


def _is_our_config(path: Path) -> bool:
    try:
        return bool(_read_config(path).get("library_name") == "embits")
    except FormatError:
        return False


def _read_config(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        raw = file.read(MAX_CONFIG_BYTES + 1)
    try:
        if len(raw) > MAX_CONFIG_BYTES:
            raise ValueError(f"longer than {MAX_CONFIG_BYTES} bytes")
        config = json.loads(raw.decode())
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: not a JSON configuration ({error!s:.100})") from None
    if not isinstance(config, dict):
        raise FormatError(f"{path}: {shortened(config)}, expected a JSON object")
    return config


def _write_text(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())
