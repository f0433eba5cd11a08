"""Shared by the tests of keel.convert."""
import keel
import numpy as np


def same(a, b):
    assert keel._keel.structure(a) == keel._keel.structure(b)
    for p, q in zip(keel._keel.leaves(a), keel._keel.leaves(b), strict=True):
        np.testing.assert_array_equal(p, q)
