"""A folder of evaluation data sets, and readers of their files.

    similarity/NAME.txt              word word score; also NAME.csv and NAME.tsv
    analogy/questions-words.txt      : section, then lines of four words
    classification/NAME/train.csv    "1","A title","The text" (any number of text columns), test.csv
    retrieval/NAME/corpus.npy        with one id a line in corpus_ids.txt
    retrieval/NAME/queries.npy       with one id a line in query_ids.txt
    retrieval/NAME/qrels.tsv         query-id, corpus-id and score; or qrels/test.tsv

Retrieval sets have BEIR's layout with the embeddings beside the texts. Other similarity files and
folders in the same places are used as well. What is missing, malformed or not recognized is
skipped, and listed in `problems`.
"""

from __future__ import annotations

import contextlib
import csv
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from io import TextIOWrapper
from itertools import islice
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from embits.checks import open_regular
from embits.errors import InputError, MissingExtraError, ReadError
from embits.readers import read_vectors
from embits.vectors import WordVectors

FilePath: TypeAlias = str | os.PathLike[str]
Questions: TypeAlias = list[tuple[str, str, str, str]]

MAX_BYTES = 8 << 30  # of a classification or JSONL file, which are read line by line
_MAX_TEXT = 256 << 20  # bytes of any other
_MAX_LINE = 1 << 24  # characters
MAX_ROWS = 100_000  # per classification file: the full Amazon training set has 3.6 million

# Names of columns in a header, in lower case without other characters than letters and digits.
_FIRST = ("word1", "w1", "first", "firstword", "worda", "a", "term1")
_SECOND = ("word2", "w2", "second", "secondword", "wordb", "b", "term2")
_SCORE = (
    *("score", "similarity", "sim", "rating", "relatedness", "humanmean", "human", "mean"),
    *("averagescore", "average", "gold", "simlex999", "simlex"),
)
_LABEL = ("label", "class", "classindex", "category", "target", "y")
_TEXT = ("text", "title", "description", "sentence", "review", "content", "question")
_MOST_CLASSES = 20  # more than this, on half of the rows, are texts or numbers of rows
_LABELLED = 'rows of a class and texts, such as "1","A title","The text"'


@dataclass(frozen=True)
class Pairs:
    """Pairs of words with human similarity scores, float64 on the data set's own scale."""

    first: list[str]
    second: list[str]
    scores: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.scores)


class Labelled(NamedTuple):
    """The texts of one file and their classes, int64 from 0 in the order of their appearance."""

    texts: list[str]
    classes: NDArray[np.int64]


class Split(NamedTuple):
    """A classification data set: training and test texts."""

    train: Labelled
    test: Labelled


def read_pairs(path: FilePath, delimiter: str | None = None) -> Pairs:
    """Read lines of `word word score`, separated by tabs, commas, semicolons or white space.

    Empty lines and lines that start with # are skipped. With a delimiter (None detects it), the
    first line may be a header. Columns that it names word1, word2 and score are used; otherwise the
    words come first, and the score is the first number after them.

    Raises:
        ReadError: A line is malformed; the message quotes it. Or the columns are not clear: all
            first words are numbers, or a header names no score and there are several numbers.
        OSError: The file cannot be opened.
    """
    rows: list[tuple[str, str, float]] = []
    first, second = 0, 1  # the columns of the words
    at: int | None = None  # the column of the score
    header: ReadError | None = None
    width = 0  # fields of a line
    for number, line in lines_of(path):
        fields, is_delimited = _pair_fields(line, delimiter)
        error = malformed(path, number, line, "word word score")
        if is_delimited and not rows and header is None and not _numbers(fields[2:]):
            header, at, width = error, _column(fields, _SCORE), len(fields)
            a, b = _column(fields, _FIRST), _column(fields, _SECOND)
            first, second = (0, 1) if a is None or b is None else (a, b)
            continue
        numbers = _numbers(fields[max(first, second) + 1 :] if at is None else fields[at : at + 1])
        is_complete = len(fields) > max(first, second) and (is_delimited or len(fields) == 3)
        if not is_complete or not numbers or not math.isfinite(numbers[0]):
            raise error
        if len(fields) != (width := width or len(fields)):
            raise malformed(path, number, line, f"{width} fields, as in the first line")
        if header is not None and len(numbers) > 1:
            expected = "a column named score in the header"
            raise ReadError(f"{path}: line {number}: found several numbers, expected {expected}")
        rows.append((fields[first], fields[second], numbers[0]))
    if not rows:
        raise header or ReadError(f"{path}: found no pairs, expected lines of word word score")
    words, others, scores = map(list, zip(*rows, strict=True))
    if len(_numbers(words)) == len(words):
        raise ReadError(
            f"{path}: found numbers as first words, such as {words[0]!r}: name the columns "
            "word1, word2 and score in the first line"
        )
    return Pairs(words, others, np.array(scores))


