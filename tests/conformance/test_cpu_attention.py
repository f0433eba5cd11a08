"""attention of a few rows on the cpu device, which reads keys and values in place, and of more rows, which packs them, some heads at a time: masks, causal,
sizes of zero and one, f32 and f64. Oracle: NumPy in f64."""
import keel_abi
import numpy as np
import pytest
from regions import as_nodes

# leading dims, rows of q, rows of k and v, columns of q and k, columns of v
SIZES = [((16,), 1, 257, 128, 128), ((2, 3), 1, 1, 32, 5), ((), 2, 70, 64, 33), ((4,), 4, 19, 128, 64), ((3,), 5, 40, 128, 48),
         ((1, 2), 8, 300, 256, 257), ((5,), 1, 33, 31, 16), ((2,), 60, 50, 64, 64), ((6,), 50, 1100, 64, 70), ((0,), 1, 7, 64, 8), ((2,), 0, 7, 64, 8), ((2,), 1, 7, 64, 0)]


def wanted(q, k, v, mask, causal):
    scores = q @ np.swapaxes(k, -1, -2) * q.shape[-1]**-0.5
    if mask is not None:
        scores = scores + mask
    if causal:
        scores = np.where(np.arange(k.shape[-2]) <= np.arange(q.shape[-2])[:, None], scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    return weights / weights.sum(-1, keepdims=True) @ v


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["plain", "causal", "mask", "row of a mask"])
@pytest.mark.parametrize("dims", SIZES, ids=str)
def test_attention(dims, kind, dtype):
    lead, rows, kept, depth, columns = dims
    rng = np.random.default_rng(rows + kept)
    q, k, v = (rng.standard_normal((*lead, *each)).astype(dtype) for each in ((rows, depth), (kept, depth), (kept, columns)))
    mask = {"mask": (*lead, rows, kept), "row of a mask": (1, kept)}.get(kind)
    inputs = [q, k, v] + ([rng.standard_normal(mask).astype(dtype)] if mask else [])
    made = []
    for threads in (1, 2, 5):
        context = keel_abi.Context(threads=threads)
        plan = as_nodes(context, lambda g, *xs: g.node("attention", *xs, causal=kind == "causal"), inputs, [], device="cpu")
        made.append(np.array(plan.run(*inputs)[0]))
    exact = wanted(*(x.astype(np.float64) for x in inputs[:3]), inputs[3].astype(np.float64) if mask else None, kind == "causal")
    np.testing.assert_allclose(made[0], exact, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=2e-6 if dtype == np.float32 else 1e-14)
    assert made[0].tobytes() == made[1].tobytes() == made[2].tobytes()
