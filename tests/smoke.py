"""What a wheel must do where it is installed: `python smoke.py`, with NumPy and nothing else.

It runs outside the checkout, on every platform and the newest Python, before a wheel is given
out. Each step is one that has broken a native package before: the extension loads, its kernels
agree with NumPy, the files that are not Python came along, the program starts.
"""

import importlib.metadata
import importlib.resources
import json
import os
import platform
import re
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import embits
from embits import _core


def main() -> None:
    here = Path(__file__).resolve().parents[1] / "src"
    assert here not in Path(embits.__file__).parents, "the checkout is tested, not the wheel"
    assert importlib.metadata.version("embits") == embits.__version__
    for name in ("py.typed", "_core.pyi", "page/site/kernel.wasm", "readers/sample.npz"):
        assert importlib.resources.files("embits").joinpath(name).is_file(), name
    for name in ("LICENSE", "licenses/nanobind.txt", "licenses/robin-map.txt"):
        assert importlib.metadata.distribution("embits").read_text(f"licenses/{name}"), name
    if platform.system() == "Linux":
        assert not unprotected(Path(_core.__file__).read_bytes())
    assert len(embits.sample_vectors()) == 2000
    with tempfile.TemporaryDirectory() as folder:
        vectors = read_back(Path(folder))
        bits = embits.binarize(vectors, n_bits=100, steps=20, batch_size=64)
        bits.save(Path(folder) / "b.safetensors")
        search_like_numpy(embits.load(Path(folder) / "b.safetensors", verify=True))
        ask_the_program(Path(folder) / "b.safetensors")
    print(
        f"embits {embits.__version__}: {platform.system()} {platform.machine()}, "
        f"Python {platform.python_version()}, {Path(_core.__file__).name}, "
        f"kernels {', '.join(_core.available_simd())}: all well"
    )


def unprotected(elf: bytes) -> list[str]:
    """The kinds of hardening that a library for 64-bit Linux lacks."""
    flags, dynamic = {}, {}
    start, size, count = (*struct.unpack_from("<Q", elf, 32), *struct.unpack_from("<HH", elf, 54))
    for at in range(start, start + size * count, size):  # the segments
        kind, mode, offset, _, _, length = struct.unpack_from("<IIQQQQ", elf, at)
        flags[kind] = mode
        if kind == 2:  # PT_DYNAMIC
            dynamic = dict(struct.iter_unpack("<qQ", elf[offset : offset + length]))
    imported = set(re.findall(rb"(?<=\0)__\w+_chk(?:_fail)?(?=\0)", elf))
    has = {
        "GNU_RELRO": 0x6474E552 in flags,
        "BIND_NOW": bool(dynamic.get(30, 0) & 8 or dynamic.get(0x6FFFFFFB, 0) & 1 or 24 in dynamic),
        "a stack that is not executable": not flags.get(0x6474E551, 1) & 1,
        "stack protector": b"__stack_chk_fail" in imported,
        "FORTIFY_SOURCE": len(imported) > 1 or platform.libc_ver()[0] != "glibc",
    }
    return [kind for kind, is_there in has.items() if not is_there]


def read_back(folder: Path) -> embits.WordVectors:
    """Vectors that went through the native text parser."""
    rng = np.random.default_rng(0)
    matrix = rng.normal(0, 0.4, (500, 20)).astype(np.float32)
    embits.write_vectors(
        folder / "v.vec", embits.WordVectors([f"word{i}" for i in range(500)], matrix)
    )
    vectors = embits.read_vectors(folder / "v.vec")
    assert np.array_equal(vectors.matrix, matrix)
    return vectors


def search_like_numpy(bits: embits.BinaryVectors) -> None:
    """Every kernel that this processor has finds what counting bits in NumPy finds."""
    unpacked = np.unpackbits(bits.codes, axis=1).astype(np.int32)
    expected = np.sort((unpacked[:9, None] != unpacked).sum(axis=2), axis=1)[:, :10]
    for simd in _core.available_simd():
        _core.use_simd(simd)
        distances, rows = bits.search(bits.codes[:9], k=10)
        assert np.array_equal(distances, expected), simd
        assert np.array_equal(rows[:, 0], np.arange(9)), simd
    assert bits.decode("word7").shape == (20,)
    assert bits.encode(bits.decode()).shape == bits.codes.shape


def ask_the_program(file: Path) -> None:
    python = [*os.environ.get("EMBITS_EMULATOR", "").split(), sys.executable]
    question = ["-m", "embits", "neighbors", str(file), "word7", "-k", "3", "--json"]
    done = subprocess.run([*python, *question], capture_output=True, text=True, check=True)
    assert len(json.loads(done.stdout)["queries"][0]["neighbors"]) == 3


if __name__ == "__main__":
    main()
