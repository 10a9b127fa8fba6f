"""The files of a report in their folder: a file that the user changed is not replaced.

`results.json` lists the checksums of all files of the report. It is written first and lists the
checksums of the files that are replaced as well, so that an interrupted write can be repeated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

from embits.errors import InputError
from embits.evaluation.report.results import jsonable
from embits.file.atomic import atomic_write

RESULTS = "results.json"
FILES = (RESULTS, "report.md", "report.html", "results.csv")
FIGURES = "figures"

Checksums: TypeAlias = dict[str, list[str]]


def check_report_folder(folder: Path, overwrite: bool = False) -> None:
    """Refuse a folder with files of a report that embits did not write, or that were changed.

    Raises:
        InputError: There are such files, and `overwrite` is false.
    """
    if overwrite:
        return
    known = _known_checksums(folder)
    found = [name for name in (*FILES, FIGURES) if (folder / name).exists()]
    if found and known is None:
        raise InputError(
            f"{folder / found[0]} exists, and embits did not write it: choose another folder for "
            "the report, or replace it with --force"
        )
    _check_unchanged(folder, {*FILES, *(known or ())}, known or {})


def write_files(
    folder: Path,
    settings: Mapping[str, Any],
    results: Mapping[str, Any],
    files: Mapping[str, bytes],
    overwrite: bool = False,
) -> list[Path]:
    """Write results.json and the other files of a report.

    Args:
        folder: Created if it does not exist.
        settings: Facts for results.json, with the version of embits.
        results: Other parts of results.json by name; "results" are the entries.
        files: Content of the other files by name.
        overwrite: Replace files that embits did not write, or that were changed.

    Returns:
        The files written.

    Raises:
        InputError: As for `check_report_folder`.
    """
    check_report_folder(folder, overwrite)
    if not overwrite:
        _check_unchanged(folder, files, _known_checksums(folder) or {})
    content = {"settings": jsonable(dict(settings))} | jsonable(dict(results))
    own = _sha256(_json(content))
    checksums = {name: _accepted(folder / name, data) for name, data in files.items()}
    written = {RESULTS: _json(content | {"files": {RESULTS: [own]} | checksums}), **files}
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in written.items():
        (folder / name).parent.mkdir(exist_ok=True)
        with atomic_write(folder / name) as file:
            file.write(data)
    return [folder / name for name in written]


def _known_checksums(folder: Path) -> Checksums | None:
    """The checksums that results.json lists; None if embits did not write a report there."""
    report = _read_results(folder)
    try:
        if "embits" not in report["settings"] or "results" not in report:
            return None
        return {str(name): list(sums) for name, sums in report.get("files", {}).items()}
    except (KeyError, TypeError, AttributeError):
        return None


def _check_unchanged(folder: Path, names: Any, known: Checksums) -> None:
    for name in sorted(names):
        path = folder / name
        if path.exists() and _checksum(path) not in known.get(name, ()):
            raise InputError(
                f"{path} was changed since embits wrote it: move it, choose another folder for the "
                "report, or replace it with --force"
            )


def _checksum(path: Path) -> str:
    """SHA-256 of a file; of results.json without its list of checksums."""
    if path.name != RESULTS:
        return _sha256(path.read_bytes())
    report = _read_results(path.parent)
    return _sha256(_json({name: item for name, item in report.items() if name != "files"}))


def _accepted(path: Path, data: bytes) -> list[str]:
    """The checksums of the new content and of the file that it replaces."""
    old = [_sha256(path.read_bytes())] if path.is_file() else []
    return list(dict.fromkeys([*old, _sha256(data)]))


def _read_results(folder: Path) -> dict[str, Any]:
    try:
        report = json.loads((folder / RESULTS).read_bytes())
    except (OSError, ValueError):
        return {}
    return report if isinstance(report, dict) else {}


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=1).encode()


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
