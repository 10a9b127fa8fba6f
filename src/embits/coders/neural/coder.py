"""Neural: bits decoded by a small net, and chosen by search under it.

Thresholds, linear decoder and the search under it are those of `NearLossless`. A net then rebuilds
vectors from the same bits more closely (net.py), and bits are flipped while that gains. A search
scans all rows by the linear decoder, and looks a second time at the best of them with the net.
docs/neural.md says what it gains and costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, unit_rows
from embits.checks import choice
from embits.coders.backend import Backend, backend, product
from embits.coders.base import Shapes
from embits.coders.near_lossless import NearLossless, bit_search, sampling, training
from embits.coders.near_lossless.bit_search import Searched, Setting, Thresholds, signs
from embits.coders.near_lossless.encoder import exact_unit
from embits.coders.neural import training as net_training
from embits.coders.neural.net import Net, linear_net
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


class Effort(NamedTuple):
    """How long a fit is."""

    steps: int  # of the training of thresholds
    hidden: int  # units of a layer of the net
    dropout: float
    together: int  # epochs in which thresholds and net are trained together
    epochs: tuple[int, ...]  # of the net alone, in each turn of search and training
    rounds: int  # flips of a code under the net, at most
    tries: int  # flips that are tried for each


EFFORTS = {
    "default": Effort(1000, 512, 0.2, 0, (60, 30, 30), 8, 4),
    "long": Effort(1000, 1024, 0.3, 100, (60, 30, 30, 30), 24, 8),
}


class Preference(NamedTuple):
    """What codes are searched for: κ and ρ of bit_search.py."""

    narrow: Setting  # for up to a sixth as many bits as dimensions
    wide: Setting  # for half as many, and more

    def at(self, n_bits: int, dims: int) -> Setting:
        """The setting of a width, in between."""
        share = min(max(3 * n_bits / dims - 0.5, 0), 1)
        return Setting(*(a + share * (b - a) for a, b in zip(*self, strict=True)))


PREFERENCES = {
    "balanced": Preference(Setting(1.2, 1.5), Setting(1.3, 0.4)),
    "float": Preference(Setting(1.0, 0.3), Setting(1.0, 0.3)),
    "hamming": Preference(Setting(1.0, 3.0), Setting(1.6, 1.0)),
}
LATER_RATE = 0.5  # of the learning rate, after the first turn
ENOUGH_ROWS, LEAST_EPOCHS = 16_384, 10  # with more rows, epochs are fewer
ROWS_PER_UNIT = 8  # at least, of a layer of the net
LOOKS = (50, 100, 200, 300, 500)  # rows that the net may look at a second time
LOOK_LOSS = 0.002  # of held-out recall, for looking at fewer
MOST_LOOKS = (1 << 16, 1024, 64)  # larger numbers in a file are damage
MEASURED = 4096  # rows that the activations of a net are measured on


@dataclass(frozen=True)
class NetSearched(Searched):
    """A search under the linear decoder, and then under a net."""

    net: Net
    effort: Effort

    def encode(self, unit: Floats) -> Codes:
        """Packed codes of unit rows."""
        drawn = pulls(unit, self.W, self.t, self.decoder.D, self.decoder.o)
        codes = super().encode(unit)
        return self.net.search(unit, drawn, codes, self.effort.rounds, self.effort.tries)


def pulls(unit: Floats, W: Floats, t: Floats, D: NDArray[Any], o: NDArray[Any]) -> Floats:
    """What draws each bit beside its part in the rebuilt vector: 2 (W x - t - D (x - o)).

    W x - t is the linear term of a search (bit_search.py), and D x its part that rebuilds x.
    """
    drawn: Floats = product(unit, (2 * (W - D)).T.astype(np.float32))
    drawn += (2 * ((D * o).sum(axis=1) - t)).astype(np.float32)
    return drawn


class Neural(NearLossless):
    """Codes that keep more neighbors than those of `NearLossless`, for a longer fit.

    A float query finds more true neighbors than with `NearLossless`, most of all at 64 to 256
    bits, and decoded vectors are closer to the originals up to a few hundred bits. A fit on 15,000
    rows takes about two minutes on two CPU cores, and encoding 0.1 ms per row at 256 bits. There
    is no `partial_fit`: a net cannot go on from few rows.

    Args:
        n_bits: Bits of a code: any number, including more than the dimensions of the input.
        prefer: What bits are chosen for: "float" queries, distances by "hamming", or both
            ("balanced").
        effort: "default", or "long": a larger net, trained about four times as long.
        target: As in `NearLossless`.
        random_state: Seed of the sample, the first weights and the batches.
        device: Where it is trained: "cpu" (None), or a GPU for PyTorch such as "cuda" (the extra
            `gpu`).

    Attributes:
        look_: Shape (3,): the rows that a search looks at a second time unless told otherwise, the
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
    }
    state_bytes: ClassVar[frozenset[str]] = frozenset({"net_A", "net_G", "net_M"})
    look_: NDArray[np.float64]
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
        self.n_bits = n_bits
        self.prefer = prefer
        self.effort = effort
        self.target = target
        self.random_state = random_state
        self.device = device

    if not TYPE_CHECKING:

        @property
        def partial_fit(self) -> None:
            """Hidden: a net that is trained on a few more rows would forget the others."""
            raise AttributeError("partial_fit")

    @property
    def net(self) -> Net:
        """The net that decodes bits."""
        if "_net" not in vars(self):
            self._net = Net(*(getattr(self, f"net_{name}_") for name in NET))
        return self._net

    @property
    def second_look(self) -> int:
        """Rows of a search that the net looks at, unless the search says otherwise."""
        return self._looks()[0]

    def _looks(self) -> list[int]:
        if not ((self.look_ >= 0) & (self.look_ <= MOST_LOOKS)).all():
            raise FormatError("damaged: the coder's look_ holds numbers that no fit gives")
        return [int(each) for each in self.look_]

    def directions(self, X: Floats) -> Floats:
        """The rows of norm 1 that codes are made of, the same on every processor."""
        return super().directions(X) if len(self.whitening_) else exact_unit(X)

    def rebuilt(self, codes: Codes) -> Floats:
        """The directions of packed codes by the net, of any length."""
        return self.net.decode(codes)

    def encode_rows(self, X: Floats) -> Codes:
        """Packed codes: searched under the linear decoder, then under the net."""
        codes = super().encode_rows(X)
        if len(self.search_) == 0:
            return codes
        unit, D = self.directions(X), 0.5 * self.decoder_[:, :-1].astype(np.float64)
        drawn = pulls(unit, self.W_, self.t_, D, self.offset_[:-1] + D.sum(axis=0))
        return self.net.search(unit, drawn, codes, *self._looks()[1:])

    def _check_params(self) -> None:
        super()._check_params()
        choice("prefer", self.prefer, PREFERENCES)
        choice("effort", self.effort, EFFORTS)

    @property
    def _place(self) -> str:
        return "cpu" if self.device is None else self.device

    def _budget(self, n: int) -> training.Budget:
        steps, batch_size = super()._budget(n)
        return training.Budget(min(EFFORTS[self.effort].steps, 4 * steps), batch_size)

    def _found_search(
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
            self._keep(linear_net(decoder), [0, 0, 0])
            return None
        held_out = bit_search.HeldOut(unit[split.check[: split.queries]], train[: bit_search.AMONG])
        training = _Training(effort, backend(self._place), rng, train, held_out, progress)
        setting = PREFERENCES[self.prefer].at(m, unit.shape[1])
        searched = training.run(setting, thresholds, decoder)
        shares = bit_search.query_shares(searched, held_out)
        look = _second_look(searched, shares[:2], held_out)
        self._keep(searched.net, [look, effort.rounds, effort.tries])
        return searched, shares

    def _keep(self, net: Net, look: list[int]) -> None:
        vars(self).pop("_net", None)
        for name in NET:
            setattr(self, f"net_{name}_", getattr(net, name))
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
        self._progress, self._done = progress, 0
        share = min(1, ENOUGH_ROWS / len(rows))
        self._epochs = [max(LEAST_EPOCHS, round(n * share)) for n in effort.epochs]
        self._together = round(effort.together * share)
        self._settings: Any = {"on": on, "rng": rng, "told": self._tell}

    def _tell(self) -> None:
        self._done += 1
        if self._progress is not None:
            self._progress(self._done, self._together + sum(self._epochs))

    def run(
        self, setting: Setting, thresholds: Thresholds, decoder: bit_search.Decoder
    ) -> NetSearched:
        """Train the net on codes, and search codes under the net, in turns."""
        rows, queries, m = self._rows, self._held_out.queries, len(decoder.D)
        thresholds, weights = self._first(thresholds, decoder)
        for _ in range(bit_search.TRY_ROUNDS):
            codes = Searched.at(setting, decoder, thresholds).encode(rows)
            decoder = bit_search.least_squares(codes, rows, m)
        of = searched = Searched.at(setting, decoder, thresholds)
        for turn, epochs in enumerate(self._epochs):
            codes = searched.encode(rows)
            if turn:
                decoder = bit_search.least_squares(codes, rows, m)
                of = Searched.at(setting, decoder, thresholds)
            b, c = signs(codes, m), signs(searched.encode(queries), m)
            rate = LATER_RATE if turn or self._together else 1.0
            settings = epochs, rate, self._effort.dropout
            weights = net_training.train(
                weights, b, rows, (c, queries), *settings, **self._settings
            )
            net = net_training.in_bytes(weights, b[:MEASURED])
            searched = found = NetSearched(of.W, of.t, of.decoder, of.shares, net, self._effort)
        return found

    def _first(
        self, thresholds: Thresholds, decoder: bit_search.Decoder
    ) -> tuple[Thresholds, net_training.Weights]:
        """Thresholds and a net to start from, trained together where that keeps neighbors."""
        # Few rows would be learned by heart.
        hidden = min(self._effort.hidden, 64 * -(-len(self._rows) // (64 * ROWS_PER_UNIT)))
        start = decoder.D.astype(np.float32), decoder.o.astype(np.float32)
        weights = net_training.first_weights(*start, hidden, self._settings["rng"])
        if not self._together:
            return thresholds, weights
        settings = self._rows, self._held_out.queries, self._together, self._effort.dropout
        net, trained = net_training.train_together(weights, thresholds, *settings, **self._settings)
        trained = Thresholds.scaled(trained.W, trained.t, self._rows)
        rows, queries = self._held_out.rows, self._held_out.queries
        recalls = [
            self._held_out.by_hamming(each.encode(rows), each.encode(queries))
            for each in (trained, thresholds)
        ]
        if recalls[0] >= recalls[1] - bit_search.TOLERANCE:
            return trained, net
        self._together = 0
        return thresholds, weights


def _second_look(searched: NetSearched, shares: list[float], held_out: bit_search.HeldOut) -> int:
    """The fewest of LOOKS at which held-out queries find as many neighbors, up to LOOK_LOSS."""
    codes = searched.encode(held_out.rows)
    weights = shares[0] * searched.decoder.D + shares[1] * searched.W
    coarse = asymmetric_top_k(
        codes, product(held_out.queries, weights.T.astype(np.float32)), LOOKS[-1]
    )
    cosines = product(held_out.queries, unit_rows(searched.net.decode(codes)).T)
    recalls = []
    for look in LOOKS:
        rows = coarse.rows[:, :look]
        best = np.argsort(-np.take_along_axis(cosines, rows, axis=1), axis=1, kind="stable")
        recalls.append(held_out.share(np.take_along_axis(rows, best, axis=1)))
    return next(
        look for look, each in zip(LOOKS, recalls, strict=True) if each >= max(recalls) - LOOK_LOSS
    )
