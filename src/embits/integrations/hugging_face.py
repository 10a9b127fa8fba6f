"""Hugging Face save and load methods: `save_pretrained`, `from_pretrained`, `push_to_hub`.

A model is a folder:

    model.safetensors   the file that `embits.load` opens; for a coder alone, it has no codes
    config.json         a summary of the file, for people and other programs
    README.md           the model card

Nothing is pickled, and only the first two files are read. A folder whose `config.json` contradicts
the file is refused. The Hub needs the extra `hub`.
"""

from __future__ import annotations

import contextlib
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
from embits.errors import FormatError, HubError, InputError
from embits.file import store
from embits.file.atomic import atomic_write
from embits.file.overwrite import is_embits_file
from embits.integrations import package
from embits.integrations.table import ids_of
from embits.pretrained import Pretrained

__all__ = ["from_pretrained", "push_to_hub", "save_pretrained"]

Kept = TypeVar("Kept", bound=Pretrained)

MODEL, CONFIG, CARD = "model.safetensors", "config.json", "README.md"
MAX_CONFIG_BYTES = 1 << 16  # ours has a few hundred
# A card without this line belongs to its owner and is never overwritten.
MARK = "<!-- Written by embits: remove this line to keep your changes to the card. -->"
_LIBRARY = {"library_name": "embits", "library_version": __version__}
_CARD = """---
{matter}---

{mark}

# {title}

`{coder!r}` of embits (`pip install embits`): vectors of {dims} floats become codes of {n_bits} bits.

## Use

```python
import embits

{usage}
```

{measured}## Files

`model.safetensors` opens with `embits.load` and with any safetensors reader; `embits verify` checks every byte. Nothing in this repository runs code.
"""  # noqa: E501
_CODES = """bits = embits.BinaryVectors.from_pretrained("{name}")
bits.most_similar({word})
bits.search(vectors, k=10)  # (q, {dims}) floats, or codes"""
_CODER = """coder = embits.Coder.from_pretrained("{name}")
codes = coder.transform(vectors)  # (n, {dims}) floats to (n, {width}) uint8
floats = coder.inverse_transform(codes)"""


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
        InputError: The folder holds the model of another library.
    """
    if not isinstance(kept, BinaryVectors):  # a coder alone is saved as vectors without rows
        coder = cast("Coder", kept)
        coder.check_fitted()
        kept = BinaryVectors(None, np.empty((0, coder.n_bytes_), dtype=np.uint8), coder)
    bits, folder = kept, Path(folder)
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
        if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", str(name), re.ASCII):
            raise InputError(
                f"there is no folder {shortened(os.fspath(name))}, and this is not a name on the "
                "Hugging Face Hub: user/model; embits.load opens a file"
            )
        with _hub(name) as client:  # both files are of one commit
            folder = Path(client.snapshot_download(str(name), **options))
    for each in (MODEL, CONFIG):
        if not (folder / each).is_file():  # not `exists`: a pipe would block
            raise FormatError(f"{folder}: it has no {each}, as save_pretrained would have written")
    bits, said = load(folder / MODEL, verify), _read_config(folder / CONFIG)
    for key, value in _config(folder / MODEL).items():
        if said.get(key) != value:
            found = f"{CONFIG} says that {key} is {shortened(said.get(key))}"
            raise FormatError(f"{folder}: {found}, {MODEL} that it is {shortened(value)}")
    if issubclass(kind, BinaryVectors):
        return cast("Kept", bits)
    if not isinstance(bits.coder, kind):
        found = f"its coder is {type(bits.coder).__name__}, not {kind.__name__}"
        raise FormatError(f"{name}: {found}; embits.Coder.from_pretrained opens any coder")
    return bits.coder


def push_to_hub(
    kept: Pretrained,
    repo_id: str,
    *,
    figures: Mapping[str, Any] | None = None,
    card: Mapping[str, Any] | None = None,
    private: bool | None = None,
    revision: str | None = None,
    message: str | None = None,
    **client: str | None,
) -> str:
    """Upload a coder or binary vectors in one commit: see `Pretrained.push_to_hub`."""
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(kept, folder, figures=figures, card=card, name=repo_id)
        with _hub(repo_id) as hub:
            api, files = hub.HfApi(**client, **_LIBRARY), [MODEL, CONFIG, CARD]
            api.create_repo(repo_id, private=private, exist_ok=True)
            if revision is not None:
                api.create_branch(repo_id, branch=revision, exist_ok=True)
            if api.file_exists(repo_id, CARD, revision=revision):
                there = {"revision": revision, "local_dir": Path(folder, "there")}
                if not _may_replace(Path(api.hf_hub_download(repo_id, CARD, **there))):
                    files.remove(CARD)
            message = message or f"Upload with embits {__version__}"
            options = {"revision": revision, "allow_patterns": files, "commit_message": message}
            commit = api.upload_folder(repo_id=repo_id, folder_path=folder, **options)
    return str(commit.commit_url)


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
    """The model card that the Hub shows; the values of its front matter are JSON."""
    method, dims, n_bits, named = bits.coder.method, bits.dims, bits.n_bits, ids_of(bits)
    tags = ["embits", "embeddings", "binary-embeddings", "quantization", method]
    ours = {"library_name": "embits", "tags": tags, "bits": n_bits, "dims": dims, "method": method}
    matter = [f"{k}: {json.dumps(v, ensure_ascii=False)}\n" for k, v in {**ours, **front}.items()]
    title, usage = f"Coder: {dims} dimensions to {n_bits} bits", _CODER
    if len(bits):
        title, usage = f"{len(bits):,} {'words' if named else 'vectors'} in {n_bits} bits", _CODES
    word = json.dumps(named[0]) if named else "0"
    shown = {k: f"{v:.4g}" if isinstance(v, float) else v for k, v in figures.items()}
    rows = "".join(f"| {key} | {value} |\n" for key, value in shown.items())
    return _CARD.format(
        matter="".join(matter), mark=MARK, title=title, coder=bits.coder, dims=dims, n_bits=n_bits,
        usage=usage.format(name=name, word=word, dims=dims, width=bits.coder.n_bytes_),
        measured=f"## Figures\n\n| measured | |\n|---|---|\n{rows}\n" if rows else "",
    )  # fmt: skip


@contextlib.contextmanager
def _hub(model: Any) -> Iterator[Any]:
    """Yield the client; its errors and those of the network become HubError, in one line."""
    client = package("huggingface_hub", "the Hugging Face Hub", "hub")
    errors = vars(package("huggingface_hub.errors", "the Hugging Face Hub", "hub")).values()
    named = [each for each in errors if isinstance(each, type) and issubclass(each, Exception)]
    kinds: tuple[type[Exception], ...] = (OSError, *named)
    try:
        yield client
    except kinds as error:
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise HubError(f"{model} on the Hugging Face Hub: {said}") from error
