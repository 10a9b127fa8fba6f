"""Neural: bits decoded by a small net, and chosen by search under it (docs/neural.md).

Thresholds, linear decoder and the search under it are those of `NearLossless`. A net then rebuilds
vectors from the same bits more closely (net.py), and bits are flipped while that gains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, blocks, unit_rows
from embits.checks import choice
from embits.coders.backend import Backend, backend, product
from embits.coders.base import Shapes
from embits.coders.near_lossless import NearLossless, bit_search, sampling, training
from embits.coders.near_lossless.bit_search import Decoder, Searched, Setting, Thresholds, signs
from embits.coders.near_lossless.encoder import exact_unit
from embits.coders.near_lossless.whitening import TARGETS, Target
from embits.coders.neural import device as on_device
from embits.coders.neural import training as net_training
from embits.coders.neural.net import Layer, Net, linear_net
from embits.coders.neural.training import Weights
from embits.errors import FormatError
from embits.search import asymmetric_top_k

Floats = NDArray[np.float32]
Codes = NDArray[np.uint8]

NET = {
    "A": ("any", "bits"),
    "G": ("any", "any"),
    "M": ("dims", "any"),
    "alpha": ("any",),
    "a": ("any",),
    "beta": ("any",),
    "g": ("any",),
    "c": ("dims",),
    "o": ("dims",),
}
"""The arrays of a net in a file, each named `net_` and this."""
LAYER = {
    "S": ("any", "dims"),
    "U": ("bits", "any"),
    "sigma": ("any",),
    "u": ("any",),
    "upsilon": ("bits",),
}
"""The arrays of the hidden layer of an encoder, `layer_` and this; empty where it has none."""


class Effort(NamedTuple):
    """How long a fit is."""

    steps: int  # of the training of thresholds
    hidden: int  # units of a layer of the net
    dropout: float
    together: int  # epochs in which an encoder with a hidden layer is trained with the net
    widest: tuple[float, float]  # bits over dimensions up to which that is tried, by target
    epochs: tuple[int, ...]  # of the net alone, in each turn of search and training
    after: tuple[int, ...]  # ... where it was trained with the encoder
    rounds: int  # flips of a code under the net, at most
    tries: int  # flips that are tried for each
    enough: int  # rows of a fit: with more, epochs are fewer
    firm: float  # times ρ of narrow codes, for target "similarity"


EFFORTS = {
    "default": Effort(1000, 512, 0.2, 80, (0, 0.5), (60, 30, 30), (30,), 8, 4, 1 << 14, 6),
    "long": Effort(
        1000, 1024, 0.3, 150, (0.5, 9), (60, 30, 30, 30), (30, 30, 30, 30), 24, 8, 1 << 15, 2
    ),
}


class Preference(NamedTuple):
    """What codes are searched for: κ and ρ of bit_search.py."""

    narrow: Setting  # for up to a sixth as many bits as dimensions
    wide: Setting  # for half as many, and more
    ranking: float  # share of the ranking loss of an encoder that is trained with the net
    loss: float  # of held-out recall by Hamming distance, that such an encoder may cost

    def at(self, n_bits: int, dims: int) -> Setting:
        """The setting of a width, in between."""
        share = min(max(3 * n_bits / dims - 0.5, 0), 1)
        return Setting(*(a + share * (b - a) for a, b in zip(*self[:2], strict=True)))


PREFERENCES = {
    "balanced": Preference(Setting(1.2, 1.0), Setting(1.3, 0.3), 0.3, 0.008),
    "float": Preference(Setting(1.0, 0.3), Setting(1.0, 0.3), 0.3, 1.0),
    "hamming": Preference(Setting(1.0, 3.0), Setting(1.6, 1.0), 1.0, 0.0),
}
SIMILARITY_RANKING = 1.0  # ranking loss for target "similarity"
LATER_RATE = 0.5  # of the learning rate, after the first turn
LEAST_EPOCHS = 10
LEAST_TOGETHER = 4000  # rows: fewer are memorized by an encoder with a hidden layer
ROWS_PER_UNIT = 4  # at least, of a layer of the net
SHORTLISTS = (50, 100, 200, 300, 500)  # rows that the net may rescore
SHORTLIST_LOSS = 0.002  # of held-out recall, for rescoring fewer
MAX_SEARCH = (1 << 16, 1024, 64)  # larger numbers in a file are damage
MEASURED = 4096  # rows that the activations of a net are measured on


@dataclass(frozen=True)
class NetSearched(Searched):
    """A search under a net: from the codes under the linear decoder, or those of a hidden layer."""

    net: Net
    effort: Effort
    layer: Layer | None
    on: Backend

    def encode(self, unit: Floats) -> Codes:
        """Packed codes of unit rows."""
        pull = pulls(unit, self.W, self.t, self.decoder.D, self.decoder.o, self.layer)
        codes = signs_of(pull) if self.layer else super().encode(unit)
        effort = self.effort.rounds, self.effort.tries
        return on_device.search(self.on, self.net, unit, pull, codes, *effort)


def pulls(
    unit: Floats, W: Floats, t: Floats, D: NDArray[Any], o: NDArray[Any], layer: Layer | None
) -> Floats:
    """What pulls each bit beside its part in the rebuilt vector: 2 (W x - t - D (x - o)).

    W x - t is the linear term of a search (bit_search.py), and D x its part that rebuilds x. A
    hidden layer adds to it.
    """
    pull: Floats = product(unit, (2 * (W - D)).T.astype(np.float32))
    pull += (2 * ((D * o).sum(axis=1) - t)).astype(np.float32)
    if layer:
        pull += layer.scores(unit)
    return pull


def signs_of(scores: Floats) -> Codes:
    """Packed codes: a bit is 1 where its score is 0 or more."""
    return np.packbits(scores >= 0, axis=1)


class Neural(NearLossless):
    """Codes that keep more neighbors than those of `NearLossless`, for a longer fit.

    Float queries find more true neighbors, most of all at 64 to 256 bits, and decoded vectors are
    closer to the originals up to a few hundred bits. A fit on 15,000 rows takes about two minutes
    on two CPU cores, and encoding 0.1 ms per row at 256 bits. There is no `partial_fit`.

    Args:
        n_bits: Bits of a code: any number, including more than the dimensions of the input.
        prefer: What bits are chosen for: "float" queries, distances by "hamming", or both
            ("balanced").
        effort: "default", or "long": a larger net, trained about five times as long.
        target: As in `NearLossless`.
        random_state: Seed of the sample, the first weights and the batches.
        device: Where it is trained: "cpu" (None), or a GPU for PyTorch such as "cuda" (the extra
            `gpu`).

    Attributes:
        look_: Shape (3,): the rows that a search rescores by default, the
            most flips of a code under the net, and the flips that are tried for each.
        net_A_: And further arrays of the net, see `embits.coders.neural.net.Net`.

    Example:
        >>> import numpy as np
        >>> X = np.random.default_rng(0).normal(size=(300, 20))
        >>> coder = Neural(n_bits=32).fit(X)
        >>> coder.inverse_transform(coder.transform(X)).shape
        (300, 20)
    """

    method: ClassVar[str] = "neural"
    state_shapes: ClassVar[Shapes] = {
        **NearLossless.state_shapes,
        "look": (3,),
        **{f"net_{name}": shape for name, shape in NET.items()},
        **{f"layer_{name}": shape for name, shape in LAYER.items()},
    }
    state_bytes: ClassVar[frozenset[str]] = frozenset(
        {"net_A", "net_G", "net_M", "layer_S", "layer_U"}
    )
    state_defaults: ClassVar[Mapping[str, float]] = {
        **NearLossless.state_defaults,
        **{f"layer_{name}": 0 for name in LAYER},
    }
    targets: ClassVar[Mapping[str, Target]] = {**TARGETS, "similarity": Target(0.5, 0.75)}
    look_: NDArray[np.float64]
    layer_sigma_: NDArray[np.float32]
    tells_training: ClassVar[bool] = False  # the net takes longer
    steps = batch_size = None

    def __init__(
        self,
        n_bits: int = 256,
        *,
        prefer: str = "balanced",
        effort: str = "default",
        target: str = "neighbors",
        random_state: int | None = 0,
        device: str | None = None,
    ) -> None:
        self.n_bits, self.prefer, self.effort = n_bits, prefer, effort
        self.target, self.random_state, self.device = target, random_state, device

    if not TYPE_CHECKING:

        @property
        def partial_fit(self) -> None:
            """Hidden: a net that is trained on a few more rows would forget the others."""
            raise AttributeError("partial_fit")

    @classmethod
    def check_fit_together(cls, arrays: Mapping[str, NDArray[Any]]) -> None:
        super().check_fit_together(arrays)
        Net(*(arrays[f"net_{name}"] for name in NET))
        Layer(*(arrays[f"layer_{name}"] for name in LAYER))

    def check_learned(self) -> None:
        super().check_learned()
        self._search_sizes()

    @property
    def net(self) -> Net:
        """The net that decodes bits."""
        if "_net" not in vars(self):
            self._net = Net(*(getattr(self, f"net_{name}_") for name in NET))
        return self._net

    @property
    def layer(self) -> Layer | None:
        """The hidden layer of the encoder, if it has one."""
        if len(self.layer_sigma_) == 0:
            return None
        if "_layer" not in vars(self):
            self._layer = Layer(*(getattr(self, f"layer_{name}_") for name in LAYER))
        return self._layer

    @property
    def second_look(self) -> int:
        """Rows of a search that the net rescores by default."""
        return self._search_sizes()[0]

    def _search_sizes(self) -> list[int]:
        if not ((self.look_ >= 0) & (self.look_ <= MAX_SEARCH)).all():
            raise FormatError("damaged: the coder's look_ is out of range")
        return [int(each) for each in self.look_]

    def directions(self, X: Floats) -> Floats:
        """The rows of norm 1 that codes are made of, the same on every processor."""
        return super().directions(X) if len(self.whitening_) else exact_unit(X)

    def rebuilt(self, codes: Codes) -> Floats:
        """The directions of packed codes by the net, of any length."""
        return self.net.decode(codes)

    def encode_rows(self, X: Floats) -> Codes:
        """Packed codes: of the hidden layer or the linear decoder, searched under the net."""
        return self.encode_rows_on(Backend(np), X)

    def encode_rows_on(self, on: Backend, X: Floats) -> Codes:
        """Those codes, searched under the net on the device of a backend."""
        if len(self.search_) == 0:
            return super().encode_rows(X)
        unit, D = self.directions(X), 0.5 * self.decoder_[:, :-1].astype(np.float64)
        pull = pulls(unit, self.W_, self.t_, D, self.offset_[:-1] + D.sum(axis=0), self.layer)
        codes = signs_of(pull) if self.layer else super().encode_rows(X)
        return on_device.search(on, self.net, unit, pull, codes, *self._search_sizes()[1:])

    def _check_params(self) -> None:
        super()._check_params()
        choice("prefer", self.prefer, PREFERENCES)
        choice("effort", self.effort, EFFORTS)

    @property
    def _device_name(self) -> str:
        return "cpu" if self.device is None else self.device

    def _budget(self, n: int) -> training.Budget:
        steps, batch_size = super()._budget(n)
        return training.Budget(min(EFFORTS[self.effort].steps, 4 * steps), batch_size)

    def _best_search(
        self,
        unit: Floats,
        split: sampling.Split,
        rng: np.random.Generator,
        progress: Progress | None,
    ) -> tuple[Searched, list[float]] | None:
        """The search under a net, which is trained on its codes in turns."""
        effort, m = EFFORTS[self.effort], self.n_bits_
        train = unit[rng.permutation(split.train)[: bit_search.MAX_ROWS]]
        thresholds = Thresholds.scaled(self.W_, self.t_, train)
        decoder = bit_search.least_squares(thresholds.encode(train), train, m)
        if len(unit) < bit_search.MIN_ROWS or decoder.length == 0:
            self._store(linear_net(decoder), None, [0, 0, 0])
            return None
        held_out = bit_search.HeldOut(unit[split.check[: split.queries]], train[: bit_search.AMONG])
        training = _Training(effort, backend(self._device_name), rng, train, held_out, progress)
        preference, is_whitened = PREFERENCES[self.prefer], len(self.whitening_) > 0
        if is_whitened:
            narrow = Setting(1.0, effort.firm * preference.narrow.hold)
            preference = preference._replace(narrow=narrow, ranking=SIMILARITY_RANKING)
        widest = effort.widest[is_whitened] * unit.shape[1]
        searched = training.run(preference, widest, thresholds, decoder)
        shares = bit_search.query_shares(searched, held_out)
        look = _shortlist_size(searched, shares[:2], held_out)
        self._store(searched.net, searched.layer, [look, effort.rounds, effort.tries])
        return searched, shares

    def _store(self, net: Net, layer: Layer | None, look: list[int]) -> None:
        for cached in ("_net", "_layer"):
            vars(self).pop(cached, None)
        for name in NET:
            setattr(self, f"net_{name}_", getattr(net, name))
        sizes = {"any": 0, "bits": self.n_bits_, "dims": self.n_features_in_}
        for name, shape in LAYER.items():
            kind = np.int8 if len(shape) == 2 else np.float32
            none = np.zeros([sizes[size] for size in shape], kind)
            setattr(self, f"layer_{name}_", getattr(layer, name) if layer else none)
        self.look_ = np.array(look, dtype=np.float64)


class _Training:
    """The training of a net on the codes of rows, which are searched under it in turns."""

    def __init__(
        self,
        effort: Effort,
        on: Backend,
        rng: np.random.Generator,
        rows: Floats,
        held_out: bit_search.HeldOut,
        progress: Progress | None,
    ) -> None:
        self._effort, self._rows, self._held_out = effort, rows, held_out
        self._unseen = bit_search.HeldOut(held_out.queries, held_out.queries)
        self._progress, self._done, self._planned = progress, 0, 0
        self._share = min(1, effort.enough / len(rows))
        self._settings: Any = {"on": on, "rng": rng, "on_epoch": self._count_epoch}

    def _plan(self, epochs: tuple[int, ...]) -> list[int]:
        planned = [max(LEAST_EPOCHS, round(n * self._share)) for n in epochs]
        self._planned = self._done + sum(planned)
        return planned

    def _count_epoch(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, max(self._planned, self._done))

    def run(
        self, preference: Preference, widest: float, thresholds: Thresholds, decoder: Decoder
    ) -> NetSearched:
        """Train the net on codes, and search codes under the net, in turns.

        Up to `widest` bits, an encoder with a hidden layer is tried first.
        """
        rows, effort = self._rows, self._effort
        m, dims = decoder.D.shape
        self._setting = preference.at(m, dims)
        for _ in range(bit_search.TRY_ROUNDS):
            codes = Searched.at(self._setting, decoder, thresholds).encode(rows)
            decoder = bit_search.least_squares(codes, rows, m)
        plain = Searched.at(self._setting, decoder, thresholds)
        # Few rows would be memorized.
        hidden = min(effort.hidden, 64 * -(-len(rows) // (64 * ROWS_PER_UNIT)))
        start = decoder.D.astype(np.float32), decoder.o.astype(np.float32)
        weights = net_training.first_weights(*start, hidden, self._settings["rng"])
        if m <= widest and len(rows) >= LEAST_TOGETHER:
            scaled, deep, trained = self._together(preference.ranking, thresholds, weights)
            gained = self._recalls(deep) - self._recalls(plain)
            if (gained >= (-preference.loss, 0)).all():
                return self._turns(scaled, deep, trained, deep.layer)
        return self._turns(thresholds, plain, weights, None)

    def _together(
        self, ranking: float, thresholds: Thresholds, weights: Weights
    ) -> tuple[Thresholds, NetSearched, Weights]:
        """Thresholds, a search and a net whose hidden layer was trained with the net."""
        rows, queries, m = self._rows, self._held_out.queries, len(thresholds.t)
        epochs = self._plan((self._effort.together, *self._effort.after))[0]
        settings = rows, queries, epochs, self._effort.dropout, ranking
        weights, encoder = net_training.train_together(
            weights, thresholds, *settings, **self._settings
        )
        parts = [net_training.scores(np, encoder, rows[b])[1] for b in blocks(len(rows))]
        z = np.concatenate(parts)
        spread = z[: bit_search.SPREAD_ROWS].astype(np.float64).std(axis=0) + 1e-12
        W, t, S, u, U = (each.astype(np.float64) for each in encoder)
        scaled = Thresholds(W / spread[:, None], t / spread)
        layer = Layer.of(S, u, U * (self._setting.hold / m / spread)[:, None])
        decoder = bit_search.least_squares(signs_of(z), rows, m)
        b = np.where(z[:MEASURED] >= 0, np.float32(1), np.float32(-1))
        return scaled, self._under(weights, b, decoder, scaled, layer), weights

    def _recalls(self, searched: Searched) -> NDArray[np.float64]:
        """Recall of the held-out queries by Hamming distance and by float query.

        Each is the mean of that among rows of the fit, which may be memorized, and that among
        the queries themselves.
        """
        recalls, queries = [], self._held_out.queries
        of_queries = searched.encode(queries)
        for among in (self._held_out, self._unseen):
            codes = searched.encode(among.rows)
            by_float = (
                among.nearest(product(queries, unit_rows(searched.net.decode(codes)).T))
                if isinstance(searched, NetSearched)
                else max(among.recall(codes, queries, each) for each in searched.weights())
            )
            recalls.append([among.by_hamming(codes, of_queries), by_float])
        mean: NDArray[np.float64] = np.mean(recalls, axis=0)
        return mean

    def _turns(
        self, thresholds: Thresholds, searched: Searched, weights: Weights, layer: Layer | None
    ) -> NetSearched:
        rows, queries, m = self._rows, self._held_out.queries, len(thresholds.t)
        plan = self._plan(self._effort.after if layer else self._effort.epochs)
        for turn, epochs in enumerate(plan):
            codes, decoder = searched.encode(rows), searched.decoder
            if turn or layer:
                decoder = bit_search.least_squares(codes, rows, m)
            b, c = signs(codes, m), signs(searched.encode(queries), m)
            settings = epochs, LATER_RATE if turn or layer else 1.0, self._effort.dropout
            weights = net_training.train(
                weights, b, rows, (c, queries), *settings, **self._settings
            )
            searched = trained = self._under(weights, b[:MEASURED], decoder, thresholds, layer)
        return trained

    def _under(
        self,
        weights: Weights,
        b: Floats,
        decoder: Decoder,
        thresholds: Thresholds,
        layer: Layer | None,
    ) -> NetSearched:
        """The search under a net in bytes; `b` are signs that its activations are measured on."""
        of, net = Searched.at(self._setting, decoder, thresholds), net_training.in_bytes(weights, b)
        return NetSearched(
            of.W, of.t, decoder, of.shares, net, self._effort, layer, self._settings["on"]
        )


def _shortlist_size(
    searched: NetSearched, shares: list[float], held_out: bit_search.HeldOut
) -> int:
    """The smallest of SHORTLISTS whose held-out recall is the best, less SHORTLIST_LOSS."""
    codes = searched.encode(held_out.rows)
    weights = shares[0] * searched.decoder.D + shares[1] * searched.W
    coarse = asymmetric_top_k(
        codes, product(held_out.queries, weights.T.astype(np.float32)), SHORTLISTS[-1]
    )
    cosines = product(held_out.queries, unit_rows(searched.net.decode(codes)).T)
    recalls = []
    for size in SHORTLISTS:
        rows = coarse.rows[:, :size]
        best = np.argsort(-np.take_along_axis(cosines, rows, axis=1), axis=1, kind="stable")
        recalls.append(held_out.share(np.take_along_axis(rows, best, axis=1)))
    return next(
        size
        for size, each in zip(SHORTLISTS, recalls, strict=True)
        if each >= max(recalls) - SHORTLIST_LOSS
    )
