"""Reductions, and ops along one axis, for every dtype; NaN, zeros of both signs, equal elements."""
import numpy as np
import pytest
from against import ALL, FLOATS, INTEGERS, NUMBERS, fails_alike, name, on, same, values
from kernel_cases import check_top_k

import keel

pytestmark = pytest.mark.usefixtures("loaded")
KINDS = ["reduce_sum", "reduce_mean", "reduce_prod", "reduce_max", "reduce_min"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ALL, ids=name)
def test_reductions(kind, dtype):
    if dtype == np.bool_ and kind not in ("reduce_max", "reduce_min"):
        return
    x = values(dtype, 3, 5, 2, 70)
    if kind == "reduce_prod" and dtype in FLOATS:
        x = np.where(np.arange(70) % 9 == 0, x, 1).astype(dtype)
    for axes in [[], [0], [3], [1, 2], [0, 2], [1, 3], [0, 1, 2, 3]]:
        same(lambda t: getattr(keel, kind)(t, axes=axes), x, tolerance=None if dtype is not np.float16 else 4e-3)
    same(lambda t: getattr(keel, kind)(t, axes=[0, 3], keep=True), x, tolerance=None if dtype is not np.float16 else 4e-3)
    same(lambda t: getattr(keel, kind)(t, axes=[1]), values(dtype, 4, 0, 3))
    same(lambda t: getattr(keel, kind)(t), values(dtype))


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.int32, np.int64, np.uint64, np.float16, np.float32, np.float64], ids=name)
def test_reductions_of_many_elements(dtype):
    x = values(dtype, 3, 100_003)
    for kind in ("reduce_sum", "reduce_mean", "reduce_max", "reduce_min"):
        same(lambda t: getattr(keel, kind)(t, axes=[1]), x, tolerance=None if dtype != np.float32 else 3e-4)
    with keel.device("vulkan"):
        assert len({keel.reduce_sum(keel.array(x)).numpy().tobytes() for _ in range(3)}) == 1


def test_the_order_of_a_sum_does_not_depend_on_the_other_results():
    x = values(np.float32, 4, 5000)
    with keel.device("vulkan"):
        whole = keel.reduce_sum(keel.array(x), axes=[1]).numpy()
        assert [keel.reduce_sum(keel.array(row), axes=[0]).numpy() for row in x] == list(whole)


@pytest.mark.parametrize("dtype", INTEGERS, ids=name)
def test_means_of_integers_are_exact(dtype):
    info = np.iinfo(dtype)
    for x in ([info.max] * 7, [info.min] * 3, [info.max, info.max, info.min + 1], [1, 1, 1, 0], [0, info.max, info.max - 1] * 50):
        same(lambda t: keel.reduce_mean(t), np.array(x, dtype))
    if info.min < 0:
        same(lambda t: keel.reduce_mean(t), np.array([-3, -3, -1], dtype))
        same(lambda t: keel.reduce_mean(t), np.array([-1, 0, 0], dtype))


@pytest.mark.parametrize("dtype", FLOATS, ids=name)
def test_maxima_of_nan_and_zeros(dtype):
    for x in ([1, np.nan, 3], [np.nan, 1], [-0.0, 0.0], [0.0, -0.0], [-np.inf, -np.inf], [5] * 100 + [np.nan]):
        for kind in ("reduce_max", "reduce_min"):
            same(lambda t: getattr(keel, kind)(t), np.array(x, dtype), exact=True)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("kind", ["arg_max", "arg_min"])
@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
def test_args(dtype, kind, last):
    for shape, axis in [((7,), 0), ((3, 200), 1), ((3, 200, 2), 1), ((5, 4, 3), 0), ((3000, 3), 1), ((2, 0), 1 - 1), ((1, 1), 1)]:
        x = values(dtype, *shape)
        x = np.where(np.abs(x.astype(np.float64)) > 900, x, x).astype(dtype)
        same(lambda t: getattr(keel, kind)(t, axis=axis, last=last), x // 3 if dtype in INTEGERS else np.round(x.astype(np.float32)).astype(dtype))
    if dtype in FLOATS:
        for x in ([1, np.nan, 3, np.nan], [0.0, -0.0, 0.0], [np.inf, -np.inf, np.inf, -np.inf]):
            same(lambda t: getattr(keel, kind)(t, axis=0, last=last), np.array(x, dtype))


def test_an_arg_of_no_elements_is_the_error_of_cpu():
    for kind in ("arg_max", "arg_min"):
        assert "the dim has no elements" in fails_alike(lambda t: getattr(keel, kind)(t, axis=1), np.zeros((2, 0), np.float32))


@pytest.mark.parametrize("exclusive, reverse", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
def test_cumsum(dtype, exclusive, reverse):
    for shape, axis in [((7,), 0), ((3, 200), 1), ((3, 65, 2), 1), ((5, 4, 3), 0), ((2, 0), 1), ((1500, 3), 1)]:
        x = values(dtype, *shape)
        same(lambda t: keel.cumsum(t, axis=axis, exclusive=exclusive, reverse=reverse), x, tolerance=1e-4 if dtype == np.float32 else None)


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
def test_recurrences(dtype, reverse):
    for shape, axis in [((7,), 0), ((3, 200), 1), ((3, 65, 2), 1), ((5, 4, 3), 0), ((2, 0), 1), ((45_000,), 0)]:  # the last in three steps
        a, b = values(dtype, *shape), values(dtype, *shape, seed=1)
        a = (a % 1).astype(dtype) if dtype in FLOATS else a
        same(lambda s, t: keel.linear_recurrence(s, t, axis=axis, reverse=reverse), a, b, tolerance=0.1 if a.itemsize == 2 else 1e-4)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("dtype", NUMBERS, ids=name)
def test_top_k(dtype, largest):
    check_top_k(on, dtype, largest)


def test_a_sort_of_many_elements():
    x = values(np.int32, 100_000)
    same(lambda t: keel.top_k(t, k=100_000), x)
