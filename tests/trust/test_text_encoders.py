"""Hostile text encoders, in Python and JavaScript: vectors, or one of our errors in one line.

What lies is their tokenizer, whose checksums fit. Other damage of theirs is in
tests/unit/text/test_encoder.py.
"""

import json
import random
import time
from pathlib import Path

import numpy as np
import pytest

import embits
from tests.golden.make_v3 import TEXTS
from tests.support import damage, damaged_encoders
from tests.support.javascript import needs_node, node

SCRIPT = Path(__file__).with_name("hostile_encoders.mjs")
LIES = 2000
MUTANTS = 60  # of each file and way to damage it, in JavaScript


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["tokens", "net"])
def test_a_tokenizer_that_lies_gives_an_error_or_vectors(kind, memory_path):
    pytest.importorskip("tokenizers")
    rng, path = random.Random(kind), memory_path / "encoder"
    whole, encoded = damaged_encoders.golden(kind), 0
    for i in range(LIES):
        path.write_bytes(damaged_encoders.lie_in_tokenizer(whole, rng))
        start = time.process_time()
        try:
            vectors = embits.TextEncoder.load(path, verify=i % 2 == 0).encode(TEXTS)
            sound, encoded = bool(np.isfinite(vectors).all()), encoded + 1
        except (embits.FormatError, embits.InputError) as error:
            sound = "\n" not in str(error) and len(str(error)) < 1000
        assert sound
        assert time.process_time() - start < 5
    assert LIES / 50 < encoded < LIES / 2


@needs_node
@pytest.mark.parametrize("kind", damaged_encoders.ENCODERS)
def test_javascript_encodes_or_refuses(kind, tmp_path):
    whole, rng = damaged_encoders.golden(kind), random.Random(kind)
    (tmp_path / "whole").write_bytes(whole)
    for i in range(MUTANTS):
        (tmp_path / f"lies-{i}").write_bytes(damaged_encoders.lie_in_tokenizer(whole, rng))
        (tmp_path / f"anywhere-{i}").write_bytes(damage.hostile(whole, rng))
        (tmp_path / f"blind-{i}").write_bytes(damage.blind(whole, rng))
    found = json.loads(node(SCRIPT, tmp_path))
    assert found.pop("whole") == {"answered": True, "refused": False}
    assert sum(each["answered"] for each in found.values()) > MUTANTS / 5
    assert sum(each["refused"] for each in found.values()) > MUTANTS
    assert all(each["refused"] for name, each in found.items() if name.startswith("blind"))
