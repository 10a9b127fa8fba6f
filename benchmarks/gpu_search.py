"""What a GPU does: its share of the card's own ceilings, and the CPU of the same machine beside it.

    python benchmarks/gpu_search.py [--rows 100000000] [--billion] [--out benchmarks/results]

Two ceilings are measured first: a copy in the card's memory (bytes read and written), and
PyTorch's int8 matrix product. A search by one query must read every code once; one by a batch
must do 2 · rows · queries · bits operations. Times are whole calls of `DeviceIndex.top_k`, from
NumPy queries to NumPy answers, k = 10; medians of rounds. Codes are random: neither way of
counting depends on what they hold. Answers are compared with the CPU's.

Encoding is of random vectors of 300 dimensions; the codes are compared with the CPU's. Codes whose
bits are searched are encoded on the CPU: near-lossless stands here without its search.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

import embits
from embits.search import DeviceIndex, top_k

K = 10
Run = Callable[[], object]


def median_seconds(run: Run, rounds: int = 7) -> float:
    """The median time of a call, the device's work included, after a call to warm up."""
    times = []
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def copy_bandwidth() -> float:
    """Bytes a second, read and written."""
    source = torch.empty(1 << 32, dtype=torch.uint8, device="cuda")
    target = torch.empty_like(source)
    return 2 * source.numel() / median_seconds(lambda: target.copy_(source))


def product_rate() -> float:
    """Operations a second of an int8 matrix product."""
    a = torch.randint(-128, 127, (8192, 8192), dtype=torch.int8, device="cuda")
    seconds = median_seconds(lambda: [torch._int_mm(a, a.t()) for _ in range(10)])
    return 10 * 2 * 8192**3 / seconds


def in_pytorch(codes: NDArray[np.uint8], queries: NDArray[np.uint8]) -> Run:
    """The peer: unpack, int8 product and top-k by PyTorch's own operations, chunk by chunk."""
    there, asked = torch.from_numpy(codes).cuda(), torch.from_numpy(queries).cuda()
    shifts = torch.arange(7, -1, -1, dtype=torch.uint8, device="cuda")

    def bits(packed: Any) -> Any:
        return ((packed[:, :, None] >> shifts) & 1).reshape(len(packed), -1).to(torch.int8)

    signs = (1 - 2 * bits(asked)).t().contiguous().t()

    def run() -> Any:
        best = []
        for start in range(0, len(there), 1 << 19):
            scores = torch._int_mm(bits(there[start : start + (1 << 19)]), signs.t())
            best.append(torch.topk(scores, K, dim=0, largest=False)[0])
        return torch.topk(torch.cat(best), K, dim=0, largest=False)[0].cpu()

    return run


