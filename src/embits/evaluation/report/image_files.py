"""Small images of few colors as PNG, SVG and PDF files, without a plotting library."""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Palette: TypeAlias = Sequence[tuple[int, int, int]]


def png(pixels: NDArray[np.uint8], palette: Palette) -> bytes:
    """A PNG file of palette indexes, shape (height, width)."""
    height, width = pixels.shape
    header = struct.pack(">IIBBBBB", width, height, 8, 3, 0, 0, 0)  # 8 bits, indexed color
    lines = np.zeros((height, width + 1), dtype=np.uint8)  # first byte: filter type 0
    lines[:, 1:] = pixels
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in (
            (b"IHDR", header),
            (b"PLTE", _colors(palette)),
            (b"IDAT", zlib.compress(lines.tobytes(), 9)),
            (b"IEND", b""),
        )
    )


def svg(pixels: NDArray[np.uint8], palette: Palette) -> bytes:
    """An SVG file with the image as an embedded PNG that is scaled without smoothing."""
    height, width = pixels.shape
    data = base64.b64encode(png(pixels, palette)).decode()
    size = f'width="{width}" height="{height}"'
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {width} {height}">\n'
        f'<image {size} style="image-rendering: pixelated" href="data:image/png;base64,{data}"/>\n'
        "</svg>\n"
    ).encode()


def pdf(pixels: NDArray[np.uint8], palette: Palette) -> bytes:
    """A PDF file with one page of the image's size: a pixel is 1/72 inch."""
    height, width = pixels.shape
    colors = f"[/Indexed /DeviceRGB {len(palette) - 1} <{_colors(palette).hex()}>]"
    image = f"/Subtype /Image /Width {width} /Height {height} /BitsPerComponent 8"
    resources = f"/Resources << /XObject << /I 5 0 R >> >> /MediaBox [0 0 {width} {height}]"
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        f"<< /Type /Page /Parent 2 0 R /Contents 4 0 R {resources} >>".encode(),
        _stream("", f"{width} 0 0 {height} 0 0 cm /I Do".encode()),
        _stream(
            f"/Type /XObject {image} /ColorSpace {colors} /Filter /FlateDecode",
            zlib.compress(pixels.tobytes(), 9),
        ),
    ]
    file = bytearray(b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n")
    offsets = []
    for number, content in enumerate(objects, 1):
        offsets.append(len(file))
        file += b"%d 0 obj\n%b\nendobj\n" % (number, content)
    table = "".join(f"{offset:010} 00000 n \n" for offset in offsets)
    count = len(objects) + 1
    file += (
        f"xref\n0 {count}\n0000000000 65535 f \n{table}"
        f"trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{len(file)}\n%%EOF\n"
    ).encode()
    return bytes(file)


def _stream(entries: str, data: bytes) -> bytes:
    return f"<< {entries} /Length {len(data)} >>\nstream\n".encode() + data + b"\nendstream"


def _colors(palette: Palette) -> bytes:
    return bytes(value for color in palette for value in color)


FORMATS: dict[str, Callable[[NDArray[np.uint8], Palette], bytes]] = {
    ".png": png,
    ".svg": svg,
    ".pdf": pdf,
}
"""The function that makes a file of each suffix."""
