"""Threads of the cpu device: their number, the total over concurrent callers, forked children, bits."""
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import keel_abi
import numpy as np
import pytest
from regions import as_call, as_nodes

HERE = Path(__file__).resolve().parent
CORES = len(os.sched_getaffinity(0))


def dense(g, x, w, b):
    return g.node("relu", g.node("add", g.node("matmul", x, w), b))


def image(g, x, w):
    return g.node("relu", g.node("conv", x, w, lo=[1, 1], hi=[1, 1]))


def sent_back(g, dy, x):
    return g.node("conv_grad_w", dy, x, dims=[32, 32, 3, 3], stride=[1, 1], dil=[1, 1], lo=[1, 1])


def arrays(*shapes):
    rng = np.random.default_rng(7)
    return [rng.standard_normal(s).astype(np.float32) for s in shapes]


CASES = {"dense": (dense, [(512, 512)], [(512, 512), (512,)]),
         "deep": (dense, [(4, 8192)], [(8192, 96), (96,)]),
         "deep sums": (dense, [(8, 4608)], [(4608, 64), (64,)]),
         "image": (image, [(2, 32, 40, 40)], [(64, 32, 3, 3)]),
         "narrow image": (image, [(1, 256, 7, 7)], [(256, 256, 3, 3)]),
         "gradient": (sent_back, [(5, 32, 20, 20), (5, 32, 20, 20)], []),
         "one channel": (image, [(1, 3, 64, 64)], [(24, 3, 3, 3)])}


def plan_of(name, threads, make=as_call):
    build, inputs, constants = CASES[name]
    inputs, constants = arrays(*inputs), arrays(*constants)
    if make is as_nodes:
        return make(keel_abi.Context(threads=threads), build, inputs, constants, device="cpu"), inputs
    return make(keel_abi.Context(threads=threads), build, inputs, constants), inputs


# Prints how many threads a plan and its run add to the process.
COUNT = """
import sys
sys.path[:0] = {paths!r}
import os
from test_cpu_threads import plan_of
before = len(os.listdir("/proc/self/task"))
plan, inputs = plan_of("dense", 64)
plan.run(*inputs)
print(len(os.listdir("/proc/self/task")) - before)
"""


