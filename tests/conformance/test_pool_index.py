"""max_pool_index with windows that overlap, leave a remainder, extend over the edge, tie and contain NaN: every device against
NumPy."""
import itertools

import numpy as np
import pytest

# image, window, stride, dilation, padding below and above
CASES = [((32, 32), (2, 2), (2, 2), (1, 1), (0, 0), (0, 0)), ((9, 70), (3, 3), (1, 1), (1, 1), (0, 0), (0, 0)),
         ((7, 300), (2, 3), (3, 2), (1, 1), (0, 0), (0, 0)), ((12, 40), (2, 2), (2, 3), (2, 4), (0, 0), (0, 0)),
         ((8, 9), (3, 3), (2, 2), (1, 1), (1, 1), (1, 1)), ((200,), (4,), (4,), (1,), (0,), (0,)), ((5, 6, 20), (2, 2, 2), (2, 1, 2), (1, 1, 1), (0, 0, 0), (0, 0, 0)),
         ((20, 20), (9, 9), (2, 2), (1, 1), (0, 0), (0, 0)), ((2, 2), (2, 2), (1, 1), (1, 1), (0, 0), (0, 0))]


def by_numpy(x, window, stride, dilation, low, high):
    n, c, *image = x.shape
    out = [(d + a + b - g * (w - 1) - 1) // s + 1 for d, a, b, g, w, s in zip(image, low, high, dilation, window, stride)]
    y = np.full((n, c, *out), -1, np.int64)
    strides = np.array([int(np.prod(image[d + 1:])) for d in range(len(image))])
    for i, k, *place in np.ndindex(*y.shape):
        best = None
        for cell in itertools.product(*map(range, window)):
            at = [p * s + g * o - a for p, s, g, o, a in zip(place, stride, dilation, cell, low)]
            if any(not 0 <= a < d for a, d in zip(at, image)):
                continue
            value = x[(i, k, *at)]
            if best is None or value > best or (np.isnan(value) and not np.isnan(best)):
                best = value
                y[(i, k, *place)] = (i * c + k) * int(np.prod(image)) + int(np.dot(at, strides))
    return y


@pytest.mark.parametrize("special", [False, True])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_index(context, case, special):
    image, window, stride, dilation, low, high = case
    random = np.random.default_rng(len(image))
    x = random.integers(-3, 4, (2, 3, *image)).astype(np.float32)  # many ties
    if special:
        x[random.random(x.shape) < 0.2] = np.nan
        x[random.random(x.shape) < 0.2] = -np.inf
    wanted = by_numpy(x, window, stride, dilation, low, high)
    for device in ("cpu", "reference"):
        got = context.apply(device, "max_pool_index", x, window=list(window), stride=list(stride), dil=list(dilation),
                            lo=list(low), hi=list(high))
        np.testing.assert_array_equal(np.array(got), wanted, err_msg=device)
