"""Train and score several methods and widths on one set of vectors.

Each finished step is saved in the folder. An interrupted run can be resumed, and a run with more
methods or widths computes only the new ones and returns all codes in the folder.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits._version import __version__
from embits.binary_vectors import BinaryVectors
from embits.coders import METHODS, Coder, coder_class
from embits.collection import load
from embits.errors import EmbitsError, FormatError, InputError
from embits.evaluation.data.folder import DataFolder
from embits.evaluation.evaluator import Evaluator, FitCoder
from embits.evaluation.held_out import ALL_ROWS, split_rows
from embits.evaluation.report.results import jsonable
from embits.evaluation.resampling import N_RESAMPLES, intervals
from embits.evaluation.saved_scores import (
    data_fingerprint,
    fingerprint,
    read_json,
    read_replicates,
    write_json,
    write_replicates,
)
from embits.evaluation.seeds import mean_entry, mean_replicates
from embits.evaluation.tasks import TASKS
from embits.vectors import WordVectors

Kept: TypeAlias = tuple[dict[str, Any], dict[str, NDArray[np.float64]]]
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
        seeds: Seed of every coder that takes one; several fit each such coder once with each, and
            entries have means over the fits.
        vectors_file: Where the vectors were read from.
        say: Called with a line of text at each step.
        fit_rows: Number of rows to fit on; neighbors and reconstruction are measured on the
            others. None is all rows of word vectors, and half of the rows of others.
        n_resamples: Bootstrap replicates of each score, for intervals and tests.
        by_pairs: Weigh the sets of the Fisher mean by their numbers of pairs, not equally.

    Attributes:
        plan: The (method, width) pairs: those asked for, then others in the folder that were
            trained on the same vectors with the same seed.
        replicates: After `run`, the bootstrap replicates of the scores of each entry by path.
    """

    def __init__(
        self,
        vectors: WordVectors,
        folder: Path,
        data: DataFolder | None,
        bits: Sequence[int] = BITS,
        methods: Iterable[str] | None = None,
        tasks: Sequence[str] = TASKS,
        seeds: int | Sequence[int] = 0,
        vectors_file: Path | None = None,
        say: Say | None = None,
        *,
        fit_rows: int | None = None,
        n_resamples: int = N_RESAMPLES,
        by_pairs: bool = False,
    ) -> None:
        self.vectors = vectors
        self.folder = folder
        self.seeds = [seeds] if isinstance(seeds, int) else list(dict.fromkeys(seeds))
        self.split = split_rows(len(vectors), fit_rows, has_words=vectors.words is not None)
        self.replicates: list[dict[str, NDArray[np.float64]]] = []
        self._problems: list[str] = []
        self._say = say or (lambda text: None)
        self._current = ""
        self.evaluator = Evaluator(
            data, vectors, tasks, vectors_file, lambda step: self._say(f"{self._current}: {step}"),
            ALL_ROWS, n_resamples=n_resamples, by_pairs=by_pairs,
        )  # fmt: skip
        self.settings = {
            "embits": __version__,
            "vectors": fingerprint(vectors),
            "data": data_fingerprint(data),
            "tasks": list(tasks),
            "seed": self.seeds[0],
            "fit_rows": None if self.split is None else len(self.split.fitted),
            "resamples": n_resamples,
            "fisher": "pairs" if by_pairs else "equal",
        }
        asked = plan(vectors.dims, bits, METHODS if methods is None else methods)
        self.plan = list(dict.fromkeys([*asked, *self._saved_codes()]))
        (folder / "codes").mkdir(parents=True, exist_ok=True)

    def check_folder(self) -> None:
        """Refuse a folder with the scores of other vectors, rows, tasks or another seed.

        Raises:
            InputError: The folder has such scores.
        """
        saved = read_json(self.folder / "codes" / "raw.scores.json").get("settings") or {}
        for name in ("vectors", "tasks", "seed", "fit_rows"):
            if saved and saved.get(name) != self.settings[name]:
                raise InputError(
                    f"{self.folder} has results of {_setting(name, saved.get(name))}, expected "
                    f"{_setting(name, self.settings[name])}: choose another folder for the report, "
                    "or replace it with --force"
                )

    def _saved_codes(self) -> Iterator[tuple[str, int]]:
        """Codes in the folder that were scored on the same vectors with the same seed."""
        for path in sorted((self.folder / "codes").glob("*.scores.json")):
            kept = read_json(path)
            entry, settings = kept.get("entry") or {}, kept.get("settings") or {}
            same = all(
                settings.get(name) == self.settings[name]
                for name in ("vectors", "seed", "fit_rows")
            )
            if same and entry.get("method") in METHODS:
                yield entry["method"], entry["bits"]

    def run(self) -> list[dict[str, Any]]:
        """Train and score what is missing.

        Returns:
            The entry of the raw vectors, then of every code.
        """
        raw, replicates = self._kept(
            "raw", self.seeds[0], lambda: self.evaluator.evaluate_raw(all_sets=True)
        )
        entries, self.replicates = [raw], [replicates]
        for method, n_bits in self.plan:
            try:
                entry, replicates = self._fits(method, n_bits)
            except EmbitsError as error:  # a method that fails does not stop the others
                self._problems.append(f"{method}-{n_bits} is skipped: {error}")
                self._say(self._problems[-1])
            else:
                entries.append(entry)
                self.replicates.append(replicates)
        return entries

    def _fits(self, method: str, n_bits: int) -> Kept:
        """The mean entry of a method over the seeds."""
        takes_seed = "random_state" in coder_class(method).param_names()
        seeds = self.seeds if takes_seed else self.seeds[:1]
        fits = [
            self._kept(
                self._name(method, n_bits, seed), seed,
                lambda seed=seed: self._entry(method, n_bits, seed),  # type: ignore[misc]
            )
            for seed in seeds
        ]  # fmt: skip
        replicates = mean_replicates([drawn for _, drawn in fits])
        entry = mean_entry([entry for entry, _ in fits], seeds)
        if len(seeds) > 1 and replicates:
            entry["intervals"] = jsonable(intervals(replicates))
        return entry, replicates

    def _name(self, method: str, n_bits: int, seed: int) -> str:
        """The name of the files of a fit; the first seed is left out."""
        return f"{method}-{n_bits}" + ("" if seed == self.seeds[0] else f"-seed{seed}")

    @property
    def notes(self) -> list[str]:
        """One line for each code or score that is missing after `run`, with the reason."""
        return list(dict.fromkeys([*self._problems, *self.evaluator.notes]))

    def codes(self, method: str, n_bits: int, seed: int | None = None) -> BinaryVectors:
        """The codes of a method: loaded from the folder, or trained and saved."""
        seed = self.seeds[0] if seed is None else seed
        name = self._name(method, n_bits, seed)
        path = self.folder / "codes" / f"{name}.safetensors"
        note = path.with_suffix(".json")
        params = self._params(method, n_bits, seed)
        wanted = {"vectors": self.settings["vectors"], "params": params, "embits": __version__}
        wanted |= {"fit_rows": self.settings["fit_rows"]}
        if read_json(note).get("settings") == wanted:
            try:
                return load(path)
            except (FormatError, OSError):
                pass  # trained again below
        self._say(f"{name}: training")
        start = time.perf_counter()
        matrix = self.vectors.matrix
        coder = coder_class(method)(**params).fit(
            matrix if self.split is None else matrix[self.split.fitted],
            progress=lambda done, total: self._say(f"{name}: training {done}/{total}"),
        )
        BinaryVectors.encoded(self.vectors, coder).save(path, overwrite=True)
        seconds = round(time.perf_counter() - start, 2)
        write_json(note, {"settings": wanted, "seconds": seconds})
        return load(path)

    def _entry(self, method: str, n_bits: int, seed: int) -> dict[str, Any]:
        bits = self.codes(method, n_bits, seed)
        path = self.folder / "codes" / f"{self._name(method, n_bits, seed)}.safetensors"
        fit = self._fit_coder(bits.coder, seed)
        entry = self.evaluator.evaluate_bits(bits, path, fit, self.split)
        seconds = read_json(path.with_suffix(".json")).get("seconds")
        return entry | {"seconds": seconds, "params": bits.coder.get_params()}

    def _fit_coder(self, coder: Coder, seed: int) -> FitCoder:
        """A function that fits a coder of the same kind on the corpus of a retrieval set."""

        def fit(corpus: NDArray[np.float32]) -> Coder:
            if self.split is None and np.array_equal(corpus, self.vectors.matrix):
                return coder
            width = corpus.shape[1] if coder.method == "sign" else coder.n_bits_
            params = self._params(coder.method, width, seed)
            return coder_class(coder.method)(**params).fit(corpus)

        return fit

    def _kept(self, name: str, seed: int, make: Callable[[], dict[str, Any]]) -> Kept:
        """The saved entry if it was computed with the same settings, else a new one."""
        self._current = name
        path = self.folder / "codes" / f"{name}.scores.json"
        drawn = path.with_name(f"{name}.replicates.npz")
        settings = self.settings | {"seed": seed}
        kept, replicates = read_json(path), read_replicates(drawn)
        if kept.get("settings") == settings and replicates is not None:
            self._problems += kept.get("notes", [])
            return dict(kept["entry"]), replicates
        start = time.perf_counter()
        entry = make()
        if entry["file"] is not None:
            entry["file"] = Path(entry["file"]).name  # reports must not show local folders
        entry = jsonable(entry)
        notes = self.evaluator.notes
        write_replicates(drawn, self.evaluator.samples.replicates)
        write_json(path, {"settings": settings, "entry": entry, "notes": notes})
        self._say(f"{name}: done in {time.perf_counter() - start:.1f} s")
        return dict(entry), read_replicates(drawn) or {}

    def _params(self, method: str, n_bits: int, seed: int) -> dict[str, Any]:
        takes = coder_class(method).param_names()
        params = {"n_bits": n_bits, "random_state": seed}
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


def _setting(name: str, value: Any) -> str:
    """A setting for a message, such as "tasks similarity,speed"."""
    if name == "fit_rows":
        return "a fit on all rows" if value is None else f"a fit on {value:,} rows"
    shown = ",".join(value) if isinstance(value, list) else value
    return f"{name} {shown}"
