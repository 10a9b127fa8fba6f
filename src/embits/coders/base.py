"""The one contract every coder keeps: floats in, packed bits out, floats back.

A coder is a scikit-learn estimator. scikit-learn itself takes one to two seconds to import,
so the little of `BaseEstimator` that the estimator contract asks for is written here, and
scikit-learn is imported only when it is scikit-learn that asks (`__sklearn_tags__`).
"""

from __future__ import annotations

import functools
import inspect
from abc import ABC, abstractmethod
from collections.abc import Mapping
from reprlib import repr as shortened
from types import MappingProxyType, NoneType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias, cast, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from embits.arrays import Progress, as_float32, blocks, to_numpy
from embits.bits import packed_width
from embits.coders.columns import column_names, in_container, name_mismatch, names_out
from embits.coders.lazy import LazyRows
from embits.errors import FormatError, InputError, NotFittedError
from embits.pretrained import Pretrained

Shapes: TypeAlias = Mapping[str, tuple[str | int, ...]]

MAX_BITS = 1 << 16  # of a code: 8 KB; beyond, a wrong number is likelier than a wish
MAX_WEIGHT = 1e18  # beyond, sums of squares over a vector would leave float32


class Coder(Pretrained, ABC):
    """Turns vectors into packed codes and back.

    A method subclasses this with its parameters in `__init__` (stored as they are, nothing
    else done there), `fit`, `project` and `inverse_transform`, and names its learned arrays
    in `state_shapes`: that is all that the file, the command line and the search need.

    Attributes:
        method: The name on the command line and in the file.
        state_shapes: The learned arrays and their shapes in "bits", "dims", "dims+1", "any" or
            numbers; array `W` is the attribute `W_`.
        state_defaults: Learned arrays that files of earlier versions lack, and the number that
            fills them; an array of this number alone is not stored.
        n_features_in_: Dimensions of the vectors it was fitted on.
        n_bits_: Bits of its codes.
        feature_names_in_: Column names of the data frame it was fitted on, if it was one.
    """

    method: ClassVar[str]
    state_shapes: ClassVar[Shapes]
    state_defaults: ClassVar[Mapping[str, float]] = MappingProxyType({})
    n_features_in_: int
    n_bits_: int
    feature_names_in_: NDArray[np.object_]
    _unread: Mapping[str, NDArray[Any]] = MappingProxyType({})  # arrays of a file, by attribute

    # -- the contract of a coder ---------------------------------------------------------------

    @abstractmethod
    def fit(self, X: Any, y: Any = None, *, progress: Progress | None = None) -> Self:
        """Learn from vectors `X` of shape (n, dims); `y` is ignored.

        `progress` is called with (done, total) as the fit goes on.
        """

    @abstractmethod
    def project(self, X: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores of shape (n, n_bits): a bit is 1 where its score is 0 or more."""

    @abstractmethod
    def inverse_transform(self, codes: Any) -> NDArray[np.float32]:
        """Float vectors of shape (n, dims) rebuilt from packed codes."""

    def rows_for_fit(self, n: int, dims: int) -> NDArray[np.int64] | None:
        """The rows, ascending, that a `fit` on n rows looks at; None: at all of them.

        So a file can be fitted on without its being held: the fit learns the same from a
        LazyRows that holds these rows alone.
        """
        return None

    @property
    def n_bytes_(self) -> int:
        """Bytes of a packed code."""
        return packed_width(self.n_bits_)

    def transform(self, X: Any, *, device: str = "cpu") -> NDArray[np.uint8]:
        """`encode` under scikit-learn's name.

        Returns:
            An array, or a data frame where `set_output` or scikit-learn's configuration asks
            for one.
        """
        return in_container(self, self.encode(X, device=device), X)

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
            from embits.coders.on_device import encode_on

            return encode_on(self, X, device)
        X = self.check_vectors(X)
        codes = np.empty((len(X), self.n_bytes_), dtype=np.uint8)
        for rows in blocks(len(X)):
            codes[rows] = self.encode_rows(as_float32(X[rows]))
        return codes

    def encode_rows(self, X: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Packed codes of a block of rows, each the same in any block and on any machine."""
        return np.packbits(self.project(X) >= 0, axis=1)

    def fit_transform(self, X: Any, y: Any = None) -> NDArray[np.uint8]:
        """`fit(X)`, then `transform(X)`."""
        return self.fit(X, y).transform(X)

    def state(self) -> dict[str, NDArray[Any]]:
        """The learned arrays by name, as the file stores them.

        Raises:
            InputError: They do not belong together, or hold what no file may hold.
        """
        self.check_fitted()
        if getattr(self, "n_bits", None) not in (None, self.n_bits_):
            raise InputError(f"n_bits was changed since the fit to {self.n_bits_} bits: fit again")
        state = {name: np.asarray(getattr(self, name + "_")) for name in self.state_shapes}
        for name, array in state.items():
            if not _is_usual(array):
                raise InputError(f"the coder's {name}_ has weights beyond {MAX_WEIGHT:g}, or NaN")
        for name, default in self.state_defaults.items():
            if (state[name] == default).all():
                del state[name]
        return state

    @classmethod
    def from_state(
        cls, params: Mapping[str, Any], state: Mapping[str, NDArray[Any]], dims: int, n_bits: int
    ) -> Self:
        """The fitted coder that `get_params()` and `state()` were taken from.

        The arrays may be mapped: each is read, and checked to hold usual numbers, when it is
        first used, which raises FormatError where it does not.

        Raises:
            InputError: An array is missing, or its shape or type is not what the coder needs; or
                a parameter is unknown or of the wrong type.
        """
        cls._check_stored(params)
        coder = cls(**params)
        if getattr(coder, "n_bits", None) not in (None, n_bits):
            raise InputError(f"the parameter n_bits does not fit codes of {n_bits} bits")
        sizes = {"bits": n_bits, "dims": dims, "dims+1": dims + 1}
        unread: dict[str, NDArray[Any]] = {}
        for name, shape in cls.state_shapes.items():
            array = state.get(name)
            wanted = tuple(sizes.get(str(size), size) for size in shape)
            if array is None and name in cls.state_defaults:
                array = np.full(cast("Any", wanted), cls.state_defaults[name], dtype=np.float32)
            if (
                array is None
                or array.dtype.kind != "f"
                or array.ndim != len(wanted)
                or any(w not in ("any", got) for w, got in zip(wanted, array.shape, strict=True))
            ):
                found = "nothing" if array is None else f"{array.dtype} {array.shape}"
                raise InputError(f"the coder's {name} is {found}, expected floats {wanted}")
            unread[name + "_"] = array
        coder._unread = unread
        coder.n_features_in_ = dims
        coder.n_bits_ = n_bits
        return coder

    if not TYPE_CHECKING:  # or every misspelt attribute would pass the type checker

        def __getattr__(self, name: str) -> Any:
            """A learned array that came from a file, at its first use."""
            array = self._unread.get(name)
            if array is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            if not _is_usual(array):
                raise FormatError(
                    f"damaged: the coder's {name} holds NaN, or beyond {MAX_WEIGHT:g}"
                )
            setattr(self, name, array)
            return array

    @classmethod
    def _check_stored(cls, params: Mapping[str, Any]) -> None:
        hints = _param_types(cls)
        for name, value in params.items():
            if name not in hints:
                raise InputError(f"method {cls.method!r} has no parameter {shortened(name)}")
            if not _fits(value, hints[name]):
                raise InputError(f"the parameter {name} is {shortened(value)}")

    # -- checks --------------------------------------------------------------------------------

    def check_fitted(self) -> None:
        """Raise NotFittedError unless `fit` has been called."""
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted: call fit first")

    def check_vectors(self, X: Any, *, fitting: bool = False) -> NDArray[Any]:
        """`X` as a 2-d array of finite numbers; not copied, and read in blocks (maybe mapped)."""
        names = column_names(X)
        array = _as_numbers(X)
        if array.ndim != 2:
            raise InputError(
                f"Expected 2D array, got {array.ndim}D array instead: vectors are rows of "
                "(n, dims). Reshape your data with array.reshape(1, -1) if it is a single vector"
            )
        if fitting:
            if array.shape[0] == 0:
                raise InputError("Found array with 0 sample(s): there is nothing to fit on")
            if array.shape[1] == 0:
                raise InputError(
                    f"Found array with 0 feature(s) (shape={array.shape}) while a minimum of 1 is "
                    "required."
                )
            self.n_features_in_ = int(array.shape[1])
            if names is not None:
                self.feature_names_in_ = names
            elif hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
        else:
            self._check_features(array, names)
        if isinstance(array, LazyRows):
            return array  # stands in for an array, and was checked when it was read
        for rows in blocks(len(array)):
            block = array[rows]
            if block.dtype.kind == "f" and not np.isfinite(_sum(block)):
                bad = np.flatnonzero(~np.isfinite(block).all(axis=1))
                if bad.size:
                    what = "NaN" if np.isnan(block).any() else "infinity"
                    raise InputError(
                        f"row {rows.start + int(bad[0])} of the vectors contains {what}"
                    )
        return array

    def check_codes(self, codes: Any) -> NDArray[np.uint8]:
        """`codes` as packed uint8 rows of this coder's width."""
        self.check_fitted()
        codes = np.asarray(codes)
        if codes.dtype != np.uint8 or codes.ndim != 2 or codes.shape[1] != self.n_bytes_:
            raise InputError(
                f"codes are {codes.dtype} of shape {codes.shape}, expected packed bits: "
                f"uint8 of shape (n, {self.n_bytes_})"
            )
        return cast("NDArray[np.uint8]", codes)

    def _check_features(self, array: NDArray[Any], names: NDArray[Any] | None) -> None:
        if array.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {array.shape[1]} features, but {type(self).__name__} "
                f"is expecting {self.n_features_in_} features as input"
            )
        fitted = getattr(self, "feature_names_in_", None)
        if names is not None and fitted is not None and not np.array_equal(names, fitted):
            raise InputError(name_mismatch(names, fitted))

    # -- the contract of a scikit-learn estimator ------------------------------------------------

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
                raise InputError(
                    f"Invalid parameter {name!r} for estimator {self}; valid ones are "
                    f"{', '.join(self.param_names())}"
                )
            setattr(self, name, value)
        return self

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of `transform`: one for each byte of a code.

        Args:
            input_features: Names of the columns of `X`, checked and not used.
        """
        self.check_fitted()
        return names_out(self, self.n_bytes_, input_features)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Say what `transform` returns: "default" (an array), "pandas" or "polars"; None keeps."""
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        shown = (
            f"{name}={value!r}"
            for name, value in self.get_params().items()
            if name == "n_bits" or repr(value) != repr(defaults[name].default)
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "n_features_in_")

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import InputTags, Tags, TargetTags, TransformerTags

        return Tags(
            estimator_type="transformer",
            target_tags=TargetTags(required=False),
            transformer_tags=TransformerTags(preserves_dtype=[]),
            input_tags=InputTags(),
        )


