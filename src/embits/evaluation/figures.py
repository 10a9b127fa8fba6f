"""Figures: scores by width, and the paper's picture of active bits.

Methods differ in color (Okabe & Ito's palette for color-blind readers), marker and line style, so
the figures can be read in grayscale. Pictures of bits as PNG need no plotting library.
"""

from __future__ import annotations

import io
import struct
import zlib
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from embits.arrays import invert
from embits.binary_vectors import BinaryVectors
from embits.checks import whole
from embits.errors import InputError, MissingExtraError
from embits.evaluation.results import Figure, Grid, Path, at, interval
from embits.search import top_k

STYLES = {
    "near-lossless": ("#0072B2", "o", "-"),
    "paper": ("#D55E00", "s", "-"),
    "itq": ("#009E73", "^", "--"),
    "lsh": ("#555555", "v", ":"),
    "sign": ("#CC79A7", "D", "-"),
    "sparse": ("#E69F00", "P", "-."),
}
_OTHER = ("#000000", "x", "-")

N_WORDS = 50
PALETTE = np.array([(255, 255, 255), (205, 28, 28), (70, 70, 70)], np.uint8)  # 0, 1, separator
PICTURE_FORMATS = (".png", ".svg", ".pdf")
_GAP = 3


def drawn(figure: Figure, grid: Grid, formats: Sequence[str] = ("png",)) -> dict[str, bytes]:
    """The files of a figure by format, "png", "pdf" or "svg"; none if no code has its scores.

    There is a line for each method and a bar for each 95 % interval.
    """
    panels = [
        (title, path)
        for title, path in figure.panels
        if any(at(entry, *path) is not None for entry in grid.coded)
    ]
    if not panels:
        return {}
    pyplot = _pyplot()
    canvas, axes = pyplot.subplots(
        1, len(panels), figsize=(4.6 * len(panels) + 0.6, 4.2), sharey=True, squeeze=False,
        layout="constrained", dpi=150,
    )  # fmt: skip
    raw = at(grid.raw, *figure.raw) if figure.raw else None
    for axis, (title, path) in zip(axes[0], panels, strict=True):
        axis.set_title(title, fontsize=10.5, loc="left")
        _draw_lines(axis, grid, path)
        if raw is not None:
            axis.axhline(
                100 * raw, color="black", linewidth=1, dashes=(6, 3), zorder=1,
                label=f"raw floats {100 * raw:.1f}",
            )  # fmt: skip
        _draw_widths(axis, grid)
    if not figure.raw:
        axes[0][0].set_ylim(0, 100)
    axes[0][0].set_ylabel(figure.label)
    names: dict[str, Any] = {}
    for axis in axes[0]:
        lines, labels = axis.get_legend_handles_labels()
        names |= zip(labels, lines, strict=True)
    columns = min(len(names), 4 * len(panels))
    canvas.legend(
        names.values(), names, loc="outside lower center", ncols=columns, frameon=False, fontsize=9
    )
    files = {kind: _file(canvas.savefig, kind) for kind in formats}
    pyplot.close(canvas)
    return files


def _draw_lines(axis: Any, grid: Grid, path: Path) -> None:
    for place, method in enumerate(grid.methods):
        found = sorted(
            (entry["bits"], 100 * score, interval(entry, ".".join(path)))
            for entry in grid.coded
            if entry["method"] == method and (score := at(entry, *path)) is not None
        )
        if not found:
            continue
        color, marker, dashes = STYLES.get(method, _OTHER)
        widths, scores, ends = zip(*found, strict=True)
        # Side by side where there are intervals, so that their bars can be told apart.
        aside = 1.012 ** (place - (len(grid.methods) - 1) / 2) if any(ends) else 1
        places = [width * aside for width in widths]
        axis.plot(
            places, scores, color=color, marker=marker, linestyle=dashes, linewidth=1.6,
            markersize=5.5, markeredgecolor="white", markeredgewidth=0.6,
            label=method if len(found) > 1 else f"{method} {widths[0]}",
        )  # fmt: skip
        for x, bar in zip(places, ends, strict=True):
            if bar is not None:
                axis.vlines(x, 100 * bar[0], 100 * bar[1], color=color, linewidth=1)