def _pair_fields(line: str, delimiter: str | None) -> tuple[list[str], bool]:
    """The fields of a line, and whether a delimiter other than white space separates them."""
    if delimiter is None:
        delimiter = next((d for d in "\t,;" if line.count(d) > 1), None)
    if delimiter is None:
        return line.split(), False
    if len(delimiter) == 1:  # with quoted fields, as in CSV
        fields = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True))
    else:
        fields = line.split(delimiter)
    return [field.strip() for field in fields], True


def _column(header: Sequence[str], names: Sequence[str]) -> int | None:
    plain = [re.sub(r"[^a-z0-9]", "", name.lower()) for name in header]
    return next((plain.index(name) for name in names if name in plain), None)


def _numbers(fields: Iterable[str]) -> list[float]:
    numbers = []
    for text in fields:
        with contextlib.suppress(ValueError):
            numbers.append(float(text.replace("_", "?")))  # Python takes 1_000 for a number
    return numbers


def read_questions(path: FilePath) -> dict[str, Questions]:
    """Read analogy questions: `: section`, then lines of four words.

    Raises:
        ReadError: A line is malformed; the message quotes it.
        OSError: The file cannot be opened.
    """
    expected = "four words, after a line such as `: family`"
    sections: dict[str, Questions] = {}
    section: Questions | None = None
    for number, line in lines_of(path):
        fields = line.split()
        if line.startswith(":"):
            section = sections.setdefault(line.lstrip(": ").strip(), [])
        elif len(fields) != 4 or section is None:
            raise malformed(path, number, line, expected)
        else:
            a, b, c, d = fields
            section.append((a, b, c, d))
    if not any(sections.values()):
        raise ReadError(f"{path}: found no questions, expected lines of {expected}")
    return sections


def read_split(folder: Path, most_rows: int = MAX_ROWS) -> Split:
    """Read `train.csv` and `test.csv` of a folder as `read_labelled` does."""
    read = [_read_texts(folder / f"{part}.csv", most_rows) for part in ("train", "test")]
    return Split(*_numbered(read))


def read_labelled(path: FilePath, most_rows: int = MAX_ROWS) -> Labelled:
    """Read rows such as "1","A title","The text": a class, then any number of texts.

    Classes are names or numbers. There may be a header; it may name another column `label`. The
    fields are quoted, as published by Zhang et al. 2015. Larger files are subsampled to `most_rows`
    rows. Raises as `read_questions` does.
    """
    return _numbered([_read_texts(path, most_rows)])[0]


