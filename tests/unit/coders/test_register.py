"""A coder of one's own: registered, used by name, saved and loaded."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest

import embits
from embits.coders import METHODS
from embits.evaluation import Comparison, Evaluator
from tests.support.vectors import clustered


class Own(embits.Coder):
    """The sign of each dimension less its mean."""

    method = "own"
    state_shapes = {"mean": ("dims",)}  # noqa: RUF012 - a plain dict, as a user writes it

    def __init__(self, n_bits=None, shift=0.0):
        self.n_bits = n_bits
        self.shift = shift

    def fit(self, X, y=None, *, progress=None):
        X = np.asarray(self.check_vectors(X, fitting=True), np.float32)
        self.n_bits_ = X.shape[1]
        self.mean_ = X.mean(axis=0) + np.float32(self.shift)
        return self

    def project(self, X):
        return X - self.mean_

    def inverse_transform(self, codes):
        bits = np.unpackbits(self.check_codes(codes), axis=1, count=self.n_bits_)
        return np.where(bits, self.mean_ + 1, self.mean_ - 1).astype(np.float32)


@pytest.fixture
def registered():
    yield embits.register_coder(Own)
    METHODS.pop("own", None)


def test_a_registered_coder_is_used_by_name_saved_and_loaded(registered, tmp_path):
    X = clustered(200, dims=16)
    bits = embits.binarize(X, method="own", shift=0.25)
    assert type(bits.coder) is Own
    bits.save(tmp_path / "own")
    again = embits.load(tmp_path / "own", verify=True)
    assert again.coder.get_params() == {"n_bits": None, "shift": 0.25}
    assert np.array_equal(again.encode(X), bits.codes)
    assert np.array_equal(again.decode(), bits.decode())
    assert embits.binarize_to_file(*saved_matrix(tmp_path, X), method="own").n_bits == 16


def saved_matrix(folder, X):
    np.save(folder / "m.npy", X)
    return folder / "m.npy", folder / "bits"


def test_a_registered_coder_is_compared_and_evaluated(registered, tmp_path):
    vectors = embits.WordVectors(None, clustered(300, dims=16))
    comparison = Comparison(
        vectors, tmp_path, None, bits=[16], methods=["own", "lsh"], tasks=["neighbors"]
    )
    assert [entry["method"] for entry in comparison.run()] == ["raw", "own", "lsh"]
    entry = Evaluator(None, vectors, ["reconstruction"]).evaluate_bits(
        embits.binarize(vectors, method="own")
    )
    assert entry["reconstruction"]["cosine"] > 0


def test_a_coder_that_is_not_registered_is_refused_at_save(tmp_path):
    bits = embits.binarize(clustered(50, dims=16), coder=Own())
    assert bits.search(clustered(50, dims=16)[3], k=1).rows.shape == (1,)
    with pytest.raises(embits.InputError, match=r"Own is not registered.*register_coder\(Own\)"):
        bits.save(tmp_path / "own")
    assert not list(Path(tmp_path).iterdir())


def test_a_file_of_an_unknown_coder_names_the_method(registered, tmp_path):
    embits.binarize(clustered(50, dims=16), method="own").save(tmp_path / "own")
    METHODS.pop("own")
    with pytest.raises(embits.FormatError, match="the method 'own', which is not registered"):
        embits.load(tmp_path / "own")


def test_incomplete_classes_and_taken_names_are_refused(registered):
    class Nameless(Own):
        method = "no/name"

    class Abstract(embits.Coder):
        method = "abstract"

    class Taken(Own):
        method = "itq"

    class Unnamed(Own):
        method = ""

    class NoProgress(Own):
        method = "no-progress"

        def fit(self, X, y=None):
            return self

    for wrong, message in (
        (Nameless, "its `method` is 'no/name'"),
        (Abstract, "does not define fit, inverse_transform, project"),
        (Taken, "the method 'itq' belongs to ITQ"),
        (Unnamed, "its `method` is ''"),
        (NoProgress, r"NoProgress.fit has no argument `progress`: define it as fit\("),
        ("own", "expected a subclass of embits.Coder"),
        (Own(), "expected a subclass of embits.Coder"),
    ):
        with pytest.raises(embits.InputError, match=message):
            embits.register_coder(wrong)
    assert embits.register_coder(Own) is Own  # a notebook cell that is run again


def test_wrong_state_shapes_are_refused():
    for shapes in (
        ["mean"],
        {"mean": "dims"},
        {"mean": ("dim",)},
        {"mean": (0,)},
        {"mean": (True,)},
        {"mean": ("any", "any", 2)},
        {"a b": ("dims",)},
    ):
        wrong = type("Wrong", (Own,), {"method": "wrong", "state_shapes": shapes})
        with pytest.raises(embits.InputError, match="state_shapes"):
            embits.register_coder(wrong)
    wrong = type("Wrong", (Own,), {"method": "wrong", "state_defaults": {"other": 0}})
    with pytest.raises(embits.InputError, match="'other'"):
        embits.register_coder(wrong)
    assert "wrong" not in METHODS


def test_save_refuses_learned_arrays_that_could_not_be_loaded(registered, tmp_path):
    bits = embits.binarize(clustered(50, dims=16), method="own")
    floats = np.zeros(16)
    for mean in (None, floats[:3], floats[None], floats.astype(int), ["x"] * 16, floats + np.nan):
        bits.coder.mean_ = mean
        with pytest.raises(embits.InputError, match="the coder's mean_ "):
            bits.save(tmp_path / "own")
        assert not list(tmp_path.iterdir())


def test_wrong_scores_of_a_coder_are_refused():
    for scores in (np.zeros((50, 3)), None, np.full((50, 16), np.nan)):
        wrong = type("Wrong", (Own,), {"project": lambda self, X, scores=scores: scores})
        with pytest.raises(embits.InputError, match="project returned "):
            embits.binarize(clustered(50, dims=16), coder=wrong())


def test_a_fit_without_progress_is_refused():
    class NoProgress(Own):
        def fit(self, X, y=None):
            return super().fit(X)

    with pytest.raises(embits.InputError, match=r"NoProgress\.fit has no argument `progress`"):
        embits.binarize(clustered(50, dims=16), coder=NoProgress())


def test_the_base_classes_are_found_where_version_0_2_had_them():
    for module, name in (
        ("linear_encoder", "LinearlyEncoded"),
        ("linear_decoder", "LinearlyDecoded"),
    ):
        sys.modules.pop(f"embits.coders.{module}", None)
        with pytest.warns(DeprecationWarning, match=f"import {name} from embits.coders"):
            former = importlib.import_module(f"embits.coders.{module}")
        assert getattr(former, name) is getattr(embits.coders, name)
