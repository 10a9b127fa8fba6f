"""The command line and short programs, each in a process of its own."""

import os
import re
import subprocess
import sys

_LOG_LINE = re.compile(r"embits: (?:(?:add|binarize|encode) .* to .*|.* \(after \d+ s\))")


def run(*args, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "embits", *map(str, args)],
        capture_output=True,
        text=True,
        timeout=120,
        **kwargs,
    )


def messages(stderr: str) -> str:
    """What a program said on stderr, without the log lines that a job prints after some seconds."""
    lines = stderr.splitlines(keepends=True)
    return "".join(line for line in lines if not _LOG_LINE.fullmatch(line.rstrip()))


def run_python(program: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
