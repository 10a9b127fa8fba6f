"""What a stored result says of itself: version and commit, processor, packages, seeds, inputs."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import embits

PACKAGES = (
    "numpy", "faiss-cpu", "hnswlib", "usearch", "scann", "turbovec", "rabitqlib", "gensim",
)  # fmt: skip


def provenance(seeds: Iterable[int] = (), **inputs: NDArray[Any] | Path | None) -> dict[str, Any]:
    """The facts, with the SHA-256 of each input: an array, or a file."""
    return {
        "embits": embits.__version__,
        "commit": commit(),
        "processor": f"{processor()}, {embits.search.simd()} kernels in embits",
        "packages": {"python": platform.python_version(), **packages()},
        "seeds": list(seeds),
        "inputs": {name: checksum(of) for name, of in inputs.items() if of is not None},
    }


def commit() -> str:
    """The commit that is measured, with a + if files were changed since."""
    command = ("git", "describe", "--always", "--exclude=*", "--dirty=+")
    found = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    return found.stdout.strip() or "none"


def processor() -> str:
    """The processor's name, family and model where the system gives them."""
    fields = {}
    if Path("/proc/cpuinfo").exists():
        for line in Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines():
            key, _, value = line.partition(":")
            fields[key.strip()] = value.strip()
    if "model name" not in fields:
        return platform.machine()
    return f"{fields['model name']}, family {fields['cpu family']} model {fields['model']}"


def packages() -> dict[str, str]:
    """Versions of PACKAGES that are installed."""
    found = {}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def checksum(of: NDArray[Any] | Path) -> str:
    """The first 16 digits of the SHA-256 of an array's bytes, or of a file."""
    if isinstance(of, Path):
        with of.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()[:16]
    return hashlib.sha256(np.ascontiguousarray(of)).hexdigest()[:16]
