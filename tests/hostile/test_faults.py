"""Three possible faults of a core, injected between core and device: each is detected within 20 seeds, as a wrong result or an
error; without them all seeds give the right result."""
import hostile
import keel_abi
import numpy as np
import pytest

RNG = np.random.default_rng(1)
X = RNG.standard_normal((64, 32)).astype(np.float32)
W = RNG.standard_normal((32, 16)).astype(np.float32)


def product(context):
    """matmul and relu of a feed: an upload, launches, a download."""
    module = context.module()
    graph = module.graph("main")
    x = graph.param("x", np.float32, X.shape)
    y = graph.node("relu", graph.node("matmul", x, graph.constant(W)))
    graph.result("y", y)
    module.entry("main", graph)
    plan = module.session("hostile").prepare()
    for _ in range(3):
        got = plan.run(X)[0]
        np.testing.assert_allclose(got, np.maximum(X @ W, 0), rtol=1e-4, atol=1e-4)


def large_upload(context):
    """More bytes than may be in flight, so that staging memory is reused while copies wait."""
    hostile.put(delay=1)  # nothing is copied before the host waits
    arrays = [np.full(1 << 18, k, np.float32) for k in range(90)]
    there = [context.array(x).to("hostile") for x in arrays]
    hostile.put(delay=0)
    for x, y in zip(arrays, there):
        np.testing.assert_array_equal(y.numpy(), x)


def dropped_upload(context):
    """An array is dropped while its upload is in flight, and another array reuses its memory."""
    negate = context.bind("hostile", "neg")
    small = context.array(np.arange(64, dtype=np.float32)).to("hostile").wait()
    negate(small)
    for k in range(6):
        context.array(np.full(1 << 14, k, np.float32)).to("hostile")
        for v in (3, 4):
            got = negate(context.array(np.full(1 << 14, v, np.float32)).to("hostile"))
            np.testing.assert_array_equal(got, np.full(1 << 14, -v, np.float32))


def caught(job, fault):
    found = []
    for seed in range(1, hostile.SEEDS + 1):
        hostile.put(**({fault: 1} if fault else {}))
        context = hostile.context(seed)
        try:
            job(context)
        except (AssertionError, keel_abi.KeelError) as e:
            found.append((seed, str(e).strip().splitlines()[0]))
        hostile.put(**({fault: 0} if fault else {}))
        del context
    hostile.put(violations=0)  # an injected fault may break rules
    return found


@pytest.mark.parametrize("job", [product, large_upload, dropped_upload], ids=lambda j: j.__name__)
def test_no_fault_no_error(job):
    assert caught(job, None) == []


@pytest.mark.parametrize("job,fault", [(product, "drop_wait"), (dropped_upload, "early_free"), (large_upload, "late_read")])
def test_planted_fault_is_caught(job, fault, capsys):
    found = caught(job, fault)
    with capsys.disabled():
        print(f" [{fault}: caught by {len(found)} of {hostile.SEEDS} seeds] ", end="")
    assert found
