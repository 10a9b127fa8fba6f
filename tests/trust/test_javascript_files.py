"""Hostile files in JavaScript: embits.js answers or throws FormatError, as Python does.

The files are of version 2, with words of several blocks and with ids of other kinds, and those of
0.3: a net, whitening, lengths, columns and cells.
"""

import json
import random

import pytest

from tests.support import damage
from tests.support.javascript import needs_node, node, refuses

MUTANTS = 60  # of each file and way to damage it

pytestmark = needs_node


@pytest.fixture(scope="module", params=[*damage.SEVERAL_BLOCKS, *damage.OF_0_3])
def mutants(request, tmp_path_factory):
    """A folder of damaged files, and the whole one."""
    folder = tmp_path_factory.mktemp(request.param)
    whole = damage.golden(request.param)
    (folder / "whole").write_bytes(whole)
    rng = random.Random(request.param)
    for i in range(MUTANTS):
        (folder / f"words-{i}").write_bytes(damage.hostile_words(whole, rng))
        (folder / f"anywhere-{i}").write_bytes(damage.hostile(whole, rng))
        (folder / f"blind-{i}").write_bytes(damage.blind(whole, rng))
    return folder


def test_hostile_files_are_answered_or_refused_and_no_byte_outside_is_read(mutants):
    found = json.loads(node("hostile.mjs", mutants))
    assert found.pop("whole") == {"answered": True, "refused": False}
    assert sum(each["answered"] for each in found.values()) > MUTANTS / 20
    of_words = {name: each["refused"] for name, each in found.items() if name.startswith("words")}
    assert of_words == {name: refuses(mutants / name) for name in of_words}
    assert sum(of_words.values()) > MUTANTS / 2
    blind = {name for name in found if name.startswith("blind")}
    assert all(found[name]["refused"] == refuses(mutants / name) for name in blind)
