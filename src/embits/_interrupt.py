"""Ctrl-C while the command line imports its modules: exit code 130, and no traceback."""

import os
import signal
import sys


def raise_interrupts() -> None:
    """From now on Ctrl-C is a KeyboardInterrupt again."""
    if signal.getsignal(signal.SIGINT) is _exit:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _exit(*_: object) -> None:
    os._exit(130)


def _is_command_line() -> bool:
    if sys.argv[:1] == ["-m"]:  # while Python imports the package whose `__main__` it runs
        return sys.orig_argv[-len(sys.argv) :][:1] == ["embits"]
    name = "".join(sys.argv[:1]).replace("\\", "/").rpartition("/")[2]
    return name.removesuffix(".exe") == "embits"


if signal.getsignal(signal.SIGINT) is signal.default_int_handler and _is_command_line():
    signal.signal(signal.SIGINT, _exit)
