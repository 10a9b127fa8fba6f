"""Every coder passes scikit-learn's own suite of checks, and none of them imports scikit-learn."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

pytest.importorskip("sklearn")
pytest.importorskip("pandas")
import pandas
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import embits
from embits.coders import (
    ITQ,
    NearLossless,
    PaperAutoencoder,
    RandomHyperplanes,
    SignBits,
    SparseBits,
)
from embits.integrations.sklearn import unpack_bits
from tests.support.vectors import clustered


@pytest.mark.filterwarnings("ignore::embits.errors.TrainingWarning")  # of its few rows
@parametrize_with_checks(
    [
        PaperAutoencoder(n_bits=12, epochs=2),
        NearLossless(n_bits=12, steps=10),
        RandomHyperplanes(n_bits=12),
        SignBits(),
        ITQ(n_bits=12),
        SparseBits(n_bits=12),
    ]
)
def test_scikit_learn_check(estimator, check):
    check(estimator)


def test_importing_and_fitting_does_not_import_scikit_learn():
    program = (
        "import sys, numpy as np, embits; "
        "embits.PaperAutoencoder(8, epochs=1).fit_transform(np.eye(4)); "
        "assert not [m for m in sys.modules if m.split('.')[0] in ('sklearn', 'click', 'rich')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


CODERS = [SignBits(), RandomHyperplanes(n_bits=20), PaperAutoencoder(n_bits=20, epochs=1)]


def pickled(thing):
    return pickle.loads(pickle.dumps(thing))  # noqa: S301 - our own bytes


@pytest.fixture
def frame():
    index = [f"row{i}" for i in range(90)]
    return pandas.DataFrame(clustered(90, dims=6), index, [f"dim{i}" for i in range(6)])


@pytest.mark.parametrize("coder", CODERS, ids=str)
def test_vectors_of_a_data_frame_are_coded_as_those_of_an_array(coder, frame):
    fitted = clone(coder).fit(frame)
    codes = fitted.transform(frame)
    assert type(codes) is np.ndarray
    assert np.array_equal(codes, clone(coder).fit(frame.to_numpy()).transform(frame.to_numpy()))
    assert len(fitted.get_feature_names_out()) == codes.shape[1]
    with pytest.raises(embits.InputError, match="not those of the fit"):
        fitted.transform(frame[frame.columns[::-1]])


def test_a_pipeline_is_searched_over_bits_for_the_best_classifier():
    X = clustered(200, dims=8, clusters=4)
    y = (X[:, 0] > X[:, 1]).astype(int)
    steps = Pipeline([
        ("scale", StandardScaler()),
        ("coder", RandomHyperplanes(random_state=0)),
        ("bits", unpack_bits()),
        ("classify", LogisticRegression()),
    ])  # fmt: skip
    search = GridSearchCV(steps, {"coder__n_bits": [4, 64]}, cv=3).fit(X, y)
    assert search.best_params_ == {"coder__n_bits": 64}
    assert search.best_score_ > 0.8
    same = pickled(search)
    assert np.array_equal(same.predict(X), search.predict(X))


def test_bits_unpack_to_named_columns_and_pack_again(frame):
    steps = make_pipeline(RandomHyperplanes(n_bits=12), unpack_bits(12))
    features = steps.fit_transform(frame)
    assert list(steps.get_feature_names_out()) == [f"bit{i}" for i in range(12)]
    packed = clone(steps[0]).fit_transform(frame)
    assert np.array_equal(np.packbits(features, axis=1), packed)
    assert np.array_equal(unpack_bits(12).fit(packed).inverse_transform(features), packed)
    with pytest.raises(embits.InputError, match="expected packed uint8"):
        unpack_bits().fit_transform(frame.to_numpy())
    with pytest.raises(embits.InputError, match="n_bits is 17 for codes of 16 bits"):
        unpack_bits(17).fit_transform(packed)


def test_coders_stand_beside_other_columns_and_beside_each_other(frame):
    beside = ColumnTransformer(
        [("codes", SignBits(), ["dim0", "dim1", "dim2"])], remainder="passthrough"
    )
    assert beside.fit_transform(frame).shape == (90, 4)
    assert list(beside.get_feature_names_out()) == [
        "codes__signbits0",
        *(f"remainder__dim{i}" for i in (3, 4, 5)),
    ]
    union = FeatureUnion([("a", SignBits()), ("b", RandomHyperplanes(n_bits=16))])
    assert union.fit_transform(frame.to_numpy()).shape == (90, 3)
    assert list(union.get_feature_names_out()) == [
        "a__signbits0", "b__randomhyperplanes0", "b__randomhyperplanes1",
    ]  # fmt: skip


def test_a_fitted_coder_survives_pickling_and_a_loaded_one_too(frame, tmp_path):
    coder = RandomHyperplanes(n_bits=20).fit(frame)
    again = pickled(coder)
    assert np.array_equal(again.transform(frame), coder.transform(frame))
    embits.binarize(frame.to_numpy(), 20, "lsh").save(tmp_path / "b")
    loaded = embits.load(tmp_path / "b").coder
    again = pickled(loaded)
    assert np.array_equal(again.transform(frame.to_numpy()), loaded.transform(frame.to_numpy()))