def threads_added(*command, **environment):
    code = COUNT.format(paths=[str(HERE), str(HERE.parent / "python")])
    out = subprocess.run([*command, sys.executable, "-c", code], env={**os.environ, **environment},
                         capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr
    return int(out.stdout)


def quota(folder, **files):
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return str(folder)


def test_a_run_uses_the_cores_of_the_process_at_most():
    assert threads_added() == CORES - 1


@pytest.mark.skipif(CORES < 2, reason="needs two cores to leave one out")
def test_affinity_limits_the_threads():
    first = min(os.sched_getaffinity(0))
    assert threads_added("taskset", "-c", str(first)) == 0


@pytest.mark.skipif(CORES < 2, reason="needs two cores to leave one out")
def test_a_mask_set_before_the_start_limits_the_threads():
    """The mask of a child that its parent restricts, as a container or a batch system does."""
    only = [sys.executable, "-c", "import os, sys; os.sched_setaffinity(0, {max(os.sched_getaffinity(0))}); os.execv(sys.argv[1], sys.argv[1:])"]
    assert threads_added(*only) == 0


@pytest.mark.skipif(CORES < 2, reason="needs two cores to leave one out")
def test_the_tighter_of_mask_and_quota_limits_the_threads(tmp_path):
    first = min(os.sched_getaffinity(0))
    folder = quota(tmp_path, cpu__max="150000 100000")
    assert threads_added("taskset", "-c", str(first), KEEL_CGROUP=folder) == 0
    folder = quota(tmp_path, cpu__max="max 100000", cpu__cfs_quota_us="50000", cpu__cfs_period_us="100000")
    assert threads_added(KEEL_CGROUP=folder) == CORES - 1, "version 2 decides if both are there"


@pytest.mark.parametrize("text, cores", [("100000 100000", 1), ("50000 100000", 1), ("150000 100000", 2),
                                         ("max 100000", 10**6), ("broken", 10**6)])
def test_quota_of_the_control_group_limits_the_threads(tmp_path, text, cores):
    assert threads_added(KEEL_CGROUP=quota(tmp_path, cpu__max=text)) == min(cores, CORES) - 1


def test_quota_of_an_old_control_group_limits_the_threads(tmp_path):
    folder = quota(tmp_path, cpu__cfs_quota_us="90000", cpu__cfs_period_us="100000")
    assert threads_added(KEEL_CGROUP=folder) == 0
    folder = quota(tmp_path, cpu__cfs_quota_us="-1", cpu__cfs_period_us="100000")
    assert threads_added(KEEL_CGROUP=folder) == CORES - 1


# Maps of the process after a product on the cpu device: Keel does not use a program's own OpenMP, and needs none.
MAPS = """
import sys
sys.path[:0] = {paths!r}
from test_cpu_threads import plan_of
plan, inputs = plan_of("dense", 64)
plan.run(*inputs)
print(open("/proc/self/maps").read())
"""


def test_onednn_uses_threads_of_ours_and_no_libgomp():
    code = MAPS.format(paths=[str(HERE), str(HERE.parent / "python")])
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr
    assert "libkomp.so.1" in out.stdout and "libkdnn.so.3" in out.stdout
    assert "libgomp" not in out.stdout and "libdnnl" not in out.stdout


def test_a_libgomp_of_the_program_is_left_alone():
    """It is loaded first and globally: its functions have other names than the OpenMP functions of oneDNN."""
    if not list(Path("/usr/lib").rglob("libgomp.so.1")):
        pytest.skip("no libgomp.so.1 on this machine")
    assert threads_added(LD_PRELOAD="libgomp.so.1", OMP_NUM_THREADS="7") == CORES - 1


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("make", [as_call, as_nodes])
def test_a_forked_child_computes_the_same(name, make):
    plan, inputs = plan_of(name, CORES, make)
    wanted = np.array(plan.run(*inputs)[0])
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # a child that waits for threads of its parent is killed
        same = np.array_equal(plan.run(*inputs)[0], wanted)
        same &= np.array_equal(plan_of(name, CORES, make)[0].run(*inputs)[0], wanted)
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0


def running():
    """Number of threads of this process that run or are runnable."""
    states = []
    for task in os.listdir("/proc/self/task"):
        try:
            states.append(Path(f"/proc/self/task/{task}/stat").read_text().rpartition(")")[2].split()[0])
        except OSError:
            pass  # it has just ended
    return states.count("R")


def test_many_callers_do_not_oversubscribe():
    """Each caller has its own session; together they run no more threads than callers and cores."""
    callers, stop, counts = 8, threading.Event(), []
    plans = [plan_of("dense", CORES) for _ in range(callers)]

    def work(plan, inputs):
        while not stop.is_set():
            plan.run(*inputs)
    threads = [threading.Thread(target=work, args=p) for p in plans]
    for t in threads:
        t.start()
    for _ in range(60):
        time.sleep(0.01)
        counts.append(running())
    stop.set()
    for t in threads:
        t.join()
    # This thread, the callers, and the workers of one team; workers spin briefly after their team is done.
    assert sorted(counts)[len(counts) // 2] <= 1 + callers + CORES - 1


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("make", [as_call, as_nodes])
@pytest.mark.parametrize("threads", sorted({1, CORES}))
def test_same_inputs_and_threads_give_the_same_bits(name, make, threads):
    plan, inputs = plan_of(name, threads, make)
    first = np.array(plan.run(*inputs)[0])
    again, _ = plan_of(name, threads, make)
    for _ in range(10):
        assert np.array_equal(plan.run(*inputs)[0], first)
        assert np.array_equal(again.run(*inputs)[0], first)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("make", [as_call, as_nodes])
def test_callers_at_once_get_the_bits_of_a_caller_alone(name, make):
    """Concurrent products of other callers change the number of threads, but not the order of a sum."""
    plan, inputs = plan_of(name, CORES, make)
    wanted, wrong = np.array(plan.run(*inputs)[0]), []

    def work():
        for _ in range(40):
            y = plan.run(*inputs)[0]
            if not np.array_equal(y, wanted):
                wrong.append(float(np.abs(y - wanted).max()))
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


SUMS = {"rows": ([0], (5000, 37)), "columns": ([1], (37, 5000)), "all": ([0, 1], (300, 700)), "one": ([0], (1, 1)), "empty": ([0], (0, 3))}


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 16, 64])
@pytest.mark.parametrize("name", SUMS)
def test_any_number_of_threads_gives_the_sums_of_one(name, threads):
    """More threads than cores, too. The sums are split in the same places, so the bits are those of one thread."""
    axes, dims = SUMS[name]
    x, = arrays(dims)
    one, many = [np.array(as_nodes(keel_abi.Context(threads=t), lambda g, v: g.node("reduce_sum", v, axes=axes), [x], [], device="cpu").run(x)[0])
                 for t in (1, threads)]
    assert np.array_equal(one, many)
    np.testing.assert_allclose(many, x.astype(np.float64).sum(tuple(axes)), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("threads", [1, 2, 3, 7, 16, 64])
@pytest.mark.parametrize("name", CASES)
def test_any_number_of_threads_is_right(name, threads):
    build, inputs, constants = CASES[name]
    values = [*arrays(*inputs), *arrays(*constants)]
    wanted = np.array(as_nodes(keel_abi.Context(), build, values, []).run(*values)[0])
    plan, fed = plan_of(name, threads)
    got = np.array(plan_of(name, threads, as_nodes)[0].run(*fed)[0])
    for y in (got, np.array(plan.run(*fed)[0])):
        np.testing.assert_allclose(y, wanted, rtol=1e-4, atol=1e-4 * float(abs(wanted).max()))


def test_nested_use_from_many_threads_of_the_host():
    """Each of 16 threads has a context for 64 threads, and starts another thread that runs the same plan at the same time."""
    wanted, wrong = {name: np.array(plan_of(name, 1)[0].run(*plan_of(name, 1)[1])[0]) for name in CASES}, []

    def work(name):
        for make in (as_call, as_nodes):
            plan, inputs = plan_of(name, 64, make)
            inner = threading.Thread(target=lambda: compare(name, plan, inputs))
            inner.start()
            compare(name, plan, inputs)
            inner.join()

    def compare(name, plan, inputs):
        y = np.array(plan.run(*inputs)[0])
        if not np.allclose(y, wanted[name], rtol=1e-4, atol=1e-4 * float(abs(wanted[name]).max())):
            wrong.append(name)
    threads = [threading.Thread(target=work, args=(list(CASES)[i % len(CASES)],)) for i in range(16)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# Below AVX-512 oneDNN splits the sum of a product with few results among left-over threads, which then wait for each other in a
# spin: here it gets no more threads than it has blocks of results, so the bits equal those with one thread.
DEEP = """
import sys
sys.path[:0] = {paths!r}
import numpy as np
from test_cpu_threads import as_call, as_nodes, plan_of
for make in as_call, as_nodes:
    one, two = [np.array(plan.run(*inputs)[0]) for plan, inputs in (plan_of("deep sums", n, make) for n in (1, 2))]
    assert np.array_equal(one, two), float(np.abs(one - two).max())
"""


@pytest.mark.skipif(CORES < 2, reason="needs two threads")
def test_no_sum_is_split_among_threads_on_an_older_machine():
    code = DEEP.format(paths=[str(HERE), str(HERE.parent / "python")])
    out = subprocess.run([sys.executable, "-c", code], env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"},
                         capture_output=True, text=True, timeout=120)
    assert out.returncode == 0, out.stderr


@pytest.mark.parametrize("test", ["callers_at_once_get_the_bits_of_a_caller_alone", "a_forked_child_computes_the_same"])
def test_bits_with_the_instructions_of_an_older_machine(test):
    """There oneDNN sums a product with few results in as many parts as there are threads."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, "-k", f"{test} and deep"]
    out = subprocess.run(command, env={**os.environ, "ONEDNN_MAX_CPU_ISA": "AVX2"}, capture_output=True, text=True,
                         timeout=120)
    assert out.returncode == 0, out.stdout


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("dims", [(1, 2, 130, 64), (3, 1, 97, 40), (2, 4, 33, 16)])
def test_attention_has_the_same_bits_with_any_number_of_threads(dims, causal):
    """It sums over rows, and threads never share a row; for each instruction set."""
    def build(g, q, k, v):
        return g.node("attention", q, k, v, causal=causal)
    inputs = arrays(dims, dims, dims)
    runs = [as_nodes(keel_abi.Context(threads=t), build, inputs, [], device="cpu").run(*inputs)[0] for t in (1, 2, CORES)]
    assert all(np.array_equal(runs[0], y) for y in runs)


@pytest.mark.skipif(CORES < 2, reason="needs two threads")
@pytest.mark.parametrize("dy, w, image", [((1, 8, 7, 7), (8, 32, 5, 5), 14), ((1, 96, 7, 7), (96, 32, 1, 1), 14)])
def test_weights_packed_for_all_threads_serve_runs_with_fewer(dy, w, image):
    """With one thread oneDNN only has slow code for the layout that it selects with two."""
    dy, w = arrays(dy, w)
    lo = [w.shape[2] // 2] * 2

    def build(g, dy, w):
        return g.node("conv_grad_x", dy, w, dims=[1, 32, image, image], stride=[2, 2], dil=[1, 1], lo=lo)
    wanted = as_nodes(keel_abi.Context(), build, [dy, w], [], device="reference").run(dy, w)[0]
    for threads in (1, 2):
        got = as_nodes(keel_abi.Context(threads=threads), build, [dy], [w], device="cpu").run(dy)[0]
        assert np.allclose(got, wanted, atol=1e-4), threads


def test_what_has_other_bits_with_other_threads_is_said():
    ops = {op["name"]: op["impls"] for op in keel_abi.Context().report("ops:cpu")}
    said = {(op, dtype) for op, impls in ops.items() for dtype, impl in impls.items() if "other threads, other bits" in impl}
    assert {(op, "f32") for op in ("matmul", "conv", "conv_grad_x", "conv_grad_w")} <= said
    assert not any(op in ("add", "exp", "attention", "reduce_sum", "softmax") or dtype == "f64" for op, dtype in said)
