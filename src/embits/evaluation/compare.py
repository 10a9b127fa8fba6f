"""Score files of codes, and train and score several methods and widths on one set of vectors."""

from __future__ import annotations

import contextlib
import hashlib
import inspect
import json
import os
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits._version import __version__
from embits.arrays import blocks
from embits.binary_vectors import BinaryVectors
from embits.checks import open_regular, read_small, whole
from embits.coders import METHODS, Coder, coder_class
from embits.collection import load
from embits.collection.pieces import header_digest
from embits.errors import EmbitsError, FormatError, InputError
from embits.evaluation.data import MAX_BYTES, DataFolder
from embits.evaluation.report import Picture, bit_picture, write_report
from embits.evaluation.results import Entry, Grid, jsonable
from embits.evaluation.spaces import MISSING, BitSpace, FloatSpace, Lookup, same_words
from embits.evaluation.statistics import (
    N_RESAMPLES,
    Replicates,
    Samples,
    intervals,
    mean_fits,
    paired_test,
)
from embits.evaluation.tasks import DEFAULT_TASKS, TASKS, all_scores
from embits.evaluation.tasks.base import FitCoder, RowSplit, Subject
from embits.file import overwrite as outputs
from embits.file.atomic import atomic_write
from embits.file.store import params_json
from embits.ids.keys import RowNumbers
from embits.vectors import WordVectors

ALL_ROWS = np.iinfo(np.int64).max  # to fit on
_MIN_ROWS = 8  # fewer are not divided
Kept: TypeAlias = tuple[Entry, Replicates]
BITS = (64, 128, 256, 512)
_SAME = ("vectors", "seed", "fit_rows", "params")  # settings that all codes of a folder share
_MAX_SCORES = 1 << 28  # bytes of a file of scores with their replicates
_CORRELATED = 20_000  # rows, about, that show how bits correlate
_PROBED = 256  # rows by which an edited coder is recognized
PICTURED = ("queen", "automobile", "jupiter", "man")  # the paper's words


