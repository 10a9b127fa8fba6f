"""Errors of workers, as our own errors in one line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from ray.exceptions import RayError

from embits import errors

# Ray reports the text of a worker's traceback, in which Python prints our errors like this.
_OURS = re.compile(r"^(?:.*? )?embits\.errors\.(\w+): (.+)$", re.MULTILINE)


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Raise the error that a worker raised, and Ray's own errors as ClusterError."""
    try:
        yield
    except RayError as error:
        text = str(error)
        for name, message in _OURS.findall(text):
            kind = getattr(errors, name, None)
            if isinstance(kind, type) and issubclass(kind, errors.EmbitsError):
                raise _remade(kind, message) from None
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        what = lines[-1] if lines else type(error).__name__
        raise errors.ClusterError(f"the Ray job failed: {what}") from error


def _remade(kind: type[errors.EmbitsError], message: str) -> errors.EmbitsError:
    """Build the error of a worker; the base class if it takes more than a message."""
    try:
        return kind(message)
    except TypeError:
        return errors.EmbitsError(message)
