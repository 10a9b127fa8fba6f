"""Options that are numbers: errors say what was found and what is accepted."""

from __future__ import annotations

from typing import Any

import click


class _InWords(click.ParamType[Any]):
    """The range of a number, in words."""

    kind: str
    min: Any
    max: Any

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            limits = self._describe_range()
            expected = f"{self.kind}, {limits}" if limits else self.kind
            raise click.BadParameter(f"found {value!r}, expected {expected}", ctx, param) from None

    def _describe_range(self) -> str:
        """The range, which click also shows in the help."""
        if self.max is not None:
            return f"{self.min} to {self.max}"
        return "" if self.min is None else f"{self.min} or more"


class WholeNumber(_InWords, click.IntRange):
    """A whole number in a range.

    Example:
        >>> WholeNumber(min=1).convert("0", None, None)
        Traceback (most recent call last):
        click.exceptions.BadParameter: found '0', expected a whole number, 1 or more
    """

    name = "N"
    kind = "a whole number"


class DecimalNumber(_InWords, click.FloatRange):
    """A number in a range."""

    name = "X"
    kind = "a number"
