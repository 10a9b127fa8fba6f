"""Train and score several methods and widths on one set of vectors.

Each finished step is saved in the folder. An interrupted run can be resumed, and a run with more
methods or widths computes only the new ones and returns all codes in the folder.
"""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits._version import __version__
from embits.arrays import blocks
from embits.binary_vectors import BinaryVectors
from embits.coders import METHODS, Coder, coder_class
from embits.collection import load
from embits.errors import EmbitsError, FormatError, InputError
from embits.evaluation.data.folder import DataFolder
from embits.evaluation.evaluator import DATA_TASKS, TASKS, Evaluator, FitCoder
from embits.evaluation.report.results import jsonable
from embits.file.atomic import atomic_write
from embits.jobs import binarize
from embits.vectors import WordVectors

Say = Callable[[str], None]
BITS = (64, 128, 256, 512)


class Comparison:
    """Codes of several methods and widths with their scores.

    Args:
        vectors: The floats.
        folder: Folder for codes and results; created if it does not exist.
        data: The folder of data sets.
        bits: Widths; "sign" uses the number of dimensions instead.
        methods: Names of coders; None takes all.
        tasks: Which of `TASKS`.
        seed: Seed of every coder that takes one.
        vectors_file: Where the vectors were read from.
        say: Called with a line of text at each step.

    Attributes:
        plan: The (method, width) pairs: those asked for, then others in the folder that were
            trained on the same vectors with the same seed.
    """

    def __init__(
        self,
        vectors: WordVectors,
        folder: Path,
        data: DataFolder | None,
        bits: Sequence[int] = BITS,
        methods: Iterable[str] | None = None,
        tasks: Sequence[str] = TASKS,
        seed: int = 0,
        vectors_file: Path | None = None,
        say: Say | None = None,
    ) -> None:
        self.vectors = vectors
        self.folder = folder
        self.seed = seed
        self._problems: list[str] = []
        self._say = say or (lambda text: None)
        self._current = ""
        self.evaluator = Evaluator(
            data, vectors, tasks, vectors_file, lambda step: self._say(f"{self._current}: {step}")
        )
        self.settings = {
            "embits": __version__,
            "vectors": fingerprint(vectors),
            "data": _data_fingerprint(data),
            "tasks": list(tasks),
            "seed": seed,
        }
        asked = plan(vectors.dims, bits, METHODS if methods is None else methods)
        self.plan = list(dict.fromkeys([*asked, *self._saved_codes()]))
        (folder / "codes").mkdir(parents=True, exist_ok=True)

    def check_folder(self) -> None:
        """Refuse a folder with the scores of other vectors, tasks or another seed.

        Raises:
            InputError: The folder has such scores.
        """
        saved = _read_json(self.folder / "codes" / "raw.scores.json").get("settings") or {}
        for name in ("vectors", "tasks", "seed"):
            if saved and saved.get(name) != self.settings[name]:
                raise InputError(
                    f"{self.folder} has results of {_setting(name, saved.get(name))}, expected "
                    f"{_setting(name, self.settings[name])}: choose another folder for the report, "
                    "or replace it with --force"
                )

    def _saved_codes(self) -> Iterator[tuple[str, int]]:
        """Codes in the folder that were scored on the same vectors with the same seed."""
        for path in sorted((self.folder / "codes").glob("*.scores.json")):
            kept = _read_json(path)
            entry, settings = kept.get("entry") or {}, kept.get("settings") or {}
            same = all(settings.get(name) == self.settings[name] for name in ("vectors", "seed"))
            if same and entry.get("method") in METHODS:
                yield entry["method"], entry["bits"]

    def run(self) -> list[dict[str, Any]]:
        """Train and score what is missing.

        Returns:
            The entry of the raw vectors, then of every code.
        """
        entries = [self._kept("raw", lambda: self.evaluator.evaluate_raw(all_sets=True))]
        for method, n_bits in self.plan:
            name = f"{method}-{n_bits}"
            try:
                entries.append(self._kept(name, lambda m=method, n=n_bits: self._entry(m, n)))  # type: ignore[misc]
            except EmbitsError as error:  # a method that fails does not stop the others
                self._problems.append(f"{name} is skipped: {error}")
                self._say(self._problems[-1])
        return entries

    @property
    def notes(self) -> list[str]:
        """One line for each code or score that is missing after `run`, with the reason."""
        return list(dict.fromkeys([*self._problems, *self.evaluator.notes]))

    def codes(self, method: str, n_bits: int) -> BinaryVectors:
        """The codes of a method: loaded from the folder, or trained and saved."""
        path = self.folder / "codes" / f"{method}-{n_bits}.safetensors"
        note = path.with_suffix(".json")
        params = self._params(method, n_bits)
        wanted = {"vectors": self.settings["vectors"], "params": params, "embits": __version__}
        if _read_json(note).get("settings") == wanted:
            try:
                return load(path)
            except (FormatError, OSError):
                pass  # trained again below
        self._say(f"{method}-{n_bits}: training")
        start = time.perf_counter()
        bits = binarize(
            self.vectors,
            method=method,
            progress=lambda done, total: self._say(f"{method}-{n_bits}: training {done}/{total}"),
            **params,
        )
        bits.save(path, overwrite=True)
        seconds = round(time.perf_counter() - start, 2)
        _write_json(note, {"settings": wanted, "seconds": seconds})
        return load(path)

    def seconds(self, method: str, n_bits: int) -> float | None:
        """Training time in seconds; None if it is not known."""
        found = _read_json(self.folder / "codes" / f"{method}-{n_bits}.json").get("seconds")
        return None if found is None else float(found)

    def _entry(self, method: str, n_bits: int) -> dict[str, Any]:
        bits = self.codes(method, n_bits)
        path = self.folder / "codes" / f"{method}-{n_bits}.safetensors"
        entry = self.evaluator.evaluate_bits(bits, path, self._fit_coder(bits.coder))
        return entry | {"seconds": self.seconds(method, n_bits), "params": bits.coder.get_params()}

    def _fit_coder(self, coder: Coder) -> FitCoder:
        """A function that fits a coder of the same kind on the corpus of a retrieval set."""

        def fit(corpus: NDArray[np.float32]) -> Coder:
            if np.array_equal(corpus, self.vectors.matrix):
                return coder
            params = self._params(
                coder.method, corpus.shape[1] if coder.method == "sign" else coder.n_bits_
            )
            return coder_class(coder.method)(**params).fit(corpus)

        return fit

    def _kept(self, name: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """The saved entry if it was computed with the same settings, else a new one."""
        self._current = name
        path = self.folder / "codes" / f"{name}.scores.json"
        kept = _read_json(path)
        if kept.get("settings") == self.settings:
            self._problems += kept.get("notes", [])
            return dict(kept["entry"])
        start = time.perf_counter()
        entry = make()
        if entry["file"] is not None:
            entry["file"] = Path(entry["file"]).name  # reports must not show local folders
        entry = jsonable(entry)
        notes = self.evaluator.notes
        _write_json(path, {"settings": self.settings, "entry": entry, "notes": notes})
        self._say(f"{name}: done in {time.perf_counter() - start:.1f} s")
        return dict(entry)

    def _params(self, method: str, n_bits: int) -> dict[str, Any]:
        takes = coder_class(method).param_names()
        params = {"n_bits": n_bits, "random_state": self.seed}
        return {name: value for name, value in params.items() if name in takes}


def plan(dims: int, bits: Sequence[int], methods: Iterable[str]) -> list[tuple[str, int]]:
    """The (method, width) pairs to train: every method at every width, "sign" only at `dims`.

    Example:
        >>> plan(300, [64, 128], ["lsh", "sign"])
        [('lsh', 64), ('lsh', 128), ('sign', 300)]
    """
    if any(width < 1 for width in bits):
        raise InputError(f"bits are {list(bits)}, expected numbers from 1")
    return [
        (method, width)
        for method in methods
        for width in ([dims] if coder_class(method).method == "sign" else bits)
    ]


def fingerprint(vectors: WordVectors) -> str:
    """A checksum of words and matrix: a run is resumed only with the same vectors."""
    crc = 0
    for rows in blocks(len(vectors)):
        crc = zlib.crc32(np.ascontiguousarray(vectors.matrix[rows]).tobytes(), crc)
    for word in vectors.words or ():
        crc = zlib.crc32(word.encode(errors="replace") + b"\n", crc)
    return f"{len(vectors)}x{vectors.dims}-{crc:08x}"


def _setting(name: str, value: Any) -> str:
    """A setting for a message, such as "tasks similarity,speed"."""
    shown = ",".join(value) if isinstance(value, list) else value
    return f"{name} {shown}"


def _data_fingerprint(data: DataFolder | None) -> str:
    if data is None:
        return "none"
    listing = "\n".join(
        f"{path.relative_to(data.path)} {path.stat().st_size}"
        for task in sorted(DATA_TASKS)
        for path in sorted((data.path / task).rglob("*"))
        if path.is_file() and not path.name.startswith(".")
    )
    return f"{zlib.crc32(listing.encode()):08x}"


def _read_json(path: Path) -> dict[str, Any]:
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}


def _write_json(path: Path, value: Any) -> None:
    with atomic_write(path) as file:
        file.write(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
