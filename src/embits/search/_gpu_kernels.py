"""The GPU's part of gpu_search.py, in Triton, which comes with PyTorch.

Codes are uint8 (tiles * tile, width), the width one of `padded_width`; bits beyond a code's own
are zero in codes and queries alike, and cost no distance.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl

FEW = 48  # up to so many queries, XOR and popcount are faster than unpacking for a product
ROW_BITS = 40  # a key is a distance above a row of at most 2^40
INTERPRETED = bool(triton.knobs.runtime.interpret)  # TRITON_INTERPRET=1: on the CPU, for tests
NATIVE = not INTERPRETED and torch.version.hip is None  # there is an instruction for popcounts
_PART = 32  # bytes of a code that are counted at a time, where it is longer
_NO_ROW = (1 << 63) - 1


class Shape(NamedTuple):
    """How the product of codes and queries is cut up.

    Attributes:
        tile: Rows whose least distance is kept.
        chunk: Bytes of a code that are unpacked at a time.
        block: Queries at a time.
        warps: Groups of 32 threads that share the work on a tile.
        stages: Loads under way at once.
    """

    tile: int
    chunk: int
    block: int
    warps: int
    stages: int


# By width in bytes, the fastest of what was tried on an H200 (benchmarks/gpu_search.py).
_SHAPES = {
    4: Shape(256, 4, 64, 4, 3),
    8: Shape(256, 8, 64, 4, 3),
    16: Shape(256, 16, 64, 4, 3),
    32: Shape(128, 32, 128, 4, 2),
    64: Shape(256, 64, 64, 8, 3),
}
_WIDE = Shape(128, 32, 128, 8, 2)


def shape_for(width: int) -> Shape:
    """The shape for codes of a padded width."""
    return _SHAPES.get(width, _WIDE)


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
    shape = shape_for(width)
    if n <= FEW:
        _least_by_counting[(tiles,)](
            codes.view(torch.int32), queries.view(torch.int32), least, first, n, stride,
            WORDS=width // 4, PART=min(width, _PART) // 4, TILE=shape.tile, NATIVE=NATIVE,
            num_warps=max(1, shape.tile // 128),
        )  # fmt: skip
        return
    if n <= 64:  # a wider block would be half empty
        shape = shape._replace(block=64)
    signs, ones = _signs(queries, shape)
    _least_by_product[(tiles,)](
        codes, signs, ones, least, first, n, stride,
        WIDTH=width, CHUNK=shape.chunk, TILE=shape.tile, BLOCK=shape.block,
        num_warps=shape.warps, num_stages=shape.stages,
    )  # fmt: skip


def row_keys(codes: Any, queries: Any, tiles: Any, n_rows: int) -> Any:
    """Keys `distance << ROW_BITS | row` of all rows of the picked tiles.

    Args:
        codes: All codes.
        queries: The queries, uint8 (q, width).
        tiles: The tiles picked for each query, int64 (m, q).
        n_rows: Codes there are; the rows that fill up the last tile have the largest key.

    Returns:
        int64 (q, m * tile).
    """
    m, n = tiles.shape
    width = codes.shape[1]
    tile = shape_for(width).tile
    keys = torch.empty((n, m * tile), dtype=torch.int64, device=codes.device)
    _row_keys[(n, m)](
        codes.view(torch.int32), queries.view(torch.int32), tiles, keys, n_rows, _NO_ROW,
        WORDS=width // 4, PART=min(width, _PART) // 4, TILE=tile, SHIFT=ROW_BITS, NATIVE=NATIVE,
        num_warps=4,
    )  # fmt: skip
    return keys


def _signs(queries: Any, shape: Shape) -> tuple[Any, Any]:
    """1 - 2q for every bit q of the queries, in the kernel's order, and the count of their ones."""
    n, width = queries.shape
    shifts = torch.arange(8, dtype=torch.uint8, device=queries.device)[:, None]
    by_chunk = queries.reshape(n, width // shape.chunk, 1, shape.chunk)
    bits = ((by_chunk >> shifts) & 1).reshape(n, 8 * width).to(torch.int8)
    missing = -n % shape.block  # the kernel reads whole blocks of queries
    signs = torch.nn.functional.pad(1 - 2 * bits, (0, 0, 0, missing)).contiguous()
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
        for chunk in range(WIDTH // CHUNK):
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