class Evaluator:
    """Scores binary vectors, and the float vectors they were made from, on a set of tasks.

    Args:
        data: The folder of data sets, or its path. None takes the environment variable
            EMBITS_DATA if a task needs data sets.
        raw: The float vectors. They are scored as well, and neighbors and reconstruction are
            measured against them; None skips those two.
        tasks: Which of `TASKS`.
        raw_file: The file of `raw`, to measure its loading time.
        say: Called with the name of each step when it starts.
        fit_rows: Rows to fit a new coder on, to measure neighbors and reconstruction on the
            others; None is half of the rows, or for words all: their codes are measured as is.
        n_resamples: Bootstrap replicates of each score, for 95 % intervals under "intervals".
            Those of the last entry are in `samples`.

    Raises:
        InputError: A task is unknown, or lacks data sets or `raw`.
    """

    def __init__(
        self, data: DataFolder | str | os.PathLike[str] | None, raw: WordVectors | None = None,
        tasks: Iterable[str] = DEFAULT_TASKS, raw_file: Path | None = None,
        say: Callable[[str], None] | None = None, fit_rows: int | None = None, *,
        n_resamples: int = 0,
    ) -> None:  # fmt: skip
        self.tasks = (tasks,) if isinstance(tasks, str) else tuple(tasks)
        if set(self.tasks) - set(TASKS) or not self.tasks:
            raise InputError(f"tasks are {list(self.tasks)}, expected some of {', '.join(TASKS)}")
        self._tasks = [task for name, task in TASKS.items() if name in self.tasks]
        if raw is None and all(task.needs_raw for task in self._tasks):
            raise InputError(f"{' and '.join(self.tasks)}: the raw vectors are needed (--raw)")
        if not isinstance(raw, WordVectors | None):
            raise InputError(f"raw is a {type(raw).__name__}, expected WordVectors")
        reads_data = any(task.reads_data for task in self._tasks)
        if isinstance(data, str | os.PathLike) or (data is None and reads_data):
            data = DataFolder.at(data)
        elif not isinstance(data, DataFolder | None):
            raise InputError(f"data is a {type(data).__name__}, expected a DataFolder or a path")
        self.data, self.raw_file, self._fit_rows = data, raw_file, fit_rows
        self.raw = self._aligned = None if raw is None else FloatSpace.of(raw)
        self.samples = Samples(n_resamples)
        self._say = say or (lambda step: None)
        self._notes: dict[str, None] = {}
        self._note = self._notes.setdefault
        self._subject = partial(
            Subject, tasks=self._tasks, data=self.data, has_raw=raw is not None, say=self._say,
            note=self._note, kept={},
        )  # fmt: skip

    @property
    def notes(self) -> list[str]:
        """One line for each score that could not be measured, with the reason."""
        return [*(self.data.problems if self.data else ()), *self._notes]

    def evaluate_raw(self, *, all_sets: bool = False) -> dict[str, Any]:
        """The entry of the float vectors; `all_sets` scores retrieval sets of any dimensions."""
        if self.raw is None:
            raise InputError("no raw vectors were given, so they cannot be scored")
        self.samples = Samples(self.samples.n_resamples)
        dims = None if all_sets else self.raw.dims
        subject = self._subject(self.raw, self.samples, file=self.raw_file, dims=dims)
        return self._entry("raw", subject)

    def evaluate_bits(
        self, bits: BinaryVectors, file: Path | None = None, fit: FitCoder | None = None,
        split: RowSplit | None = None,
    ) -> dict[str, Any]:  # fmt: skip
        """The entry of one file of codes.

        Args:
            file: The file of the codes, to measure its loading time.
            fit: Fits a coder on the corpus of a retrieval set; None takes the coder of `bits`, and
                leaves out sets of other dimensions.
            split: The rows that the coder of `bits` was fitted on, and the others, which are
                measured. None fits a new coder if `fit_rows` says so.
        """
        bits = bits.merged()
        has_words_of_raw = self.raw is not None and same_words(self.raw.words, bits.words)
        space = BitSpace(bits, self.raw.lookup if self.raw and has_words_of_raw else None)
        self.samples = Samples(self.samples.n_resamples)
        raw, measured = self._raw_of(space, file), bits
        if raw is not None and split is None and any(task.needs_raw for task in self._tasks):
            measured, split = self._refitted(bits, raw)
        subject = self._subject(
            space, self.samples, file=file, bits=measured, raw=raw, split=split, fit=fit,
            dims=bits.dims if fit is None else None,
        )  # fmt: skip
        return self._entry(bits.coder.method, subject)

    def _entry(self, method: str, subject: Subject) -> Entry:
        file, space = subject.file and str(subject.file), subject.space
        entry: Entry = {"file": file, "method": method, "bits": space.n_bits, "words": len(space)}
        for task in self._tasks:
            self._say(task.name)
            found = task.run(subject)
            entry |= {} if found is None else {task.name: found}
        drawn = intervals(self.samples.replicates)
        return entry | ({"intervals": drawn} if drawn else {})

    def _raw_of(self, space: BitSpace, file: Path | None) -> FloatSpace | None:
        """The raw vectors with the rows of a file; None, and a note, if there are none."""
        names = " and ".join(task.name for task in self._tasks if task.needs_raw)
        if self.raw is None:
            return self._note(f"{names} need the raw vectors: give --raw") if names else None
        reason = ""
        if self.raw.dims != space.bits.dims:
            reason = f"raw vectors of {self.raw.dims} dimensions, expected {space.bits.dims}"
        elif self._aligned is None or not same_words(self._aligned.words, space.words):
            rows = Lookup(self.raw.words, case_insensitive=False).rows(space.words)
            if n_missing := int((rows == MISSING).sum()):
                word = space.words[int(rows.argmin())]
                reason = f"{n_missing:,} of its words have no raw vector, such as {word!r}"
            else:
                self._aligned = FloatSpace(space.words, self.raw.matrix[rows], space.lookup)
        if not reason:
            return self._aligned
        skipped = f"{names} are skipped" if names else "the column raw is of other vectors"
        return self._note(f"{file or 'a file'}: {skipped}: {reason}")

    def _refitted(
        self, bits: BinaryVectors, raw: FloatSpace
    ) -> tuple[BinaryVectors, RowSplit | None]:
        """Codes of a new coder with the same parameters that is fitted on a part of the rows."""
        has_words = not isinstance(bits.words, RowNumbers)
        split = split_rows(len(raw), self._fit_rows, has_words=has_words)
        if split is None:
            return bits, None
        self._say(f"fitting on {len(split.fitted):,} rows")
        try:
            coder = type(bits.coder)(**bits.coder.get_params()).fit(raw.matrix[split.fitted])
        except EmbitsError as error:
            self._note(f"no rows outside the fit are measured: {error}")
            return bits, None
        return BinaryVectors(None, coder.encode(raw.matrix), coder), split


