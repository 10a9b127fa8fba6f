"""What is published: the notices of code that is compiled in, and the actions that build it."""

import importlib.metadata
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
NOT_COMPILED_IN = {"Python", "Threads"}  # of the machine that runs the wheel
COMPILED_IN = {"nanobind": ["nanobind", "robin-map"]}  # robin-map is part of nanobind


def test_every_library_that_is_compiled_in_has_its_notice_in_the_package():
    found = re.findall(r"find_package\((\w+)", (ROOT / "CMakeLists.txt").read_text())
    assert {*found} - NOT_COMPILED_IN == COMPILED_IN.keys()
    assert not re.search(r"FetchContent|add_subdirectory", (ROOT / "CMakeLists.txt").read_text())
    package = importlib.metadata.distribution("embits")
    for name in [name for names in COMPILED_IN.values() for name in names]:
        notice = package.read_text(f"licenses/licenses/{name}.txt")
        assert notice is not None, f"licenses/{name}.txt is not in the package"
        assert "Copyright (c)" in notice
        assert notice == (ROOT / f"licenses/{name}.txt").read_text()


@pytest.mark.skipif(not WORKFLOWS, reason="needs a checkout: an sdist has no workflows")
def test_actions_are_pinned_by_the_hash_of_a_commit_and_name_their_version():
    used = [
        line.strip("- ").strip()
        for path in WORKFLOWS
        for line in path.read_text().splitlines()
        if "uses:" in line and "uses: ./" not in line
    ]
    assert len(used) > 10
    pinned = re.compile(r"uses: ([\w-]+/[\w-]+)@([0-9a-f]{40}) # (v\d+\.\d+\.\d+)")
    assert [line for line in used if not pinned.fullmatch(line)] == []
    assert len({line.split("@")[0] for line in used}) == len(set(used)), "two versions of an action"
