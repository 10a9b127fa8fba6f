"""The GPU's part of gpu.py, in Triton, which comes with PyTorch.

Codes are uint8 (tiles * TILE, width), the width one of `padded_width`; bits beyond a code's own
are zero in codes and queries alike, and cost no distance.

The matrix units multiply int8, so bits are unpacked to a byte each, four at a time: `(x >> shift) &
mask` leaves one bit of every byte of a 32-bit register. The bit keeps its place in the lower or
upper half of its byte and is 1, 2, 4 or 8; the query's ±1 is scaled by 8, 4, 2 or 1, so that every
product is ±8.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

TILE = 256  # rows whose least distance is kept
ROW_BITS = 40  # a key is a distance above a row of at most 2^40
INTERPRETED = bool(triton.knobs.runtime.interpret)  # TRITON_INTERPRET=1: on the CPU, for tests
NATIVE = not INTERPRETED and torch.version.hip is None  # the kernels may hold PTX
_PART = 32  # bytes of a code that are counted at a time, where it is longer
_NO_ROW = (1 << 63) - 1
# The fastest of what was tried on an H200, as are the bounds in `least_distances` and below it.
_BLOCK = 64  # queries at a time
_SMALL_BLOCK = 16
_WARPS = 4


def padded_width(width: int) -> int:
    """Bytes of a row on the device: a power of two from 4 to 32, or a multiple of 32."""
    return next((size for size in (4, 8, 16) if width <= size), -(-width // 32) * 32)


def least_distances(
    codes: Any, queries: Any, mask: Any, first: int, stride: int, least: Any
) -> None:
    """Fill `least` (tiles, q), int32, with each tile's least distance to each query.

    The first row of `least` is for the tile `first`. An entry is `distance * stride + tile`, so
    that its order is that of the distance, then the tile; the stride is at least the rows. The mask
    has a bit for each row that may be found, int32 (rows / 32,), lowest first; None is all. A tile
    without such rows has a distance above all others.
    """
    n, width = queries.shape
    given = (*_masked(mask, least), least, first, n, stride)
    if n <= _max_counted(width):
        _least_by_counting[(len(least),)](
            codes.view(torch.int32), queries.view(torch.int32), *given, WORDS=width // 4,
            PART=min(width, _PART) // 4, TILE=TILE, NATIVE=NATIVE,
            num_warps=1 if width <= 8 else 2,
        )  # fmt: skip
        return
    kernel, stages, chunk, block = _least_by_product, 3, width, _BLOCK
    if width > 64 or (width == 64 and n <= 2 * _BLOCK):
        kernel, stages, chunk = _least_by_planes, 2, 64 if width > 64 and width % 64 == 0 else 32
        block = _SMALL_BLOCK if n <= _SMALL_BLOCK else _BLOCK
    signs, ones = _signs(queries, chunk, block)
    kernel[(len(least),)](
        codes.view(torch.int8), signs, ones, *given, WIDTH=width, CHUNK=chunk, TILE=TILE,
        BLOCK=block, NATIVE=NATIVE, num_warps=_WARPS, num_stages=stages,
    )  # fmt: skip


def _max_counted(width: int) -> int:
    """Up to so many queries, XOR and popcount are faster than unpacking for a product."""
    if width <= 8:
        return 40
    if width <= 32:
        return 30
    return 12 if width < 128 else 4


def _masked(mask: Any, instead: Any) -> tuple[Any, bool]:
    """The mask and whether there is one; a kernel needs some array in its place."""
    return (instead, False) if mask is None else (mask, True)


def row_keys(codes: Any, queries: Any, mask: Any, tiles: Any, n_rows: int) -> Any:
    """Keys `distance << ROW_BITS | row` of all rows of the tiles (m, q), int64 (q, m * TILE).

    Rows that the mask leaves out, and those from `n_rows` on, have the largest key.
    """
    m, n = tiles.shape
    width = codes.shape[1]
    keys = torch.empty((n, m * TILE), dtype=torch.int64, device=codes.device)
    _row_keys[(n, m)](
        codes.view(torch.int32), queries.view(torch.int32), *_masked(mask, keys), tiles, keys,
        n_rows, _NO_ROW, WORDS=width // 4, PART=min(width, _PART) // 4, TILE=TILE, SHIFT=ROW_BITS,
        NATIVE=NATIVE, num_warps=4,
    )  # fmt: skip
    return keys


def _signs(queries: Any, chunk: int, block: int) -> tuple[Any, Any]:
    """What the codes are multiplied by, and the count of ones of each query, int32 (q,).

    The first is 1 - 2q for every bit q, times 8, 4, 2 or 1, int8 (blocks * block, 8 * width), by
    chunk of bytes, then by bit of a byte, then by byte. The kernels read whole blocks of queries.
    """
    n, width = queries.shape
    shifts = torch.arange(8, dtype=torch.uint8, device=queries.device)[:, None]
    bits = ((queries.reshape(n, width // chunk, 1, chunk) >> shifts) & 1).to(torch.int8)
    signs = (1 - 2 * bits) * (8 >> (shifts % 4)).to(torch.int8)
    padded = torch.nn.functional.pad(signs.reshape(n, 8 * width), (0, 0, 0, -n % block))
    return padded.contiguous(), bits.reshape(n, 8 * width).sum(dim=1, dtype=torch.int32)


@triton.jit(do_not_specialize=["first", "n_queries", "stride"])
def _least_by_product(
    codes, signs, ones, mask, FILTERED: tl.constexpr, least, first, n_queries, stride,
    WIDTH: tl.constexpr, CHUNK: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
    NATIVE: tl.constexpr,
):  # fmt: skip
    """Hamming distance as |q| + <c, 1 - 2q>, of codes that are unpacked once; CHUNK is WIDTH.

    The rows of a tile are columns of the product: most of the minimum is within a thread.
    """
    tile = tl.program_id(0)
    rows = (first + tile).to(tl.int64) * TILE + tl.arange(0, TILE)
    place = tl.arange(0, 8 * WIDTH)  # bit `place // WIDTH` of byte `place % WIDTH`
    packed = tl.load(codes + rows[:, None] * WIDTH + (place % WIDTH)[None, :])
    bits = _bits(packed, (place // WIDTH)[None, :], NATIVE)
    if FILTERED:
        allowed = _allowed(mask, rows)[None, :]
    for start in range(0, n_queries, BLOCK):
        query = start + tl.arange(0, BLOCK)
        part = tl.load(signs + query[:, None] * (8 * WIDTH) + place[None, :])
        total = tl.dot(part, tl.trans(bits), out_dtype=tl.int32)
        if FILTERED:
            total = tl.where(allowed, total, 8 * (8 * WIDTH + 1))
        inside = query < n_queries
        distance = (tl.min(total, axis=1) >> 3) + tl.load(ones + query, mask=inside, other=0)
        if FILTERED:  # a tile without rows to be found
            distance = tl.minimum(distance, 8 * WIDTH + 1)
        tl.store(least + tile * n_queries + query, distance * stride + tile, mask=inside)


@triton.jit(do_not_specialize=["first", "n_queries", "stride"])
def _least_by_planes(
    codes, signs, ones, mask, FILTERED: tl.constexpr, least, first, n_queries, stride,
    WIDTH: tl.constexpr, CHUNK: tl.constexpr, TILE: tl.constexpr, BLOCK: tl.constexpr,
    NATIVE: tl.constexpr,
):  # fmt: skip
    """The same for wide codes: they are unpacked in registers, one bit of every byte at a time."""
    tile = tl.program_id(0)
    rows = (first + tile).to(tl.int64) * TILE + tl.arange(0, TILE)
    byte = tl.arange(0, CHUNK)
    bytes_of = codes + rows[:, None] * WIDTH + byte[None, :]
    if FILTERED:
        allowed = _allowed(mask, rows)[:, None]
    for start in range(0, n_queries, BLOCK):
        query = start + tl.arange(0, BLOCK)
        signs_of = signs + query[:, None] * (8 * WIDTH) + byte[None, :]
        total = tl.zeros((TILE, BLOCK), dtype=tl.int32)
        for chunk in range(WIDTH // CHUNK):
            packed = tl.load(bytes_of + chunk * CHUNK)
            for bit in tl.static_range(8):
                part = tl.load(signs_of + chunk * (8 * CHUNK) + bit * CHUNK)
                plane = _plane(packed, bit // 4 * 4, 1 << bit % 4, NATIVE)
                total = tl.dot(plane, tl.trans(part), total, out_dtype=tl.int32)
        if FILTERED:
            total = tl.where(allowed, total, 8 * (8 * WIDTH + 1))
        inside = query < n_queries
        distance = (tl.min(total, axis=0) >> 3) + tl.load(ones + query, mask=inside, other=0)
        if FILTERED:  # a tile without rows to be found
            distance = tl.minimum(distance, 8 * WIDTH + 1)
        tl.store(least + tile * n_queries + query, distance * stride + tile, mask=inside)


@triton.jit
def _allowed(mask, rows):
    """Whether the rows may be found."""
    return ((tl.load(mask + (rows >> 5)) >> (rows & 31).to(tl.int32)) & 1) != 0


@triton.jit
def _bits(packed, bit, NATIVE: tl.constexpr):
    """Bit `bit` of every byte, as 1, 2, 4 or 8."""
    low = tl.where(bit < 4, 1 << bit, 0).to(tl.int8)
    high = tl.where(bit < 4, 0, 1 << (bit + 4) % 8).to(tl.int8)
    if NATIVE:
        low, high = tl.broadcast_to(low, packed.shape), tl.broadcast_to(high, packed.shape)
        return tl.inline_asm_elementwise(  # 0xEA: (a & b) | c
            "{ .reg .b32 s, t; shr.b32 s, $1, 4; and.b32 t, $1, $2; lop3.b32 $0, s, $3, t, 0xEA; }",
            "=r,r,r,r", [packed, low, high], dtype=tl.int8, is_pure=True, pack=4,
        )  # fmt: skip
    else:  # noqa: RET505 - the compiler must see one branch only
        return (packed & low) | ((packed >> 4) & high)


@triton.jit
def _plane(packed, SHIFT: tl.constexpr, MASK: tl.constexpr, NATIVE: tl.constexpr):
    """The same where the bit is known to the compiler, which then keeps codes in registers."""
    if NATIVE:
        MASKS: tl.constexpr = MASK * 0x01010101
        return tl.inline_asm_elementwise(
            f"{{ .reg .b32 s; shr.b32 s, $1, {SHIFT}; and.b32 $0, s, {MASKS}; }}",
            "=r,r", [packed], dtype=tl.int8, is_pure=True, pack=4,
        )  # fmt: skip
    else:  # noqa: RET505 - the compiler must see one branch only
        return ((packed >> SHIFT) & MASK).to(tl.int8)


@triton.jit
def _least_by_counting(
    codes, queries, mask, FILTERED: tl.constexpr, least, first, n_queries, stride,
    WORDS: tl.constexpr, PART: tl.constexpr, TILE: tl.constexpr, NATIVE: tl.constexpr,
):  # fmt: skip
    """XOR and popcount: every code is read once, whatever the few queries."""
    tile = tl.program_id(0)
    rows = (first + tile).to(tl.int64) * TILE + tl.arange(0, TILE)
    if FILTERED:
        allowed = _allowed(mask, rows)
    for query in range(n_queries):
        distance = _distances(codes, queries + query * WORDS, rows, WORDS, PART, TILE, NATIVE)
        if FILTERED:
            distance = tl.where(allowed, distance, 32 * WORDS + 1)
        tl.store(least + tile * n_queries + query, tl.min(distance, axis=0) * stride + tile)


@triton.jit
def _row_keys(
    codes, queries, mask, FILTERED: tl.constexpr, tiles, keys, n_rows, no_row,
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
    if FILTERED:
        key = tl.where(_allowed(mask, rows), key, no_row)
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
