from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

nanobind_version: str  # that this module was compiled with

def simd() -> str: ...
def use_simd(name: str) -> None: ...
def path() -> str: ...
def use_path(name: str) -> None: ...
def available_simd() -> list[str]: ...
def top_k(
    codes: NDArray[np.uint8] | CodePieces,
    queries: NDArray[np.uint8],
    k: int,
    threads: int,
    distances: NDArray[np.int32],
    rows: NDArray[np.int64],
    filter: Filter | None = None,
    cells: CellQueries | None = None,
) -> None: ...
def within(
    codes: NDArray[np.uint8] | CodePieces,
    queries: NDArray[np.uint8],
    distance: int,
    max_found: int,
    threads: int,
    filter: Filter | None = None,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]: ...
def pairs_in_buckets(
    codes: NDArray[np.uint8],
    buckets: NDArray[np.int64],
    distance: int,
    masks: NDArray[np.uint8],
    threads: int,
) -> NDArray[np.int64]: ...
def pack_signs(
    scores: NDArray[np.float32],
    errors: NDArray[np.float32],
    codes: NDArray[np.uint8],
    doubtful: NDArray[np.uint8],
) -> int: ...
def product(
    a: NDArray[np.float32], b: NDArray[np.float32], threads: int, out: NDArray[np.float32]
) -> None: ...
def solve_positive(matrix: NDArray[np.float64], sides: NDArray[np.float64]) -> bool: ...
def encode_searched(
    vectors: NDArray[np.float32],
    weights: NDArray[np.int16],
    thresholds: NDArray[np.int32],
    gram: NDArray[np.int16],
    centre: NDArray[np.int32],
    shift: int,
    offset: int,
    length: int,
    pull: float,
    sweeps: int,
    threads: int,
    codes: NDArray[np.uint8],
) -> None: ...
def train_paper(
    X: NDArray[np.float32],
    order: NDArray[np.int64],
    W: NDArray[np.float32],
    c: NDArray[np.float32],
    velocity_W: NDArray[np.float32],
    velocity_c: NDArray[np.float32],
    batch_size: int,
    learning_rate: float,
    momentum: float,
    lambda_reg: float,
    mean: NDArray[np.float32],
    scale: float,
    clip: bool,
    threads: int,
) -> float: ...
def word_order(
    text: NDArray[np.uint8], ends: NDArray[np.uint64], order: NDArray[np.uint64]
) -> None: ...
def repeated_words(
    text: NDArray[np.uint8], ends: NDArray[np.uint64], order: NDArray[np.uint64]
) -> list[int]: ...
def find_words(
    text: NDArray[np.uint8],
    ends: NDArray[np.uint8],
    order: NDArray[np.uint8],
    item: int,
    wanted: NDArray[np.uint8],
    wanted_ends: NDArray[np.uint64],
    rows: NDArray[np.int64],
) -> None: ...
def words_at(
    text: NDArray[np.uint8], ends: NDArray[np.uint8], item: int, gap: int, rows: NDArray[np.int64]
) -> list[str] | None: ...
def number_words(numbers: NDArray[np.uint64]) -> list[str]: ...
def words_run(words: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.uint64]] | None: ...
def near_spellings(
    text: NDArray[np.uint8], ends: NDArray[np.uint64], word: bytes, max_edits: int, most: int
) -> list[int]: ...
def pack_words(
    text: NDArray[np.uint8],
    ends: NDArray[np.uint64],
    order: NDArray[np.uint64],
    counts: NDArray[np.uint64],
    codes: NDArray[np.uint32],
    out: NDArray[np.uint8],
    starts: NDArray[np.uint64],
) -> None: ...

class WordIndex:
    def __init__(self, text: NDArray[np.uint8], ends: NDArray[np.uint8], item: int) -> None: ...
    def find(
        self, wanted: NDArray[np.uint8], ends: NDArray[np.uint64], rows: NDArray[np.int64], /
    ) -> None: ...

class PackedWords:
    def __init__(
        self,
        text: NDArray[np.uint8],
        codes: NDArray[np.uint8],
        starts: NDArray[np.uint8],
        rows: NDArray[np.uint8],
        links: NDArray[np.uint8],
        n: int,
    ) -> None: ...
    def find(self, word: bytes, /) -> int: ...
    def first_place(self, word: bytes, /) -> int: ...
    def find_many(
        self, wanted: NDArray[np.uint8], ends: NDArray[np.uint64], rows: NDArray[np.int64], /
    ) -> None: ...
    def word(self, row: int, /) -> bytes | None: ...
    def words(self) -> list[str] | None: ...
    def unpack(self, ends: NDArray[np.uint64], text: NDArray[np.uint8], /) -> bool: ...
    def near(self, word: bytes, max_edits: int, most: int, /) -> list[int]: ...
    def is_sorted(self) -> bool: ...