def split_rows(n: int, fit_rows: int | None, *, has_words: bool) -> RowSplit | None:
    """Divide n rows at random into rows to fit on and others; None if all rows are fitted on.

    `fit_rows` of None is half of the rows, or all words: a vocabulary is known in advance.
    """
    if fit_rows is None:
        fit_rows = ALL_ROWS if has_words or n < _MIN_ROWS else n // 2
    if whole("fit_rows", fit_rows, 1) >= n:
        return None
    # One seed: the same rows for all methods and seeds of a comparison.
    order = np.random.default_rng(0).permutation(n)
    return RowSplit(np.sort(order[:fit_rows]), np.sort(order[fit_rows:]))


class Comparison:
    """Codes of several methods and widths with their scores.

    Each finished step is saved in a folder: an interrupted run can be resumed, and one with more
    methods or widths computes only the new ones.

    Args:
        folder: Folder for codes and results; created if it does not exist.
        data: The folder of data sets, or its path.
        bits: Widths; "sign" uses the number of dimensions instead.
        methods: Names of coders; None takes all.
        tasks: Which of `TASKS`.
        seeds: Seeds of coders that take one; of several, entries have means over the fits.
        vectors_file: Where the vectors were read from.
        say: Called with a line of text at each step.
        fit_rows: As in `Evaluator`; None is all rows of word vectors, and half of others.
        n_resamples: Bootstrap replicates of each score, for intervals and tests.
        params: Parameters of coders. Each is given to every method that takes it.

    Raises:
        InputError: A method, task or width is unknown, or no method takes one of `params`.

    Attributes:
        plan: The (method, width) pairs: those asked for, and others in the folder that were
            trained on the same vectors with the same seed and parameters.
        entries: After `run`, the entry of the raw vectors, then of every code.
        replicates: After `run`, the bootstrap replicates of the scores of each entry by path.
    """

    def __init__(
        self, vectors: WordVectors, folder: str | os.PathLike[str],
        data: DataFolder | str | os.PathLike[str] | None, bits: Sequence[int] = BITS,
        methods: Iterable[str] | None = None, tasks: Iterable[str] = tuple(TASKS),
        seeds: int | Sequence[int] = 0, vectors_file: Path | None = None,
        say: Callable[[str], None] | None = None, *, fit_rows: int | None = None,
        n_resamples: int = N_RESAMPLES, params: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        self.vectors, self.folder = vectors, Path(folder)
        self.seeds = [seeds] if isinstance(seeds, int) else list(dict.fromkeys(seeds))
        self.entries, self.replicates = list[Entry](), list[Replicates]()
        self._say = say or (lambda text: None)
        self._problems, self._current, self._codes = list[str](), "", self.folder / "codes"
        self.evaluator = Evaluator(
            data, vectors, tasks, vectors_file, lambda step: self._say(f"{self._current}: {step}"),
            ALL_ROWS, n_resamples=n_resamples,
        )  # fmt: skip
        self.split = split_rows(len(vectors), fit_rows, has_words=vectors.words is not None)
        self.settings: dict[str, Any] = {
            "embits": __version__,
            "vectors": fingerprint(vectors),
            "data": data_fingerprint(self.evaluator.data, self.evaluator.tasks),
            "tasks": list(self.evaluator.tasks),
            "seed": self.seeds[0],
            "fit_rows": None if self.split is None else len(self.split.fitted),
            "resamples": n_resamples,
            "params": dict(params or {}),
        }
        if not isinstance(bits, Iterable) or any(whole("bits", n) < 1 for n in bits):
            raise InputError(f"bits are {bits}, expected a list of numbers from 1")
        asked = [
            (method, width)
            for method in (METHODS if methods is None else methods)
            for width in ([vectors.dims] if coder_class(method).method == "sign" else bits)
        ]
        params_json(self.settings["params"])  # refuses NaN, and what is no plain value
        for name in self.settings["params"]:
            if option := {"n_bits": "bits", "random_state": "seeds"}.get(name):
                raise InputError(f"params has {name}: give {option} (--{option}) instead")
            if not any(name in coder_class(method).param_names() for method, _ in asked):
                raise InputError(f"none of the methods takes the parameter {name!r}")
        kept = [f"codes/{path.name}" for path in self._codes.glob("*.[js]*")]
        outputs.check_folder(self.folder, [*kept, "codes/raw.scores.json"], overwrite=True)
        for path in sorted(self._codes.glob("*.scores.json")):
            match _read_json(path):
                case {"settings": found, "entry": {"method": str(method), "bits": int(width)}}:
                    same = (found.get(name) == self.settings[name] for name in _SAME)
                    asked += [(method, width)] if all(same) and method in METHODS else []
        order = list(dict.fromkeys(method for method, _ in asked))
        self.plan = sorted(set(asked), key=lambda code: (order.index(code[0]), code[1]))
        self._codes.mkdir(parents=True, exist_ok=True)

    def check_folder(self) -> None:
        """Refuse, by an InputError, a folder with the scores of other vectors, rows or tasks."""
        saved = _read_json(self._codes / "raw.scores.json").get("settings")
        for name in (*_SAME, "tasks"):
            if saved and saved.get(name) != self.settings[name]:
                raise InputError(
                    f"{self.folder} has results of {name} {saved.get(name)}, expected "
                    f"{self.settings[name]}: choose another folder for the report, or "
                    f"{outputs.OVERWRITE}"
                )

    def run(self, *, overwrite: bool = False) -> list[dict[str, Any]]:
        """Train and score what is missing, and return the `entries`.

        Scores of other vectors, rows or tasks are refused, or replaced with `overwrite`.
        """
        self.settings["vectors"] = fingerprint(self.vectors)  # they may have been changed meanwhile
        if not overwrite:
            self.check_folder()
        evaluate_raw = partial(self.evaluator.evaluate_raw, all_sets=True)
        kept = [self._kept("raw", self.seeds[0], evaluate_raw)]
        for method, n_bits in self.plan:
            try:
                kept.append(self._fits(method, n_bits))
            except EmbitsError as error:  # a method that fails does not stop the others
                self._problems.append(f"{method}-{n_bits} is skipped: {error}")
                self._say(self._problems[-1])
        self.entries, self.replicates = map(list, zip(*kept, strict=True))
        return self.entries

    @property
    def notes(self) -> list[str]:
        """One line for each code or score that is missing after `run`, with the reason."""
        return list(dict.fromkeys([*self._problems, *self.evaluator.notes]))

    def tests(self) -> list[dict[str, Any]]:
        """After `run`: paired tests between methods, as `paired_tests` returns them."""
        return paired_tests(self.entries, self.replicates) if self.settings["resamples"] else []

    def write_report(
        self, title: str = "Comparison of binary codes", settings: Mapping[str, Any] | None = None,
        *, overwrite: bool = False, latex: bool = False,
    ) -> list[Path]:  # fmt: skip
        """After `run`: write the report into the folder, and return the files written.

        `settings` are more facts for its table of settings; the others are as in `write_report`.
        """
        if not self.entries:
            raise InputError("there are no results to report: call run() first")
        facts = {
            "words": f"{len(self.vectors):,}",
            "dimensions": self.vectors.dims,
            "seeds": ", ".join(map(str, self.seeds)),
            "rows of the fit": f"{self.settings['fit_rows'] or len(self.vectors):,}",
        }
        data = self.evaluator.data
        notes = [note.replace(f"{data.path}{os.sep}", "") if data else note for note in self.notes]
        return write_report(
            self.folder, title, self.entries, facts | dict(settings or {}), self._pictures(), notes,
            overwrite, tests=self.tests(), latex=latex,
        )  # fmt: skip

    def _pictures(self) -> list[Picture]:
        """The bits of the paper's words in the widest codes of the default method."""
        grid = Grid(self.entries)
        if not grid.coded:
            return []
        method = grid.main_method
        width = max(entry["bits"] for entry in grid.coded if entry["method"] == method)
        bits, about = self.codes(method, width), f"{method}, {width} bits"
        return [
            Picture(f"bits-{word}.png", bit_picture(bits, [word]), f"{word}: {about}")
            for word in PICTURED
            if word in bits
        ]

    def codes(self, method: str, n_bits: int, seed: int | None = None) -> BinaryVectors:
        """The codes of a method: loaded from the folder, or trained and saved."""
        fit = method, n_bits, self.seeds[0] if seed is None else seed
        name, params = self._name(*fit), self._params(*fit)
        path, note = self._codes / f"{name}.safetensors", self._codes / f"{name}.json"
        wanted = {"params": params, "coder": self._produced(*fit)}
        wanted |= {name: self.settings[name] for name in ("vectors", "embits", "fit_rows")}
        saved = _read_json(note)
        with contextlib.suppress(FormatError, OSError):  # trained again below
            if saved.get("settings") == wanted and saved.get("header") == header_digest(path):
                return load(path)
        self._say(f"{name}: training")
        start, matrix = time.perf_counter(), self.vectors.matrix
        coder = coder_class(method)(**params).fit(
            matrix if self.split is None else matrix[self.split.fitted],
            progress=lambda done, total: self._say(f"{name}: training {done}/{total}"),
        )
        BinaryVectors.encoded(self.vectors, coder).save(path, overwrite=True)
        facts = {"settings": wanted, "seconds": round(time.perf_counter() - start, 2)}
        losses = getattr(coder, "loss_curve_", np.empty((0, 2)))[:, -2].tolist()
        _write_json(note, facts | {"header": header_digest(path), "loss_curve": losses})
        return load(path)

    def _name(self, method: str, n_bits: int, seed: int) -> str:
        return f"{method}-{n_bits}" + ("" if seed == self.seeds[0] else f"-seed{seed}")

    def _params(self, method: str, n_bits: int, seed: int) -> dict[str, Any]:
        takes = coder_class(method).param_names()
        params = {"random_state": seed} | self.settings["params"] | {"n_bits": n_bits}
        return {name: value for name, value in params.items() if name in takes}

    def _produced(self, method: str, n_bits: int, seed: int) -> str:
        """A checksum of what a coder of the user makes of a few rows, and of its source."""
        coder = coder_class(method)(**self._params(method, n_bits, seed))
        if type(coder).__module__.startswith("embits."):  # others may have been edited since
            return ""
        rows = self.vectors.matrix[:: max(1, len(self.vectors) // _PROBED)][:_PROBED]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                codes = coder.fit(rows).encode(rows)
                arrays = codes, coder.project(rows), coder.inverse_transform(codes)
            made = b"".join(np.asarray(array).tobytes() for array in arrays)
        except (EmbitsError, ValueError, ArithmeticError) as error:  # too few rows for it
            made = str(error).encode()
        with contextlib.suppress(OSError, TypeError):  # a class without a source file
            made += inspect.getsource(type(coder)).encode()
        return f"{zlib.crc32(made):08x}"

    def _fits(self, method: str, n_bits: int) -> Kept:
        takes_seed = "random_state" in coder_class(method).param_names()
        kept, seeds = [], self.seeds[: None if takes_seed else 1]
        for seed in seeds:
            fit = method, n_bits, seed
            make, coder = partial(self._entry, *fit), self._produced(*fit)
            kept.append(self._kept(self._name(*fit), seed, make, coder))
        entry, replicates = mean_fits(kept, seeds)
        if len(seeds) > 1 and replicates:
            entry["intervals"] = jsonable(intervals(replicates))
        return entry, replicates

    def _entry(self, method: str, n_bits: int, seed: int) -> Entry:
        bits = self.codes(method, n_bits, seed)
        path = self._codes / f"{self._name(method, n_bits, seed)}.safetensors"

        def fit(corpus: NDArray[np.float32]) -> Coder:
            if self.split is None and np.array_equal(corpus, self.vectors.matrix):
                return bits.coder
            width = corpus.shape[1] if method == "sign" else n_bits
            return coder_class(method)(**self._params(method, width, seed)).fit(corpus)

        entry = self.evaluator.evaluate_bits(bits, path, fit, self.split)
        saved = _read_json(path.with_suffix(".json"))
        entry |= {name: saved.get(name) for name in ("seconds", "loss_curve")}
        return entry | {"params": bits.coder.get_params(), "bit_correlation": correlation(bits)}

    def _kept(self, name: str, seed: int, make: Callable[[], Entry], coder: str = "") -> Kept:
        """The saved entry if it was computed with the same settings, else a new one."""
        self._current = name
        path = self._codes / f"{name}.scores.json"
        settings = self.settings | {"seed": seed, "coder": coder}
        kept = _read_json(path)
        kinds = [type(kept.get(name)) for name in ("entry", "notes", "replicates")]
        if kept.get("settings") != settings or kinds != [dict, list, dict]:
            start = time.perf_counter()
            entry = jsonable(make())
            if entry["file"] is not None:
                entry["file"] = Path(entry["file"]).name  # reports must not show local folders
            found = self.evaluator.samples.replicates.items()
            drawn = jsonable({key: each.astype(np.float32).tolist() for key, each in found})
            kept = {"entry": entry, "notes": self.evaluator.notes, "replicates": drawn}
            _write_json(path, {"settings": settings} | kept)
            self._say(f"{name}: done in {time.perf_counter() - start:.1f} s")
        self._problems += kept["notes"]
        drawn = kept["replicates"].items()
        return kept["entry"], {key: np.array(each, np.float32) for key, each in drawn}


def correlation(bits: BinaryVectors) -> float | None:
    """The mean absolute correlation of every two bits; a constant bit has none with others."""
    codes = bits.codes[:: 1 + len(bits) // _CORRELATED]
    values = np.unpackbits(codes, axis=1, count=bits.n_bits).astype(np.float32)
    values -= values.mean(axis=0)
    values /= np.maximum(np.linalg.norm(values, axis=0), 1e-3)
    pairs = np.abs(values.T @ values)[np.triu_indices(bits.n_bits, 1)]
    return float(pairs.mean()) if len(pairs) else None


def paired_tests(
    entries: Sequence[dict[str, Any]], replicates: Sequence[Replicates]
) -> list[dict[str, Any]]:
    """Test every two methods of the same width on the main measures.

    It takes the entries of a comparison and the replicates of each, and returns for each test
    `{"measure", "bits", "a", "b", "difference", "low", "high", "p", "is_bound"}`: the score of a
    minus that of b, its 95 % interval, and a two-sided p-value, which is only an upper bound if no
    replicate contradicts the difference.
    """
    scores = [score for score in all_scores(entries) if score.is_tested]
    pairs = zip(entries, replicates, strict=True)
    coded = [(entry, drawn) for entry, drawn in pairs if entry["method"] != "raw"]
    tests = []
    for (a, drawn_a), (b, drawn_b) in combinations(coded, 2):
        for score in scores if a["bits"] == b["bits"] else ():
            values, key = (score.of(a), score.of(b)), score.key
            if key in drawn_a and key in drawn_b and None not in values:
                test = paired_test(*values, drawn_a[key], drawn_b[key])
                about = {"measure": key, "bits": a["bits"], "a": a["method"], "b": b["method"]}
                tests.append(about | test._asdict())
    return tests


# -- saved scores ----------------------------------------------------------------------------------


def fingerprint(vectors: WordVectors) -> str:
    """A checksum of words and matrix: a run is resumed only with the same vectors."""
    crc = 0
    for rows in blocks(len(vectors)):
        crc = zlib.crc32(np.ascontiguousarray(vectors.matrix[rows]).tobytes(), crc)
    for word in vectors.words or ():
        crc = zlib.crc32(word.encode(errors="replace") + b"\n", crc)
    return f"{len(vectors)}x{vectors.dims}-{crc:08x}"


def data_fingerprint(data: DataFolder | None, tasks: Iterable[str] = tuple(TASKS)) -> str:
    """A checksum of the files of the data sets of these tasks: their names and their bytes."""
    if data is None:
        return "none"
    found = hashlib.sha256()
    for path in sorted(path for task in tasks for path in (data.path / task).rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            size, changed = path.stat().st_size, path.stat().st_mtime_ns
            facts = f"{path.relative_to(data.path)} {size} {size > MAX_BYTES and changed}\n"
            found.update(facts.encode())
            with contextlib.suppress(OSError, FormatError), open_regular(path, MAX_BYTES) as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:16]


def _read_json(path: Path) -> dict[str, Any]:
    """What was saved in a file with its settings; empty if there is nothing of the kind."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        value: dict[str, Any] = json.loads(read_small(path, _MAX_SCORES))
        return value if isinstance(value, dict) and isinstance(value.get("settings"), dict) else {}
    return {}


def _write_json(path: Path, value: Any) -> None:
    with atomic_write(path) as file:
        file.write(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
