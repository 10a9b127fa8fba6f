"""The command line when it is stopped, cut off or out of room."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import embits
from tests.support.program import messages
from tests.support.vectors import clustered

EMBITS = [sys.executable, "-m", "embits"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Vectors that take a while to read, to fit and to save."""
    folder = tmp_path_factory.mktemp("cli")
    matrix = clustered(20_000, dims=32)
    vectors = embits.WordVectors([f"w{i}" for i in range(len(matrix))], matrix)
    embits.write_vectors(folder / "v.vec", vectors)
    np.save(folder / "v.npy", matrix)
    embits.binarize(vectors, 64, "lsh").save(folder / "b.safetensors")
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# Each stops at a known moment: the interrupt is real, sent from inside at a call of that step.
_STOPPED_AT = """
import os, signal, sys
import embits, embits.cli, embits.jobs, embits.readers, embits.readers.text, embits.file.store
from embits.file import atomic
import {module} as module
real = module.{name}
def stopped(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGINT)
    return real(*args, **kwargs)
module.{name} = stopped
sys.argv = ["embits", *sys.argv[1:]]
embits.cli.main()
"""

VERBS = {
    "binarize": ["binarize", "v.vec", "-o", "out", "--bits", "16", "--method", "lsh"],
    "encode": ["encode", "b.safetensors", "v.vec", "-o", "out"],
    "decode": ["decode", "b.safetensors", "-o", "out.vec"],
    "add": ["add", "out", "v.vec", "--coder", "b.safetensors"],
    "neighbors": ["neighbors", "b.safetensors", "w1"],
}
MOMENTS = [
    ("binarize", "embits.readers.text", "find_layout"),
    ("binarize", "embits.coders.lsh", "check_n_bits"),
    ("binarize", "embits.file.store", "_raw"),
    ("binarize", "os", "fsync"),
    ("encode", "embits.readers.text", "find_layout"),
    ("encode", "embits.file.store", "_raw"),
    ("decode", "embits.writers", "check_words"),
    ("decode", "os", "fsync"),
    ("add", "embits.collection.opening", "sync_folder"),
    ("add", "embits.collection.opening", "write_coder"),
    ("add", "embits.collection.manifest", "write_manifest"),
    ("neighbors", "embits.word_methods", "scan"),
]


