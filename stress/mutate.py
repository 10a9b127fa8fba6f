"""Mutation testing: change the code at one place, and a unit test must fail.

    python stress/mutate.py [--sample 300] [--seed 0] [--only search/filters.py] [--jobs 1]
                            [--minutes M]

Operators, comparisons, numbers and conditions of a random sample are changed, and calls and `raise`
statements deleted, one at a time, in memory. Each mutant runs the unit tests of its module in a
process of its own. Mutants that no test notices are printed. Linux and macOS.
"""

from __future__ import annotations

import argparse
import ast
import importlib.abc
import importlib.machinery
import os
import random
import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy  # noqa: F401 - imported once, for all mutants
import pytest
from hypothesis import Phase, settings

from mutations import changes

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "src" / "embits"
MAX_CPU_SECONDS = 90  # a mutant that takes longer is in an endless loop
CHUNK = 10  # mutants between two reports

# The tests that must notice a change: those of the longest name that the module's path starts with.
# The quickest come first.
TESTS = {
    "arrays.py": ["unit/test_bits.py", "unit/test_binary_vectors.py"],
    "search": [
        *("unit/test_filtered_vectors.py", "unit/test_refused_numbers.py"),
        *("unit/search/test_exact_scores.py", "unit/search/test_search_asymmetric.py"),
        *("unit/search/test_pieces.py", "unit/search/test_search.py"),
    ],
    "search/filters": ["unit/test_filtered_vectors.py", "unit/search/test_filters.py"],
    "search/cells": ["unit/collection/test_cells.py", "unit/search/test_cells.py"],
    "search/rescoring": [
        *("unit/collection/test_rescoring.py", "unit/search/test_search_asymmetric.py"),
        "unit/search/test_filters.py",
    ],
    "search/pairs": ["unit/search/test_pairs.py"],
    "search/scan": [
        *(f"unit/search/test_{name}.py" for name in ("within", "search", "search_asymmetric")),
        *("unit/test_refused_numbers.py", "unit/test_filtered_vectors.py"),
    ],
    "search/multi_index": ["unit/search/test_search_multi_index.py"],
    "search/pieces": ["unit/search/test_pieces.py", "unit/collection/test_collection.py"],
    "file": [
        *("unit/file/test_overwrite.py", "unit/file/test_store.py", "trust/test_golden.py"),
        *("trust/test_file_headers.py", "unit/test_slim.py", "unit/test_lengths.py"),
    ],
    "file/atomic": ["unit/file/test_overwrite.py", "trust/test_writes.py"],
    "collection": [
        *(f"unit/collection/test_{name}.py" for name in ("opening", "parquet", "errors")),
        *(
            f"unit/collection/test_{name}.py"
            for name in ("columns", "rescoring", "cells", "subset_concat", "safety")
        ),
        *("unit/collection/test_collection.py", "unit/collection/test_states.py"),
    ],
    "columns.py": ["unit/collection/test_columns.py"],
}
# The tests for the mutants that those do not notice.
MORE_TESTS = {
    "arrays.py": ["unit/test_binary_vectors.py", "unit/collection/test_errors.py"],
    "search": [
        *(f"unit/search/test_{name}.py" for name in ("within", "search", "search_multi_index")),
        *("unit/test_wrong_uses.py", "unit/search/test_planes.py", "unit/search/test_filters.py"),
        *("unit/search/test_cells.py", "unit/test_lengths.py"),
    ],
    "file": ["unit/file", "unit/collection/test_errors.py", "trust/test_files.py"],
    "collection": ["unit/cli/test_collections.py", "trust/test_collections.py"],
    "columns.py": ["unit/test_lengths.py", "trust/test_golden.py", "unit/cli/test_columns.py"],
}
# These need a GPU, or PyTorch, which the tests of a machine without it skip.
LEFT_OUT = {"search/gpu.py", "search/_gpu_kernels.py"}


@dataclass(frozen=True)
class Mutant:
    """A module with one change.

    Attributes:
        path: The module, relative to the package.
        place: Which of the changes of the module.
        line: Where.
        change: What.
    """

    path: str
    place: int
    line: int
    change: str


def mutants_of(path: str) -> list[Mutant]:
    """All mutants of a module."""
    tree = ast.parse((PACKAGE / path).read_text())
    return [Mutant(path, i, *found) for i, found in enumerate(changes(tree))]


# Failing examples are not shrunk, and the same examples are tried each time.
settings.register_profile(
    "mutation", deadline=None, database=None, derandomize=True,
    phases=(Phase.explicit, Phase.generate),
)  # fmt: skip


# -- one mutant, in a process of its own -----------------------------------------------------------


class MutatedLoader(importlib.machinery.SourceFileLoader):
    """Loads a module with one change."""

    place = -1

    def get_code(self, fullname: str) -> Any:
        tree = ast.parse(Path(self.path).read_text())
        made = changes(tree)
        for _ in range(self.place + 1):
            next(made)
        return compile(tree, self.path, "exec")


