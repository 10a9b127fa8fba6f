"""The default coder: trained thresholds, then bits chosen by search (docs/near-lossless.md).

Vectors are shaped (whitening.py), thresholds are trained (training.py), and bits are flipped while
the code rebuilds its vector better (encoder.py; bit_search.py: how far to go). Where bits are not
searched, a code is the paper's, one matrix product and a threshold:

    b = h(W x - t ‖x‖)

A code depends on the direction of x alone. With target="similarity", x is the whitened vector.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, as_float32, blocks, namespace, unpack
from embits.checks import check_n_bits, choice, random_generator, warn_if_collapsed, whole
from embits.coders.backend import backend
from embits.coders.base import Shapes
from embits.coders.linear import LinearlyEncoded
from embits.coders.near_lossless import bit_search, sampling, training, whitening
from embits.coders.near_lossless.encoder import Encoder, norms_of, scaled_rows, unit_of
from embits.coders.near_lossless.whitening import TARGETS, Shaping
from embits.errors import FormatError, InputError, TrainingWarning, warn_caller

CHECK_BLOCKS, CHECK_ROWS = 16, 1024  # rows that the length of decoded vectors is fitted on
ROWS_A_DIMENSION = 4  # a fit on fewer rows says so
LATER_RATE, LATER_STEPS = 0.3, 0.1  # of the learning rates and steps, when more rows come


class NearLossless(LinearlyEncoded):
    """Codes that keep the neighbors of their vectors, at any width.

    Args:
        n_bits: Bits of a code: any number, including more than the dimensions of the input.
        target: "neighbors" keeps the nearest by cosine. "similarity" keeps the nearest of whitened
            vectors: similarities of words agree better with human judgments, and neighbors less
            with those by raw cosine.
        steps: Steps of training. None: 100 to 1,000, about five seconds on two CPU cores, or 3,000
            on a GPU.
        batch_size: Rows compared with each other in a step. None: 1,024, or 2,048 on a GPU.
        random_state: Seed of the sample, the first weights and the batches.
        device: "cpu", or a GPU for PyTorch such as "cuda" (the extra `gpu`).

    Attributes:
        W_: Shape (n_bits, dims), float32. The first code is 1 where W x - t is 0 or more.
        t_: Thresholds for vectors of norm 1, shape (n_bits,), float32.
        search_: Empty if bits are not searched. Otherwise the squared length that rebuilt
            directions are drawn to, how strongly, and the shares of the decoder and of W in the
            weights of a float query and of a decoded one.
        whitening_: Empty for the target "neighbors". Otherwise the mean of the unit vectors, then
            the matrix that whitens what is left: shape (dims + 1, dims), float32.
        decoder_: Shape (n_bits, dims + 1), float32: the direction, and the norm.
        offset_: Shape (dims + 1,), float32.
        loss_curve_: Shape (checks, 3): steps done, the mean loss since the check before, and the
            held-out recall@10 (mean of Hamming and float queries).

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(500, 20))
        >>> coder = NearLossless(n_bits=64, steps=50).fit(X)
        >>> codes = coder.transform(X)
        >>> codes.shape, codes.dtype, coder.inverse_transform(codes).shape
        ((500, 8), dtype('uint8'), (500, 20))
    """

    method: ClassVar[str] = "near-lossless"
    state_shapes: ClassVar[Shapes] = {
        "W": ("bits", "dims"),
        "t": ("bits",),
        "decoder": ("bits", "dims+1"),
        "offset": ("dims+1",),
        "search": ("any",),
        "whitening": ("any", "dims"),
        "loss_curve": ("any", 3),
    }
    state_defaults: ClassVar[Mapping[str, float]] = {"search": 0, "whitening": 0}  # where unused
    targets: ClassVar[Mapping[str, whitening.Target]] = TARGETS
    tells_training: ClassVar[bool] = True  # whether progress is that of the thresholds
    W_: NDArray[np.float32]
    t_: NDArray[np.float32]
    decoder_: NDArray[np.float32]
    offset_: NDArray[np.float32]
    search_: NDArray[np.float64]
    whitening_: NDArray[np.float32]
    loss_curve_: NDArray[np.float64]
    device: str | None

    def __init__(
        self,
        n_bits: int = 256,
        *,
        target: str = "neighbors",
        steps: int | None = None,
        batch_size: int | None = None,
        random_state: int | None = 0,
        device: str = "cpu",
    ) -> None:
        self.n_bits, self.target = n_bits, target
        self.steps, self.batch_size = steps, batch_size
        self.random_state, self.device = random_state, device

    def fit(self, X: Any, y: Any = None, *, progress: Progress | None = None) -> Self:
        """Learn W, t and the decoder from vectors `X` of shape (n, dims).

        Weights are learned on a sample of at most 50,000 rows and 128 MiB of floats: half are the
        first rows, which in word vectors are the frequent words, half are drawn from the others.

        Raises:
            InputError: Bad vectors or parameters.
            MissingExtraError: `device` is a GPU, and the extra `gpu` is not installed.
            TrainingError: The descent diverged.
        """
        X = self.check_vectors(X, fitting=True)
        self._check_params()
        vars(self).pop("_seen", None)  # a fit starts over
        rng = random_generator(self.random_state)
        rows = as_float32(X[sampling.sample_rows(len(X), X.shape[1], rng)])
        self._learn(rows, X, rng, progress, anew=True)
        warn_if_collapsed(self, X)
        if len(X) < (enough := min(sampling.ENOUGH_ROWS, ROWS_A_DIMENSION * X.shape[1])):
            more = f"codes keep more neighbors with {enough:,} or more"
            warn_caller(f"fitted on {len(X):,} row{'s'[: len(X) - 1]}; {more}", TrainingWarning)
        return self

    def rows_for_fit(self, n: int, dims: int) -> NDArray[np.int64] | None:
        """Those of the sample, and of the check of rebuilt lengths."""
        if self.random_state is None:
            return None  # another sample with each draw
        rng = random_generator(self.random_state)
        sample = sampling.sample_rows(n, dims, rng)
        check = [np.arange(rows.start, rows.stop)[:CHECK_ROWS] for rows in _check_blocks(n)]
        return np.unique(np.concatenate([sample, *check]))

    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Continue with more rows: a tenth of the steps, on a sample of all rows given so far.

        The first call is a `fit`; every later one costs the same. The sample does not include rows
        of an earlier `fit`, or those that a loaded coder was fitted on.
        """
        if not hasattr(self, "W_"):
            self.fit(X)
            self._remember(self.check_vectors(X))
            return self
        X = self.check_vectors(X)
        self._check_params()
        self._remember(X)
        rng = random_generator(self.random_state)
        self._learn(self._reservoir, self._reservoir, rng, None, anew=False)
        return self

    def factors(self, X: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """The vectors with their norms, and W with -t: scores are W x - t ‖x‖."""
        # The norm rides along as one more dimension: a pass over the scores costs as much as
        # an eighth of the product at 300 dimensions.
        xp = namespace(X)
        X, norms = self._scaled(X)
        rows = xp.concat([X, norms[:, None]], axis=1)
        return rows, xp.concat([self.W_, -self.t_[:, None]], axis=1)

    def directions(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """The rows of norm 1 that codes are made of, shape (n, dims): of X, or of X whitened."""
        return whitening.apply(X, self.whitening_) if len(self.whitening_) else unit_of(X)

    def _scaled(self, X: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        return scaled_rows(self.directions(X) if self.whitening_.shape[0] else X)

    @property
    def is_threshold(self) -> bool:
        """Whether bits are the signs of W x - t ‖x‖: neither searched, nor of whitened vectors."""
        return len(self.search_) == len(self.whitening_) == 0

    def encode_rows(self, X: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Packed codes: thresholds, then the flips that lower the error of the rebuilt vector."""
        if len(self.search_) == 0:
            return super().encode_rows(X)
        return self._encoder().encode(self._scaled(X)[0])

    @classmethod
    def check_fit_together(cls, arrays: Mapping[str, NDArray[Any]]) -> None:
        search, whitening = arrays["search"].shape, arrays["whitening"].shape
        if search not in ((0,), (6,)) or whitening[0] not in (0, whitening[1] + 1):
            found = f"search of shape {search} and whitening of shape {whitening}"
            raise InputError(f"the coder has {found}, expected 6 numbers, and a row more than dims")

    def check_learned(self) -> None:
        super().check_learned()
        self._check_search()

    def _check_search(self) -> None:
        if len(self.search_) and not 0 < self.search_[0] < 1e6 > self.search_[1] >= 0:
            raise FormatError("damaged: the coder's search_ holds numbers that no fit gives")

    def _encoder(self) -> Encoder:
        if "_rounded" not in vars(self):
            self._check_search()
            direction = self.decoder_[:, :-1], self.offset_[:-1]
            self._rounded = Encoder.of(self.W_, self.t_, *direction, *self.search_[:2].tolist())
        return self._rounded

    def query_weights(
        self, X: NDArray[np.float32], *, rebuilt: bool = False
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Weights of bits: x · (D b + o), with a share of W x · b; another for rebuilt vectors."""
        if len(self.search_) == 0:
            return super().query_weights(X)
        unit, state = self.directions(X), (self.decoder_, self.offset_, self.W_, self.search_)
        source, W, offset = vars(self).get("_of_queries", {}).get(rebuilt, (None, None, None))
        if source is None or any(a is not b for a, b in zip(source, state, strict=True)):
            D = self.decoder_[:, :-1] / 2
            shares = self.search_[4:] if rebuilt else self.search_[2:4]
            of_decoder, of_scores = (np.float32(share) for share in shares)
            W = (of_decoder * D + of_scores * self.W_).T
            offset = of_decoder, self.offset_[:-1] + D.sum(axis=0)
            # Replaced as a whole: other threads may read it. A search of cells takes as long.
            cached = vars(self).get("_of_queries", {})
            self._of_queries = {**cached, rebuilt: (state, W, offset)}
        return unit @ W, offset[0] * (unit @ offset[1])

    def inverse_transform(self, codes: Any) -> NDArray[np.float32]:
        """The direction D b + o at the length that errs least, shape (n, dims), not whitened."""
        codes = self.check_codes(codes)
        vectors = np.empty((len(codes), self.n_features_in_), dtype=np.float32)
        # Where the map of lengths falls to 0 or below, a vector keeps its direction.
        least = np.abs(self.decoder_[:, -1]).max(initial=0) / 1024
        for rows in blocks(len(codes)):
            directions = self.rebuilt(codes[rows])
            lengths = unpack(codes[rows], self.n_bits_) @ self.decoder_[:, -1:] + self.offset_[-1]
            if len(self.whitening_):
                directions = whitening.undo(directions, self.whitening_)
            # In float64: weights of a file may be large enough for their squares to leave float32.
            norms = np.linalg.norm(directions.astype(np.float64), axis=1, keepdims=True)
            lengths = np.maximum(lengths, least) / np.maximum(norms, 1e-30)
            np.multiply(directions, lengths, out=vectors[rows], casting="same_kind")
        return vectors

    def rebuilt(self, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
        """The directions D b + o of packed codes, of any length."""
        rebuilt: NDArray[np.float32] = unpack(codes, self.n_bits_) @ self.decoder_[:, :-1]
        rebuilt += self.offset_[:-1]
        return rebuilt

    def _check_params(self) -> None:
        self.n_bits_ = check_n_bits(self.n_bits)
        choice("target", self.target, self.targets)
        for name, least in (("steps", 0), ("batch_size", 2)):
            if getattr(self, name) is not None:
                whole(name, getattr(self, name), least)

    @property
    def _device_name(self) -> str:
        return str(self.device)

    def _budget(self, n: int) -> training.Budget:
        usual = training.budget(self.n_bits_, self.n_features_in_, n, self._device_name)
        params = self.steps, self.batch_size
        numbers = (u if p is None else int(p) for u, p in zip(usual, params, strict=True))
        return training.Budget(*numbers)

    def _remember(self, X: NDArray[Any]) -> None:
        """Keep a uniform sample of all rows given to partial_fit (reservoir sampling)."""
        if not hasattr(self, "_seen"):
            self._seen, self._reservoir = 0, np.empty((0, self.n_features_in_), np.float32)
        rng = np.random.default_rng([self._seen, self.random_state or 0])
        room = max(sampling.SAMPLE_ROWS - len(self._reservoir), 0)
        self._reservoir = np.concatenate([self._reservoir, as_float32(X[:room])])
        numbers = np.arange(room, len(X))
        places = rng.integers(self._seen + numbers + 1)
        is_sampled = places < sampling.SAMPLE_ROWS
        self._reservoir[places[is_sampled]] = X[numbers[is_sampled]]
        self._seen += len(X)

    def _learn(
        self,
        rows: NDArray[np.float32],
        X: NDArray[Any],
        rng: np.random.Generator,
        progress: Progress | None,
        *,
        anew: bool,
    ) -> None:
        """Learn from a sample of the rows of X; unless `anew`, go on from W and t."""
        target = self.targets[self.target]
        if anew:
            unit = unit_of(rows)
            self.whitening_ = whitening.fit(unit, target.whiten) if target.whiten else unit[:0]
        unit = self.directions(rows)
        shaping = Shaping.fit(unit, target)
        split = sampling.hold_out(len(unit), rng)
        x = shaping.apply(unit, split.train)
        steps, batch_size = self._budget(len(unit))
        if anew:
            self.loss_curve_ = np.empty((0, 3))
            weights = training.first_weights(x, shaping.axes, self.n_bits_, rng)
            start, rate = (weights, np.zeros(self.n_bits_)), 1.0
        else:
            start, rate = shaping.unfold(self.W_, self.t_), LATER_RATE
            steps = math.ceil(LATER_STEPS * steps)
        held_out = sampling.HeldOut(shaping.apply(unit, split.check), split.queries)
        on = backend(self._device_name)
        of_training = progress if self.tells_training else None
        best, curve = training.descend(
            x, held_out, start, steps, batch_size, rate, on=on, rng=rng, progress=of_training
        )
        self.loss_curve_ = np.vstack([self.loss_curve_, curve])
        self.W_, self.t_ = shaping.fold(*best)
        self._search_bits(rows, unit, split, rng, progress)
        self._shorten(X)

    def _search_bits(
        self,
        rows: NDArray[np.float32],
        unit: NDArray[np.float32],
        split: sampling.Split,
        rng: np.random.Generator,
        progress: Progress | None,
    ) -> None:
        """Choose how far to search, and solve for the decoder, after the thresholds are trained."""
        self.search_ = np.zeros(0)
        vars(self).pop("_rounded", None)
        best = self._best_search(unit, split, rng, progress)
        spread = slice(None, None, -(-len(unit) // bit_search.MAX_ROWS))
        if best is None:
            codes = self.encode_rows(rows[spread])
            decoder = bit_search.least_squares(codes, unit[spread], self.n_bits_)
        else:
            searched, shares = best
            codes, decoder = searched.encode(unit[spread]), searched.decoder
            self.W_, self.t_ = searched.W, searched.t
            self.search_ = np.array([decoder.length, bit_search.PULL, *shares])
        norms = norms_of(rows[spread])
        longest = float(norms.max())
        of_norms = bit_search.least_squares(codes, norms[:, None] / norms.max(), self.n_bits_)
        # The decoder for bits in {0, 1}: of the direction, and of the norm.
        columns = np.concatenate([decoder.D, of_norms.D * longest], axis=1)
        self.decoder_ = (2 * columns).astype(np.float32)
        offset = np.concatenate([decoder.o, of_norms.o * longest]) - columns.sum(axis=0)
        self.offset_ = offset.astype(np.float32)

    def _best_search(
        self,
        unit: NDArray[np.float32],
        split: sampling.Split,
        rng: np.random.Generator,
        progress: Progress | None,
    ) -> tuple[bit_search.Searched, list[float]] | None:
        """The search, and what queries weigh; None: bits are not searched."""
        return bit_search.search_bits(unit, split, self.W_, self.t_, rng)

    def _shorten(self, X: NDArray[Any]) -> None:
        """Shorten rebuilt vectors, which are off by some angle, to where the error is least."""
        along = squared = 0.0
        for rows in _check_blocks(len(X)):
            x = as_float32(X[rows][:CHECK_ROWS])
            rebuilt = self.inverse_transform(self.encode_rows(x)).astype(np.float64)
            along += float((x * rebuilt).sum())
            squared += float((rebuilt * rebuilt).sum())
        shorten = np.float32(round(along / squared, 4) if squared > 0 and along > 0 else 1)
        self.decoder_[:, -1] *= shorten
        self.offset_[-1] *= shorten


def _check_blocks(n: int) -> Iterator[slice]:
    """Blocks of n rows; the length of decoded vectors is fitted on the first rows of each."""
    return blocks(n, max(1, n // CHECK_BLOCKS))
