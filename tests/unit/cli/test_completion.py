"""Shell completion: the candidates that the program offers, and click's scripts in real shells."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import embits
from embits.cli import GROUPS, SHARED, VERBS
from embits.cli.export import SHELLS
from embits.ids.keys import RowNumbers
from embits.ids.vocabulary import Vocabulary

VERB_MODULES = Path(embits.__file__).parent / "cli"
MADE = "\n@click.command()\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("completion")
    words = ["queen", "king", "a b", "queue", "qu$HOME", "-q"]
    vectors = embits.WordVectors(words, np.eye(6, dtype="f4"))
    embits.binarize(vectors, 16, "lsh").save(folder / "glove.safetensors")
    for name in ("glove.txt", "notes.md", "my vectors.npy"):
        (folder / name).touch()
    (folder / "sub").mkdir()
    program = folder / "bin" / "embits"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -c "{RUN}" "$@"\n')
    program.chmod(0o755)
    return folder


# As the installed program starts: click names its variable after it.
RUN = "import sys; sys.argv[0] = 'embits'; from embits.cli import main; main()"


def complete(folder, *line):
    """What click answers bash, without the types."""
    env = {"COMP_WORDS": " ".join(line), "COMP_CWORD": str(len(line) - 1)}
    done = subprocess.run(
        [folder / "bin" / "embits"],
        env=os.environ | env | {"_EMBITS_COMPLETE": "bash_complete"},
        cwd=folder, capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return [answer.split(",", 1)[1] for answer in done.stdout.splitlines() if answer]


def test_verbs_and_their_order_come_from_one_table(folder):
    assert complete(folder, "embits", "")[: len(VERBS)] == list(VERBS)
    files = {path.stem for path in VERB_MODULES.glob("*.py") if MADE in path.read_text()}
    assert files == {SHARED.get(verb, verb) for verb in VERBS}
    assert all(len(says) < 60 for group in GROUPS.values() for says in group.values())


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (["neighbors", "gl"], ["gl"]),  # a file: the shell completes it
        (["neighbors", "glove.safetensors", "que"], []),
        (["binarize", "glove.txt", "--method", "near"], ["near-lossless"]),
        (["export", "f", "--to", "wo"], ["word2vec"]),
    ],
)  # fmt: skip
def test_each_place_offers_what_fits_there(folder, line, offered):
    assert complete(folder, "embits", *line) == offered


def test_completion_of_a_list_of_verbs_imports_none_of_them():
    code = (
        "import sys, click, embits.cli as c\n"
        "c.embits.shell_complete(click.Context(c.embits), '')\n"
        "print([v for v in c.VERBS if f'embits.cli.{c.SHARED.get(v, v)}' in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("shell", SHELLS)
def test_the_verb_prints_a_script_that_its_shell_accepts(shell):
    command = [sys.executable, "-m", "embits", "completion"]
    script = subprocess.run([*command, shell], capture_output=True, text=True, check=True).stdout
    env = os.environ | {"SHELL": f"/usr/bin/{shell}"}
    again = subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout
    assert script == again
    assert f"_EMBITS_COMPLETE={shell}_complete" in script
    if not shutil.which(shell):
        pytest.skip(f"there is no {shell}")
    subprocess.run([shell, "-n"], input=script, text=True, check=True)


def test_an_unknown_shell_is_wrong_usage():
    env = os.environ | {"SHELL": "/bin/tcsh"}
    command = [sys.executable, "-m", "embits", "completion"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 2
    assert "name the shell: bash, zsh, fish" in done.stderr


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        (["export", "f", "--to", "wo"], ["word2vec"]),
        (["binarize", "glove.txt", "--method", "near"], ["near-lossless"]),
    ],
)
def test_bash_completes_with_the_script(folder, line, offered):
    if not shutil.which("bash"):
        pytest.skip("there is no bash")
    words = " ".join(["embits", *line])
    program = (
        f'eval "$(embits completion bash)"; compopt() {{ :; }}\n'
        f"COMP_WORDS=({words}); COMP_CWORD={len(line)}; _embits_completion embits\n"
        'printf "%s\\n" "${COMPREPLY[@]}"'
    )
    env = os.environ | {"PATH": f"{folder / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-c", program], cwd=folder, env=env, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines() == offered


def test_words_that_start_alike_come_in_row_order():
    words = ["zebra", "qué", "q", "quay", "Queen", "que", "ÿ", "queen"]
    vocabulary = Vocabulary.from_words(words)
    for prefix in ("", "q", "qu", "que", "queen", "x", "ÿ", "é"):
        expected = [word for word in words if word.startswith(prefix)]
        assert vocabulary.starting_with(prefix, 99) == expected
        assert vocabulary.starting_with(prefix, 2) == expected[:2]
    assert RowNumbers(130).starting_with("12", 4) == ["12", "120", "121", "122"]
