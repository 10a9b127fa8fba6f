"""Every coder passes scikit-learn's own suite of checks, and none of them imports scikit-learn."""

import subprocess
import sys

import pytest

pytest.importorskip("sklearn")
from sklearn.utils.estimator_checks import parametrize_with_checks

from embits.coders import (
    ITQ,
    NearLossless,
    PaperAutoencoder,
    RandomHyperplanes,
    SignBits,
    SparseBits,
)


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
