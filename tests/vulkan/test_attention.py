"""Attention as one launch, against the device `reference`."""
import ml_dtypes
import numpy as np
import pytest
from against import name, same, values

import keel

SHAPES = {  # q, k, v, mask
    "heads": ((2, 3, 9, 16), (2, 3, 40, 16), (2, 3, 40, 24), (40,)),
    "wide": ((70, 40), (33, 40), (33, 128), (70, 1)),
    "one column": ((1, 8, 3), (1, 1, 3), (1, 1, 1), (1, 1, 1)),
    "square": ((3, 64, 64), (3, 64, 64), (3, 64, 64), (3, 1, 64)),
    "a mask of heads": ((2, 2, 33, 5), (2, 2, 31, 5), (2, 2, 31, 7), (2, 1, 33, 31)),
    "few rows": ((2, 3, 4), (2, 9, 4), (2, 9, 4), (9,)),
    "no rows": ((2, 0, 4), (2, 9, 4), (2, 9, 4), (9,)),
    "no columns": ((2, 9, 4), (2, 0, 4), (2, 0, 4), (1,)),
    "no heads": ((0, 9, 4), (0, 9, 4), (0, 9, 4), (9,)),
    "wider": ((9, 4), (9, 4), (9, 130), (9, 9)),
}


def arrays(shapes, dtype, seed=0):
    q, k, v, mask = (values(dtype, *shape, seed=seed + i) for i, shape in enumerate(shapes))
    mask[..., ::3] = -np.inf
    return q, k, v, mask


# The body rounds scores and weights to the dtype; one launch computes them in f32.
BOUNDS = {np.float16: 5e-3, ml_dtypes.bfloat16: 4e-2, np.float32: 1e-5, np.float64: 1e-12}


@pytest.mark.parametrize("options", [{}, {"causal": True}, {"scale": -0.3, "causal": True, "zero_nan": True}], ids=str)
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("dtype", BOUNDS, ids=name)
@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES.keys())
def test_attention(vulkan, shapes, dtype, masked, options):
    q, k, v, mask = arrays(shapes, dtype)
    same(lambda *a: keel.attention(*a, **options), q, k, v, *[mask] * masked, tolerance=BOUNDS[dtype])


@pytest.mark.parametrize("zero_nan", [False, True])
def test_rows_without_a_visible_column_and_scores_that_are_not_finite(vulkan, zero_nan):
    q, k, v, _ = arrays(SHAPES["square"], np.float32)
    mask = np.zeros((64, 64), np.float32)
    mask[3] = -np.inf  # hidden entirely
    mask[4, :40] = -np.inf  # hidden in the first tile
    mask[5, 7], mask[6, 50] = np.nan, np.inf
    q[1, 8, 0], q[2, 9, 1] = np.inf, np.nan
    same(lambda *a: keel.attention(*a, zero_nan=zero_nan), q, k, v, mask, tolerance=1e-5)


@pytest.mark.parametrize("columns, launches", [(21300, 1), (22000, 4)])  # 4: matmul, scale, softmax, matmul
def test_very_many_columns_run_as_the_body(vulkan, driver, columns, launches):
    q, k, v = values(np.float32, 40, 8), values(np.float32, columns, 8, seed=1), values(np.float32, columns, 33, seed=2)
    before = driver.calls("vkCmdDispatch")
    same(lambda *a: keel.attention(*a, scale=0.3), q, k, v, tolerance=1e-5)
    assert driver.calls("vkCmdDispatch") - before >= launches and (launches == 1) == (driver.calls("vkCmdDispatch") == before + 1)


@pytest.mark.parametrize("operands", [3, 4])
def test_attention_is_one_launch(vulkan, driver, operands):
    given = list(map(keel.array, arrays(SHAPES["square"], np.float32)))[:operands]
    before = driver.calls("vkCmdDispatch")
    keel.attention(*given).numpy()
    assert driver.calls("vkCmdDispatch") == before + 1
