"""What went wrong in a worker, as one of our errors and one line."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from ray.exceptions import RayError

from embits import errors

# Ray hands over the text of a worker's traceback; ours are in it as Python writes them.
_OURS = re.compile(r"^(?:.*? )?embits\.errors\.(\w+): (.+)$", re.MULTILINE)


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Raise what a worker raised, and anything else that Ray reports as ClusterError."""
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
    """The error of a worker; those that take more than a message as their base."""
    try:
        return kind(message)
    except TypeError:
        return errors.EmbitsError(message)
