"""The ARM kernels, cross-compiled and run under qemu where this machine has the tools."""

import platform
import shutil
import subprocess
from pathlib import Path

import pytest

CPP = Path(__file__).parents[3] / "cpp"
SOURCES = [
    *("search/kernels_portable.cpp", "search/kernels_neon.cpp", "search/dispatch.cpp"),
    *("search/plane_queries.cpp", "search/ranked_bits.cpp", "search/float_query.cpp"),
]
COMPILER, EMULATOR = "aarch64-linux-gnu-g++", "qemu-aarch64"


@pytest.mark.slow
@pytest.mark.skipif(
    platform.machine() in ("aarch64", "arm64"),
    reason="this is ARM: the other tests run the NEON kernels themselves",
)
@pytest.mark.skipif(
    not (shutil.which(COMPILER) and shutil.which(EMULATOR)),
    reason=f"needs {COMPILER} and {EMULATOR}: apt-get install g++-aarch64-linux-gnu qemu-user",
)
def test_neon_kernels_equal_the_portable_ones(tmp_path):
    program = tmp_path / "compare_kernels"
    files = [CPP / name for name in SOURCES]
    files.append(Path(__file__).parent / "compare_kernels.cpp")
    flags = [
        "-std=c++17",
        "-O2",
        "-Wall",
        "-Wextra",
        "-Werror",
        "-static",
        "-DEMBITS_ARM",
        "-I",
        CPP,
    ]
    subprocess.run([COMPILER, *flags, *files, "-o", program], check=True)
    done = subprocess.run(
        [EMULATOR, program], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout
    assert done.stdout.startswith("neon equals portable in")
