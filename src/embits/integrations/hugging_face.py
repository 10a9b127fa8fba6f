"""Hugging Face save and load methods: `save_pretrained`, `from_pretrained`, `push_to_hub`.

A model is a folder:

    model.safetensors   the file that `embits.load` opens; for a coder alone, it has no codes
    config.json         a summary of the file, for people and other programs
    README.md           the model card

Nothing is pickled, and only the first two files are read. A folder whose `config.json` contradicts
the file is refused. The Hub needs the extra `hub`, which is imported when a model on the Hub is
used.
"""

from __future__ import annotations

import contextlib
import itertools
import json
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
from embits.collection import load
from embits.errors import FormatError, HubError, InputError, MissingExtraError
from embits.file import store
from embits.file.atomic import atomic_write
from embits.file.overwrite import is_embits_file
from embits.integrations.table import ids_of
from embits.pretrained import Pretrained

__all__ = ["from_pretrained", "push_to_hub", "save_pretrained"]

Kept = TypeVar("Kept", bound=Pretrained)

MODEL, CONFIG, CARD = "model.safetensors", "config.json", "README.md"
MAX_CONFIG_BYTES = 1 << 16  # ours has a few hundred
# A card without this line belongs to its owner and is never overwritten.
MARK = "<!-- Written by embits: remove this line to keep your changes to the card. -->"
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
    name: str = "user/model",
) -> None:
    """Write a coder or binary vectors to a folder: see `Pretrained.save_pretrained`.

    Each file is written atomically. `name` is the one in the card's example.

    Raises:
        InputError: The folder holds the model of another library, or the card's front matter is
            wrong.
    """
    bits, folder = _as_vectors(kept), Path(folder)
    text = _card(bits, name, figures or {}, card or {})  # raises before a file is written
    for each, is_ours in ((MODEL, is_embits_file), (CONFIG, _is_our_config)):
        if (folder / each).exists() and not is_ours(folder / each):
            raise InputError(f"{folder / each} exists, and embits did not write it")
    folder.mkdir(parents=True, exist_ok=True)
    bits.save(folder / MODEL)
    config = json.dumps(_config(folder / MODEL), indent=2, sort_keys=True) + "\n"
    for each, contents in ((CONFIG, config), (CARD, text)):
        if each == CONFIG or _may_replace(folder / CARD):
            with atomic_write(folder / each) as file:
                file.write(contents.encode())


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
        options |= {"revision": revision, "allow_patterns": [MODEL, CONFIG], **_LIBRARY}
        model, client = _hub_name(name), _client()
        with _in_one_line(model):  # both files are of one commit
            folder = Path(client.snapshot_download(model, **options))
    for each in (MODEL, CONFIG):
        if not (folder / each).is_file():  # not `exists`: a pipe would block
            raise FormatError(f"{folder}: it has no {each}, as save_pretrained would have written")
    bits, said = load(folder / MODEL, verify), _read_config(folder / CONFIG)
    for key, value in _config(folder / MODEL).items():
        if said.get(key) != value:
            raise FormatError(
                f"{folder}: {CONFIG} says that {key} is {shortened(said.get(key))}, "
                f"{MODEL} that it is {shortened(value)}"
            )
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
    api, files = _client().HfApi(**client, **_LIBRARY), [MODEL, CONFIG, CARD]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        save_pretrained(kept, folder, figures=card[0], card=card[1], name=repo_id)
        with _in_one_line(repo_id):
            api.create_repo(repo_id, private=private, exist_ok=True)
            if revision is not None:
                api.create_branch(repo_id, branch=revision, exist_ok=True)
            if api.file_exists(repo_id, CARD, revision=revision):
                there = {"revision": revision, "local_dir": folder / "there"}
                if not _may_replace(Path(api.hf_hub_download(repo_id, CARD, **there))):
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


def _config(model: Path) -> dict[str, Any]:
    """Return the contents of `config.json` for a file."""
    contents = store.open_file(model)
    return {
        "library_name": "embits",
        "model_type": "embits",
        "format_version": contents.version,
        "method": contents.method,
        "n_bits": contents.n_bits,
        "dims": contents.dims,
        "rows": len(contents.codes),
        "params": dict(contents.params),
    }


