"""Where a text encoder comes from: static models of WordLlama and model2vec, files of words."""

from __future__ import annotations

import hashlib
import json
import os
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits._version import __version__
from embits.bounded_json import SETTINGS, Limits, parse_json
from embits.checks import check_finite, read_small
from embits.errors import InputError, MissingExtraError, ReadError
from embits.text.tokenizer import tokenizer_limits

WORDLLAMA = "wordllama"
_LAYOUTS = (  # the table and the tokenizer, in a folder
    ("model.safetensors", "tokenizer.json"),
    ("0_StaticEmbedding/model.safetensors", "0_StaticEmbedding/tokenizer.json"),
)
_NAMES = "embeddings", "embedding.weight"  # of the table
_SIZES = {"F": (2, 4, 8), "I": (1, 2, 4, 8), "U": (1, 2, 4, 8)}  # bytes
_DTYPES = {f"{k}{8 * n}": f"<{k.lower()}{n}" for k, sizes in _SIZES.items() for n in sizes}


class StaticModel(NamedTuple):
    """A table of token vectors, as its package or folder has it."""

    vectors: NDArray[np.float32]  # (rows, dims)
    tokenizer: str  # tokenizer.json
    unknown: int | None  # the token that is left out
    rows: NDArray[np.uint32] | None  # of each token, if tokens share rows
    weights: NDArray[np.float32] | None  # of each token
    normalize: bool

    @property
    def n_tokens(self) -> int:
        """How many tokens have rows."""
        return len(self.vectors if self.rows is None else self.rows)


def read_static(source: str | os.PathLike[str]) -> StaticModel:
    """The static model of a folder, or of the package `wordllama`; InputError if it is neither."""
    folder = Path(source)
    if folder.is_dir():
        return _read_folder(folder)
    if str(source) != WORDLLAMA:
        kinds = f"the folder of a static model, {WORDLLAMA!r}, or a file of embits"
        raise InputError(f"{source}: no such folder or package; expected {kinds}")
    spec = find_spec(WORDLLAMA)  # finds it without importing it
    if spec is None or not spec.submodule_search_locations:
        hint = f"its package: pip install {WORDLLAMA} tokenizers"
        raise MissingExtraError("WordLlama's table of tokens", "text", hint)
    package = Path(next(iter(spec.submodule_search_locations)))
    table = _only(package / "weights", "*_256.safetensors")
    tokenizer = _only(package / "tokenizers", "*.json")
    return _model(table, tokenizer, {"normalize": True})


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if not found:
        raise ReadError(f"{folder}: no file {pattern}; another version of the package is installed")
    return found[0]


def _read_folder(folder: Path) -> StaticModel:
    for names in _LAYOUTS:
        table, tokenizer = (folder / name for name in names)
        if table.is_file() and tokenizer.is_file():
            break
    else:
        names = _LAYOUTS[0]
        raise InputError(f"{folder}: no {names[0]} and {names[1]}, as the folder of a model has")
    config: dict[str, Any] = {"normalize": (folder / "1_Normalize").exists()}
    if (folder / "config.json").is_file():
        config |= _json(folder / "config.json")
    return _model(table, tokenizer, config)


def _json(path: Path, limits: Limits = SETTINGS) -> dict[str, Any]:
    content = read_small(path, limits.n_bytes)
    try:
        found = parse_json(content, limits)
    except ValueError as error:
        raise ReadError(f"not usable JSON: {error!s:.200}", path=path) from None
    if not isinstance(found, dict):
        raise ReadError(f"{shortened(found)}, expected a JSON object", path=path)
    return found


