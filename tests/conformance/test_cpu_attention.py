"""attention of a few rows on the cpu device, which reads keys and values in place, and of more rows, which packs them, some heads at a time: masks, causal,
sizes of zero and one, f32 and f64; heads between the rows, in place; constant masks, whose hidden columns are left out if nothing of them can reach the result. Oracle: NumPy in f64."""
import keel_abi
import numpy as np
import pytest
from regions import as_call, as_nodes

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
@pytest.mark.parametrize("kind", ["plain", "causal", "mask", "causal mask", "row of a mask"])
@pytest.mark.parametrize("dims", SIZES, ids=str)
def test_attention(dims, kind, dtype):
    lead, rows, kept, depth, columns = dims
    rng = np.random.default_rng(rows + kept)
    q, k, v = (rng.standard_normal((*lead, *each)).astype(dtype) for each in ((rows, depth), (kept, depth), (kept, columns)))
    mask = {"mask": (*lead, rows, kept), "causal mask": (*lead, rows, kept), "row of a mask": (1, kept)}.get(kind)
    inputs = [q, k, v] + ([rng.standard_normal(mask).astype(dtype)] if mask else [])
    made = []
    for threads in (1, 2, 5):
        context = keel_abi.Context(threads=threads)
        plan = as_nodes(context, lambda g, *xs: g.node("attention", *xs, causal="causal" in kind), inputs, [], device="cpu")
        made.append(np.array(plan.run(*inputs)[0]))
    exact = wanted(*(x.astype(np.float64) for x in inputs[:3]), inputs[3].astype(np.float64) if mask else None, "causal" in kind)
    np.testing.assert_allclose(made[0], exact, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=2e-6 if dtype == np.float32 else 1e-14)
    assert made[0].tobytes() == made[1].tobytes() == made[2].tobytes()


def triangle(low):
    return lambda heads, rows, kept: np.where(np.arange(kept) > np.arange(rows)[:, None], low, 0.0)


def band(heads, rows, kept):  # also hides whole rows; their sums are exact in f32
    return np.where(np.abs(np.arange(kept) - np.arange(rows)[:, None]) > 5, -2.0**20, np.arange(kept) * 0.125)


def of_each_head(heads, rows, kept):
    return np.stack([np.where(np.arange(kept) > np.arange(rows)[:, None] + 20 * h, -1e5, -3.0) for h in range(heads)])


MASKS = {"-1e9": triangle(-1e9), "-1e4": triangle(-1e4), "-inf": triangle(-np.inf), "lowest": triangle(-3e38), "band": band, "heads": of_each_head,
         "one row": lambda heads, rows, kept: np.where(np.arange(kept) > kept // 3, -1e9, 0.0)[None], "all low": lambda heads, rows, kept: np.full((rows, kept), -2.0**20),
         "nan": lambda heads, rows, kept: triangle(-1e9)(heads, rows, kept) + np.where(np.arange(kept) == kept - 1, np.nan, 0.0)}


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("values", ["usual", "large", "infinite v", "nan in v", "nan in k", "infinite k", "infinite q"])
@pytest.mark.parametrize("mask", MASKS)
@pytest.mark.filterwarnings("ignore:invalid value")
def test_hidden_columns(mask, values, dtype):
    """Values of hidden columns: numbers; scores beside which the mask is small (whole numbers, as their differences count);
    infinities and NaN, which make the results of all rows NaN."""
    rng = np.random.default_rng(7)
    for heads, rows, kept, depth, columns in ((2, 128, 128, 64, 64), (3, 50, 110, 16, 40), (2, 61, 45, 16, 7)):
        q, k, v = (rng.integers(-2, 3, (heads, *each)).astype(dtype) for each in ((rows, depth), (kept, depth), (kept, columns)))
        if values == "large":
            q, k = q * 128, k * 128
        if values.startswith(("infinite", "nan")):
            {"v": v, "k": k, "q": q}[values[-1]][0, -1, 3] = np.nan if values.startswith("nan") else np.inf
        m = MASKS[mask](heads, rows, kept).astype(dtype)
        plan = as_nodes(keel_abi.Context(threads=2), lambda g, *xs: g.node("attention", *xs), [q, k, v], [m], device="cpu")
        exact = wanted(*(x.astype(np.float64) for x in (q, k, v)), m.astype(np.float64), False)
        np.testing.assert_allclose(plan.run(q, k, v)[0], exact, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=2e-6 if dtype == np.float32 else 1e-14)


# rows of the parts of keys, and of values; None: the others
PARTS = [((None, 1), (None, 1)), ((None,), (None, 1)), ((1, None), (None,)), ((None, 0), (0, None)), ((2, 3, None), (None, 4))]


def cut(x, counts):
    """x in parts of so many rows along its second last dim."""
    counts = [x.shape[-2] - sum(n for n in counts if n is not None) if n is None else n for n in counts]
    return np.split(x, np.cumsum(counts)[:-1], axis=-2) if min(counts) >= 0 else [x]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["plain", "causal", "mask"])
