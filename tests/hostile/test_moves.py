"""Arrays in device memory: moved, fed, kept there; the host reads them only through a copy."""
import gc
import random

import hostile
import keel_abi
import numpy as np
import pytest

DTYPES = [np.bool_, np.int8, np.int64, np.uint16, np.float16, np.float32, np.float64]
PLACES = ["reference", "hostile:0", "hostile:1", None]


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda t: t.__name__)
@pytest.mark.parametrize("shape", [(), (0, 3), (1,), (7,), (33, 65), (3, 0, 2), (600, 999)], ids=str)
def test_a_round_over_all_devices_keeps_the_bytes(shape, dtype):
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2 if dtype is np.bool_ else 100, shape).astype(dtype)
    context = hostile.context(hostile.seeds_of(f"{shape}{dtype}")[0])
    for first in PLACES:
        for second in PLACES:
            array = context.array(x).to(first).to(second)
            assert array.device == (second if second and second.startswith("hostile") else "")
            np.testing.assert_array_equal(array.numpy(), x)
            assert array.numpy().dtype == x.dtype


@pytest.mark.parametrize("peers", [1, 0], ids=["straight", "by_the_host"])
@pytest.mark.parametrize("shape", [(), (0, 3), (7,), (1000, 777)], ids=str)
def test_between_devices_straight_or_by_way_of_the_host(shape, peers):
    x = np.random.default_rng(3).integers(-100, 100, shape).astype(np.int32)
    for seed in hostile.seeds_of(f"{shape}{peers}"):
        context = hostile.context(seed)
        hostile.put(peers=peers, peer_copies=0)
        for first, second in (("hostile:0", "hostile:1"), ("hostile:1", "hostile:0")):
            array = context.array(x).to(first).to(second)  # the first one is freed by now, its memory poisoned
            assert array.device == second
            np.testing.assert_array_equal(array.numpy(), x)
        assert hostile.get("peer_copies") == (2 if peers and x.size else 0)


def test_devices_of_two_plugins_meet_in_the_host():
    context = hostile.context(2)
    context.load_plugin(hostile.LACKING)
    hostile.put(peer_copies=0)
    hostile.put(hostile.LACKING, peer_copies=0)
    x = np.arange(100, dtype=np.float64)
    for first, second in (("hostile:1", "lacking:0"), ("lacking:1", "hostile:0")):
        array = context.array(x).to(first).to(second)
        assert array.device == second
        np.testing.assert_array_equal(array.numpy(), x)
    assert hostile.get("peer_copies") == hostile.get("peer_copies", hostile.LACKING) == 0


@pytest.mark.parametrize("peers", [1, 0], ids=["straight", "by_the_host"])
def test_a_placed_plan_copies_straight(peers):
    context = hostile.context(3)
    hostile.put(peers=peers, peer_copies=0)
    module = context.parse("""keel 1
fn @main(x: f32[n]) -> f32[n] {
  a = exp(x) @"hostile:0" : f32[n]
  b = neg(a) @"hostile:1" : f32[n]
  c = tanh(b) @"hostile:0" : f32[n]
  return c
}
""")
    plan = module.session("hostile:0").prepare()
    for n in (1, 5, 0):
        x = np.linspace(-1, 1, n, dtype=np.float32)
        np.testing.assert_allclose(plan.run(x)[0], np.tanh(-np.exp(x)), rtol=1e-6)
    assert hostile.get("peer_copies") == (4 if peers else 0)  # two for each array, none for empty ones


def test_strided_arrays_become_row_major():
    x = np.arange(24, dtype=np.int32).reshape(4, 6)
    context = hostile.context(4)
    for view in (x.T, x[::2, ::3], x[:, ::-1]):
        np.testing.assert_array_equal(context.array(view).to("hostile").numpy(), view)


def test_where_it_is_already_it_is_the_same_array():
    context = hostile.context(4)
    host = context.array(np.ones(3))
    there = host.to("hostile:0")
    assert there.to("hostile:0")._as_parameter_.value == there._as_parameter_.value
    assert host.to("reference")._as_parameter_.value == host._as_parameter_.value


def test_what_needs_host_memory_names_the_device():
    context = hostile.context(4)
    there = context.array(np.ones(3, np.float32)).to("hostile:1")
    module = context.module()
    graph = module.graph("main")
    x = graph.param("x", np.float32, [3])
    graph.result("y", graph.node("neg", x))
    module.entry("main", graph)
    tries = {"plan on the host": lambda: module.session("reference").prepare().run(there),
             "plan on another device": lambda: module.session("hostile:0").prepare().run(there)}
    for what, attempt in tries.items():
        with pytest.raises(keel_abi.KeelError) as e:
            attempt()
        assert e.value.code == "PRECONDITION" and "hostile:1" in e.value.message, what
        assert "keel_array_to" in e.value.hint, what
    with pytest.raises(keel_abi.KeelError, match='no device "nowhere"'):
        there.to("nowhere")