def _read_texts(path: FilePath, most_rows: int) -> tuple[list[str], list[str]]:
    first, second = [*(fields for _, fields in islice(_csv_rows(path), 2)), [""], [""]][:2]
    column = _column(first, _LABEL)
    as_first = [fields[0] == first[0] for _, fields in _csv_rows(path)]
    is_other = bool(_column(first, _TEXT) is not None or _numbers(second[:1]))
    has_header = not _numbers(first) and (column is not None or (is_other and sum(as_first) == 1))
    column = column if has_header and column else 0
    step = max(1, -(-len(as_first) // most_rows))
    texts, labels = [], []
    for number, fields in islice(_csv_rows(path), int(has_header), None, step):
        if len(fields) < 2 or len(fields) <= column or not fields[column].strip():
            raise malformed(path, number, ",".join(fields), _LABELLED)
        labels.append(fields[column].strip())
        # Zhang et al. escape line breaks inside a text as \n and some characters with a backslash.
        text = " ".join(fields[:column] + fields[column + 1 :])
        texts.append(text.replace("\\n", " ").replace("\\", " "))
    if not texts:
        raise ReadError(f"{path}: found no rows, expected {_LABELLED}")
    if len(set(labels)) > max(_MOST_CLASSES, len(labels) // 2):
        found = f"{len(set(labels)):,} classes in {len(labels):,} rows"
        hint = "name the column of the classes label in the first line"
        raise ReadError(f"{path}: found {found}: {hint}")
    return texts, labels


def _numbered(read: Sequence[tuple[list[str], list[str]]]) -> list[Labelled]:
    """Texts with a number for each class, by first appearance: no name can change a score."""
    names = dict.fromkeys(label for _, labels in read for label in labels)
    numbers = {name: place for place, name in enumerate(names)}
    return [Labelled(x, np.array([numbers[y] for y in labels], np.int64)) for x, labels in read]


def _csv_rows(path: FilePath) -> Iterator[tuple[int, list[str]]]:
    lines = _lines(path, MAX_BYTES, errors="replace", newline="")  # line breaks in fields stay
    rows = csv.reader(line.replace("\0", "") for line in lines)
    try:
        for fields in rows:
            if fields:
                yield rows.line_num, fields
    except csv.Error as error:
        raise ReadError(f"{path}: line {rows.line_num}: {error}") from None


def lines_of(
    path: FilePath, *, has_comments: bool = True, most: int = _MAX_TEXT
) -> Iterator[tuple[int, str]]:
    """Number and text of each line that is not empty; lines that start with # are comments."""
    try:
        for number, line in enumerate(_lines(path, most), 1):
            line = line.strip(" \r\n")  # the last fields between tabs may be empty
            if line.strip() and not (has_comments and line.startswith("#")):
                yield number, line
    except UnicodeDecodeError:
        raise ReadError(f"{path}: found bytes that are not UTF-8, expected text") from None


def _lines(
    path: FilePath, most: int, errors: str = "strict", newline: str | None = None
) -> Iterator[str]:
    """The lines of a file of at most `most` bytes; zeros without an end are no line."""
    content = open_regular(path, most, ReadError)
    with TextIOWrapper(content, "utf-8-sig", errors, newline) as file:
        while line := file.readline(_MAX_LINE):
            if len(line) == _MAX_LINE:
                raise ReadError(f"{path}: found a line of over {_MAX_LINE:,} characters")
            yield line


def malformed(path: FilePath, number: int, line: str, expected: str) -> ReadError:
    """The error of a line: what was found, and what was expected."""
    found = line if len(line) <= 40 else line[:39] + "…"
    return ReadError(f"{path}: line {number}: found {found!r}, expected {expected}")


Qrels: TypeAlias = dict[str, dict[str, int]]

QRELS = ("qrels.tsv", "qrels/test.tsv")
_QREL = "query-id corpus-id score, with a whole number as the score"


@dataclass(frozen=True)
class RetrievalSet:
    """A retrieval data set: ids and embeddings of documents and queries, of the same dimensions.

    `qrels` has the relevance of documents by query id and document id; above 0 is relevant. Ids may
    be missing in `corpus` and `queries`.
    """

    corpus: WordVectors
    queries: WordVectors
    qrels: Qrels

    @property
    def dims(self) -> int:
        return self.corpus.dims


def read_retrieval(folder: Path) -> RetrievalSet:
    """Read the files of a folder in the layout of this module.

    Raises:
        ReadError: A file is missing or malformed, the ids of a file repeat, the dimensions of
            queries and documents differ, or no query is judged.
    """
    corpus = _read_embeddings(folder / "corpus.npy", folder / "corpus_ids.txt")
    queries = _read_embeddings(folder / "queries.npy", folder / "query_ids.txt")
    if corpus.dims != queries.dims:
        found = f"queries of {queries.dims} dimensions"
        raise ReadError(f"{folder}: {found}, expected {corpus.dims} as in the corpus")
    path = next((folder / name for name in QRELS if (folder / name).is_file()), folder / QRELS[0])
    qrels = read_qrels(path)
    if not set(qrels) & set(queries.words or ()):
        raise ReadError(f"{path}: no id of its queries is in the file of queries")
    return RetrievalSet(corpus, queries, qrels)


def read_qrels(path: Path) -> Qrels:
    """Read relevance judgements: BEIR's three columns, or TREC's four, whose second is not used."""
    qrels: Qrels = {}
    for place, (number, line) in enumerate(lines_of(path, has_comments=False)):
        fields = line.strip().split("\t" if "\t" in line.strip() else None)
        is_score = re.fullmatch(r"[-+]?[0-9]{1,18}", fields[-1].strip()) is not None
        if len(fields) not in (3, 4) or (not is_score and place > 0):
            raise malformed(path, number, line, _QREL)
        if not is_score:
            continue  # a header
        scores, document = qrels.setdefault(fields[0].strip(), {}), fields[-2].strip()
        if document in scores:
            raise malformed(path, number, line, "each pair of ids once")
        scores[document] = int(fields[-1].strip())
    if not qrels:
        raise ReadError(f"{path}: found no judgements, expected lines of {_QREL}")
    return qrels


def _read_embeddings(matrix: Path, ids: Path) -> WordVectors:
    try:
        return read_vectors(matrix, words=ids)
    except InputError as error:  # an id repeats, or the .npy is a file of another format
        raise ReadError(f"{matrix}: {error}") from None


Data = TypeVar("Data")

# In the order of the paper's tables; other data sets follow.
SIMILARITY = ("MEN", "RW", "SimLex", "SimVerb", "WS353")
CLASSIFICATION = (
    *("ag_news", "dbpedia", "yahoo_answers", "amazon_full", "amazon_polarity"),
    *("yelp_full", "yelp_polarity"),
)
PAIR_SUFFIXES = (".txt", ".csv", ".tsv")


@dataclass
class DataFolder:
    """A folder of data sets at `path`, read on demand."""

    path: Path
    _problems: dict[str, None] = field(default_factory=dict)

    @property
    def problems(self) -> list[str]:
        """What could not be read so far, in one line each."""
        return list(self._problems)

    @classmethod
    def at(cls, path: DataFolder | str | os.PathLike[str] | None = None) -> DataFolder:
        """The folder at `path`, or in the environment variable EMBITS_DATA; InputError if none."""
        if isinstance(path, DataFolder):
            return path
        where = os.environ.get("EMBITS_DATA") if path is None else path
        if where is None:
            raise InputError(
                "no folder of evaluation data: give --data DIR, or set EMBITS_DATA; the tasks "
                "neighbors, reconstruction and speed need none"
            )
        if not Path(where).is_dir():
            raise InputError(f"{where}: no such folder of evaluation data")
        return cls(Path(where))

    def similarity(self) -> dict[str, Pairs]:
        """Word pairs by file name; the five data sets of the paper come first."""
        # Of two files with one name, .txt comes before .csv and .tsv.
        expected = f"a {', '.join(PAIR_SUFFIXES)} file of word pairs"
        paths = self._paths("similarity", lambda p: p.suffix.lower() in PAIR_SUFFIXES, expected)
        files: dict[str, Path] = {}
        for path in sorted(paths, key=lambda path: path.suffix != ".txt"):
            if files.setdefault(path.stem, path) is not path:
                self._note(f"{path} is not used: {files[path.stem].name} has the same name")
        return dict(self._read_all("similarity", SIMILARITY, files, read_pairs))

    def analogy(self) -> dict[str, Questions]:
        """Questions by section."""
        expected = "questions-words.txt"
        paths = self._paths("analogy", lambda p: p.name == expected, expected)
        files = {path.stem: path for path in paths}
        return {
            section: questions
            for _, sections in self._read_all("analogy", (), files, read_questions)
            for section, questions in sections.items()
        }

    def classification(self) -> Iterator[tuple[str, Split]]:
        """The data sets, read one at a time because they may be large; the paper's come first."""
        paths = self._paths("classification", Path.is_dir, "a folder with train.csv and test.csv")
        # The original folders have names such as `yelp_review_full_csv`.
        files = {path.name.removesuffix("_csv").replace("_review_", "_"): path for path in paths}
        for name, split in self._read_all("classification", CLASSIFICATION, files, read_split):
            if unseen := len(set(split.test.classes) - set(split.train.classes)):
                self._note(
                    f"{name}: {unseen} classes of test.csv are not in train.csv: never guessed"
                )
            yield name, split

    def retrieval(self) -> dict[str, RetrievalSet]:
        """Retrieval data sets by folder name."""
        expected = "a folder with a corpus, queries and qrels.tsv"
        paths = self._paths("retrieval", Path.is_dir, expected)
        files = {path.name: path for path in paths}
        return dict(self._read_all("retrieval", (), files, read_retrieval))

    def _paths(self, task: str, is_used: Callable[[Path], bool], expected: str) -> Iterator[Path]:
        """The files or folders of a task that are used; others are noted."""
        for path in sorted(p for p in (self.path / task).glob("*") if p.name[0] != "."):
            if is_used(path):
                yield path
            else:
                self._note(f"{path} is not used: expected {expected}")

    def _read_all(
        self, task: str, known: Sequence[str], files: dict[str, Path], read: Callable[[Path], Data]
    ) -> Iterator[tuple[str, Data]]:
        """The data sets that can be read, known names first."""
        if not files:
            self._note(f"{task} is skipped: no data sets in {self.path / task}")
        for name in dict.fromkeys([*(name for name in known if name in files), *sorted(files)]):
            try:
                yield name, read(files[name])
            except (ReadError, MissingExtraError, OSError) as error:
                self._note(f"{name} is skipped: {error}")

    def _note(self, problem: str) -> None:
        self._problems[problem] = None
