"""The command line as a program of its own."""

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