def _model(table: Path, tokenizer: Path, config: dict[str, Any]) -> StaticModel:
    tensors = _read_tensors(table)
    vectors = next((tensors[name] for name in _NAMES if name in tensors), None)
    if vectors is None and len(tensors) == 1:
        vectors = next(iter(tensors.values()))
    if vectors is None or vectors.ndim != 2 or not vectors.size:
        raise ReadError(f"{table}: no table of vectors named {' or '.join(_NAMES)}")
    vectors = vectors.astype(np.float32)
    try:
        check_finite(vectors)
    except InputError as error:
        raise ReadError(str(error), path=table) from None
    rows, weights = tensors.get("mapping"), tensors.get("weights")
    n = len(vectors) if rows is None else rows.size
    settings = _json(tokenizer, tokenizer_limits(n))
    are_rows = rows is not None and n and rows.ndim == 1 and rows.dtype.kind in "iu"
    if rows is not None and not (are_rows and rows.min() >= 0 and rows.max() < len(vectors)):
        raise ReadError(f"{table}: `mapping` does not give a row of the table for each token")
    if weights is not None:
        weights = weights.astype(np.float32)
        if weights.shape != (n,) or not np.isfinite(weights).all() or (weights < 0).any():
            raise ReadError(f"{table}: `weights` are not a number of 0 or more for each token")
    text, normalize = json.dumps(settings, ensure_ascii=False), bool(config.get("normalize"))
    rows = None if rows is None else rows.astype(np.uint32)
    return StaticModel(vectors, text, _unknown(settings), rows, weights, normalize)


def _unknown(settings: dict[str, Any]) -> int | None:
    """The number of the token that stands for what is unknown."""
    model = settings.get("model")
    model = model if isinstance(model, dict) else {}
    if "unk_id" in model:  # Unigram
        return model["unk_id"] if type(model["unk_id"]) is int else None
    with suppress(TypeError, LookupError):  # what is damaged is refused by the tokenizer
        added = {each["content"]: each["id"] for each in settings.get("added_tokens") or []}
        return {**added, **model["vocab"]}[model["unk_token"]]  # type: ignore[no-any-return]
    return None


def _read_tensors(path: Path) -> dict[str, NDArray[Any]]:
    """The tensors of any safetensors file; bfloat16 and empty ones are left out."""
    tensors = dict[str, NDArray[Any]]()
    try:
        data = np.memmap(path, np.uint8, "r")
        length = int.from_bytes(data[:8].tobytes(), "little")
        if not 0 < length <= min(len(data) - 8, SETTINGS.n_bytes):
            raise ValueError
        header = parse_json(data[8 : 8 + length].tobytes())
        left = len(data) - 8 - length
        for name, entry in header.items():
            if name != "__metadata__" and entry["dtype"] in _DTYPES:
                start, stop = (8 + length + int(each) for each in entry["data_offsets"])
                left -= stop - start  # two over the same bytes would be copied twice
                if left < 0 or not 8 + length <= start <= stop <= len(data):
                    raise ValueError
                dtype = np.dtype(_DTYPES[entry["dtype"]])
                flat = np.frombuffer(data[start:stop].tobytes(), dtype)
                tensors[name] = flat.reshape(entry["shape"])
    except (ArithmeticError, ValueError, KeyError, TypeError, AttributeError):
        raise ReadError(f"{path}: not a safetensors file, or damaged") from None
    return tensors


def cached_file(model: StaticModel, settings: dict[str, Any]) -> Path:
    """Where the encoder made of a model is kept; its name is a digest of all it depends on."""
    digest = hashlib.sha256(json.dumps([__version__, settings], sort_keys=True).encode())
    for part in (model.vectors, model.rows, model.weights):
        digest.update(b"" if part is None else np.ascontiguousarray(part).tobytes())
    digest.update(f"{model.tokenizer}{model.unknown}{model.normalize}".encode())
    return cache_folder() / f"text-{digest.hexdigest()[:32]}.safetensors"


def cache_folder() -> Path:
    """`$XDG_CACHE_HOME/embits`, by default `~/.cache/embits` (`%LOCALAPPDATA%` on Windows)."""
    home = os.environ.get("XDG_CACHE_HOME") or os.environ.get("LOCALAPPDATA")
    folder = Path(home) if home and Path(home).is_absolute() else Path.home() / ".cache"
    return folder / "embits"
