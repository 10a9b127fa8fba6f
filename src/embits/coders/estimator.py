"""The contract of a scikit-learn estimator, without scikit-learn.

scikit-learn takes one to two seconds to import, so the part of `BaseEstimator` that the contract
needs is written here. scikit-learn is imported only in `__sklearn_tags__`, which it calls itself.
"""

from __future__ import annotations

import inspect
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from embits.coders.columns import name_mismatch, names_out
from embits.errors import InputError, NotFittedError


class Estimator:
    """Parameters, column names and tags of a transformer.

    Attributes:
        n_features_in_: Dimensions of the vectors it was fitted on.
        feature_names_in_: Column names of the data frame it was fitted on, if it was one.
    """

    n_features_in_: int
    feature_names_in_: NDArray[np.object_]

    @property
    def n_bytes_(self) -> int:
        """Columns of what `transform` returns."""
        raise NotImplementedError

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
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"this {type(self).__name__} is not fitted: call fit first")

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of `transform`: one for each byte of a code.

        Args:
            input_features: Names of the columns of `X`, checked and not used.
        """
        self.check_fitted()
        return names_out(self, self.n_bytes_, input_features)

    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what `transform` returns: "default" (an array), "pandas" or "polars".

        None leaves the choice as it is.
        """
        if transform is not None:
            self._sklearn_output_config = {"transform": transform}
        return self

    def _set_features(self, array: NDArray[Any], names: NDArray[Any] | None) -> None:
        """Record the width and the column names that the estimator is fitted on."""
        self.n_features_in_ = int(array.shape[1])
        if names is not None:
            self.feature_names_in_ = names
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _check_features(self, array: NDArray[Any], names: NDArray[Any] | None) -> None:
        """Refuse another width, or other column names, than it was fitted on."""
        if array.shape[1] != self.n_features_in_:
            raise InputError(
                f"X has {array.shape[1]} features, but {type(self).__name__} "
                f"is expecting {self.n_features_in_} features as input"
            )
        fitted = getattr(self, "feature_names_in_", None)
        if names is not None and fitted is not None and not np.array_equal(names, fitted):
            raise InputError(name_mismatch(names, fitted))

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
