"""The native code under AddressSanitizer and UBSan: every kernel and parser test, no report.

    python stress/sanitize.py [more pytest arguments]

Builds the extension a second time in build/sanitize with -fsanitize=address,undefined, and runs
the tests against it with the sanitizer's library preloaded. GCC or Clang on Linux.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "sanitize"
TESTS = [
    *("unit/search", "unit/readers", "unit/coders", "unit/file", "unit/collection"),
    *("trust/test_memory.py", "trust/test_readers.py", "trust/test_files.py"),
]
# -fno-sanitize=vptr: nanobind is built without the type information that it looks at.
FLAGS = "-fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all -g -O1"


def main() -> int:
    build()
    compiler = os.environ.get("CXX", "g++")
    libraries = [_library(compiler, name) for name in ("libasan.so", "libubsan.so")]
    packages = [path for path in sys.path if path.endswith("site-packages")]
    environment = {
        **os.environ,
        "LD_PRELOAD": " ".join(libraries),
        # -S leaves out the hook of the editable install, which would find the usual extension.
        "PYTHONPATH": os.pathsep.join([str(BUILD / "package"), *packages]),
        # Python itself frees nothing at its end. 1 GB: no test needs more.
        "ASAN_OPTIONS": "detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
        "EMBITS_SANITIZED": "1",
        "HYPOTHESIS_PROFILE": "ci",
    }
    found = subprocess.run(
        [sys.executable, "-S", "-c", "import embits._core as c; print(c.__file__)"],
        env=environment, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if str(BUILD) not in found.stdout:
        print(found.stdout, found.stderr)
        return 1
    files = [str(ROOT / "tests" / name) for name in TESTS]
    pytest = [sys.executable, "-S", "-m", "pytest", "-q", "-p", "no:cacheprovider", *files]
    return subprocess.run(
        [*pytest, *sys.argv[1:]], env=environment, cwd=ROOT, check=False
    ).returncode


def build() -> None:
    """Build the extension with the sanitizers, and a package of it around our Python files."""
    cmake = shutil.which("cmake") or "cmake"
    nanobind = subprocess.run(
        [sys.executable, "-m", "nanobind", "--cmake_dir"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.strip()
    subprocess.run(
        [
            *(cmake, "-S", ROOT, "-B", BUILD, "-DCMAKE_BUILD_TYPE=None"),
            *(f"-DCMAKE_CXX_FLAGS={FLAGS}", f"-Dnanobind_DIR={nanobind}"),
            f"-DPython_EXECUTABLE={sys.executable}",
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    subprocess.run([cmake, "--build", BUILD], check=True, stdout=subprocess.DEVNULL)
    package = BUILD / "package" / "embits"
    shutil.rmtree(package, ignore_errors=True)
    shutil.copytree(ROOT / "src" / "embits", package)
    (extension,) = BUILD.glob("_core*.so")
    shutil.copy(extension, package)


def _library(compiler: str, name: str) -> str:
    path = subprocess.run(
        [compiler, f"-print-file-name={name}"], capture_output=True, text=True, check=True
    ).stdout.strip()
    return str(Path(path).resolve())


if __name__ == "__main__":
    sys.exit(main())
