"""Column names and data frames, as scikit-learn handles them; it is not imported."""

from __future__ import annotations

import sys
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from embits.errors import InputError

CONTAINERS = ("default", "pandas", "polars")


def column_names(X: Any) -> NDArray[Any] | None:
    """Column names of a data frame, if all are strings, as in scikit-learn."""
    columns = getattr(X, "columns", None)
    if columns is None or not all(isinstance(name, str) for name in columns):
        return None
    return np.asarray(list(columns), dtype=object)


def name_mismatch(names: NDArray[Any], fitted: NDArray[Any]) -> str:
    """scikit-learn's message for columns that differ from those at fit."""
    message = "The feature names should match those that were passed during fit.\n"
    unseen = sorted(set(names) - set(fitted))
    missing = sorted(set(fitted) - set(names))
    if unseen:
        message += "Feature names unseen at fit time:\n" + "".join(f"- {n}\n" for n in unseen)
    if missing:
        message += "Feature names seen at fit time, yet now missing:\n"
        message += "".join(f"- {n}\n" for n in missing)
    if not unseen and not missing:
        message += "Feature names must be in the same order as they were in fit.\n"
    return message


def names_out(estimator: Any, n: int, input_features: Any) -> NDArray[Any]:
    """The n names that scikit-learn gives to output columns: `itq0`, `itq1` …

    Raises:
        InputError: `input_features` are not those of the fit.
    """
    if input_features is not None:
        names = np.asarray(input_features, dtype=object)
        fitted = getattr(estimator, "feature_names_in_", None)
        if fitted is not None and not np.array_equal(names, fitted):
            raise InputError("input_features is not equal to feature_names_in_")
        if len(names) != estimator.n_features_in_:
            raise InputError(
                "input_features should have length equal to number of features "
                f"({estimator.n_features_in_}), got {len(names)}"
            )
    prefix = type(estimator).__name__.lower()
    return np.asarray([f"{prefix}{i}" for i in range(n)], dtype=object)


def in_container(estimator: Any, codes: NDArray[np.uint8], X: Any) -> NDArray[np.uint8]:
    """Codes in the container of `set_output`, or else of scikit-learn's configuration.

    Raises:
        InputError: There is no such container, or its package is not installed.
    """
    wanted = getattr(estimator, "_sklearn_output_config", {}).get("transform", _configured())
    if wanted not in CONTAINERS:
        raise InputError(f"output config must be in {sorted(CONTAINERS)}, got {wanted}")
    if wanted == "default":
        return codes
    names = estimator.get_feature_names_out().tolist()
    try:
        frame = _pandas(codes, names, X) if wanted == "pandas" else _polars(codes, names)
    except ImportError:
        raise InputError(f"output as {wanted} needs that package: pip install {wanted}") from None
    return cast("NDArray[np.uint8]", frame)


def _pandas(codes: NDArray[np.uint8], names: list[str], X: Any) -> Any:
    import pandas

    index = X.index if isinstance(X, pandas.DataFrame) else None
    return pandas.DataFrame(codes, index=index, columns=names)


def _polars(codes: NDArray[np.uint8], names: list[str]) -> Any:
    import polars

    return polars.DataFrame(codes, schema=names, orient="row")


def _configured() -> str:
    """`sklearn.set_config(transform_output=...)`; if it was set, scikit-learn is imported."""
    sklearn = sys.modules.get("sklearn")
    ask = getattr(sklearn, "get_config", None)
    return "default" if ask is None else str(ask()["transform_output"])