@pytest.mark.parametrize("dims", SIZES, ids=str)
def test_joined_keys_and_values(dims, kind, dtype):
    """A call of concatenations and an attention, in all forms of PARTS: the rows are read in place, or joined in the workspace."""
    lead, rows, kept, depth, columns = dims
    rng = np.random.default_rng(rows + kept)
    q, k, v = (rng.standard_normal((*lead, *each)).astype(dtype) for each in ((rows, depth), (kept, depth), (kept, columns)))
    mask = [rng.standard_normal((*lead, rows, kept)).astype(dtype)] if kind == "mask" else []
    exact = wanted(*(x.astype(np.float64) for x in (q, k, v)), mask[0].astype(np.float64) if mask else None, kind == "causal")
    for of_keys, of_values in PARTS:
        keys, values = cut(k, of_keys), cut(v, of_values)

        def build(g, q, *xs, n=len(keys), m=len(keys) + len(values)):
            joined = [g.node("concat", *each, axis=-2) if len(each) > 1 else each[0] for each in (xs[:n], xs[n:m])]
            return g.node("attention", q, *joined, *xs[m:], causal=kind == "causal")
        made = []
        for threads in (1, 2, 5):
            plan = as_call(keel_abi.Context(threads=threads), build, [q, *keys, *values, *mask], [])
            made.append(np.array(plan.run(q, *keys, *values, *mask)[0]))
            if len(keys) + len(values) > 2 and made[0].size > 0:
                assert [launch["impl"] for launch in plan.report(q, *keys, *values, *mask)["launches"]] == ["attention of rows where they are"]
        np.testing.assert_allclose(made[0], exact, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=2e-6 if dtype == np.float32 else 1e-14)
        assert made[0].tobytes() == made[1].tobytes() == made[2].tobytes()


@pytest.mark.parametrize("build", [
    lambda g, q, k, more, v: g.node("attention", q, g.node("concat", k, more, axis=0), g.node("concat", v, v, axis=0)),  # of heads, not rows
    lambda g, q, k, more, v: g.node("attention", q, g.node("add", k, more), v)])
def test_other_calls_are_run_by_their_nodes(build):
    rng = np.random.default_rng(0)
    q, k, more, v = (rng.standard_normal((n, 4, 32)).astype(np.float32) for n in (4, 2, 2, 2))
    inputs = [q, k, more, v] if "concat" in build.__code__.co_consts else [q[:2], k, more, v]
    plan, alone = as_call(keel_abi.Context(), build, inputs, []), as_call(keel_abi.Context(), build, inputs, [], device="reference")
    assert "attention of rows where they are" not in [launch["impl"] for launch in plan.report(*inputs)["launches"]]
    np.testing.assert_allclose(plan.run(*inputs)[0], alone.run(*inputs)[0], rtol=1e-4, atol=2e-6)


