"""Coder: what every method is, and the contract of a scikit-learn estimator without scikit-learn.

scikit-learn takes one to two seconds to import, so the part of `BaseEstimator` that the contract
needs is written here. scikit-learn is imported only in `__sklearn_tags__`, which it calls itself.
"""

from __future__ import annotations

import hashlib
import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from reprlib import repr as shortened
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, cast, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, as_float32, blocks, packed_width, unit_rows
from embits.checks import MAX_WEIGHT, check_finite, is_usual, matrix_of_numbers, too_large
from embits.coders.backend import encode_on
from embits.errors import FormatError, InputError, NotFittedError
from embits.pretrained import Pretrained


class Estimator:
    """Parameters, column names and tags of a transformer."""

    n_features_in_: int
    n_bits_: int
    feature_names_in_: NDArray[np.object_]

    @property
    def n_bytes_(self) -> int:
        """Bytes of a packed code: the columns of what `transform` returns."""
        return packed_width(self.n_bits_)

    @classmethod
    def param_names(cls) -> list[str]:
        """Names of the parameters of `__init__`."""
        return sorted(p for p in inspect.signature(cls.__init__).parameters if p != "self")

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters given to `__init__`."""
        return {name: getattr(self, name) for name in self.param_names()}

    def set_params(self, **params: Any) -> Self:
        """Change parameters; they take effect at the next `fit`."""
        for name, value in params.items():
            if name not in self.param_names():
                invalid = f"Invalid parameter {name!r} for estimator {self}"
                raise InputError(f"{invalid}; valid ones are {', '.join(self.param_names())}")
            setattr(self, name, value)
        return self

    def check_fitted(self) -> None:
        """Raise NotFittedError unless `fit` has been called."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted: call fit first")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of `transform`, such as the bytes of a code: `itq0`, `itq1` …"""
        self.check_fitted()
        prefix, n = type(self).__name__.lower(), getattr(self, "n_features_out_", self.n_bytes_)
        return np.asarray([f"{prefix}{i}" for i in range(n)], dtype=object)

    def _check_features(self, X: Any, dims: int) -> None:
        """Refuse another width, or other column names, than it was fitted on."""
        if dims != self.n_features_in_:
            expected = f"{type(self).__name__} is expecting {self.n_features_in_} features as input"
            raise InputError(f"X has {dims} features, but {expected}")
        names, fitted = _column_names(X), getattr(self, "feature_names_in_", None)
        if names is not None and fitted is not None and not np.array_equal(names, fitted):
            raise InputError("the columns are not those of the fit, in their order")

    def __repr__(self) -> str:
        usual = {k: each.default for k, each in inspect.signature(type(self)).parameters.items()}
        params = self.get_params().items()
        texts = [f"{k}={v!r}" for k, v in params if k == "n_bits" or repr(v) != repr(usual[k])]
        return f"{type(self).__name__}({', '.join(texts)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        transformer = TransformerTags(preserves_dtype=[])
        target = TargetTags(required=False)
        return Tags("transformer", target, transformer, input_tags=InputTags())


def _column_names(X: Any) -> NDArray[Any] | None:
    """Column names of a data frame, if all are strings, as in scikit-learn."""
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.asarray(list(columns), dtype=object)


Shapes: TypeAlias = Mapping[str, tuple[str | int, ...]]

SYMBOLS = ("bits", "dims", "dims+1", "any")  # sizes of `state_shapes` that are not numbers
BYTES = np.dtype("i1")
FLOATS = tuple(map(np.dtype, ("<f2", "<f8", "<f4")))  # of learned arrays in a file


class Coder(Estimator, Pretrained, ABC):
    """Turns vectors into packed codes and back.

    A method is a subclass whose `__init__` stores its parameters as they are, with `fit`,
    `project`, `inverse_transform` and `state_shapes`: see docs/custom-coders.md.

    Attributes:
        method: The name on the command line and in the file.
        state_shapes: The learned arrays and their shapes in "bits", "dims", "dims+1", "any" or
            numbers; array `W` is the attribute `W_`.
        state_defaults: Learned arrays that a file may lack, and the number that fills them ("any"
            is then 0); an array of this number alone is not stored.
        state_bytes: Learned arrays that are int8; the others are floats.
        shuffles_rows: The fit is much faster with the rows in memory.
        n_features_in_: Dimensions of the vectors it was fitted on.
        n_bits_: Bits of its codes.
        feature_names_in_: Column names of the data frame it was fitted on, if it was one.
    """

    method: ClassVar[str]
    state_shapes: ClassVar[Shapes]
    state_defaults: ClassVar[Mapping[str, float]] = MappingProxyType({})
    state_bytes: ClassVar[frozenset[str]] = frozenset()
    shuffles_rows: ClassVar[bool] = False
    _unread: Mapping[str, NDArray[Any]] = MappingProxyType({})  # arrays of a file, by attribute
    _halved: frozenset[str] = frozenset()  # names of the arrays that files hold in 16 bits
    _is_left_out = False

    @abstractmethod
    def fit(self, X: Any, y: Any = None, *, progress: Progress | None = None) -> Self:
        """Learn from vectors `X` of shape (n, dims); `y` is ignored.

        Useful codes need hundreds of rows or more. `progress` is called with (done, total).
        """

    @abstractmethod
    def project(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores of shape (n, n_bits): a bit is 1 where its score is 0 or more."""

    def query_weights(
        self, X: NDArray[np.float32], *, rebuilt: bool = False
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """What bits weigh for float queries X, (n, dims), or for vectors `rebuilt` from codes.

        Weights (n, n_bits) and offsets (n,): the score of a row with bits b is weights · (2b - 1) +
        offset, and estimates a cosine; by default, that of the query's scores and the row's bits.
        """
        scores = self._scores(X)
        if not np.isfinite(scores).all():
            raise too_large()
        # Divided by the largest first: squares of very small or large scores leave float32.
        scores = scores / _or_one(np.abs(scores).max(axis=1))[:, None]
        norms = np.sqrt(np.einsum("ij,ij->i", scores, scores) * np.float32(self.n_bits_))
        return scores / _or_one(norms)[:, None], np.zeros(len(X), dtype=np.float32)

    def directions(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Rows of norm 1, of vectors X of shape (n, dims), whose cosines the codes keep."""
        return unit_rows(X)

    @property
    def is_threshold(self) -> bool:
        """Whether a bit is 1 exactly where its score of `project` is 0 or more."""
        return True

    @abstractmethod
    def inverse_transform(self, codes: Any) -> NDArray[np.float32]:
        """Float vectors of shape (n, dims) rebuilt from packed codes."""

    @property
    def second_look(self) -> int:
        """Rows that a search by scores rescores, by cosines of `directions` and `rebuilt`."""
        return 0

    def rebuilt(self, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Vectors of packed codes as they are compared with queries, of any length."""
        return self.inverse_transform(codes)

    def rows_for_fit(self, n: int, dims: int) -> NDArray[np.int64] | None:
        """The rows, ascending, that a `fit` on n rows reads; None: all of them.

        A fit on a large file then loads these rows alone, as a LazyRows, and learns the same.
        """
        return None

    def transform(self, X: Any, *, device: str = "cpu") -> NDArray[np.uint8]:
        """`encode` under scikit-learn's name."""
        return self.encode(X, device=device)

    def encode(self, X: Any, *, device: str = "cpu") -> NDArray[np.uint8]:
        """Packed codes of shape (n, ceil(n_bits / 8)), first bit highest, padding bits zero.

        Args:
            X: Vectors of shape (n, dims). A PyTorch tensor in a GPU's memory is encoded there.
            device: "cpu", or a GPU such as "cuda" (the extra `gpu`), which gives the same codes.
        """
        self.check_fitted()
        if getattr(X, "is_cuda", False) and device == "cpu":
            device = str(X.device)
        if device != "cpu":
            return encode_on(self, X, device)
        X = self.check_vectors(X)
        codes = np.empty((len(X), self.n_bytes_), dtype=np.uint8)
        for rows in blocks(len(X)):
            codes[rows] = self.encode_rows(as_float32(X[rows]))
        return codes

    def encode_rows(self, X: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Packed codes of a block of rows, each the same in any block and on any machine."""
        return np.packbits(self._scores(X) >= 0, axis=1)

    def _scores(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """The scores of `project`, checked: a coder may be a user's own."""
        scores = np.asarray(self.project(X))
        if scores.shape != (expected := (len(X), self.n_bits_)):
            raise InputError(f"project returned {scores.shape}, expected {expected}: (n, n_bits)")
        if np.isnan(scores).any():
            raise InputError("project returned NaN, expected numbers")
        return scores

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[np.uint8]:
        """`fit(X)`, then `transform(X)`."""
        return self.fit(X, y).transform(X)

    def state(self) -> dict[str, NDArray[Any]]:
        """The learned arrays by name, as the file stores them; InputError if one is unusable."""
        self.check_fitted()
        if self.is_left_out:
            return {}
        if getattr(self, "n_bits", None) not in (None, self.n_bits_):
            raise InputError(f"n_bits was changed since the fit to {self.n_bits_} bits: fit again")
        learned = {name: getattr(self, f"{name}_", None) for name in self.state_shapes}
        state = _checked_arrays(type(self), learned, self.n_features_in_, self.n_bits_)
        for name, array in state.items():
            if not is_usual(array):
                raise InputError(f"the coder's {name}_ has weights beyond {MAX_WEIGHT:g}, or NaN")
        for name, default in self.state_defaults.items():
            if (state[name] == default).all():
                del state[name]
        return {n: a.astype(np.float16) if n in self._halved else a for n, a in state.items()}

    @classmethod
    def from_state(
        cls, params: Mapping[str, Any], state: Mapping[str, NDArray[Any]], dims: int, n_bits: int
    ) -> Self:
        """The fitted coder that has these `get_params()` and this `state()`.

        InputError if they do not fit the coder. The arrays may be mapped: each is read when it is
        first used, which raises FormatError if it holds NaN or numbers that are too large.
        """
        _check_params(cls, params)
        coder = cls(**params)
        if getattr(coder, "n_bits", None) not in (None, n_bits):
            raise InputError(f"the parameter n_bits does not fit codes of {n_bits} bits")
        arrays = _checked_arrays(cls, state, dims, n_bits)
        cls.check_fit_together(arrays)
        coder._unread = {f"{name}_": array for name, array in arrays.items()}
        coder._halved = frozenset(n for n, array in state.items() if array.dtype == np.float16)
        coder.n_features_in_, coder.n_bits_ = dims, n_bits
        return coder

    @classmethod
    def check_fit_together(cls, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Refuse learned arrays of which "any" sizes do not fit each other; they may be mapped."""

    def check_learned(self) -> None:
        """Read every learned array: FormatError if one holds numbers that no fit gives."""
        for name in self.state_shapes:
            getattr(self, f"{name}_")

    @classmethod
    def left_out(cls, params: Mapping[str, Any], dims: int, n_bits: int) -> Self:
        """A coder whose learned arrays a file does not hold: it cannot encode or decode."""
        _check_params(cls, params)
        coder = cls(**params)
        coder.n_features_in_, coder.n_bits_, coder._is_left_out = dims, n_bits, True
        return coder

    @property
    def is_left_out(self) -> bool:
        """Whether the file holds nothing that the coder has learned."""
        return self._is_left_out and not any(f"{name}_" in vars(self) for name in self.state_shapes)

    if not TYPE_CHECKING:  # or every misspelt attribute would pass the type checker

        def __getattr__(self, name: str) -> Any:
            """A learned array that came from a file, at its first use."""
            array = self._unread.get(name)
            if array is None and self._is_left_out and name.removesuffix("_") in self.state_shapes:
                hint = 'use metric="hamming" with ids or codes (--metric hamming)'
                raise InputError(
                    "the coder was left out of this file, so it cannot encode, decode or compare "
                    f"floats: {hint}, or the file it was made from"
                )
            if array is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if not is_usual(array):
                unusual = f"NaN or numbers beyond {MAX_WEIGHT:g}"
                raise FormatError(f"damaged: the coder's {name} holds {unusual}")
            array = array.astype(np.float32) if array.dtype == np.float16 else array
            setattr(self, name, array)
            return array

    def check_vectors(self, X: Any, *, fitting: bool = False) -> NDArray[Any]:
        """`X` as a 2-d array of finite numbers; not copied, and read in blocks (maybe mapped)."""
        array = matrix_of_numbers(X)
        if fitting:
            if 0 in array.shape:  # in scikit-learn's words
                found = f"Found array with 0 {'feature' if len(array) else 'sample'}(s)"
                raise InputError(f"{found} (shape={array.shape}) while a minimum of 1 is required.")
            self.n_features_in_, names = int(array.shape[1]), _column_names(X)
            if names is not None:
                self.feature_names_in_ = names
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        else:
            self._check_features(X, array.shape[1])
        check_finite(array)
        return array

    def check_codes(self, codes: Any) -> NDArray[np.uint8]:
        """`codes` as packed uint8 rows of this coder's width."""
        self.check_fitted()
        codes = np.asarray(codes)
        if codes.dtype != np.uint8 or codes.ndim != 2 or codes.shape[1] != self.n_bytes_:
            expected = f"packed bits: uint8 of shape (n, {self.n_bytes_})"
            raise InputError(f"codes are {codes.dtype} of shape {codes.shape}, expected {expected}")
        return cast("NDArray[np.uint8]", codes)


def coder_checksum(coder: Coder) -> str:
    """A checksum of a fitted coder: its method, its dimensions and what it has learned.

    Coders of one checksum give the same codes and rebuild the same vectors. Parameters of the fit
    do not count. A coder that was saved and loaded keeps its checksum.

    >>> from embits.coders import RandomHyperplanes
    >>> X = np.eye(3)
    >>> a, b = (RandomHyperplanes(n_bits=8, random_state=seed).fit(X) for seed in (0, 1))
    >>> coder_checksum(a) == coder_checksum(a), coder_checksum(a) == coder_checksum(b)
    (True, False)
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(f"{coder.method} {coder.n_features_in_} {coder.n_bits_}".encode())
    for name, array in sorted(coder.state().items()):
        plain = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
        digest.update(f" {name} {plain.dtype.str} {plain.shape}".encode())
        digest.update(plain.tobytes())
    return digest.hexdigest()


def _or_one(divisors: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.where(divisors > 0, divisors, np.float32(1)).astype(np.float32)


# -- what a file stores of a coder -----------------------------------------------------------------


@cache  # evaluating the annotations takes as long as opening the rest of a file
def _hints(coder: type[Coder]) -> dict[str, Any]:
    try:
        return get_type_hints(coder.__init__)
    except NameError:  # a type that is imported for the type checker alone
        return {}


def _check_params(coder: type[Coder], params: Mapping[str, Any]) -> None:
    known, hints = coder.param_names(), _hints(coder)
    for name, value in params.items():
        if name not in known:
            raise InputError(f"method {coder.method!r} has no parameter {shortened(name)}")
        if not _fits(value, hints.get(name, Any)):
            raise InputError(f"the parameter {name} is {shortened(value)}")


def _fits(value: Any, hint: Any) -> bool:
    """Whether a value out of JSON is of the type that a parameter is declared with."""
    kinds = {kind for part in get_args(hint) or (hint,) for kind in get_args(part) or (part,)}
    if Any in kinds:
        return True
    if isinstance(value, int):  # also for floats, and a flag may be a number
        return not {int, float, bool}.isdisjoint(kinds)
    if isinstance(value, float):
        return float in kinds and bool(np.isfinite(value))
    if value is None:
        return NoneType in kinds
    return isinstance(value, str) and (str in kinds or value in kinds)


def _checked_arrays(
    coder: type[Coder], arrays: Mapping[str, Any], dims: int, n_bits: int
) -> dict[str, NDArray[Any]]:
    """Learned arrays by name, if they are floats in the shapes of `state_shapes`; not read."""
    sizes = {"bits": n_bits, "dims": dims, "dims+1": dims + 1}
    checked = {}
    for name, shape in coder.state_shapes.items():
        wanted: tuple[Any, ...] = tuple(sizes.get(str(size), size) for size in shape)
        value = arrays.get(name)
        kinds = (BYTES,) if name in coder.state_bytes else FLOATS
        if value is None and name in coder.state_defaults:
            least = [0 if size == "any" else size for size in wanted]
            value = np.full(least, coder.state_defaults[name], dtype=kinds[-1])
        array = np.asarray(value)
        sizes_fit = all(w in ("any", got) for w, got in zip(wanted, array.shape, strict=False))
        if array.dtype not in kinds or array.ndim != len(wanted) or not sizes_fit:
            found = "missing" if value is None else f"{array.dtype} {array.shape}"
            kind = "int8" if name in coder.state_bytes else "floats"
            raise InputError(f"the coder's {name}_ is {found}, expected {kind} {wanted}")
        checked[name] = array
    return checked