def _is_usual(array: NDArray[Any]) -> bool:
    """Whether all numbers are finite and of a size that sums can be made of."""
    # NaN is the smallest and the largest where there is one, and compares as False.
    return array.size == 0 or bool(array.min() >= -MAX_WEIGHT and array.max() <= MAX_WEIGHT)


@functools.cache
def _param_types(coder: type[Coder]) -> dict[str, Any]:
    try:
        hints = get_type_hints(coder.__init__)
    except NameError:  # a type that is imported for the type checker alone
        hints = {}
    return {name: hints.get(name, Any) for name in coder.param_names()}


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


def check_n_bits(n_bits: Any) -> int:
    """`n_bits` as an int from 1 to MAX_BITS, or InputError."""
    if isinstance(n_bits, bool) or not isinstance(n_bits, int | np.integer) or n_bits < 1:
        raise InputError(f"n_bits is {n_bits!r}, expected a whole number of 1 or more")
    if n_bits > MAX_BITS:
        raise InputError(f"n_bits is {n_bits:,}, expected {MAX_BITS:,} at most")
    return int(n_bits)


def _sum(block: NDArray[Any]) -> Any:
    """The sum of a block, finite only if all of it is: one fast pass. Large values may overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        return block.sum(dtype=np.float32 if block.dtype.itemsize < 4 else None)


def _as_numbers(X: Any) -> NDArray[Any]:
    if isinstance(X, LazyRows):
        return cast("NDArray[Any]", X)
    if hasattr(X, "toarray"):  # scipy.sparse, recognised without importing it
        raise TypeError("Sparse data was passed, but dense data is required: use X.toarray()")
    array = to_numpy(X)
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: vectors are real numbers")
    if array.dtype.kind == "O":
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise type(error)(f"argument must be rows of numbers: {error}") from None
    if array.dtype.kind not in "fiub":
        raise InputError(f"vectors are {array.dtype}, expected numbers")
    return array
