"""What is made at its first use: names of a package, and properties."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")


class LazyProperty(Generic[T]):
    """functools.cached_property without the lock that it has before Python 3.12. A forked process
    could inherit that lock from a thread that held it, and wait forever.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self._make, self.__doc__ = make, make.__doc__

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, instance: Any, owner: Any = None) -> T:
        if instance is None:  # the class's attribute, as help() and inspect read it
            return cast("T", self)
        value: T = vars(instance).setdefault(self._name, self._make(instance))
        return value


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
