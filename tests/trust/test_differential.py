"""What Python accepts in a check of every byte works, and JavaScript accepts the same files."""

import json
import random
import shutil
import tempfile
import warnings
from pathlib import Path

import numpy as np
import pytest

import embits
from embits.coders import METHODS
from embits.coders.base import _hints
from tests.support import damaged_collections, differential, mutants
from tests.support.answers import answers
from tests.support.javascript import HERE, needs_node, node

DRAWN = 300


@pytest.mark.slow
def test_python_answers_every_question_on_what_it_has_verified(memory_path):
    """No file that a check of every byte accepts raises an error later, not even FormatError."""
    accepted = 0
    rng = random.Random(7)
    drawn = [mutants.drawn(rng, source) for source in mutants.SOURCES for _ in range(12)]
    for recipe in [*differential.known(), *drawn]:
        path = memory_path / "mutant"
        mutants.write(recipe, path)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                accepted += ask(recipe, path)
        except Exception as error:
            raise AssertionError(json.dumps(recipe)) from error
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    assert accepted > 100


def ask(recipe, path):
    """Ask all questions of a file that the check of every byte accepts; whether it does."""
    if mutants.is_collection(recipe):
        return damaged_collections.use(path, verify=True)
    try:
        if mutants.is_encoder(recipe):
            opened = embits.TextEncoder.load(path, verify=True)
        else:
            opened = embits.load(path, verify=True)
    except embits.FormatError:
        return False
    if mutants.is_encoder(recipe):
        try:
            assert opened.encode(differential.TEXTS).shape == (3, opened.n_features_out_)
        except embits.errors.NotFittedError:
            return True
        return True
    answers(opened, path)
    copy = path.with_name("copy")
    opened.save(copy, overwrite=True)
    assert len(embits.load(copy, verify=True)) == len(opened)
    half = opened.subset(rows=np.arange(0, len(opened), 2))
    assert len(half) == -(-len(opened) // 2)
    return True


@pytest.mark.slow
@needs_node
def test_both_readers_agree_on_what_was_a_difference_once(tmp_path):
    assert differential.differences(differential.known(), tmp_path / "known") == {}


@pytest.mark.slow
@needs_node
def test_both_readers_agree_on_drawn_files_and_collections(tmp_path):
    recipes = differential.drawn(20_261_119, DRAWN)
    found = dict(enumerate(differential.compared(recipes, tmp_path / "drawn")))
    problems = [each for each in found.values() if each[1] not in (None, differential.ACCEPTED)]
    assert problems == []
    # A comparison of refusals alone would compare no answers.
    assert sum(problem == differential.ACCEPTED for _, problem in found.values()) > DRAWN / 10


@needs_node
def test_javascript_has_the_arrays_and_parameters_of_all_coders():
    found = json.loads(node(HERE / "coder_rules.mjs"))
    names = {method: set(kind.state_shapes) for method, kind in METHODS.items()}
    assert {method: set(arrays) for method, arrays in found["arrays"].items()} == names
    for method, kind in METHODS.items():
        assert found["defaults"].get(method, {}) == dict(kind.state_defaults)
        for name, shape in kind.state_shapes.items():
            theirs = found["arrays"][method][name]
            assert len(theirs) == len(shape)
            same = {"dims+1": "more"}
            for size, other in zip(shape, theirs, strict=True):
                assert size == "any" or same.get(size, size) == other
    types = {method: parameters(kind) for method, kind in METHODS.items()}
    assert {
        m: {k: sorted(v) for k, v in t.items()} for m, t in found["parameters"].items()
    } == types
    usual = {m: "null" if "null" in types[m]["n_bits"] else 256 for m in METHODS}
    assert all(kind().n_bits == (256 if usual[m] == 256 else None) for m, kind in METHODS.items())


def parameters(kind):
    """The types of the parameters of a coder, as JavaScript lists them."""
    names = {"None": "null"}
    found = {}
    for name in kind.param_names():
        hint = _hints(kind)[name]
        parts = (
            [getattr(hint, "__name__", "")] if isinstance(hint, type) else str(hint).split(" | ")
        )
        found[name] = sorted(names.get(part, part) for part in parts)
    return found


@needs_node
def test_javascript_computes_the_checksum_of_a_coder():
    """Of every method, with arrays in 16 bits and with those that a file may lack."""
    recipes = [{"source": source, "steps": []} for source in mutants.FILES]
    recipes += [{"source": "v2-rows", "steps": [["convert", "coder.decoder", "F16"]]}]
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, str(i)) for i in range(len(recipes))]
        for recipe, path in zip(recipes, paths, strict=True):
            mutants.write(recipe, path)
        found = json.loads(node(HERE / "coder_rules.mjs", *paths))["checksums"]
        coders = [embits.load(path).coder for path in paths]
    assert found == [embits.coders.base.coder_checksum(coder) for coder in coders]
    assert {coder.method for coder in coders} == set(METHODS)
