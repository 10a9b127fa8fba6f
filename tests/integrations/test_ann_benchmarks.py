"""The module for ann-benchmarks answers queries of an HDF5 file in its format."""

import sys
from pathlib import Path

import numpy as np
import pytest

from tests.support.vectors import clustered

FOLDER = Path(__file__).parents[2] / "benchmarks" / "ann_benchmarks"


@pytest.fixture
def hdf5(monkeypatch):
    pytest.importorskip("h5py")
    pytest.importorskip("yaml")
    monkeypatch.syspath_prepend(str(FOLDER))
    import hdf5

    yield hdf5
    for name in ("hdf5", "module"):
        sys.modules.pop(name, None)


def test_hamming_is_exact(tmp_path, hdf5):
    path = tmp_path / "x-hamming.hdf5"
    hdf5.make(clustered(), path, "hamming", n_queries=40)
    results = list(hdf5.run(path, group="exact"))
    assert [name for name, *_ in results] == [
        "embits(hamming, scan)", "embits(hamming, multi-index)",
    ]  # fmt: skip
    assert [recall for _, recall, *_ in results] == [1, 1]


def test_cells_find_what_is_asked(tmp_path, hdf5):
    path = tmp_path / "x-hamming.hdf5"
    hdf5.make(clustered(), path, "hamming", n_queries=40)
    recalls = [recall for _, recall, *_ in hdf5.run(path, group="cells")]
    assert len(recalls) == 8
    assert recalls[-1] > 0.98


def test_recall_and_second_look_are_asked_for(hdf5, tmp_path):
    import h5py
    import module

    path = tmp_path / "x-angular.hdf5"
    hdf5.make(clustered(), path, n_queries=40)
    with h5py.File(path) as file:
        train, test = np.array(file["train"]), np.array(file["test"])
    algorithm = module.Embits("angular", 64, "itq", True)
    algorithm.fit(train)
    exact, some = [], []
    for found, arguments in ((exact, ("asymmetric", 4)), (some, ("asymmetric", 4, 0.9, 20))):
        algorithm.set_query_arguments(*arguments)
        found += [set(algorithm.query(query, 10)) for query in test]
    assert (
        str(algorithm) == "embits(itq, 64 bits, cells, asymmetric, ×4, recall 0.9, second look 20)"
    )
    shared = np.mean([len(a & b) for a, b in zip(exact, some, strict=True)])
    assert shared > 8
    algorithm.set_query_arguments("hamming", 0, 1.0)
    assert len(algorithm.query(test[0], 10)) == 10


def test_angular_gains_recall_with_the_shortlist(tmp_path, hdf5):
    import h5py

    path = tmp_path / "x-angular.hdf5"
    assert hdf5.make(clustered(), path, n_queries=40) == 560
    with h5py.File(path) as file:
        assert {**file.attrs} == {
            "type": "dense", "distance": "angular", "dimension": 24, "point_type": "float",
        }  # fmt: skip
        assert file["neighbors"].shape == file["distances"].shape == (40, 100)
        assert (np.diff(file["distances"], axis=1) >= 0).all()
    recalls = {}
    for name, recall, *_ in hdf5.run(path, group="all-rows", method="lsh"):
        *_, bits, search, oversample = name.rstrip(")").split(", ")
        recalls[bits, search, oversample] = recall
    assert len(recalls) == 3 * 2 * 6
    for bits in ("128 bits", "256 bits", "512 bits"):
        assert recalls[bits, "hamming", "×0"] < recalls[bits, "hamming", "×32"]
        assert recalls[bits, "asymmetric", "×32"] > 0.99


def test_packed_bytes_of_vibe_are_searched_as_they_are(hdf5):
    import module

    codes = np.random.default_rng(0).integers(0, 256, (300, 16), dtype=np.uint8)
    algorithm = module.EmbitsHamming("hamming")
    algorithm.fit(codes)
    plain = module.EmbitsHamming("hamming")
    plain.fit(np.unpackbits(codes, axis=1).astype(bool))
    for row in (0, 7):
        found = algorithm.query(codes[row], 5)
        assert found[0] == row
        assert list(plain.query(np.unpackbits(codes[row]).astype(bool), 5)) == list(found)


def test_metrics_without_an_algorithm_are_refused(hdf5):
    import module

    for wrong in (lambda: module.Embits("euclidean", 64), lambda: module.EmbitsHamming("jaccard")):
        with pytest.raises(NotImplementedError):
            wrong()


def test_both_configurations_name_classes_and_arguments_of_the_module(hdf5):
    import module
    import yaml

    for path in (FOLDER / "config.yml", FOLDER / "vibe/config.yml"):
        for metrics in yaml.safe_load(path.read_text()).values():
            for metric, algorithms in metrics.items():
                for algorithm in algorithms:
                    made = getattr(module, algorithm["constructor"])
                    for group in algorithm["run_groups"].values():
                        assert str(made(metric, *firsts(group["args"])))
                        if "query_args" in group:
                            asked = made(metric, *firsts(group["args"]))
                            asked.set_query_arguments(*firsts(group["query_args"]))


def firsts(arguments):
    """The first choice of each argument: a list for each, named ones for VIBE."""
    values = arguments.values() if isinstance(arguments, dict) else arguments
    return [choices[0] for choices in values]
