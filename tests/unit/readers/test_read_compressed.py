"""Text in .gz, .xz and .zip is read as it streams, and never written out."""

from __future__ import annotations

import gzip
import lzma
import zipfile
from pathlib import Path

import numpy as np
import pytest

from embits.errors import ReadError
from embits.readers import read_vectors

TEXT = b"2 2\na 1 2\nb 3 4\n"


def gz(path: Path, content: bytes) -> None:
    path.write_bytes(gzip.compress(content))


def xz(path: Path, content: bytes) -> None:
    path.write_bytes(lzma.compress(content))


def zipped(path: Path, content: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/vectors.txt", content)


@pytest.mark.parametrize("compress", [gz, xz, zipped])
def test_compressed_text_reads_as_text_does(tmp_path: Path, compress: object) -> None:
    path = tmp_path / "vectors.any"
    compress(path, TEXT)  # type: ignore[operator]
    before = set(tmp_path.iterdir())
    vectors = read_vectors(path)
    assert vectors.words == ["a", "b"]
    np.testing.assert_array_equal(vectors.matrix, [[1, 2], [3, 4]])
    assert set(tmp_path.iterdir()) == before


@pytest.mark.parametrize("compress", [gz, xz, zipped])
def test_a_large_file_streams_through_several_blocks(tmp_path: Path, compress: object) -> None:
    path = tmp_path / "vectors.any"
    lines = "".join(f"w{i} {i} 0.5\n" for i in range(200_000))
    compress(path, lines.encode())  # type: ignore[operator]
    done: list[int] = []
    matrix = read_vectors(path, progress=lambda now, total: done.append(now)).matrix
    np.testing.assert_array_equal(matrix[:, 0], np.arange(200_000, dtype=np.float32))
    assert done == sorted(done)
    assert done[-1] == path.stat().st_size


@pytest.mark.parametrize("compress", [gz, xz])
def test_a_truncated_archive_is_refused(tmp_path: Path, compress: object) -> None:
    path = tmp_path / "vectors.any"
    compress(path, "".join(f"w{i} {i} 0.5\n" for i in range(20_000)).encode())  # type: ignore[operator]
    path.write_bytes(path.read_bytes()[:-50])
    with pytest.raises(ReadError, match=r"vectors\.any, byte \d+: found damaged compression"):
        read_vectors(path)


def test_flipped_bytes_in_an_archive_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "vectors.zip"
    zipped(path, "".join(f"w{i} {i} 0.5\n" for i in range(20_000)).encode())
    content = bytearray(path.read_bytes())
    content[2000:2040] = bytes(40)
    path.write_bytes(content)
    with pytest.raises(ReadError):
        read_vectors(path)


def test_a_zip_of_several_files_is_refused_by_their_names(tmp_path: Path) -> None:
    path = tmp_path / "glove.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("glove.50d.txt", TEXT)
        archive.writestr("glove.100d.txt", TEXT)
    with pytest.raises(ReadError, match=r"2 files inside \(glove.50d.txt, glove.100d.txt\)"):
        read_vectors(path)


def test_an_empty_file_inside_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "vectors.gz"
    gz(path, b"")
    with pytest.raises(ReadError, match="an empty file inside"):
        read_vectors(path)


def test_word2vec_binary_may_be_compressed_too(tmp_path: Path) -> None:
    path = tmp_path / "GoogleNews.bin.gz"
    gz(path, b"2 2\na " + np.float32([1, 2]).tobytes() + b"b " + np.float32([3, 4]).tobytes())
    vectors = read_vectors(path)
    assert vectors.words == ["a", "b"]
    np.testing.assert_array_equal(vectors.matrix, [[1, 2], [3, 4]])
