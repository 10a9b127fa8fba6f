"""The smallest files, the shortest cuts, and addresses."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import embits
from embits.bounded_json import SETTINGS, parse_json
from embits.collection.parquet import is_address


@pytest.mark.parametrize("size", [0, 3, 7])
def test_a_file_without_room_for_a_length_says_its_size(tmp_path, size):
    path = tmp_path / "short.safetensors"
    path.write_bytes(bytes(size))
    with pytest.raises(embits.FormatError, match=f"not a safetensors file: it has {size} bytes"):
        embits.load(path)


def test_a_file_of_a_length_alone_is_judged_by_its_header(tmp_path):
    path = tmp_path / "length.safetensors"
    path.write_bytes(bytes(8))
    with pytest.raises(embits.FormatError) as caught:
        embits.load(path)
    assert "it has 8 bytes" not in str(caught.value)


@pytest.mark.parametrize("missing", [1, 8, 15])
def test_a_header_that_lacks_a_few_bytes_is_cut_short(tmp_path, missing):
    path = tmp_path / "whole.safetensors"
    embits.binarize(np.eye(4), n_bits=8, method="lsh").save(path)
    whole = path.read_bytes()
    end = 8 + int.from_bytes(whole[:8], "little")
    path.write_bytes(whole[: end - missing])
    with pytest.raises(embits.FormatError, match="cut short"):
        embits.load(path)


def test_one_bit_of_one_dimension_is_saved_and_opened(tmp_path):
    bits = embits.binarize(np.array([[1.0], [-1.0], [2.0]]), n_bits=1, method="lsh")
    bits.save(tmp_path / "one.safetensors")
    opened = embits.load(tmp_path / "one.safetensors", verify=True)
    assert np.array_equal(opened.codes, bits.codes)
    assert (opened.n_bits, opened.dims) == (1, 1)


@pytest.mark.parametrize("bracket", ["[", "{"])
def test_a_header_of_brackets_is_refused_before_it_is_parsed(bracket):
    with pytest.raises(ValueError, match=r"more than|nested deeper"):
        parse_json(bracket * (SETTINGS.values + 1))


def test_an_address_is_a_string_with_a_scheme():
    assert is_address("s3://bucket/codes")
    assert not is_address("codes.parquet")
    assert not is_address(Path("s3://bucket/codes"))
