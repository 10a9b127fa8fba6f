"""What docs/trust.md promises of names: deprecated ones work for two minor versions, and warn."""

import importlib
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import embits
from embits import coders, errors

UPGRADING = (Path(__file__).parents[2] / "docs" / "upgrading.md").read_text()
VERSION = tuple(int(number) for number in embits.__version__.split(".")[:2])

# The root of version 0.2. A name may leave it only after two minor versions with a warning.
ROOT_OF_0_2 = re.findall(r"\w+", """
    ITQ BinaryVectors ClusterError Coder Collection DatabaseError EmbitsError FormatError HubError
    InputError LockedError MissingExtraError NearLossless NotFittedError PaperAutoencoder
    RandomHyperplanes ReadError ReadWarning SignBits SizeWarning SparseBits TooManyResultsError
    TrainingError TrainingWarning UnknownWordError WordVectors binarize binarize_to_file concat
    encode_to_collection encode_to_file evaluation integrations load open_collection read_vectors
    register_coder sample_vectors search write_vectors""")  # fmt: skip
MODULES = {"linear_encoder": "LinearlyEncoded", "linear_decoder": "LinearlyDecoded"}

of_0_3 = pytest.mark.skipif(VERSION >= (0, 5), reason="deprecated by 0.3, gone in 0.5")


@of_0_3
@pytest.mark.parametrize("name", ROOT_OF_0_2)
def test_every_name_of_the_root_of_0_2_works_and_warns_if_it_moved(name):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = getattr(embits, name)
    is_deprecated = hasattr(errors, name) and name not in embits.__all__
    assert [each.category for each in told] == [DeprecationWarning] * is_deprecated
    if is_deprecated:
        assert found is getattr(errors, name)
        assert f"`{name}`" in UPGRADING or f"`embits.{name}`" in UPGRADING


@of_0_3
@pytest.mark.parametrize("module", MODULES)
def test_modules_that_moved_work_and_warn(module):
    sys.modules.pop(f"embits.coders.{module}", None)
    with pytest.warns(DeprecationWarning, match=f"import {MODULES[module]} from embits.coders"):
        found = importlib.import_module(f"embits.coders.{module}")
    assert getattr(found, MODULES[module]) is getattr(coders, MODULES[module])
    assert f"`embits.coders.{module}.{MODULES[module]}`" in UPGRADING


@of_0_3
def test_oversample_works_and_warns(tmp_path):
    X = np.random.default_rng(0).normal(size=(50, 8)).astype("f4")
    bits = embits.binarize(X, 16, "lsh")
    with pytest.warns(DeprecationWarning, match="here rescore=12"):
        found = bits.search(X[:2], 3, metric="asymmetric", oversample=4)
    expected = bits.search(X[:2], 3, metric="asymmetric", rescore=12)
    assert np.array_equal(found.rows, expected.rows)
    bits.save(tmp_path / "f")
    np.save(tmp_path / "q.npy", X[:2])
    command = [sys.executable, "-m", "embits", "search", tmp_path / "f"]
    options = [tmp_path / "q.npy", "-k", "3", "--metric", "asymmetric"]
    told = [
        subprocess.run(
            list(map(str, [*command, *options, *more])), capture_output=True, text=True, check=True
        ).stdout
        for more in (["--oversample", "4"], ["--rescore", "12"])
    ]
    assert told[0] == told[1] != ""
    assert "`search(..., oversample=4)`, `--oversample 4`" in UPGRADING


def test_the_page_of_upgrades_names_the_version_that_ends_them():
    ends = re.findall(r"\*\*Deprecated\*\*: these still work until version (0\.\d+)", UPGRADING)
    assert ends == ["0.5"]
