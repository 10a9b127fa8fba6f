"""Ctrl-C while the command line imports its modules: exit code 130, and no traceback."""

import os
import signal
import sys


def leave(*_: object) -> None:
    """End the process at once: nothing has begun."""
    os._exit(130)


# With -m, the name of the program is read while Python imports the package that it is in.
_name = "".join(sys.orig_argv[-len(sys.argv) :][:1] if sys.argv[:1] == ["-m"] else sys.argv[:1])
_is_program = _name.replace("\\", "/").rpartition("/")[2] in ("embits", "embits.exe")
if _is_program and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, leave)
