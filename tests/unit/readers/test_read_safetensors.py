"""Vectors in safetensors files."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from embits.errors import ReadError
from embits.readers import read_vectors
from tests.support.reading import MATRIX, WORDS


def safetensors_bytes(header: object, data: bytes) -> bytes:
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


class TestSafetensors:
    @pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
    def test_what_the_safetensors_package_writes_is_read(self, tmp_path: Path, dtype: Any) -> None:
        numpy = pytest.importorskip("safetensors.numpy")
        path = tmp_path / "model.safetensors"
        numpy.save_file({"embeddings": MATRIX.astype(dtype), "norms": np.ones(3, np.float32)}, path)
        path.with_suffix(".words").write_text("a\nb\nc\n")
        vectors = read_vectors(path)
        assert vectors.words == WORDS
        np.testing.assert_array_equal(vectors.matrix, MATRIX)

    def test_bfloat16_is_the_upper_half_of_a_float32(self, tmp_path: Path) -> None:
        data = (MATRIX.view(np.uint32) >> 16).astype("<u2").tobytes()
        path = tmp_path / "model.safetensors"
        entry = {"dtype": "BF16", "shape": [3, 2], "data_offsets": [0, 12]}
        path.write_bytes(safetensors_bytes({"weight": entry}, data))
        np.testing.assert_array_equal(read_vectors(path).matrix, MATRIX)
        np.testing.assert_array_equal(read_vectors(path, limit=1).matrix, MATRIX[:1])

    def test_a_file_of_ours_is_sent_to_load(self, tmp_path: Path) -> None:
        path = tmp_path / "bits.safetensors"
        path.write_bytes(safetensors_bytes({"__metadata__": {"format": "embits/1"}}, b""))
        with pytest.raises(ReadError, match=r"embits\.load"):
            read_vectors(path)

    def test_two_matrices_of_unusual_names_are_refused(self, tmp_path: Path) -> None:
        entry = {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 24]}
        path = tmp_path / "model.safetensors"
        path.write_bytes(safetensors_bytes({"x": entry, "y": entry}, MATRIX.tobytes()))
        with pytest.raises(ReadError, match=r"2 float matrices \(x, y\)"):
            read_vectors(path)

    @pytest.mark.parametrize(
        "entry",
        [
            {"dtype": "F32", "shape": [3, 2], "data_offsets": [0, 20]},
            {"dtype": "F32", "shape": [30, 2], "data_offsets": [0, 240]},
            {"dtype": "F32", "shape": [2**40, 2**40], "data_offsets": [0, 24]},
            {"dtype": "F32", "shape": [3, -2], "data_offsets": [0, 24]},
            {"dtype": "F32", "shape": [3, "2"], "data_offsets": [0, 24]},
            {"dtype": "F32", "shape": [3, 2], "data_offsets": [24, 0]},
            {"dtype": "F32", "shape": [3, 2], "data_offsets": [2**63, 2**63 + 24]},
            {"dtype": "F32", "shape": [3, 2]},
            {"dtype": "F32", "shape": [6], "data_offsets": [0, 24]},
            {"dtype": "I8", "shape": [3, 2], "data_offsets": [0, 6]},
            {"dtype": ["F32"], "shape": [3, 2], "data_offsets": [0, 24]},
            "nonsense",
        ],
    )
    def test_a_lying_header_is_refused(self, tmp_path: Path, entry: object) -> None:
        path = tmp_path / "model.safetensors"
        path.write_bytes(safetensors_bytes({"x": entry}, MATRIX.tobytes()))
        with pytest.raises(ReadError, match=r"model\.safetensors"):
            read_vectors(path)

    @settings(deadline=None, max_examples=100)
    @given(st.binary(max_size=60))
    def test_a_broken_header_is_refused(
        self, tmp_path_factory: pytest.TempPathFactory, rest: bytes
    ) -> None:
        path = tmp_path_factory.mktemp("broken") / "model.safetensors"
        path.write_bytes(struct.pack("<Q", 2 + len(rest)) + b"{ " + rest)
        with pytest.raises(ReadError):
            read_vectors(path)