def random_codes(rng: np.random.Generator, n: int, width: int) -> NDArray[np.uint8]:
    """Uniform bits."""
    words = rng.integers(0, 1 << 64, -(-n * width // 8), dtype=np.uint64)
    return words.view(np.uint8)[: n * width].reshape(n, width)


def same_answers(codes: Any, index: DeviceIndex, queries: Any) -> bool:
    """Whether a sample of the answers is the CPU's, distances and rows."""
    ours, theirs = index.top_k(queries, K), top_k(codes, queries[:16], K)
    return all(np.array_equal(mine[:16], cpu) for mine, cpu in zip(ours, theirs, strict=True))


def search_rows(n: int, bits: int, ceilings: tuple[float, float], rng: Any) -> list[str]:
    """A row of the table for each size of a batch."""
    copy, product = ceilings
    codes = random_codes(rng, n, bits // 8)
    start = time.perf_counter()
    index = DeviceIndex(codes)
    torch.cuda.synchronize()
    upload = time.perf_counter() - start
    queries = random_codes(rng, 1000, bits // 8)
    assert same_answers(codes, index, queries[:1]), "one query"
    assert same_answers(codes, index, queries), "a batch"
    few = queries[:64]
    cpu = statistics.median(_seconds(lambda: top_k(codes, few, K)) for _ in range(3)) / len(few)
    rows = []
    for q in (1, 10, 50, 100, 300, 1000):
        batch = queries[:q]
        seconds = median_seconds(partial(index.top_k, batch, K))
        rows.append(
            f"| {n / 1e6:,.0f} M × {bits} | {q:,} | {seconds * 1e3:,.2f} | {q / seconds:,.0f} | "
            f"{codes.nbytes / seconds / copy:.2f} | {2 * n * q * bits / seconds / product:.2f} | "
            f"{cpu * q / seconds:,.0f} × |"
        )
        print(rows[-1], flush=True)
    print(f"upload {upload:.1f} s, resident {index.nbytes / 1e9:.1f} GB", flush=True)
    return rows


def _seconds(run: Run) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def encode_rows(rng: np.random.Generator) -> list[str]:
    """Encoding, and whether the bits are the CPU's."""
    X = rng.normal(0, 0.4, (1_000_000, 300)).astype(np.float32)
    there = torch.from_numpy(X).cuda()
    rows = []
    for method in ("near-lossless", "paper", "itq"):
        coder = embits.coders.coder_class(method)(n_bits=256)
        if method == "near-lossless":
            coder.set_params(device="cuda")
        fit = _seconds(partial(coder.fit, X[:100_000]))
        if method == "near-lossless":
            coder.search_ = np.empty(0)
        gpu = median_seconds(partial(coder.transform, X, device="cuda"), 5)
        cpu = statistics.median(_seconds(partial(coder.transform, X)) for _ in range(3))
        resident = median_seconds(partial(coder.transform, there), 5)
        same = np.array_equal(coder.transform(X, device="cuda"), coder.transform(X))
        rows.append(
            f"| {method} | {fit:.1f} | {len(X) / gpu / 1e6:.2f} | {cpu / gpu:.1f} × | "
            f"{len(X) / resident / 1e6:.2f} | {cpu / resident:.1f} × | "
            f"{'yes' if same else 'NO'} |"
        )
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--billion", action="store_true", help="also a billion codes: 32 GB")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    if find_spec("array_api_compat") is None:  # encoding needs it, which is measured last
        raise SystemExit("gpu_search.py needs array-api-compat: pip install '.[gpu]'")
    rng = np.random.default_rng(0)
    head = [
        "| codes | queries | ms | queries a second | of the copy's bandwidth | "
        "of the int8 product's rate | faster than the CPU |",
        "|---|---|---|---|---|---|---|",
    ]
    copy, product = ceilings = copy_bandwidth(), product_rate()
    lines = [
        "# Search and encoding on a GPU",
        "",
        f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; the CPU beside it has "
        f"{os.cpu_count()} cores. A copy in the card's memory moves {copy / 1e12:.2f} TB/s, "
        f"PyTorch's int8 product does {product / 1e12:,.0f} tera-operations a second.",
        "",
        *head,
    ]
    small = options.rows // 10
    for bits in (64, 128, 256, 512, 768, 1024):
        n = options.rows if bits == 256 else small
        lines += search_rows(n, bits, ceilings, rng)
    codes, queries = random_codes(rng, 1 << 22, 32), random_codes(rng, 1000, 32)
    naive, index = in_pytorch(codes, queries), DeviceIndex(codes)
    ratio = median_seconds(naive) / median_seconds(lambda: index.top_k(queries, K))
    lines += ["", f"PyTorch's own operations take {ratio:.1f} times as long for 1,000 queries over "
              f"{len(codes):,} × 256 bits."]  # fmt: skip
    print(lines[-1], flush=True)
    if options.billion:
        torch.cuda.empty_cache()
        lines += ["", *head]
        lines += search_rows(1_000_000_000, 256, ceilings, rng)
    lines += ["", "## Encoding to 256 bits from 300 dimensions", "",
              "| coder | fit, s | million rows a second, from host memory | faster than the CPU | "
              "million rows a second, from the card's memory | faster than the CPU | same bits |",
              "|---|---|---|---|---|---|---|", *encode_rows(rng)]  # fmt: skip
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "gpu_search.md").write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
