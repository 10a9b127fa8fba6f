"""What Python and JavaScript make of the same files: refused, or accepted and what they answer."""

from __future__ import annotations

import json
import random
import re
import shutil
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import embits
from tests.support import mutants
from tests.support.javascript import HERE, node
from tests.support.mutants import Recipe

KNOWN = Path(__file__).parents[1] / "golden" / "differential.json"
TEXTS = ["the music of a river", "Boats, lakes; GUITARS", "xylophone"]
WORDS = ["queen", "word7", "the", "7", "0", "absent"]
SHOWN = 40  # ids of a file
TINY = 1e-6
ACCEPTED = "accepted"
CLOSE = 1e-3  # of the largest number: float32 sums of large weights differ


def in_python(path: Path, *, is_encoder: bool) -> dict[str, Any]:
    """Whether the check of every byte refuses a file, and what it answers if not."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numbers of hostile weights overflow
            if is_encoder:
                return _encoded(embits.TextEncoder.load(path, verify=True))
            return _answered(embits.load(path, verify=True))
    except embits.FormatError as error:
        return {"refused": str(error)}


def _encoded(encoder: embits.TextEncoder) -> dict[str, Any]:
    try:
        return {"vectors": encoder.encode(TEXTS)}
    except embits.errors.NotFittedError:
        return {}


def _answered(bits: embits.BinaryVectors) -> dict[str, Any]:
    found: dict[str, Any] = {"length": len(bits), "ids": list(map(str, bits.ids()[:SHOWN]))}
    rows = [-1 if (row := bits.words.find(word)) is None else row for word in WORDS]
    found["rows"] = rows
    if bits.lengths is not None:
        found["lengths"] = bits.lengths[:SHOWN]
    if len(bits):
        nearest = bits.search(bits.codes[:1], 5)
        found["nearest"] = [nearest.rows[0].tolist(), nearest.distances[0].tolist()]
    if not bits.coder.is_left_out and bits.dims <= 4096:
        vector = np.sin(np.arange(bits.dims)).astype("f4")
        found["code"] = bits.encode(vector).tolist()
        found["scores"] = bits.search(vector, 5, metric="asymmetric").scores
        if len(bits) and bits.lengths is None:
            found["decoded"] = bits.coder.inverse_transform(bits.codes[:1])[0]
    return found


def in_javascript(folder: Path) -> dict[str, dict[str, Any]]:
    """The same of each file and collection in a folder, by one process."""
    found: dict[str, dict[str, Any]] = json.loads(node(HERE / "verifies.mjs", folder))
    return found


def disagreement(python: dict[str, Any], javascript: dict[str, Any]) -> str | None:
    """Where two readers differ; None where they do not."""
    if "refused" in python and "refused" in javascript:
        return None
    # Designed so: a reader that does not know a method may search, or refuse the file.
    # JavaScript does not read Arrow, and no collection without a coder.
    if re.search(r"is not registered here|\.arrow: damaged", python.get("refused", "")):
        return None
    if "has no coder yet" in javascript.get("refused", ""):
        return None
    for name, other, who in ((python, javascript, "Python"), (javascript, python, "JavaScript")):
        if "refused" in name and "refused" not in other:
            return f"only {who} refuses it: {name['refused']}"
    for name in python.keys() & javascript.keys():
        a, b = python[name], javascript[name]
        if isinstance(a, np.ndarray):
            if not _are_close(a, np.array(b, dtype=float)):
                return f"{name}: {a.tolist()!s:.200} in Python, {b!s:.200} in JavaScript"
        elif a != b:
            return f"{name}: {a!s:.200} in Python, {b!s:.200} in JavaScript"
    return None


def _are_close(a: np.ndarray, b: np.ndarray) -> bool:
    if a.shape != b.shape:
        return False
    both = np.isfinite(a) & np.isfinite(b)
    if a.ndim == 2:  # vectors of texts: float32 loses those of absurd scales
        both &= (
            np.minimum(*(np.abs(each).max(axis=1, initial=0) for each in (a, b)))[:, None] > TINY
        )
    largest = max(float(np.abs(a[both]).max(initial=0)), float(np.abs(b[both]).max(initial=0)))
    return bool(np.allclose(a[both], b[both], rtol=CLOSE, atol=CLOSE * max(largest, 1e-30)))


def compared(recipes: Iterable[Recipe], folder: Path) -> Iterator[tuple[Recipe, str | None]]:
    """Write what recipes make and read it in both languages.

    Yields each recipe with what differs, ACCEPTED if both accept it and agree, or None if both
    refuse it.
    """
    names = {}
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for number, recipe in enumerate(recipes):
        name = f"{'encoder' if mutants.is_encoder(recipe) else 'file'}-{number}"
        names[name] = recipe
        mutants.write(recipe, folder / name)
    javascript = in_javascript(folder)
    for name, recipe in names.items():
        yield recipe, _problem(folder / name, mutants.is_encoder(recipe), javascript[name])


def _problem(path: Path, is_encoder: bool, javascript: dict[str, Any]) -> str | None:
    try:
        python = in_python(path, is_encoder=is_encoder)
    except Exception as error:  # noqa: BLE001 - a finding, whatever it is
        return f"Python raises {type(error).__name__}: {error}"
    if "error" in javascript:
        return f"JavaScript throws {javascript['error']}"
    found = disagreement(python, javascript)
    return found or (None if "refused" in python else ACCEPTED)


def differences(recipes: Iterable[Recipe], folder: Path) -> dict[str, str]:
    """What differs, by the JSON of the recipe."""
    return {
        json.dumps(recipe): problem
        for recipe, problem in compared(recipes, folder)
        if problem not in (None, ACCEPTED)
    }


def drawn(seed: int, n: int) -> list[Recipe]:
    """The recipes of a seed."""
    rng = random.Random(seed)
    return [mutants.drawn(rng) for _ in range(n)]


def known() -> list[Recipe]:
    """Recipes that were findings once."""
    recipes: list[Recipe] = json.loads(KNOWN.read_text()) if KNOWN.exists() else []
    return recipes
