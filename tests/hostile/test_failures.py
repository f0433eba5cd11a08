"""Every call of every device function fails once: the error names the function and the device, nothing leaks (conftest counts),
and the context stays usable. Then: a full device, a lost device, bad data."""
import gc
import itertools

import hostile
import keel_abi
import numpy as np
import pytest

X = np.arange(12, dtype=np.float32).reshape(3, 4)
W = np.ones((4, 5), np.float32)
FUNCTIONS = ["info", "open", "segment_alloc", "queue_open", "copy", "fill", "submit", "queue_wait", "host_wait", "query",
             "copy_from", "prepare", "run"]


def module_of(context):
    module = context.module()
    graph = module.graph("main")
    x = graph.param("x", np.float32, X.shape)
    y = graph.node("matmul", x, graph.constant(W), name="product")
    graph.result("y", graph.node("relu", y))
    graph.result("z", graph.node("add", graph.constant(W), graph.constant(W)))  # folded on the host
    graph.result("w", graph.node("gather", x, graph.constant(np.zeros(2, np.int64))))  # may fail on its data
    module.entry("main", graph)
    return module


def work(context):
    """Every use of a device, without passes, which would continue without a constant that failed: a plan with a constant part,
    results that stay on the device, an eager op, moves."""
    plan = module_of(context).session("hostile", level=0).prepare()
    np.testing.assert_array_equal(plan.run(X)[0], X @ W)
    np.testing.assert_array_equal(plan.run(X)[0], X @ W)
    there = module_of(context).session("hostile", level=0, results="device").prepare().run_arrays(X)[0]
    assert there.device == "hostile:0"
    np.testing.assert_array_equal(context.bind("hostile", "neg")(there), -(X @ W))
    for peers in (1, 0):  # directly, and through the host
        hostile.put(peers=peers)
        np.testing.assert_array_equal(there.to("hostile:1").wait().to("cpu").numpy(), X @ W)
    hostile.put(peers=1)


@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_call_fails_once(function, capsys):
    counted = 0
    for n in itertools.count(1):
        context = hostile.context(n % hostile.SEEDS)
        hostile.put(shared=function != "fill")  # fault bytes in shared memory need no fill
        hostile.fail(function, n)
        try:
            work(context)
            failed = None
        except keel_abi.KeelError as e:  # not its traceback, which would keep the plan
            failed = (e.message, e.plugin, e.hint)
        fired = hostile.get("fired")
        hostile.fail()
        work(context)  # as if no call had failed
        del context
        gc.collect()
        assert hostile.get("segments") == hostile.get("queues") == hostile.get("states") == 0
        if not fired:
            assert failed is None
            break
        counted += 1
        if function == "query":  # only reports earlier than a wait would
            assert failed is None
            continue
        assert failed is not None, f"call {n} of {function} failed without an error"
        assert f"injected failure of {function}" in failed[0], failed
        assert failed[1] == "hostile" and "hostile:" in failed[0] + failed[2], failed
    with capsys.disabled():
        print(f" [{function}: {counted} calls] ", end="")
    assert counted or function == "query"


def test_every_call_of_any_function_fails_once_on_one_seed():
    """One count over all functions, so that a failure may also hit the recovery from an earlier one."""
    for n in itertools.count(1):
        context = hostile.context(3)
        hostile.fail("", n)
        try:
            work(context)
        except keel_abi.KeelError as e:
            assert "injected failure" in e.message
        fired = hostile.get("fired")
        hostile.fail()
        work(context)
        if not fired:
            break
    assert n > 60


def test_a_full_device_is_tidied_once_before_it_is_an_error():
    context = hostile.context(5)
    hostile.fail("segment_alloc", 1, 8)
    work(context)  # KEEL_OOM once: the allocator waits, trims and retries
    assert hostile.get("fired") == 1


def test_the_error_of_a_full_device_shows_a_map_of_its_memory():
    hostile.put(memory=8 << 20)
    context = hostile.context(6)
    kept = [context.array(np.zeros(1 << 18, np.float32)).to("hostile").wait() for _ in range(7)]
    with pytest.raises(keel_abi.KeelError) as e:
        context.array(np.zeros(1 << 20, np.float32)).to("hostile")
    assert e.value.code == "OOM" and "hostile:0" in e.value.message
    assert "has no room for 4194304 bytes" in e.value.message
    assert e.value.message.count("segment of 2.0 MiB") == 4 and "in 7 pieces" in e.value.message
    del kept[::2]
    gc.collect()
    context.array(np.zeros(1 << 18, np.float32)).to("hostile").wait()


def test_a_tensor_larger_than_any_segment_is_refused_by_name():
    hostile.put(max_segment=1 << 20)
    context = hostile.context(7)
    with pytest.raises(keel_abi.KeelError, match="its segments have at most 1048576 bytes"):
        context.array(np.zeros(1 << 20, np.float32)).to("hostile")
    context.array(np.zeros(1 << 17, np.float32)).to("hostile").wait()


def test_a_lost_device_says_so_and_lets_go():
    context = hostile.context(8)
    plan = module_of(context).session("hostile", level=0).prepare()
    plan.run(X)
    kept = context.array(X).to("hostile")
    hostile.put(lost=1)
    for call in (lambda: plan.run(X), lambda: kept.numpy(), lambda: context.array(X).to("hostile")):
        with pytest.raises(keel_abi.KeelError, match="the device is lost") as e:
            call()
        assert e.value.code == "UNAVAILABLE" and "hostile:0" in e.value.message
    np.testing.assert_array_equal(context.apply("reference", "neg", X), -X)


def gathering(context, device):
    module = context.module()
    graph = module.graph("main")
    x, i = graph.param("x", np.float32, [5]), graph.param("i", np.int64, [2])
    graph.result("y", graph.node("gather", x, i, axis=0, name="pick"))
    d = graph.param("d", np.int32, [2])
    graph.result("q", graph.node("div", d, d, name="quotient"))
    module.entry("main", graph)
    return module.session(device).prepare()


@pytest.mark.parametrize("index,divisor,node,what", [([0, 9], [1, 1], "pick", "index 9 is not in [0, 5)"),
                                                     ([0, 1], [1, 0], "quotient", "integer division by zero")])
def test_bad_data_is_found_by_the_fault_word_and_named(index, divisor, node, what):
    context = hostile.context(9)
    plan = gathering(context, "hostile")
    x, good = np.arange(5, dtype=np.float32), (np.array([4, 0]), np.array([2, 3], np.int32))
    with pytest.raises(keel_abi.KeelError) as e:
        plan.run(x, np.array(index), np.array(divisor, np.int32))
    assert e.value.code == "RANGE" and e.value.node == node and e.value.plugin == "hostile"
    assert f'"{node}"' in e.value.message and "hostile:0" in e.value.message and what in e.value.message
    np.testing.assert_array_equal(plan.run(x, *good)[0], x[good[0]])  # the next run is not affected
    with pytest.raises(keel_abi.KeelError) as reference:
        gathering(context, "reference").run(x, np.array(index), np.array(divisor, np.int32))
    assert (reference.value.code, reference.value.node) == ("RANGE", node)
