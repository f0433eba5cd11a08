"""Threads that use one device: eager ops, functions, uploads and downloads next to compute."""

import numpy as np
import pytest
from together import together

import keel

pytestmark = pytest.mark.usefixtures("loaded")


@pytest.mark.parametrize("count", [8, 64])
def test_eager_ops(count):
    def work(k):
        with keel.device("vulkan"):
            x = keel.array(np.full((8, 8), k + 1, np.float32))
            for _ in range(160 // count):
                np.testing.assert_array_equal((keel.matmul(x, x) + x).numpy(), np.full((8, 8), 8 * (k + 1) ** 2 + k + 1))
    together(count, work)


def test_one_function():
    f = keel.function(lambda x, y: keel.reduce_sum(keel.matmul(x, y) + y, [0]))

    def work(k):
        x = np.full((4, 4), k, np.float32)
        with keel.device("vulkan"):
            for _ in range(20):
                np.testing.assert_array_equal(f(keel.array(x), keel.array(x)).numpy(), np.full(4, 16 * k * k + 4 * k))
    together(8, work)


def test_shared_results_and_transfers():
    """Each thread reads what another one computed, while others upload."""
    with keel.device("vulkan"):
        made = [keel.array(np.full(1000, k, np.float32)) + 1.0 for k in range(16)]

    def work(k):
        for j in range(16):
            with keel.device("vulkan"):
                y = made[(k + j) % 16] + keel.array(np.full(1000, j, np.float32))
            np.testing.assert_array_equal(y.numpy(), np.full(1000, (k + j) % 16 + 1 + j))
    together(8, work)


def test_pipelines_of_many_threads():
    """The same new pipeline is needed by all threads at once."""
    def work(k):
        with keel.device("vulkan"):
            x = keel.array(np.ones((3, 5, 2), np.float64))
            np.testing.assert_array_equal(keel.reduce_max(x, [1]).numpy(), np.ones((3, 2)))
    together(16, work)
