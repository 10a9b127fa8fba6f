"""Hugging Face save and load methods: `save_pretrained`, `from_pretrained`, `push_to_hub`.

The Hub needs the extra `hub`, which is imported when a model on the Hub is used.
"""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, TypeVar, cast

import numpy as np

from embits._version import __version__
from embits.binary_vectors import BinaryVectors
from embits.coders import Coder
from embits.errors import FormatError, HubError, InputError, MissingExtraError
from embits.integrations.hugging_face.card import may_replace
from embits.integrations.hugging_face.folder import (
    CARD,
    CONFIG,
    MODEL,
    open_folder,
    write_folder,
)
from embits.pretrained import Pretrained

Kept = TypeVar("Kept", bound=Pretrained)

_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", re.ASCII)
_LIBRARY = {"library_name": "embits", "library_version": __version__}

# One line for errors that the client explains in paragraphs.
_REASONS = {
    "GatedRepoError": "its owner grants access on request",
    "RepositoryNotFoundError": "there is no such model, or it is private and needs a token",
    "RevisionNotFoundError": "it has no such revision",
    "OfflineModeIsEnabled": "offline, and it is not in the cache",
    "LocalEntryNotFoundError": "it cannot be reached, and the model is not in the cache",
    "ConnectError": "it cannot be reached",
    "ConnectionError": "it cannot be reached",
}


def save_pretrained(
    kept: Pretrained,
    folder: str | os.PathLike[str],
    *,
    figures: Mapping[str, Any] | None = None,
    card: Mapping[str, Any] | None = None,
) -> None:
    """Write a coder or binary vectors to a folder: see `Pretrained.save_pretrained`."""
    write_folder(_as_vectors(kept), Path(folder), "user/model", figures, card)


def from_pretrained(
    kind: type[Kept],
    name: str | os.PathLike[str],
    *,
    revision: str | None = None,
    verify: bool = False,
    **options: Any,
) -> Kept:
    """Open a folder, or a model on the Hub, as `kind`: see `Pretrained.from_pretrained`."""
    folder = Path(name)
    if not folder.is_dir():
        folder = _download(_hub_name(name), revision, options)
    bits = open_folder(folder, verify=verify)
    if issubclass(kind, BinaryVectors):
        return cast("Kept", bits)
    if not isinstance(bits.coder, kind):
        raise FormatError(
            f"{name}: its coder is {type(bits.coder).__name__}, not {kind.__name__}; "
            "embits.Coder.from_pretrained opens any coder"
        )
    return bits.coder


def push_to_hub(
    kept: Pretrained,
    repo_id: str,
    card: tuple[Mapping[str, Any] | None, Mapping[str, Any] | None] = (None, None),
    *,
    private: bool | None = None,
    revision: str | None = None,
    message: str | None = None,
    **client: str | None,
) -> str:
    """Upload a coder or binary vectors in one commit: see `Pretrained.push_to_hub`.

    `card` holds the figures and the front matter of the model card, `client` the token and the
    endpoint.
    """
    api = _client().HfApi(**client, **_LIBRARY)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_folder(_as_vectors(kept), folder, repo_id, *card)
        with _in_one_line(repo_id):
            api.create_repo(repo_id, private=private, exist_ok=True)
            if revision is not None:
                api.create_branch(repo_id, branch=revision, exist_ok=True)
            files = [MODEL, CONFIG, CARD]
            if api.file_exists(repo_id, CARD, revision=revision):
                there = api.hf_hub_download(
                    repo_id, CARD, revision=revision, local_dir=folder / "there"
                )
                if not may_replace(Path(there)):
                    files.remove(CARD)
            commit = api.upload_folder(
                repo_id=repo_id,
                folder_path=folder,
                allow_patterns=files,
                revision=revision,
                commit_message=message or f"Upload with embits {__version__}",
            )
    return str(commit.commit_url)


def _as_vectors(kept: Pretrained) -> BinaryVectors:
    """Return what to save; a coder alone is saved as binary vectors without rows."""
    if isinstance(kept, BinaryVectors):
        return kept
    if not isinstance(kept, Coder):
        raise InputError(f"a {type(kept).__name__} cannot be saved, only coders and BinaryVectors")
    kept.check_fitted()
    return BinaryVectors(None, np.empty((0, kept.n_bytes_), dtype=np.uint8), kept)


def _hub_name(name: str | os.PathLike[str]) -> str:
    if Path(name).is_file():
        raise InputError(f"{name} is a file, expected a folder; embits.load opens a file")
    if isinstance(name, str) and _HUB_NAME.fullmatch(name):
        return name
    raise InputError(
        f"there is no folder {shortened(os.fspath(name))}, and this is not a name on the Hugging "
        "Face Hub: user/model"
    )


def _download(name: str, revision: str | None, options: Mapping[str, Any]) -> Path:
    """Return the model's folder in the client's cache; both files are of one commit."""
    hub = _client()
    with _in_one_line(name):
        return Path(
            hub.snapshot_download(
                name, revision=revision, allow_patterns=[MODEL, CONFIG], **_LIBRARY, **options
            )
        )


def _client() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise MissingExtraError("the Hugging Face Hub", "hub") from None
    return huggingface_hub


@contextlib.contextmanager
def _in_one_line(name: str) -> Iterator[None]:
    """Raise the errors of the client and the network as HubError, in one line."""
    try:
        yield
    except _client_errors() as error:
        said = " ".join(str(error).split())[:300] or type(error).__name__
        kinds = (kind.__name__ for kind in type(error).__mro__)
        reason = next((_REASONS[kind] for kind in kinds if kind in _REASONS), said)
        raise HubError(f"{name} on the Hugging Face Hub: {reason}") from error


def _client_errors() -> tuple[type[Exception], ...]:
    """Return every error class of the client, which includes the base of its HTTP library's."""
    from huggingface_hub import errors

    named = [each for each in vars(errors).values() if isinstance(each, type)]
    return (OSError, *(each for each in named if issubclass(each, Exception)))
