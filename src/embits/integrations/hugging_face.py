"""Hugging Face save and load methods: `save_pretrained`, `from_pretrained`, `push_to_hub`.

A model is a folder of model.safetensors, which `embits.load` opens (for a coder alone, it has no
codes), config.json, a summary of it, and README.md, the model card. Nothing is pickled, and only
the first file is read. The Hub needs the extra `hub`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import tempfile
from collections.abc import Iterator, Mapping
from importlib.resources import files
from pathlib import Path
from reprlib import repr as shortened
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from embits._version import __version__
from embits.binary_vectors import BinaryRows, BinaryVectors
from embits.coders import Coder
from embits.collection import load
from embits.errors import FormatError, HubError, InputError
from embits.file import store
from embits.file.atomic import atomic_write
from embits.file.overwrite import AnyPath, is_embits_file
from embits.integrations import package
from embits.integrations.table import ids_of
from embits.pretrained import Pretrained

__all__ = ["from_pretrained", "push_to_hub", "save_pretrained"]

Kept = TypeVar("Kept", bound=Pretrained)
About: TypeAlias = Mapping[str, Any] | None

MODEL, CONFIG, CARD = "model.safetensors", "config.json", "README.md"
# A card without this line belongs to its owner and is never overwritten.
MARK = "<!-- Written by embits: remove this line to keep your changes to the card. -->"
_NAMED = '"library_name": "embits"'  # in a config.json of ours
_LIBRARY = {"library_name": "embits", "library_version": __version__}
_CODES = """bits = embits.BinaryVectors.from_pretrained("{name}")
bits.most_similar({word})
bits.search(vectors, k=10)  # (q, {dims}) floats, or codes"""
_CODER = """coder = embits.Coder.from_pretrained("{name}")
codes = coder.transform(vectors)  # (n, {dims}) floats to (n, {width}) uint8
floats = coder.inverse_transform(codes)"""


def save_pretrained(
    kept: Pretrained, folder: AnyPath, figures: About, card: About, name: str = "user/model"
) -> None:
    """Write a coder or binary vectors to a folder: see `Pretrained.save_pretrained`.

    Each file is written atomically; a model of another library is refused by an InputError. `name`
    is the one in the card's example.
    """
    if not isinstance(kept, BinaryRows):  # a coder alone is saved as vectors without rows
        coder = cast("Coder", kept)
        coder.check_fitted()
        kept = BinaryVectors(None, np.empty((0, coder.n_bytes_), dtype=np.uint8), coder)
    model, config, readme = (Path(folder, each) for each in (MODEL, CONFIG, CARD))
    text = _card(kept, name, figures or {}, card or {})  # raises before a file is written
    is_ours = is_embits_file(model) or not model.exists()
    for path, may_replace in ((model, is_ours), (config, _may_replace(config, _NAMED))):
        if not may_replace:
            raise InputError(f"{path} exists, and embits did not write it")
    model.parent.mkdir(parents=True, exist_ok=True)
    kept.save(model)
    found = store.open_file(model)
    facts = {name: getattr(found, name) for name in ("method", "n_bits", "dims")}
    facts |= {"format_version": found.version, "rows": len(found.codes), "params": {**found.params}}
    facts |= {"library_name": "embits", "model_type": "embits"}
    contents = {config: json.dumps(facts, indent=2, sort_keys=True) + "\n"}
    if _may_replace(readme, MARK):
        contents[readme] = text
    for path, content in contents.items():
        with atomic_write(path) as file:
            file.write(content.encode())


def from_pretrained(
    kind: type[Kept], name: AnyPath, revision: str | None, verify: bool, **options: Any
) -> Kept:
    """Open a folder, or a model on the Hub, as `kind`: see `Pretrained.from_pretrained`."""
    folder = Path(name)
    if not folder.is_dir():
        options |= {"revision": revision, "allow_patterns": [MODEL], **_LIBRARY}
        if not re.fullmatch(r"\w[\w.-]*/\w[\w.-]*", str(name), re.ASCII):
            raise InputError(
                f"there is no folder {shortened(os.fspath(name))}, and this is not a name on the "
                "Hugging Face Hub: user/model; embits.load opens a file"
            )
        with _hub(name) as client:
            folder = Path(client.snapshot_download(str(name), **options))
    if not (folder / MODEL).is_file():  # not `exists`: a pipe would block
        raise FormatError(f"{folder}: it has no {MODEL}, as save_pretrained would have written")
    bits = load(folder / MODEL, verify)
    if issubclass(kind, BinaryVectors):
        return cast("Kept", bits)
    if not isinstance(bits.coder, kind):
        found = f"its coder is {type(bits.coder).__name__}, not {kind.__name__}"
        raise FormatError(f"{name}: {found}; embits.Coder.from_pretrained opens any coder")
    return bits.coder


def push_to_hub(
    kept: Pretrained,
    repo_id: str,
    figures: About,
    card: About,
    private: bool | None,
    revision: str | None,
    message: str | None,
    **client: Any,
) -> str:
    """Upload a coder or binary vectors in one commit: see `Pretrained.push_to_hub`."""
    with tempfile.TemporaryDirectory() as folder:
        save_pretrained(kept, folder, figures, card, repo_id)
        with _hub(repo_id) as hub:
            api, uploaded = hub.HfApi(**client, **_LIBRARY), [MODEL, CONFIG, CARD]
            api.create_repo(repo_id, private=private, exist_ok=True)
            if revision is not None:
                api.create_branch(repo_id, branch=revision, exist_ok=True)
            if api.file_exists(repo_id, CARD, revision=revision):
                there = {"revision": revision, "local_dir": Path(folder, "there")}
                if not _may_replace(Path(api.hf_hub_download(repo_id, CARD, **there)), MARK):
                    uploaded.remove(CARD)
            message = message or f"Upload with embits {__version__}"
            options = {"revision": revision, "allow_patterns": uploaded, "commit_message": message}
            commit = api.upload_folder(repo_id=repo_id, folder_path=folder, **options)
    return str(commit.commit_url)


def _may_replace(path: Path, mark: str) -> bool:
    return not path.exists() or (path.is_file() and mark.encode() in path.read_bytes())


def _card(bits: BinaryRows, name: str, figures: Mapping[str, Any], front: Mapping[str, Any]) -> str:
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
    return (files(__package__) / "model_card.md").read_text().format(
        matter="".join(matter), mark=MARK, title=title, coder=bits.coder, dims=dims, n_bits=n_bits,
        usage=usage.format(name=name, word=word, dims=dims, width=bits.coder.n_bytes_),
        measured=f"## Figures\n\n| measured | |\n|---|---|\n{rows}\n" if rows else "",
    )  # fmt: skip


@contextlib.contextmanager
def _hub(model: Any) -> Iterator[Any]:
    """Yield the client; its errors and those of the network become HubError, in one line."""
    client = package("huggingface_hub", "the Hugging Face Hub", "hub")
    try:
        yield client
    except Exception as error:  # it raises errors of several packages
        said = " ".join(str(error).split())[:300] or type(error).__name__
        raise HubError(f"{model} on the Hugging Face Hub: {said}") from error