def turn(g, x):
    return g.node("transpose", x, perm=[0, 2, 1, 3])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("kind", ["plain", "causal", "mask", "hidden"])
# rows of q, rows of k and v, columns of q and k, columns of v, which of q, k, v and the result have their heads between the rows
@pytest.mark.parametrize("dims", [(128, 128, 64, 64, "qkvy"), (3, 70, 64, 32, "qkvy"), (2, 40, 256, 96, "kvy"), (61, 45, 20, 32, "vy"),
                                  (50, 1100, 64, 33, "qkvy"), (1, 1, 8, 32, "qkvy"), (30, 30, 16, 64, "q"), (0, 4, 16, 32, "qkvy"), (5, 4, 16, 0, "qkvy")], ids=str)
def test_turned_heads(dims, kind, dtype):
    rows, kept, depth, columns, turned = dims
    rng = np.random.default_rng(rows)
    shapes = {"q": (rows, depth), "k": (kept, depth), "v": (kept, columns)}
    dense = {name: rng.standard_normal((2, 3, *shape)).astype(dtype) for name, shape in shapes.items()}
    inputs = [x.swapaxes(1, 2).copy() if name in turned else x for name, x in dense.items()]
    mask = triangle(-1e9)(3, rows, kept).astype(dtype) if kind == "hidden" else rng.standard_normal((2, 1, rows, kept)).astype(dtype)
    masks = [mask] if kind in ("mask", "hidden") else []

    def attend(g, *xs):
        xs = [turn(g, x) if name in turned else x for name, x in zip("qkv", xs)] + list(xs[3:])
        y = g.node("attention", *xs, causal=kind == "causal")
        return turn(g, y) if "y" in turned else y

    made = []
    for threads in (1, 3):
        plan = as_nodes(keel_abi.Context(threads=threads), attend, inputs, masks, device="cpu")
        assert "attention of rows where they are" in [step["impl"] for step in plan.report(*inputs)["launches"]] or 0 in dims or rows == 1
        made.append(np.array(plan.run(*inputs)[0]))
    exact = wanted(*(dense[name].astype(np.float64) for name in "qkv"), masks[0].astype(np.float64) if masks else None, kind == "causal")
    exact = exact.swapaxes(1, 2) if "y" in turned else exact
    np.testing.assert_allclose(made[0], exact, rtol=1e-4 if dtype == np.float32 else 1e-12, atol=2e-6 if dtype == np.float32 else 1e-14)
    assert made[0].tobytes() == made[1].tobytes()


@pytest.mark.parametrize("rows", [1, 3, 40])
def test_turned_rows_are_joined(rows):
    """Keys and values of new tokens come with their heads between the rows, the kept ones do not."""
    rng = np.random.default_rng(rows)
    q, a, b = (rng.standard_normal((2, rows, 3, 32)).astype(np.float32) for _ in range(3))
    k, v = (rng.standard_normal((2, 3, 50, 32)).astype(np.float32) for _ in range(2))

    def attend(g, q, a, b, k, v):
        keys, values = (g.node("concat", kept, turn(g, new), axis=2) for kept, new in ((k, a), (v, b)))
        return turn(g, g.node("attention", turn(g, q), keys, values))
    plan = as_nodes(keel_abi.Context(threads=2), attend, [q, a, b, k, v], [], device="cpu")
    assert [step["impl"] for step in plan.report(q, a, b, k, v)["launches"]] == ["attention of rows where they are"] or rows == 1
    turned = [x.swapaxes(1, 2).astype(np.float64) for x in (q, a, b)]
    exact = wanted(turned[0], np.concatenate([k, turned[1]], 2), np.concatenate([v, turned[2]], 2), None, False).swapaxes(1, 2)
    np.testing.assert_allclose(plan.run(q, a, b, k, v)[0], exact, rtol=1e-4, atol=2e-6)
