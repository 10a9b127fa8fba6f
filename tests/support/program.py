"""The command line and short programs, each in a process of its own."""

import os
import subprocess
import sys


def run(*args, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "embits", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        **kwargs,
    )


def run_python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
