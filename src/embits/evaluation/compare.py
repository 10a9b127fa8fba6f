"""Score files of codes, and train and score several methods and widths on one set of vectors."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import time
import warnings
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from embits._version import __version__
from embits.arrays import blocks
from embits.binary_vectors import BinaryRows, BinaryVectors
from embits.checks import open_regular, read_small, whole
from embits.coders import METHODS, Coder, coder_class
from embits.collection import load
from embits.collection.pieces import header_digest
from embits.errors import EmbitsError, FormatError, InputError
from embits.evaluation.data import MAX_BYTES, DataFolder
from embits.evaluation.report import bit_picture, write_report
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
from embits.evaluation.tasks.base import Context, FitCoder, RowSplit, Subject
from embits.file import overwrite as outputs
from embits.file.atomic import atomic_write
from embits.file.store import params_json
from embits.ids.keys import RowNumbers
from embits.vectors import WordVectors

ALL_ROWS = np.iinfo(np.int64).max  # to fit on
_MIN_ROWS = 8  # fewer are not divided
Scored: TypeAlias = tuple[Entry, Replicates]
Say: TypeAlias = Callable[[str], None]  # takes a line of text
BITS = (64, 128, 256, 512)
_SAME = ("vectors", "seed", "fit_rows", "params")  # settings that all codes of a folder share
_MAX_SCORES = 1 << 28  # bytes of a file of scores with their replicates
_PROBES = 256  # rows by which an edited coder is recognized
PICTURED = ("queen", "automobile", "jupiter", "man")  # the paper's words


def _silent(text: str) -> None:
    """Print nothing."""


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
        self,
        data: DataFolder | str | os.PathLike[str] | None,
        raw: WordVectors | None = None,
        tasks: Iterable[str] = DEFAULT_TASKS,
        raw_file: Path | None = None,
        say: Say = _silent,
        fit_rows: int | None = None,
        *,
        n_resamples: int = 0,
    ) -> None:
        self.tasks = (tasks,) if isinstance(tasks, str) else tuple(tasks)
        if set(self.tasks) - set(TASKS) or not self.tasks:
            raise InputError(f"tasks are {list(self.tasks)}, expected some of {', '.join(TASKS)}")
        chosen = [task for name, task in TASKS.items() if name in self.tasks]
        if raw is None and all(task.needs_raw for task in chosen):
            raise InputError(f"{' and '.join(self.tasks)}: the raw vectors are needed (--raw)")
        if not isinstance(raw, WordVectors | None):
            raise InputError(f"raw is a {type(raw).__name__}, expected WordVectors")
        self.data = DataFolder.at(data) if any(task.reads_data for task in chosen) else None
        self.raw_file, self._fit_rows = raw_file, fit_rows
        self.raw = self._aligned = None if raw is None else FloatSpace.of(raw)
        self.samples = Samples(n_resamples)
        self._context = Context(chosen, self.data, raw is not None, say)

    @property
    def notes(self) -> list[str]:
        """One line for each score that could not be measured, with the reason."""
        return [*(self.data.problems if self.data else ()), *self._context.notes]

    def evaluate_raw(self) -> Entry:
        """The entry of the float vectors."""
        if self.raw is None:
            raise InputError("no raw vectors were given, so they cannot be scored")
        self.samples = Samples(self.samples.n_resamples)
        return self._entry("raw", Subject(self._context, self.raw, self.samples, self.raw_file))

    def evaluate_bits(
        self,
        bits: BinaryRows,
        file: Path | None = None,
        fit: FitCoder | None = None,
        split: RowSplit | None = None,
    ) -> Entry:
        """The entry of one file of codes.

        Args:
            file: The file of the codes, to measure its loading time.
            fit: Fits a coder on the corpus of a retrieval set; None takes the coder of `bits`, and
                leaves out sets of other dimensions.
            split: The rows that the coder of `bits` was fitted on, and the others, which are
                measured. None fits a new coder if `fit_rows` says so.
        """
        bits = bits.merged()
        measured: BinaryRows = bits
        has_words_of_raw = self.raw is not None and same_words(self.raw.words, bits.words)
        space = BitSpace(bits, self.raw.lookup if self.raw and has_words_of_raw else None)
        self.samples = Samples(self.samples.n_resamples)
        raw = self._raw_of(space, file)
        if raw is not None and split is None and any(t.needs_raw for t in self._context.tasks):
            measured, split = self._refitted(bits, raw)
        subject = Subject(self._context, space, self.samples, file, measured, raw, split, fit)
        return self._entry(bits.coder.method, subject)

    def _entry(self, method: str, subject: Subject) -> Entry:
        file, space = subject.file and str(subject.file), subject.space
        entry: Entry = {"file": file, "method": method, "bits": space.n_bits, "words": len(space)}
        for task in self._context.tasks:
            self._context.say(task.name)
            if (scores := task.run(subject)) is not None:
                entry[task.name] = scores
        of_scores = intervals(self.samples.replicates)
        return entry | ({"intervals": of_scores} if of_scores else {})

    def _raw_of(self, space: BitSpace, file: Path | None) -> FloatSpace | None:
        """The raw vectors with the rows of a file; None, and a note, if there are none."""
        names = " and ".join(task.name for task in self._context.tasks if task.needs_raw)
        if self.raw is None:
            note = f"{names} need the raw vectors: give --raw" if names else ""
        elif self.raw.dims != space.bits.dims:
            note = f"raw vectors of {self.raw.dims} dimensions, expected {space.bits.dims}"
        elif self._aligned is not None and same_words(self._aligned.words, space.words):
            return self._aligned
        else:
            rows = Lookup(self.raw.words, case_insensitive=False).rows(space.words)
            if (rows != MISSING).all():
                self._aligned = FloatSpace(space.words, self.raw.matrix[rows], space.lookup)
                return self._aligned
            word = space.words[int(rows.argmin())]
            note = f"{(rows == MISSING).sum():,} of its words have no raw vector, such as {word!r}"
        if self.raw is not None:
            skipped = f"{names} are skipped" if names else "the column raw is of other vectors"
            note = f"{file or 'a file'}: {skipped}: {note}"
        if note:
            self._context.notes[note] = None
        return None

    def _refitted(self, bits: BinaryRows, raw: FloatSpace) -> tuple[BinaryRows, RowSplit | None]:
        """Codes of a new coder with the same parameters that is fitted on a part of the rows."""
        has_words = not isinstance(bits.words, RowNumbers)
        split = split_rows(len(raw), self._fit_rows, has_words=has_words)
        if split is None:
            return bits, None
        self._context.say(f"fitting on {len(split.fitted):,} rows")
        try:
            coder = type(bits.coder)(**bits.coder.get_params()).fit(raw.matrix[split.fitted])
        except EmbitsError as error:
            self._context.notes[f"no rows outside the fit are measured: {error}"] = None
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


class Fit(NamedTuple):
    """One coder of a comparison."""

    method: str
    n_bits: int
    seed: int


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
        report: Called with a line of text for each code that is done or skipped.

    Raises:
        InputError: A method, task or width is unknown, or no method takes one of `params`.

    Attributes:
        plan: The (method, width) pairs: those of the arguments, and others in the folder that were
            trained on the same vectors with the same seed and parameters.
        entries: After `run`, the entry of the raw vectors, then of every code.
        replicates: After `run`, the bootstrap replicates of the scores of each entry by path.
    """

    def __init__(
        self,
        vectors: WordVectors,
        folder: str | os.PathLike[str],
        data: DataFolder | str | os.PathLike[str] | None,
        bits: Sequence[int] = BITS,
        methods: Iterable[str] | None = None,
        tasks: Iterable[str] = tuple(TASKS),
        seeds: int | Sequence[int] = 0,
        vectors_file: Path | None = None,
        say: Say = _silent,
        *,
        fit_rows: int | None = None,
        n_resamples: int = N_RESAMPLES,
        params: Mapping[str, object] | None = None,
        report: Say = _silent,
    ) -> None:
        self.vectors, self.folder = vectors, Path(folder)
        self.seeds = [seeds] if isinstance(seeds, int) else list(dict.fromkeys(seeds))
        self.entries, self.replicates = list[Entry](), list[Replicates]()
        self._say, self._report = say, report
        self._problems, self._current, self._codes = list[str](), "", self.folder / "codes"
        self.evaluator = Evaluator(
            data, vectors, tasks, vectors_file, self._say_step, ALL_ROWS, n_resamples=n_resamples
        )
        self.split = split_rows(len(vectors), fit_rows, has_words=vectors.words is not None)
        self.settings: Entry = {
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
        plan = [
            (method, width)
            for method in (METHODS if methods is None else methods)
            for width in ([vectors.dims] if coder_class(method).method == "sign" else bits)
        ]
        params_json(self.settings["params"])  # refuses NaN, and what is no plain value
        for name in self.settings["params"]:
            if option := {"n_bits": "bits", "random_state": "seeds"}.get(name):
                raise InputError(f"params has {name}: give {option} (--{option}) instead")
            if not any(name in coder_class(method).param_names() for method, _ in plan):
                raise InputError(f"none of the methods takes the parameter {name!r}")
        written = [f"codes/{path.name}" for path in self._codes.glob("*.[js]*")]
        outputs.check_folder(self.folder, [*written, "codes/raw.scores.json"], overwrite=True)
        for path in sorted(self._codes.glob("*.scores.json")):
            match _read_json(path):
                case {"settings": saved, "entry": {"method": str(method), "bits": int(width)}}:
                    same = all(saved.get(name) == self.settings[name] for name in _SAME)
                    plan += [(method, width)] if same and method in METHODS else []
        order = list(dict.fromkeys(method for method, _ in plan))
        self.plan = sorted(set(plan), key=lambda code: (order.index(code[0]), code[1]))
        self._codes.mkdir(parents=True, exist_ok=True)

    def _say_step(self, step: str) -> None:
        self._say(f"{self._current}: {step}")

    def run(self, *, overwrite: bool = False) -> list[Entry]:
        """Train and score what is missing, and return the `entries`.

        Scores of other vectors, rows or tasks are refused, or replaced with `overwrite`.
        """
        self.settings["vectors"] = fingerprint(self.vectors)  # they may have been changed meanwhile
        saved = {} if overwrite else _read_json(self._codes / "raw.scores.json")
        for name, value in saved.get("settings", {}).items():
            if name in (*_SAME, "tasks") and value != self.settings[name]:
                raise InputError(
                    f"{self.folder} has results of {name} {value}, expected {self.settings[name]}: "
                    f"choose another folder for the report, or {outputs.OVERWRITE}"
                )
        scored = [self._scored("raw", self.seeds[0], self.evaluator.evaluate_raw)]
        for method, n_bits in self.plan:
            has_seed = "random_state" in coder_class(method).param_names()
            seeds = self.seeds if has_seed else self.seeds[:1]
            try:
                fits = [self._scored_fit(Fit(method, n_bits, seed)) for seed in seeds]
            except EmbitsError as error:  # a method that fails does not stop the others
                self._problems.append(f"{method}-{n_bits} is skipped: {error}")
                self._report(self._problems[-1])
                continue
            entry, replicates = mean_fits(fits, seeds)
            scored.append((jsonable(entry), replicates))
        self.entries, self.replicates = map(list, zip(*scored, strict=True))
        return self.entries

    @property
    def notes(self) -> list[str]:
        """One line for each code or score that is missing after `run`, with the reason."""
        return list(dict.fromkeys([*self._problems, *self.evaluator.notes]))

    def tests(self) -> list[Entry]:
        """After `run`: paired tests between methods, as `paired_tests` returns them."""
        return paired_tests(self.entries, self.replicates) if self.settings["resamples"] else []

    def write_report(
        self,
        title: str = "Comparison of binary codes",
        settings: Mapping[str, object] | None = None,
        *,
        overwrite: bool = False,
        latex: bool = False,
    ) -> list[Path]:
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
        return write_report(
            self.folder,
            title,
            self.entries,
            facts | dict(settings or {}),
            notes=[
                note.replace(f"{data.path}{os.sep}", "") if data else note for note in self.notes
            ],
            overwrite=overwrite,
            tests=self.tests(),
            latex=latex,
            picture=self._picture(),
        )

    def _picture(self) -> bytes:
        """The bits of the paper's words in the widest codes of the default method."""
        grid = Grid(self.entries)
        widths = [entry["bits"] for entry in grid.coded if entry["method"] == grid.main_method]
        bits = self.codes(grid.main_method, max(widths)) if widths else None
        words = [word for word in PICTURED if bits is not None and word in bits]
        return bit_picture(bits, words) if bits is not None and words else b""

    def codes(self, method: str, n_bits: int, seed: int | None = None) -> BinaryRows:
        """The codes of a method: loaded from the folder, or trained and saved."""
        fit = Fit(method, n_bits, self.seeds[0] if seed is None else seed)
        name, params, path = self._name(fit), self._params(fit), self._path(fit)
        note = path.with_suffix(".json")
        settings = {"params": params, "coder": self._behavior(fit)}
        settings |= {name: self.settings[name] for name in ("vectors", "embits", "fit_rows")}
        saved = _read_json(note)
        with contextlib.suppress(FormatError, OSError):  # trained again below
            if saved.get("settings") == settings and saved.get("header") == header_digest(path):
                return load(path)
        self._say(f"{name}: training")
        start, matrix = time.perf_counter(), self.vectors.matrix
        coder = coder_class(method)(**params).fit(
            matrix if self.split is None else matrix[self.split.fitted],
            progress=lambda done, total: self._say(f"{name}: training {done}/{total}"),
        )
        BinaryVectors.encoded(self.vectors, coder).save(path, overwrite=True)
        seconds = round(time.perf_counter() - start, 2)
        facts = {"settings": settings, "seconds": seconds, "header": header_digest(path)}
        _write_json(note, facts)
        return load(path)

    def _name(self, fit: Fit) -> str:
        seed = "" if fit.seed == self.seeds[0] else f"-seed{fit.seed}"
        return f"{fit.method}-{fit.n_bits}{seed}"

    def _path(self, fit: Fit) -> Path:
        return self._codes / f"{self._name(fit)}.safetensors"

    def _params(self, fit: Fit) -> Entry:
        names = coder_class(fit.method).param_names()
        params = {"random_state": fit.seed} | self.settings["params"] | {"n_bits": fit.n_bits}
        return {name: value for name, value in params.items() if name in names}

    def _behavior(self, fit: Fit) -> str:
        """A checksum of what a coder of the user makes of a few rows: it may have been edited."""
        coder = coder_class(fit.method)(**self._params(fit))
        if type(coder).__module__.startswith("embits."):
            return ""
        rows = self.vectors.matrix[:: max(1, len(self.vectors) // _PROBES)][:_PROBES]
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                codes = coder.fit(rows).encode(rows)
                arrays = codes, coder.project(rows), coder.inverse_transform(codes)
            content = b"".join(np.asarray(array).tobytes() for array in arrays)
        except (EmbitsError, ValueError, ArithmeticError) as error:  # too few rows for it
            content = str(error).encode()
        return f"{zlib.crc32(content):08x}"

    def _scored_fit(self, fit: Fit) -> Scored:
        name, make = self._name(fit), partial(self._entry, fit)
        return self._scored(name, fit.seed, make, self._behavior(fit))

    def _entry(self, fit: Fit) -> Entry:
        bits = self.codes(*fit)

        def fit_corpus(corpus: NDArray[np.float32]) -> Coder:
            if self.split is None and np.array_equal(corpus, self.vectors.matrix):
                return bits.coder
            width = corpus.shape[1] if fit.method == "sign" else fit.n_bits
            return coder_class(fit.method)(**self._params(fit._replace(n_bits=width))).fit(corpus)

        entry = self.evaluator.evaluate_bits(bits, self._path(fit), fit_corpus, self.split)
        seconds = _read_json(self._path(fit).with_suffix(".json")).get("seconds")
        return entry | {"seconds": seconds, "params": bits.coder.get_params()}

    def _scored(self, name: str, seed: int, make: Callable[[], Entry], coder: str = "") -> Scored:
        """The saved entry if it was computed with the same settings, else a new one."""
        self._current = name
        path = self._codes / f"{name}.scores.json"
        settings = self.settings | {"seed": seed, "coder": coder}
        saved = _read_json(path)
        kinds = [type(saved.get(name)) for name in ("entry", "notes", "replicates")]
        if saved.get("settings") != settings or kinds != [dict, list, dict]:
            start = time.perf_counter()
            entry = jsonable(make())
            if entry["file"] is not None:
                entry["file"] = Path(entry["file"]).name  # reports must not show local folders
            replicates = self.evaluator.samples.replicates.items()
            values = {key: each.astype(np.float32).tolist() for key, each in replicates}
            saved = {"settings": settings, "entry": entry, "notes": self.evaluator.notes}
            saved["replicates"] = jsonable(values)
            _write_json(path, saved)
            line = f"{name}: done in {time.perf_counter() - start:.1f} s"
            self._say(line)
            self._report(line)
        self._problems += saved["notes"]
        values = saved["replicates"].items()
        return saved["entry"], {key: np.array(each, np.float32) for key, each in values}


def paired_tests(entries: Sequence[Entry], replicates: Sequence[Replicates]) -> list[Entry]:
    """Test every two methods of the same width on the main measures.

    It takes the entries of a comparison and the replicates of each, and returns for each test
    `{"measure", "bits", "a", "b", "difference", "low", "high", "p", "is_bound"}`: the score of a
    minus that of b, its 95 % interval, and a two-sided p-value, which is only an upper bound if no
    replicate contradicts the difference.
    """
    scores = [score for score in all_scores(entries) if score.heading]
    pairs = zip(entries, replicates, strict=True)
    coded = [(entry, of_entry) for entry, of_entry in pairs if entry["method"] != "raw"]
    tests = []
    for (a, of_a), (b, of_b) in combinations(coded, 2):
        for score in scores if a["bits"] == b["bits"] else ():
            values, key = (score.of(a), score.of(b)), score.key
            if key in of_a and key in of_b and None not in values:
                test = paired_test(*values, of_a[key], of_b[key])
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


def data_fingerprint(data: DataFolder | None, tasks: Iterable[str]) -> str:
    """A checksum of the files of the data sets of these tasks: their names and their bytes."""
    if data is None:
        return "none"
    checksum = hashlib.sha256()
    for path in sorted(path for task in tasks for path in (data.path / task).rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            checksum.update(f"{path.relative_to(data.path)}\n".encode())
            with contextlib.suppress(OSError, FormatError), open_regular(path, MAX_BYTES) as file:
                checksum.update(hashlib.file_digest(file, "sha256").digest())
    return checksum.hexdigest()[:16]


def _read_json(path: Path) -> Entry:
    """What was saved in a file with its settings; empty if there is nothing of the kind."""
    with contextlib.suppress(OSError, ValueError, RecursionError):
        value = json.loads(read_small(path, _MAX_SCORES))
        if isinstance(value, dict) and isinstance(value.get("settings"), dict):
            return value
    return {}


def _write_json(path: Path, value: Entry) -> None:
    with atomic_write(path) as file:
        file.write(json.dumps(value, ensure_ascii=False, allow_nan=False).encode())