class FloatRun:
    def __init__(self) -> None: ...
    def append(self, rows: NDArray[np.float32]) -> None: ...
    def take(self, dims: int) -> NDArray[np.float32]: ...

class Rows:
    def __init__(self, dims: int, limit: int, skip_bad: bool, first_place: int) -> None: ...
    def __len__(self) -> int: ...
    @property
    def stopped(self) -> bool: ...
    @property
    def full(self) -> bool: ...
    @property
    def lost(self) -> bool: ...
    @property
    def n_bad(self) -> int: ...
    @property
    def next_place(self) -> int: ...
    @property
    def first_bad(self) -> tuple[int, bytes, bytes]: ...
    def parse_text(self, text: bytes, threads: int) -> None: ...
    def end_text(self) -> None: ...
    def parse_word2vec(self, block: bytes) -> int: ...
    def take_words(self) -> bytes: ...
    def take_matrix(self) -> NDArray[np.float32]: ...
    def take_places(self) -> NDArray[np.int64]: ...

def ngram_buckets(word: bytes, minn: int, maxn: int, n_buckets: int) -> list[int]: ...
def word_vectors(
    words: NDArray[np.uint8],
    offsets: NDArray[np.int64],
    input: NDArray[np.uint8],
    n_input_words: int,
    minn: int,
    maxn: int,
    n_buckets: int,
    threads: int,
    out: NDArray[np.float32],
) -> None: ...
def pool_bits(
    codes: NDArray[np.uint8],
    rows: NDArray[np.uint32],
    weights: NDArray[np.float32],
    ends: NDArray[np.int64],
    counts: NDArray[np.float32],
) -> bool: ...
def asymmetric_top_k(
    codes: NDArray[np.uint8] | CodePieces,
    queries: NDArray[np.float32],
    k: int,
    threads: int,
    scores: NDArray[np.float32],
    rows: NDArray[np.int64],
    filter: Filter | None = None,
    lengths: NDArray[np.float32] | None = None,
    offsets: NDArray[np.float32] | None = None,
    cells: CellQueries | None = None,
) -> None: ...

class CodePieces:
    def __init__(
        self,
        arrays: Sequence[NDArray[np.uint8]],
        orders: Sequence[NDArray[np.uint32]],
        cells: Sequence[NDArray[np.uint32]],
    ) -> None: ...

class CellCenters:
    def __init__(self, centers: NDArray[np.int8]) -> None: ...
    def assign(self, codes: NDArray[np.uint8], threads: int, cells: NDArray[np.uint32]) -> None: ...
    def products(self, weights: NDArray[np.float32], out: NDArray[np.float32]) -> None: ...
    def place_costs(self) -> NDArray[np.float32]: ...
    def squares(self) -> NDArray[np.float32]: ...

class CellQueries:
    def __init__(
        self,
        centers: CellCenters,
        weights: NDArray[np.float32],
        probes: NDArray[np.uint32],
        margins: tuple[float, float, float, float],
        longest: NDArray[np.float32],
        most_rows: NDArray[np.uint64],
        gave_up: NDArray[np.uint8],
    ) -> None: ...
    @property
    def rows_read(self) -> int: ...

def train_cells(
    codes: NDArray[np.uint8], seed: int, threads: int, centers: NDArray[np.int8]
) -> None: ...

class Filter:
    def __init__(
        self,
        numbers: NDArray[np.uint64],
        starts: NDArray[np.int64],
        count: int,
        is_mask: bool,
    ) -> None: ...

def mask_rows(mask: NDArray[np.uint64], rows: NDArray[np.int64]) -> None: ...

class MultiIndex:
    def __init__(self, codes: NDArray[np.uint8], n_chunks: int) -> None: ...
    @property
    def bytes(self) -> int: ...
    def top_k(
        self,
        queries: NDArray[np.uint8],
        k: int,
        threads: int,
        distances: NDArray[np.int32],
        rows: NDArray[np.int64],
        filter: Filter | None = None,
    ) -> int: ...

def unit_rows(rows: NDArray[np.float32], out: NDArray[np.float32]) -> None: ...

class Net:
    def __init__(
        self,
        matrices: list[NDArray[np.int8]],
        scales: list[NDArray[np.float32]],
        hidden: int,
    ) -> None: ...
    def decode(
        self, codes: NDArray[np.uint8], threads: int, vectors: NDArray[np.float32]
    ) -> None: ...
    def search(
        self,
        unit: NDArray[np.float32],
        pulls: NDArray[np.float32],
        rounds: int,
        tries: int,
        threads: int,
        codes: NDArray[np.uint8],
    ) -> None: ...
