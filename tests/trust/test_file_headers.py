"""Files with a wrong header, files that shrink, and coders that no file may hold."""

import hashlib
import json
import os

import numpy as np
import pytest

import embits
from embits.file import store
from tests.support import damage


def test_a_file_that_shrinks_while_it_is_opened_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "f"
    damage.small("lsh").save(path)
    check = store.check_extents

    def shrink(*args):
        check(*args)
        os.truncate(path, 100)

    monkeypatch.setattr(store, "check_extents", shrink)
    with pytest.raises(embits.FormatError, match="cut short"):
        embits.load(path)


def test_a_coder_that_no_file_may_hold_is_not_saved(tmp_path):
    bits = damage.small("lsh")
    bits.coder.set_params(n_bits=99)
    with pytest.raises(embits.InputError, match="fit again"):
        bits.save(tmp_path / "f")
    bits = damage.small("lsh")
    bits.coder.planes_[0, 0] = np.nan
    with pytest.raises(embits.InputError, match="planes_"):
        bits.save(tmp_path / "f")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["codes", "coder.planes", "__metadata__", "format", "words"])
def test_a_name_that_appears_twice_is_refused(name, tmp_path):
    path = tmp_path / "f"
    damage.small("lsh").save(path)
    header, data = damage.parts(path.read_bytes())
    header["__metadata__"]["header_sha256"] = damage.NO_CHECKSUM
    text = json.dumps(header)
    for first in ("{}", "0", '""'):
        twice = text.replace(f'"{name}":', f'"{name}": {first}, "{name}":', 1).encode()
        checksum = hashlib.sha256(twice).hexdigest().encode()
        twice = twice.replace(damage.NO_CHECKSUM.encode(), checksum, 1)
        path.write_bytes(len(twice).to_bytes(8, "little") + twice + data)
        with pytest.raises(embits.FormatError, match="not valid JSON"):
            embits.load(path)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-32", "utf-8-sig", "latin-1"])
def test_a_header_that_is_not_utf8_is_refused(encoding, tmp_path):
    path = tmp_path / "f"
    damage.small("lsh").save(path)
    header, data = damage.parts(path.read_bytes())
    header["é"] = 1
    text = json.dumps(header, ensure_ascii=False).encode(encoding)
    path.write_bytes(len(text).to_bytes(8, "little") + text + data)
    with pytest.raises(embits.FormatError, match="not valid JSON"):
        embits.load(path)
