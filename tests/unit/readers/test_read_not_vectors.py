"""Things that are no vectors at all are named for what they are."""

from __future__ import annotations

import contextlib
import pickle
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embits.errors import ReadError
from embits.readers import read_vectors


def refusal(path: Path) -> str:
    with pytest.raises(ReadError) as caught:
        read_vectors(path)
    message = str(caught.value)
    assert message.startswith(f"{path}: ")
    assert "\n" not in message
    return message


def test_a_directory(tmp_path: Path) -> None:
    assert "found a directory, expected a file" in refusal(tmp_path)


def test_a_missing_file(tmp_path: Path) -> None:
    assert "no such file" in refusal(tmp_path / "nowhere.vec")


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.vec"
    path.touch()
    assert "found an empty file" in refusal(path)


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"<!DOCTYPE html>\n<html><head>", "an HTML page"),
        (b'\n<html lang="en">', "an HTML page"),
        (b"<html>\n<body>", "an HTML page"),
        (b'<?xml version="1.0"?><Error>', "an HTML page"),
        (LFS, "a Git LFS pointer"),
        ("a 1 2\n".encode("utf-16"), "UTF-16 text"),
        (b"\xfe\xff\x00a\x00 \x001", "UTF-16 text"),
        (pickle.dumps({"a": 1}), "a Python pickle"),
        (b"BZh91AY&SY", "a bzip2 archive"),
    ],
)
def test_a_known_kind_is_named(tmp_path: Path, content: bytes, what: str) -> None:
    path = tmp_path / "vectors.txt"
    path.write_bytes(content)
    assert f"found {what}" in refusal(path)


def test_html_may_be_a_word(tmp_path: Path) -> None:
    path = tmp_path / "vectors.txt"
    path.write_text("<html> 1 2\n<!-- 3 4\n")
    assert read_vectors(path).words == ["<html>", "<!--"]


def test_binary_data_of_an_unknown_kind(tmp_path: Path) -> None:
    path = tmp_path / "vectors.bin"
    path.write_bytes(b"\x7fELF\x02\x01\x01\x00\x00\x00")
    with pytest.raises(ReadError, match="byte 7: found binary data of an unknown kind"):
        read_vectors(path)


MAGICS = st.sampled_from(
    [
        b"",
        b"2 2\n",
        b"PK\x03\x04",
        b"PAR1",
        b"\x93NUMPY\x01\x00",
        b"\x1f\x8b\x08",
        b"\xfd7zXZ\x00",
        b'{"a": [1',
        b"\xba\x16O/",
    ]
)


@settings(deadline=None, max_examples=300)
@pytest.mark.filterwarnings("ignore::embits.errors.ReadWarning")
@given(MAGICS, st.binary(max_size=80))
def test_no_bytes_do_anything_but_read_or_refuse(
    tmp_path_factory: pytest.TempPathFactory, magic: bytes, rest: bytes
) -> None:
    path = tmp_path_factory.mktemp("noise") / "noise"
    path.write_bytes(magic + rest)
    with contextlib.suppress(ReadError):
        assert len(read_vectors(path)) > 0
