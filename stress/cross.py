"""The native core, compiled for every platform that has wheels: musl, macOS and Windows too.

    python stress/cross.py      (make cross; it needs the package ziglang, a clang with the
                                headers and C libraries of all of them)

What can run here does: the kernels for Linux compare themselves with the portable ones, in
emulation where the processor is another. The rest shows that it compiles without a warning.
"""

from __future__ import annotations

import platform
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
CPP = ROOT / "cpp"
TARGETS = [
    f"{processor}-{system}"
    for system in ("linux-gnu.2.28", "linux-musl", "macos", "windows-gnu")
    for processor in ("x86_64", "aarch64")
]
AVX2 = ["-mavx2", "-mbmi", "-mpopcnt"]
AVX512 = [f"-mavx512{part}" for part in ("f", "dq", "bw", "vl", "vbmi", "vnni", "vpopcntdq")]
FLAGS = {"kernels_avx2": AVX2, "kernels_avx512": AVX2 + AVX512}
OTHERS = {"x86_64": {"kernels_neon"}, "aarch64": {"kernels_avx2", "kernels_avx512"}}
COMPILE = [sys.executable, "-m", "ziglang", "c++", "-std=c++17", "-O2", "-Wall", "-Wextra",
           "-Werror"]  # fmt: skip


def main() -> None:
    for target in TARGETS:
        processor, _, system = target.partition("-")
        define = "-DEMBITS_X86" if processor == "x86_64" else "-DEMBITS_ARM"
        command = [*COMPILE, "-target", target, define, f"-I{CPP}"]
        left_out = OTHERS[processor] | {"module"}
        sources = [path for path in sorted(CPP.rglob("*.cpp")) if path.stem not in left_out]
        with tempfile.TemporaryDirectory() as folder:
            objects = []
            for source in [*sources, ROOT / "tests" / "unit" / "search" / "compare_kernels.cpp"]:
                objects.append(f"{folder}/{source.stem}.o")
                flags = FLAGS.get(source.stem, [])
                subprocess.run([*command, *flags, "-c", source, "-o", objects[-1]], check=True)
            program = f"{folder}/compare"
            subprocess.run([*command, *objects, "-o", program], check=True)
            print(f"{target}: {len(sources)} files{ran(program, processor, system)}", flush=True)


def ran(program: str, processor: str, system: str) -> str:
    """What the comparison of kernels says, where it can run."""
    here = platform.machine() == processor
    emulator = shutil.which(f"qemu-{processor}")
    # Emulation has no C library of the other processor: only what is linked whole runs.
    if platform.system() != "Linux" or not system.startswith("linux"):
        return ""
    if not here and (emulator is None or "musl" not in system):
        return ""
    command = [program] if here else [str(emulator), program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return f"; {done.stdout.strip()}"


if __name__ == "__main__":
    main()