@pytest.mark.parametrize(("verb", "module", "name"), MOMENTS)
def test_ctrl_c_ends_with_130_and_leaves_nothing(folder, verb, module, name):
    before = contents(folder)
    program = _STOPPED_AT.format(module=module, name=name)
    done = subprocess.run(
        [sys.executable, "-c", program, *VERBS[verb]],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 130, done.stderr
    # click first ends the line in which the terminal shows ^C
    assert messages(done.stderr).strip() == "embits: interrupted; nothing is left half-written"
    assert done.stdout == ""
    assert contents(folder) == before


@pytest.mark.parametrize("verb", ["binarize", "decode"])
def test_ctrl_c_from_outside_at_any_moment_leaves_nothing(folder, verb):
    """From the first instant on, when Python itself may still be starting."""
    before = contents(folder)
    done = subprocess.run([*EMBITS, *VERBS[verb]], cwd=folder, capture_output=True, check=True)
    assert messages(done.stderr.decode()) == ""
    whole = [(folder / VERBS[verb][3]).read_bytes()]
    (folder / VERBS[verb][3]).unlink()
    for share in np.linspace(0.05, 1.5, 6):
        running = subprocess.Popen(
            [*EMBITS, *VERBS[verb]], cwd=folder, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL
        )
        time.sleep(share)
        running.send_signal(signal.SIGINT)
        running.communicate(timeout=60)
        after = contents(folder)
        out = VERBS[verb][3]
        if out in after:  # it was done by then, or about to say so
            whole.append(after.pop(out))
            (folder / out).unlink()
        assert after == before
    assert len(set(whole)) <= 1


def test_a_process_that_is_terminated_leaves_no_temporary_folder(folder, tmp_path):
    coder = embits.load(folder / "b.safetensors").coder
    embits.open_collection(tmp_path / "c", coder).add(clustered(9, dims=32), list("abcdefghi"))
    before = contents(tmp_path / "c")
    code = _STOPPED_AT.format(module="embits.jobs.stream", name="Passes")
    code = code.replace("SIGINT", "SIGTERM").replace("import embits,", "import embits.jobs.stream,")
    code = code.replace("real =", "module.STREAM_FROM = -1; real =")
    done = subprocess.run(
        [sys.executable, "-c", code, "add", tmp_path / "c", folder / "v.vec"],
        capture_output=True,
        text=True,
        env=os.environ | {"TMPDIR": str(tmp_path)},
    )
    assert done.returncode == 143, done.stderr
    assert "Traceback" not in done.stderr
    assert {each.name for each in tmp_path.iterdir()} == {"c"}
    after = contents(tmp_path / "c")
    assert after.keys() == before.keys()


def test_a_broken_pipe_is_quiet(folder):
    for args in (["neighbors", "b.safetensors", "w1", "-k", "9999"], ["info", "b.safetensors"]):
        reader, writer = os.pipe()
        os.close(reader)
        done = subprocess.run(
            [*EMBITS, *args],
            cwd=folder,
            stdout=writer,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
        os.close(writer)
        assert done.stderr == b""
        assert done.returncode == 141  # as a shell shows programs that SIGPIPE ended


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
@pytest.mark.parametrize(
    "args", [["neighbors", "b.safetensors", "w1"], ["info", "--cpu", "--json"]]
)
def test_output_to_a_full_disk_says_so(folder, args):
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [*EMBITS, *args],
            cwd=folder,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "embits: error: [Errno 28] No space left on device\n"


_WITH_LIMIT = """
import resource, signal, sys
import embits.cli
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))
sys.argv = ["embits", *sys.argv[1:]]
embits.cli.main()
"""


@pytest.mark.parametrize("verb", ["binarize", "encode", "decode"])
def test_a_file_that_does_not_fit_is_named_in_one_line(folder, verb):
    before = contents(folder)
    done = subprocess.run(
        [sys.executable, "-c", _WITH_LIMIT, *VERBS[verb]],
        cwd=folder, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    out = "out.vec" if verb == "decode" else "out"
    assert messages(done.stderr) == f"embits: error: {folder / out}: file too large\n"
    assert contents(folder) == before


_INTERRUPTED = """
import builtins, signal, sys
imported = builtins.__import__
def interrupting(name, *rest):
    if name == "numpy":
        signal.raise_signal(signal.SIGINT)
    return imported(name, *rest)
builtins.__import__ = interrupting
sys.argv = [sys.argv[1]]
import embits
"""


@pytest.mark.parametrize("program", ["/usr/bin/embits", "C:\\bin\\embits.exe"])
def test_an_interrupt_while_the_program_is_imported_prints_nothing(program):
    command = [sys.executable, "-c", _INTERRUPTED, program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("program", ["analysis.py", "/usr/bin/embits-like", "-m"])
def test_an_interrupt_while_others_import_embits_is_theirs(program):
    command = [sys.executable, "-c", _INTERRUPTED, program]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "KeyboardInterrupt" in done.stderr


def test_words_and_messages_do_not_steer_the_terminal(tmp_path):
    """A stranger's word may hold escape sequences, line ends, or turn the direction of writing."""
    words = ["\x1b]0;owned\x07", "a\nb\rc", "\x9b31m", "\u202egnp", "a\u200fb\u061c\u200e"]
    words += ["a\u2028b\u2029", "a\U000e0041\U000e007f", "plain"]
    bits = embits.binarize(embits.WordVectors(words, np.eye(len(words))), 16, "lsh")
    bits.save(tmp_path / "b")
    done = subprocess.run(
        [*EMBITS, "neighbors", tmp_path / "b", "plain"], capture_output=True, text=True, check=True
    )
    shown = {line.split()[0] for line in done.stdout.splitlines()[1:]}
    assert shown == {word.encode("unicode_escape").decode() for word in words[:-1]}
    command = [*EMBITS, "neighbors", tmp_path / "b", words[2], "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.rstrip("\n").isprintable()
    assert {each["word"] for each in json.loads(done.stdout)["queries"][0]["neighbors"]} == {
        *words[:2], *words[3:]
    }  # fmt: skip
    done = subprocess.run(command[:-1], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(r"\x9b31m  (")
    (tmp_path / "v.txt").write_text("a 1 2\nb 1 \x1b[31m\n")
    done = subprocess.run(
        [*EMBITS, "binarize", tmp_path / "v.txt", "-o", tmp_path / "x"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert r"\x1b[31m" in done.stderr
    assert "\x1b" not in done.stderr