def test_a_constant_may_be_on_a_device():
    context = hostile.context(4)
    module = context.module()
    graph = module.graph("main")
    graph.result("y", graph.constant(context.array(np.arange(3, dtype=np.float32)).to("hostile:1")))
    module.entry("main", graph)
    y, = module.session("reference").prepare().run()
    np.testing.assert_array_equal(y, np.arange(3, dtype=np.float32))


def test_results_stay_on_the_device_and_are_fed_back():
    context = hostile.context(11)
    module = context.module()
    graph = module.graph("main")
    b = module.dim("b")
    x, y = (graph.param(n, np.float32, [b, 4]) for n in "xy")
    graph.result("sum", graph.node("add", x, y))
    graph.result("same", x)
    graph.result("one", graph.constant(np.float32([1, 2])))
    module.entry("main", graph)
    plan = module.session("hostile", results="device").prepare()
    for rows in (3, 1, 0, 700):
        one = np.arange(rows * 4, dtype=np.float32).reshape(rows, 4)
        total, same, const = plan.run_arrays(one, one)
        for k in range(4):
            total, same, const = plan.run_arrays(total, one)
            assert {a.device for a in (total, same, const)} == {"hostile:0"}
        np.testing.assert_array_equal(total.numpy(), one * 6)
        np.testing.assert_array_equal(same.numpy(), one * 5)
        np.testing.assert_array_equal(const.numpy(), np.float32([1, 2]))


@pytest.mark.parametrize("pool", ["on", "off"])
def test_random_sizes_fragment_and_return(pool, monkeypatch):
    """The allocator on the device: arrays of random sizes are created, used and freed; each keeps its bytes."""
    monkeypatch.setenv("KEEL_POOL", pool)
    for seed in hostile.seeds_of("fragment"):
        hostile.put(memory=20 << 20)
        context, rng, live, full = hostile.context(seed), random.Random(seed), [], 0
        negate = context.bind("hostile", "neg")
        for step in range(500):
            if live and rng.random() < 0.4:
                array, value = live.pop(rng.randrange(len(live)))
                if rng.random() < 0.5:
                    assert (array.numpy() == value).all()
                continue
            size = rng.choice([1, 100, 1000, 30_000, 200_000, 400_000, 1_000_000])
            try:
                array = context.array(np.full(size, step, np.float32)).to("hostile")
                if rng.random() < 0.3:
                    assert (negate(array) == -step).all()
                live.append((array, step))
            except keel_abi.KeelError as e:
                assert e.code == "OOM" and "has no room for" in e.message
                full += 1
        assert all((array.numpy() == value).all() for array, value in live)
        assert full > 0
        live.clear()
        del negate, array
        gc.collect()
        context.array(np.zeros(4_000_000, np.float32)).to("hostile").wait()  # all memory is free again


def test_observed_runs_show_host_copies_on_any_device():
    context = hostile.context(12)
    module = context.module()
    graph = module.graph("main")
    x = graph.param("x", np.float32, [2])
    graph.result("y", graph.node("neg", graph.node("exp", x, name="e"), name="n"))
    module.entry("main", graph)
    plan = module.session("hostile", observe=1).prepare()
    np.testing.assert_allclose(plan.run(np.float32([0, 1]))[0], [-1, -np.e], rtol=1e-6)


def test_an_eager_op_on_arrays_of_two_devices_names_both():
    """After both devices have kept launches for operands of these types."""
    context = hostile.context(5)
    x = np.arange(4, dtype=np.float32)
    on = {device: (context.bind(device, "add"), context.array(x).to(device)) for device in ("hostile:0", "hostile:1")}
    for _ in range(3):
        for add, a in on.values():
            np.testing.assert_array_equal(add(a, a), x + x)
        for device, other in (("hostile:0", "hostile:1"), ("hostile:1", "hostile:0")):
            for operands in ((on[device][1], on[other][1]), (on[other][1], on[device][1]), (on[other][1], on[other][1])):
                with pytest.raises(keel_abi.KeelError) as e:
                    on[device][0](*operands)
                assert e.value.code == "PRECONDITION"
                assert device in e.value.message and other in e.value.message
                e.value.__traceback__ = None
