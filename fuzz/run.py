"""Fuzz the file and every reader, a minute each.

    python fuzz/run.py [--seconds 60] [TARGET ...]

With atheris (coverage-guided; pip install atheris) where it is installed, else by our own
mutations alone. A finding ends the run with its traceback, and its input lies in build/fuzz/found.
"""

from __future__ import annotations

import argparse
import gc
import hashlib
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from types import FunctionType

ROOT = Path(__file__).resolve().parents[1]
WORK = ROOT / "build" / "fuzz"
MEMORY = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None


def main() -> int:
    arguments = argparse.ArgumentParser(description="Fuzz the file and every reader.")
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("--one", help=argparse.SUPPRESS)
    arguments.add_argument("targets", nargs="*")
    options = arguments.parse_args()
    sys.path.insert(0, str(ROOT))
    if options.one:
        fuzz(options.one, options.seconds)
        return 0
    from fuzz.targets import TARGETS

    failed = []
    for name in options.targets or TARGETS:
        command = [sys.executable, __file__, "--one", name, "--seconds", str(options.seconds)]
        log = WORK / f"{name}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("w") as file, tempfile.TemporaryDirectory(dir=MEMORY) as folder:
            own = {**os.environ, "FUZZ_FOLDER": folder}  # libFuzzer ends without removing it
            code = subprocess.run(
                command, stderr=file, stdout=file, check=False, env=own
            ).returncode
        last = [line for line in log.read_text(errors="replace").splitlines() if "runs" in line][
            -1:
        ]
        print(f"{name:<12} {'nothing found' if code == 0 else 'FOUND, see ' + str(log)}", *last)
        failed += [name] * (code != 0)
    return len(failed)


def fuzz(name: str, seconds: int) -> None:
    """Fuzz one target in this process; does not return when atheris does it."""
    try:
        import atheris
    except ImportError:
        mutate_only(name, seconds)
        return
    from fuzz.targets import TARGETS, corpus, mutated

    # Not by atheris' import hook: it sees no code through the one of an editable install.
    for function in gc.get_objects():
        if isinstance(function, FunctionType) and str(function.__module__).startswith("embits"):
            atheris.instrument_func(function)

    def mutator(data: bytes, max_size: int, seed: int) -> bytes:
        rng = random.Random(seed)
        if rng.random() < 0.5:
            return atheris.Mutate(data, max_size)  # type: ignore[no-any-return]
        return mutated(name, data, rng)[:max_size]

    inputs, found = WORK / name, WORK / "found"
    for folder in (inputs, found):
        folder.mkdir(parents=True, exist_ok=True)
    for data in corpus(name):
        (inputs / hashlib.sha1(data).hexdigest()).write_bytes(data)
    # A refusal may take a second and, with Python and pyarrow in it, half a gigabyte.
    limits = [f"-max_total_time={seconds}", "-timeout=5", "-rss_limit_mb=2048", "-max_len=70000"]
    arguments = [sys.argv[0], str(inputs), *limits, f"-artifact_prefix={found}/{name}-"]
    atheris.Setup(arguments, TARGETS[name], custom_mutator=mutator)
    atheris.Fuzz()


def mutate_only(name: str, seconds: int) -> None:
    """Without coverage: mutations of the corpus, and of what they gave."""
    from fuzz.targets import TARGETS, corpus, mutated

    rng, pool = random.Random(0), corpus(name)
    end, runs = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        data = mutated(name, rng.choice(pool), rng)
        try:
            TARGETS[name](data)
        except BaseException:
            (WORK / "found").mkdir(parents=True, exist_ok=True)
            (WORK / "found" / f"{name}-{hashlib.sha1(data).hexdigest()}").write_bytes(data)
            raise
        runs += 1
    print(f"Done {runs} runs in {seconds} second(s)")


if __name__ == "__main__":
    sys.exit(main())
