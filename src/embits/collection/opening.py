"""Open a file of codes or a collection, or make a collection."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from embits import checks
from embits.binary_vectors import BinaryRows, BinaryVectors, check_same_coder
from embits.coders import DEFAULT_METHOD, Coder, coder_checksum, new_coder
from embits.errors import EmbitsError, InputError
from embits.file.atomic import sync_folder
from embits.file.contents import open_parts, read_coder, verify_unless_replaced, write_coder
from embits.remote import Fetched, is_address, names_file
from embits.segment import KEEPS
from embits.snapshot import Snapshot

if TYPE_CHECKING:
    from embits.collection.collection import Collection

# A file needs none of the other modules of collections, and they take longer to import than a file
# to open: the functions here import them.


def load(path: str | os.PathLike[str], verify: bool = False) -> BinaryRows:
    """Open a file that `BinaryVectors.save` wrote, or a `Collection`: mapped, not read.

    Args:
        path: The file; the folder of a collection, such as a job on Ray writes; or an address. A
            file (https://host/x.safetensors) is fetched and verified; the collection of a job on
            Ray (s3://bucket/codes) is read into memory.
        verify: Read every byte and check it against the checksums first.

    Raises:
        FormatError: It is not such a file or folder, or it is damaged.
        MissingExtraError: pyarrow is needed for Parquet, or fsspec for an address.
        ReadError: A file cannot be fetched from its address.
        OSError: It is not there, or cannot be opened.
    """
    if is_address(path):
        if names_file(path):
            fetched = Fetched(path)
            with fetched.named():  # fetched just now: damage on the way is found here
                mapped = os.name != "nt"  # Windows removes no file that is mapped
                return BinaryVectors.of_segment(
                    *open_parts(fetched.path, verify=True, mapped=mapped)
                )
        from embits.collection.parquet import open_address

        return open_address(path)
    path = Path(path)
    if path.is_dir():
        from embits.collection.collection import Collection
        from embits.collection.pieces import open_state

        collection = Collection(path, open_state(path, verify=verify))
        if verify and (path / "_encoder.safetensors").is_file():
            _ = collection.text_encoder  # is verified
        return collection
    return load_file(path, verify)


def load_file(path: Path, verify: bool = False) -> BinaryVectors:
    """Open a file that `BinaryVectors.save` wrote, and no collection."""
    segment, coder, subwords = open_parts(path, verify=verify)
    snapshot = Snapshot.of(coder, segment, subwords)
    if not verify:
        check = partial(verify_unless_replaced, path.absolute(), path.stat())
        snapshot = replace(snapshot, check=check)
    return BinaryVectors.of(snapshot)


def load_coder(path: str | os.PathLike[str]) -> Coder:
    """The coder of a file or collection, checked: what it encodes would hide damage of it."""
    if is_address(path):
        return load(path).coder
    path = Path(path)
    if not path.is_dir():
        return read_coder(path, verify=True)
    from embits.collection.manifest import read_manifest
    from embits.collection.pieces import open_coder

    return open_coder(path, read_manifest(path), verify=True)


def open_collection(
    path: str | os.PathLike[str],
    coder: Coder | str | os.PathLike[str] | None = None,
    *,
    n_bits: int | None = None,
    method: str | None = None,
    keep: Literal["float16", "int8"] | None = None,
    timeout: float = 0,
) -> Collection:
    """Open a collection, or make one.

    Args:
        path: The folder. A new collection needs one that is empty or does not exist.
        coder: The fitted coder of a new collection, or the path of a file or collection that has
            one. A collection that exists needs none; if it is given, it must be the same.
        n_bits: Make a collection without a coder, of so many bits. One is fitted on the first rows
            that are added, and again when there are 500, 5,000 and 50,000 rows: the `add` that
            reaches them takes as long as the fit. Keeps vectors, in 16 bits if `keep` is None.
        method: The coder of such a collection; None is "near-lossless".
        keep: Keep the vectors beside the codes, in 16 bits or 8 bits a dimension: for
            `search(..., rescore=N)` and `refit`. All rows are then added as floats.
        timeout: Seconds that a change waits for another process that writes.

    Raises:
        InputError: There is no collection and no coder was given; the folder has other files; or
            the coder or another argument is not that of the collection.
        NotFittedError: The coder is not fitted.
        FormatError: The collection is damaged.

    Example:
        >>> import tempfile, numpy as np, embits
        >>> folder = tempfile.TemporaryDirectory()
        >>> coder = embits.RandomHyperplanes(n_bits=64).fit(np.eye(8))
        >>> embits.open_collection(folder.name, coder).add(np.eye(8))
        >>> len(embits.open_collection(folder.name))
        8
        >>> folder.cleanup()
    """
    from embits.collection.collection import Collection
    from embits.collection.manifest import MANIFEST
    from embits.collection.pieces import open_state

    folder = Path(path)
    checks.number("timeout", timeout, least=0)
    if keep is not None:
        checks.choice("keep", keep, KEEPS)
    if n_bits is None and method is not None:
        raise InputError("method= needs n_bits=, for a collection without a coder")
    if coder is not None and n_bits is not None:
        raise InputError("a coder is given, so n_bits would be ignored: leave it out")
    given = load_coder(coder) if isinstance(coder, str | os.PathLike) else coder
    start = None
    if n_bits is not None:
        start = new_coder(DEFAULT_METHOD if method is None else method, n_bits, {})
    if given is not None:
        if not isinstance(given, Coder):
            raise InputError(f"coder is {coder!r:.80}, expected a fitted coder or a path")
        given.check_fitted()
    if not (folder / MANIFEST).is_file():
        _make(folder, given, start, keep)
    collection = Collection(folder, open_state(folder), timeout)
    if given is not None:
        check_same_coder(collection.coder, given)
    found, wanted = collection.manifest, {"keep": keep, "n_bits": n_bits, "method": method}
    there = {"keep": found.keep, "n_bits": found.bits, "method": found.method}
    for name, value in wanted.items():
        if value not in (None, there[name]):
            raise InputError(f"{folder} exists with {name}={there[name]!r}, not {value!r}")
    return collection


@contextmanager
def opened_or_undone(path: Path, coder: Path | None = None, **how: Any) -> Iterator[Collection]:
    """As `open_collection`, for a change. If it fails, a collection made for it is deleted."""
    from embits.collection.changes import writer_lock
    from embits.collection.manifest import MANIFEST, read_manifest

    was_there, had_folder = (path / MANIFEST).is_file(), path.is_dir()
    collection = open_collection(path, coder, **how)
    try:
        yield collection
    except BaseException:  # Ctrl-C too
        if not was_there:
            folder = collection.path
            with suppress(EmbitsError, OSError), writer_lock(folder):
                if not read_manifest(folder).generation:  # no other process has changed it
                    for each in folder.glob("_*"):  # an encoder of texts too
                        each.unlink(missing_ok=True)
                    if not had_folder:
                        folder.rmdir()  # fails if it has other files
        raise


def _make(folder: Path, coder: Coder | None, start: Coder | None, keep: str | None) -> None:
    """Make a collection with a fitted coder, or with one that is to be fitted on its first rows."""
    from embits.collection.changes import LOCK, is_leftover, writer_lock
    from embits.collection.manifest import CODER, MANIFEST, Manifest, write_manifest

    if folder.is_file():
        raise InputError(f"{folder} is a file, expected the folder of a collection")
    others = [
        each.name
        for each in (folder.iterdir() if folder.is_dir() else ())
        if each.is_symlink()
        or not (each.name in (LOCK, CODER) or (each.name[0] == "." and is_leftover(each.name)))
    ]
    if others and not (folder / MANIFEST).is_file():  # another process may have made it
        if any(is_leftover(name) and name != CODER for name in others):
            hint = "restore it from a copy, or choose another folder"
            raise InputError(f"{folder} holds pieces of a collection but no {MANIFEST}: {hint}")
        found = f"it has {len(others):,} other files, such as {others[0]!r}; a new collection needs"
        raise InputError(f"{folder} is not a collection: {found} an empty folder")
    if coder is not None:
        facts = coder.n_bits_, coder.n_features_in_, coder.method, coder_checksum(coder)
        manifest = Manifest(*facts, keep=keep)
    elif start is not None:
        bits = int(start.get_params()["n_bits"])
        manifest = Manifest(bits, 0, start.method, "", keep=keep or KEEPS[0], refit_at=1)
    else:
        hint = "give a coder to make one (coder=, --coder FILE), or n_bits="
        raise InputError(f"there is no collection at {folder}: {hint}")
    new = [each for each in (folder, *folder.parents) if not each.exists()]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for each in reversed(new):
            sync_folder(each.parent)
        with writer_lock(folder, timeout=10):
            if not (folder / MANIFEST).is_file():  # another process may have made it
                try:
                    if coder is not None:
                        write_coder(folder / CODER, coder)
                    write_manifest(folder, manifest)
                except BaseException:  # Ctrl-C too
                    with suppress(OSError):
                        for name in (MANIFEST, CODER, LOCK):
                            (folder / name).unlink(missing_ok=True)
                    raise
    except BaseException:
        with suppress(OSError):  # a folder that is not empty stays
            for each in new:
                each.rmdir()
        raise
