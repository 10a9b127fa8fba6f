"""What is published: the notices of code that is compiled in, and the actions that build it."""

import importlib.metadata
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from embits import _core
from tests.smoke import unprotected
from tests.support.program import run_python

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


@pytest.mark.skipif(sys.platform != "linux", reason="reads an ELF file")
def test_the_native_module_is_hardened():
    elf = Path(_core.__file__).read_bytes()
    assert unprotected(elf) == []
    other = elf.replace(b"\0__stack_chk_fail\0", b"\0__stack_chk_none\0")
    assert unprotected(other) == ["stack protector"]


def test_the_list_of_a_release_has_what_is_compiled_in_needed_and_published(tmp_path):
    (tmp_path / "embits-1.whl").write_bytes(b"wheel")
    command = [sys.executable, ROOT / "stress/sbom.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    made = json.loads(done.stdout)
    versions = {each["name"]: each.get("version") for each in made["components"]}
    assert versions["numpy"] == importlib.metadata.version("numpy")
    assert versions["nanobind"] == _core.nanobind_version
    assert {
        "click",
        "rich",
        "pygments",
        *(name for names in COMPILED_IN.values() for name in names),
    } <= {*map(str.lower, versions)}
    assert "pytest" not in versions
    root = made["metadata"]["component"]
    assert [each["name"] for each in root["components"]] == ["embits-1.whl"]
    refs = [root["bom-ref"], *(each["bom-ref"] for each in made["components"])]
    assert len(set(refs)) == len(refs)
    for each in made["dependencies"]:
        assert {each["ref"], *each["dependsOn"]} <= set(refs)


def test_what_a_daemon_thread_still_uses_at_the_end_is_no_message():
    done = run_python(
        "import threading, time, numpy as np, embits\n"
        "words = embits.WordVectors(['a', 'b'], np.eye(2))\n"
        "bits = embits.binarize(words, 8, 'lsh')\n"
        "bits.most_similar('a')\n"
        "threading.Thread(target=lambda bits: time.sleep(60), args=(bits,), daemon=True).start()\n"
    )
    assert (done.returncode, done.stderr) == (0, "")