class MutatedFinder(importlib.abc.MetaPathFinder):
    """Finds the mutated module, and leaves all others to Python."""

    def __init__(self, path: str, place: int) -> None:
        names = ("embits", *Path(path).with_suffix("").parts)
        self.name = ".".join(name for name in names if name != "__init__")
        self.place = place

    def find_spec(self, name: str, path: Any, target: Any = None) -> Any:
        if name != self.name:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path, target)
        assert spec is not None
        assert spec.origin is not None
        spec.loader = MutatedLoader(name, spec.origin)
        spec.loader.place = self.place
        return spec


def test_one(path: str, place: int, tests: list[str], log: Path) -> int:
    """Run tests with a mutant; place -1 is the module as it is."""
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_CPU_SECONDS, MAX_CPU_SECONDS))
    with log.open("wb") as file:
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    if place >= 0:
        sys.meta_path.insert(0, MutatedFinder(path, place))
    options = ["-q", "-x", "-m", "not slow", "-p", "no:cacheprovider", f"--rootdir={ROOT}"]
    options += ["-p", "_hypothesis_pytestplugin", "--hypothesis-profile=mutation"]
    return int(pytest.main([*options, *tests]))


def forked(path: str, place: int, tests: list[str], log: Path) -> int:
    """Start the tests in a child, which has pytest and NumPy already; its process id."""
    child = os.fork()
    if child:
        return child
    code = 3
    try:
        code = test_one(path, place, tests, log)
    finally:
        os._exit(code)


# -- all of them -----------------------------------------------------------------------------------


def tests_of(path: str, among: Mapping[str, list[str]]) -> list[str]:
    name = max((name for name in among if path.startswith(name)), key=len)
    return [f"tests/{test}" for test in among[name]]


def outcomes(
    mutants: Iterable[Mutant], jobs: int, among: Mapping[str, list[str]]
) -> Iterator[tuple[Mutant, str, str]]:
    """Each mutant, as it ends: "killed", "survived" or "endless", and what pytest printed."""
    left, running = list(mutants)[::-1], dict[int, tuple[Mutant, Path]]()
    with tempfile.TemporaryDirectory() as folder:
        while left or running:
            while left and len(running) < jobs:
                mutant = left.pop()
                log = Path(folder, str(len(left)))
                tests = tests_of(mutant.path, among)
                running[forked(mutant.path, mutant.place, tests, log)] = mutant, log
            child, status = os.wait()
            mutant, log = running.pop(child)
            name = "survived" if status == 0 else "killed" if os.WIFEXITED(status) else "endless"
            yield mutant, name, log.read_text(errors="replace")[-1500:]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sample", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", help="a module or folder of src/embits")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=1e9, help="start no more after these")
    options = parser.parse_args()
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    sys.dont_write_bytecode = True
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT / "src"))
    modules = [
        path.relative_to(PACKAGE).as_posix()
        for name in options.only or ("arrays.py", "columns.py", "search", "file", "collection")
        for path in ([PACKAGE / name] if name.endswith(".py") else (PACKAGE / name).glob("*.py"))
    ]
    modules = sorted(set(modules) - LEFT_OUT)
    everything = [mutant for path in modules for mutant in mutants_of(path)]
    size = min(options.sample, len(everything))
    sample = random.Random(options.seed).sample(everything, size)
    return report(sample, len(everything), options.jobs, options.minutes)


def report(sample: list[Mutant], n_all: int, jobs: int, minutes: float) -> int:
    """Try the sample in its random order, until the time is up; print what no test noticed."""
    start, counts, folders = time.monotonic(), Counter[str](), Counter[str]()
    for among in (TESTS, MORE_TESTS):
        groups = {tuple(tests_of(mutant.path, among)): mutant.path for mutant in sample}
        whole = [Mutant(path, -1, 0, "") for path in groups.values()]
        for mutant, name, text in outcomes(whole, jobs, among):
            if name != "survived":
                print(f"the tests of {mutant.path} fail without a change:\n{text}")
                return 1
    done = 0
    for chunk in batched(sample, CHUNK):
        left = list(chunk)
        for among in (TESTS, MORE_TESTS):
            found = list(outcomes(left, jobs, among))
            left = [mutant for mutant, name, _ in found if name == "survived"]
            counts.update(name for _, name, _ in found if name != "survived")
        for mutant in left:
            print(f"{mutant.path}:{mutant.line}: {mutant.change}", flush=True)
        counts["survived"] += len(left)
        folders.update(Path(mutant.path).parts[0] for mutant in chunk)
        done += len(chunk)
        spent = (time.monotonic() - start) / 60
        print(f"{done} of {n_all} mutants in {spent:.0f} min: {dict(counts)}", flush=True)
        if spent > minutes:
            break
    print(f"changes of {dict(folders)}")
    return 0


def batched(sample: list[Mutant], size: int) -> Iterator[list[Mutant]]:
    return (sample[at : at + size] for at in range(0, len(sample), size))


if __name__ == "__main__":
    sys.exit(main())
