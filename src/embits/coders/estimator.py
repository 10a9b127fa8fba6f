"""The contract of a scikit-learn estimator, without scikit-learn.

scikit-learn takes one to two seconds to import, so the part of `BaseEstimator` that the contract
needs is written here. scikit-learn is imported only in `__sklearn_tags__`, which it calls itself.
"""

from __future__ import annotations

import inspect
import sys
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from embits.bits import packed_width
from embits.errors import InputError, NotFittedError

CONTAINERS = ("default", "pandas", "polars")  # of what `transform` returns


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
                raise InputError(
                    f"Invalid parameter {name!r} for estimator {self}; valid ones are "
                    f"{', '.join(self.param_names())}"
                )
            setattr(self, name, value)
        return self

    def check_fitted(self) -> None:
        """Raise NotFittedError unless `fit` has been called."""
        if not self.__sklearn_is_fitted__():
            raise NotFittedError(f"this {type(self).__name__} is not fitted: call fit first")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of `transform`, one for each byte of a code: `itq0`, `itq1` …

        Args:
            input_features: Names of the columns of `X`, checked and not used.
        """
        self.check_fitted()
        if input_features is not None:
            names = np.asarray(input_features, dtype=object)
            fitted = getattr(self, "feature_names_in_", None)
            if fitted is not None and not np.array_equal(names, fitted):
                raise InputError("input_features is not equal to feature_names_in_")
            if len(names) != self.n_features_in_:
                raise InputError(
                    "input_features should have length equal to number of features "
                    f"({self.n_features_in_}), got {len(names)}"
                )
        prefix = type(self).__name__.lower()
        return np.asarray([f"{prefix}{i}" for i in range(self.n_bytes_)], dtype=object)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `transform` returns: "default" (an array), "pandas" or "polars"."""
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def _in_container(self, codes: NDArray[np.uint8], X: Any) -> NDArray[np.uint8]:
        """Codes in the container of `set_output`, or else of scikit-learn's configuration."""
        chosen: dict[str, str] = getattr(self, "_sklearn_output_config", {})
        wanted = chosen.get("transform", _configured())
        if wanted not in CONTAINERS:
            raise InputError(f"output config must be in {sorted(CONTAINERS)}, got {wanted}")
        if wanted == "default":
            return codes
        names = self.get_feature_names_out().tolist()
        frame: Any
        try:
            if wanted == "pandas":
                import pandas

                index = X.index if isinstance(X, pandas.DataFrame) else None
                frame = pandas.DataFrame(codes, index=index, columns=names)
            else:
                import polars

                frame = polars.DataFrame(codes, schema=names, orient="row")
        except ImportError:
            raise InputError(
                f"output as {wanted} needs that package: pip install {wanted}"
            ) from None
        return cast("NDArray[np.uint8]", frame)

    def _set_features(self, X: Any, dims: int) -> None:
        """Record the width and the column names that the estimator is fitted on."""
        self.n_features_in_ = dims
        names = _column_names(X)
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_features(self, X: Any, dims: int) -> None:
        """Refuse another width, or other column names, than it was fitted on."""
        if dims != self.n_features_in_:
            raise InputError(
                f"X has {dims} features, but {type(self).__name__} "
                f"is expecting {self.n_features_in_} features as input"
            )
        names, fitted = _column_names(X), getattr(self, "feature_names_in_", None)
        if names is not None and fitted is not None and not np.array_equal(names, fitted):
            raise InputError(_name_mismatch(set(names), set(fitted)))

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


def _column_names(X: Any) -> NDArray[Any] | None:
    """Column names of a data frame, if all are strings, as in scikit-learn."""
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.asarray(list(columns), dtype=object)


def _name_mismatch(names: set[str], fitted: set[str]) -> str:
    """scikit-learn's message for columns that differ from those at fit."""
    message = "The feature names should match those that were passed during fit.\n"
    for title, differing in (
        ("Feature names unseen at fit time:\n", names - fitted),
        ("Feature names seen at fit time, yet now missing:\n", fitted - names),
    ):
        if differing:
            message += title + "".join(f"- {name}\n" for name in sorted(differing))
    if names == fitted:
        message += "Feature names must be in the same order as they were in fit.\n"
    return message


def _configured() -> str:
    """`sklearn.set_config(transform_output=...)`; if it was set, scikit-learn is imported."""
    ask = getattr(sys.modules.get("sklearn"), "get_config", None)
    return "default" if ask is None else str(ask()["transform_output"])