def _read_config(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        raw = file.read(MAX_CONFIG_BYTES + 1)
    try:
        config = json.loads(raw) if len(raw) <= MAX_CONFIG_BYTES else None
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{path}: not a JSON configuration ({error!s:.100})") from None
    if not isinstance(config, dict):
        raise FormatError(f"{path}: not a JSON object of at most {MAX_CONFIG_BYTES:,} bytes")
    return config


def _is_our_config(path: Path) -> bool:
    with contextlib.suppress(FormatError):
        return bool(_read_config(path).get("library_name") == "embits")
    return False


def _may_replace(card: Path) -> bool:
    return not card.exists() or MARK.encode() in card.read_bytes()


def _card(
    bits: BinaryVectors, name: str, figures: Mapping[str, Any], front: Mapping[str, Any]
) -> str:
    """Return the model card that the Hub shows: front matter, an example and figures."""
    method, dims, n_bits = bits.coder.method, bits.dims, bits.n_bits
    tags = ["embits", "embeddings", "binary-embeddings", "quantization", method]
    ours = {"library_name": "embits", "tags": tags, "bits": n_bits, "dims": dims, "method": method}
    matter = "".join(itertools.starmap(_front_line, (ours | dict(front)).items()))
    if len(bits):
        title = f"{len(bits):,} {'vectors' if ids_of(bits) is None else 'words'} in {n_bits} bits"
        word = "0" if ids_of(bits) is None else json.dumps(bits.words[0])
        usage = (
            f'bits = embits.BinaryVectors.from_pretrained("{name}")\nbits.most_similar({word})\n'
            f"bits.search(vectors, k=10)  # (q, {dims}) floats, or codes"
        )
    else:
        title = f"Coder: {dims} dimensions to {n_bits} bits"
        usage = (
            f'coder = embits.Coder.from_pretrained("{name}")\ncodes = coder.transform(vectors)  '
            f"# (n, {dims}) floats to (n, {bits.coder.n_bytes_}) uint8\n"
            "floats = coder.inverse_transform(codes)"
        )
    rows = "".join(f"| {_cell(each)} | {_cell(value)} |\n" for each, value in figures.items())
    measured = f"## Figures\n\n| measured | |\n|---|---|\n{rows}\n" if rows else ""
    return f"""---
{matter}---

{MARK}

# {title}

`{bits.coder!r}` of embits (`pip install embits`): vectors of {dims} floats ({4 * dims:,} bytes) become codes of {n_bits} bits ({bits.coder.n_bytes_:,} bytes).

## Use

```python
import embits

{usage}
```

{measured}## Files

`model.safetensors` opens with `embits.load` and with any safetensors reader; `embits verify` checks every byte. Nothing in this repository runs code.
"""  # noqa: E501


def _front_line(key: Any, value: Any) -> str:
    """A line of YAML, with the value as JSON, which is on one line and unambiguous."""
    if not isinstance(key, str) or not re.fullmatch(r"[A-Za-z][\w-]*", key, re.ASCII):
        raise InputError(f"the card has the key {key!r}, expected letters, digits, - and _")
    try:
        return f"{key}: {json.dumps(value, ensure_ascii=False, allow_nan=False)}\n"
    except (TypeError, ValueError):
        raise InputError(f"the card has the value {value!r}, expected JSON") from None


def _cell(value: Any) -> str:
    text = f"{value:.4g}" if isinstance(value, float) else str(value)
    return " ".join(text.replace("|", "\\|").split())


def _hub_name(name: str | os.PathLike[str]) -> str:
    if Path(name).is_file():
        raise InputError(f"{name} is a file, expected a folder; embits.load opens a file")
    if isinstance(name, str) and _HUB_NAME.fullmatch(name):
        return name
    raise InputError(
        f"there is no folder {shortened(os.fspath(name))}, and this is not a name on the Hugging "
        "Face Hub: user/model"
    )


def _client() -> Any:
    try:
        import huggingface_hub
    except ImportError:
        raise MissingExtraError("the Hugging Face Hub", "hub") from None
    return huggingface_hub


@contextlib.contextmanager
def _in_one_line(model: str) -> Iterator[None]:
    """Raise the errors of the client, of its HTTP library and of the network as HubError."""
    from huggingface_hub import errors

    named = [each for each in vars(errors).values() if isinstance(each, type)]
    kinds: tuple[type[Exception], ...] = (
        OSError,
        *(each for each in named if issubclass(each, Exception)),
    )
    try:
        yield
    except kinds as error:
        said = " ".join(str(error).split())[:300] or type(error).__name__
        names = (kind.__name__ for kind in type(error).__mro__)
        reason = next((_REASONS[name] for name in names if name in _REASONS), said)
        raise HubError(f"{model} on the Hugging Face Hub: {reason}") from error
