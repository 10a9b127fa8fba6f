"""The GPU's part of gpu_search.py, in Triton, which comes with PyTorch.

Codes are uint8 (tiles * TILE, width), the width one of `padded_width`; bits beyond a code's own
are zero in codes and queries alike, and cost no distance.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

TILE = 128  # rows whose least distance is kept
BLOCK_QUERIES = 128
FEW = 8  # up to so many queries, counting bits waits for memory; unpacking them would not
ROW_BITS = 40  # a key is a distance above a row of at most 2^40
INTERPRETED = bool(triton.knobs.runtime.interpret)  # TRITON_INTERPRET=1: on the CPU, for tests
NATIVE = not INTERPRETED and torch.version.hip is None  # there is an instruction for popcounts
_CHUNK = 32  # bytes of a code that are unpacked at a time, where it is longer
_NO_ROW = (1 << 63) - 1


def padded_width(width: int) -> int:
    """Bytes of a row on the device: a power of two from 4 to 32, or a multiple of 32."""
    return next((size for size in (4, 8, 16) if width <= size), -(-width // 32) * 32)


def least_distances(codes: Any, queries: Any, first: int, stride: int, least: Any) -> None:
    """Fill `least` (tiles, q), int32, with each tile's least distance to each query.

    Args:
        codes: All codes.
        queries: The queries, uint8 (q, width).
        first: The tile that the first row of `least` is for.
        stride: What a distance is multiplied by, at least the rows of `least`: an entry is
            `distance * stride + tile`, so that its order is that of the distance, then the tile.
        least: Where to write.
    """
    tiles, n = least.shape
    width = codes.shape[1]
    if n <= FEW:
        _least_by_counting[(tiles,)](
            codes.view(torch.int32), queries.view(torch.int32), least, first, n, stride,
            WORDS=width // 4, PART=min(width, _CHUNK) // 4, TILE=TILE, NATIVE=NATIVE, num_warps=4,
        )  # fmt: skip
        return
    signs, ones = _signs(queries)
    _least_by_product[(tiles,)](
        codes, signs, ones, least, first, n, stride,
        WIDTH=width, CHUNK=min(width, _CHUNK), TILE=TILE, BLOCK=BLOCK_QUERIES,
        num_warps=8, num_stages=3,
    )  # fmt: skip


def row_keys(codes: Any, queries: Any, tiles: Any, n_rows: int) -> Any:
    """Keys `distance << ROW_BITS | row` of all rows of the picked tiles.

    Args:
        codes: All codes.
        queries: The queries, uint8 (q, width).
        tiles: The tiles picked for each query, int64 (m, q).
        n_rows: Codes there are; the rows that fill up the last tile have the largest key.

    Returns:
        int64 (q, m * TILE).
    """
    m, n = tiles.shape
    width = codes.shape[1]
    keys = torch.empty((n, m * TILE), dtype=torch.int64, device=codes.device)
    _row_keys[(n, m)](
        codes.view(torch.int32), queries.view(torch.int32), tiles, keys, n_rows, _NO_ROW,
        WORDS=width // 4, PART=min(width, _CHUNK) // 4, TILE=TILE, SHIFT=ROW_BITS, NATIVE=NATIVE,
        num_warps=4,
    )  # fmt: skip
    return keys


def _signs(queries: Any) -> tuple[Any, Any]:
    """1 - 2q for every bit q of the queries, in the kernel's order, and the count of their ones."""
    n, width = queries.shape
    chunk = min(width, _CHUNK)
    shifts = torch.arange(8, dtype=torch.uint8, device=queries.device)
    by_chunk = queries.reshape(n, width // chunk, 1, chunk)
    bits = ((by_chunk >> shifts[:, None]) & 1).reshape(n, -1).to(torch.int8)
    signs = torch.zeros((-(-n // BLOCK_QUERIES) * BLOCK_QUERIES, 8 * width), dtype=torch.int8)
    signs = signs.to(queries.device)
    signs[:n] = 1 - 2 * bits
    return signs, bits.sum(dim=1, dtype=torch.int32)


@triton.jit
def _least_by_product(
    codes, signs, ones, least, first, n_queries, stride,
    WIDTH: tl.constexpr, CHUNK: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Hamming distance as |q| + <c, 1 - 2q>: one product on the matrix units a tile and block."""
    tile = tl.program_id(0)
    rows = (first + tile).to(tl.int64) * TILE + tl.arange(0, TILE)
    place = tl.arange(0, 8 * CHUNK)  # bit `place // CHUNK` of byte `place % CHUNK`
    bytes_of = codes + rows[:, None] * WIDTH + (place % CHUNK)[None, :]
    shift = (place // CHUNK).to(tl.uint8)[None, :]
    if WIDTH == CHUNK:
        bits = ((tl.load(bytes_of) >> shift) & 1).to(tl.int8)
    for start in range(0, n_queries, BLOCK):
        query = start + tl.arange(0, BLOCK)
        signs_of = signs + query[:, None] * (8 * WIDTH) + place[None, :]
        total = tl.zeros((TILE, BLOCK), dtype=tl.int32)
        for chunk in tl.static_range(WIDTH // CHUNK):
            if WIDTH > CHUNK:
                bits = ((tl.load(bytes_of + chunk * CHUNK) >> shift) & 1).to(tl.int8)
            part = tl.load(signs_of + chunk * (8 * CHUNK))
            total = tl.dot(bits, tl.trans(part), total, out_dtype=tl.int32)
        inside = query < n_queries
        distance = tl.min(total, axis=0) + tl.load(ones + query, mask=inside, other=0)
        tl.store(least + tile * n_queries + query, distance * stride + tile, mask=inside)


@triton.jit
def _least_by_counting(
    codes, queries, least, first, n_queries, stride,
    WORDS: tl.constexpr, PART: tl.constexpr, TILE: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """XOR and popcount: every code is read once, whatever the few queries."""
    tile = tl.program_id(0)
    rows = (first + tile).to(tl.int64) * TILE + tl.arange(0, TILE)
    for query in range(n_queries):
        distance = _distances(codes, queries + query * WORDS, rows, WORDS, PART, TILE, NATIVE)
        tl.store(least + tile * n_queries + query, tl.min(distance, axis=0) * stride + tile)


@triton.jit
def _row_keys(
    codes, queries, tiles, keys, n_rows, no_row,
    WORDS: tl.constexpr, PART: tl.constexpr, TILE: tl.constexpr, SHIFT: tl.constexpr,
    NATIVE: tl.constexpr,
):  # fmt: skip
    query, pick = tl.program_id(0), tl.program_id(1)
    n_queries, n_picks = tl.num_programs(0), tl.num_programs(1)
    inside = tl.arange(0, TILE)
    rows = tl.load(tiles + pick * n_queries + query) * TILE + inside
    distance = _distances(codes, queries + query * WORDS, rows, WORDS, PART, TILE, NATIVE)
    key = (distance.to(tl.int64) << SHIFT) | rows
    key = tl.where(rows < n_rows, key, no_row)
    tl.store(keys + (query.to(tl.int64) * n_picks + pick) * TILE + inside, key)


@triton.jit
def _distances(
    codes, query, rows,
    WORDS: tl.constexpr, PART: tl.constexpr, TILE: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """Hamming distances of the codes of `rows` to one query, all as 32-bit words."""
    word = tl.arange(0, PART)
    distance = tl.zeros((TILE,), dtype=tl.int32)
    for start in tl.static_range(0, WORDS, PART):
        theirs = tl.load(codes + rows[:, None] * WORDS + start + word[None, :])
        differing = theirs ^ tl.load(query + start + word)[None, :]
        distance += tl.sum(_popcount(differing, NATIVE), axis=1)
    return distance


@triton.jit
def _popcount(words, NATIVE: tl.constexpr):
    if NATIVE:
        return tl.inline_asm_elementwise(
            "popc.b32 $0, $1;", "=r,r", [words], dtype=tl.int32, is_pure=True, pack=1
        )
    else:  # noqa: RET505 - the compiler must see one branch only. Counts by 2, 4, then 8 bits
        words = words.to(tl.uint32, bitcast=True)
        words = words - ((words >> 1) & 0x55555555)
        words = (words & 0x33333333) + ((words >> 2) & 0x33333333)
        words = (words + (words >> 4)) & 0x0F0F0F0F
        return ((words * 0x01010101) >> 24).to(tl.int32)