def _draw_widths(axis: Any, grid: Grid) -> None:
    """The x axis, with a tick at each width that two methods have; others would crowd it."""
    widths = [width for width, _ in {(entry["bits"], entry["method"]) for entry in grid.coded}]
    ticks = [width for width in grid.widths if widths.count(width) > 1] or grid.widths
    axis.set_xscale("log", base=2)
    axis.set_xlim(grid.widths[0] / 1.15, grid.widths[-1] * 1.15)
    axis.set_xticks(ticks, [str(width) for width in ticks])
    axis.minorticks_off()
    axis.set_xlabel("bits per code")
    axis.grid(axis="y", color="#dddddd", linewidth=0.6)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


def _file(save: Callable[..., Any], kind: str) -> bytes:
    """What `save` writes. Without dates and versions, the same numbers give the same bytes."""
    import matplotlib

    metadata = {"png": {"Software": None}, "pdf": {"CreationDate": None}, "svg": {"Date": None}}
    file = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "embits"}):
        save(file, format=kind, metadata=metadata[kind])
    return file.getvalue()


def _pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise MissingExtraError("drawing figures", "plots") from None
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot

    return pyplot


def bit_rows(bits: BinaryVectors, word: str, n: int = N_WORDS) -> NDArray[np.uint8]:
    """0 and 1 of the n closest words, closest first, then of the n furthest, furthest last.

    Without the word itself; fewer rows if there are fewer words.
    """
    n = whole("n", n, 1)
    code = bits[word]
    codes = np.ascontiguousarray(bits.codes)
    own = bits.words.find(word)
    closest, furthest = (
        (rows := top_k(codes, query, n + 1)[1])[rows != own][:n]
        for query in (code, invert(code, bits.n_bits))
    )
    shown = np.concatenate([closest, furthest[::-1]])
    return np.unpackbits(codes[shown], axis=1, count=bits.n_bits)


def bit_picture(
    bits: BinaryVectors, words: Sequence[str], n: int = N_WORDS, suffix: str = ".png"
) -> bytes:
    """A PNG, SVG or PDF file of `bit_rows` of each word, one below the other: red is 1, white is 0.

    A dark line separates the closest from the furthest words, a thicker one the panels.
    """
    if not words:
        raise InputError("a picture needs at least one word")
    if suffix.lower() not in PICTURE_FORMATS:
        raise InputError(
            f"cannot draw a picture as {suffix or 'a file without suffix'!r}: use one of "
            f"{', '.join(PICTURE_FORMATS)}"
        )
    scale = max(1, min(8, 1024 // bits.n_bits))
    panels = []
    for word in words:
        rows = bit_rows(bits, word, n)
        middle = (len(rows) + 1) // 2
        for half in (rows[:middle], rows[middle:]):
            panels.append(np.kron(half, np.ones((scale, scale), dtype=np.uint8)))
            panels.append(np.full((_GAP, bits.n_bits * scale), 2, dtype=np.uint8))
        panels.append(np.full((3 * _GAP, bits.n_bits * scale), 2, dtype=np.uint8))
    pixels = np.concatenate(panels[:-2])
    if suffix.lower() == ".png":
        return _png(pixels)
    _pyplot()
    from matplotlib.image import imsave

    return _file(partial(imsave, arr=PALETTE[pixels], dpi=72), suffix.lower()[1:])


def _png(pixels: NDArray[np.uint8]) -> bytes:
    """A PNG file of indexes of PALETTE, shape (height, width)."""
    height, width = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)  # 8 bits, indexed color
    lines = np.zeros((height, width + 1), dtype=np.uint8)  # first byte: filter type 0
    lines[:, 1:] = pixels
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in (
            (b"IHDR", header),
            (b"PLTE", bytes(PALETTE)),
            (b"IDAT", zlib.compress(lines.tobytes(), 9)),
            (b"IEND", b""),
        )
    )
