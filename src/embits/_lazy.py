"""Names of a package whose modules are imported at the first use of the name."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any


def lazy_names(
    package: str, homes: Mapping[str, str], deprecated: Mapping[str, str] = MappingProxyType({})
) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names are at `homes`: a module's own name is the module.

    `deprecated` names have left the package, for the modules that have them now.
    """

    def attribute(name: str) -> Any:
        home = homes.get(name) or deprecated.get(name)
        if home is None:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        if name in deprecated:
            warnings.warn(
                f"{package}.{name} is deprecated: import it from {home}",
                DeprecationWarning,
                stacklevel=2,
            )
        module = import_module(home)
        return module if home == f"{package}.{name}" else getattr(module, name)

    return attribute
