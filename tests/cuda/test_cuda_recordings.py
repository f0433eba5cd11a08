"""Recordings with products by cuBLASLt, whose kernels keep addresses: a graph for each of a few sets of addresses, and encoded launches
for others. NumPy is the oracle."""
import gc
import os
import random

import numpy as np
import pytest
from replays import plan_of, run_in_threads
from together import together

PROGRAM = """keel 1
fn @main(x: f32[n, 64], w: f32[64, 64], b: f32[64]) -> f32[n, 64] {
  h0 = linear(x, w, b)
  h1 = tanh(h0)
  h2 = matmul(h1, w)
  h3 = neg(h2)
  h4 = matmul(h3, w){tb=true}
  h5 = add(h4, x)
  y = matmul(h5, w)
  return y
}
entry main = @main (x, w, b) -> (y)
"""
PRODUCTS = 4
returning = pytest.mark.skipif(os.environ.get("KEEL_POOL") == "off", reason="KEEL_POOL=off: memory is not used again, so no address returns")


def numbers(*shape, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) / 4).astype(np.float32)


def model(x, w, b):
    return (-(np.tanh(x @ w + b) @ w) @ w.T + x) @ w


def near(got, want):
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


class Runs:
    """A plan of PROGRAM with feeds on the device."""

    def __init__(self, context, fake, feeds, rows=70):
        self.plan, self.fake = plan_of(context, "cuda", PROGRAM), fake
        self.w, self.b = numbers(64, 64, seed=1), numbers(64, seed=2)
        self.there = [context.array(a).to("cuda").wait() for a in (self.w, self.b)]
        self.feeds = [(x, context.array(x).to("cuda").wait()) for x in (numbers(rows, 64, seed=k) for k in range(feeds))]

    def start(self, k):
        x, there = self.feeds[k]
        result, = self.plan.run_arrays(there, *self.there)
        return result, model(x, self.w, self.b)

    def __call__(self, k):
        """Runs it with feed k; the calls of cuGraphLaunch, cublasLtMatmul, cuLaunchKernel and cuStreamBeginCapture."""
        before = self.fake.all_calls()
        result, want = self.start(k)
        made = self.fake.all_calls() - before
        near(result.numpy(), want)
        return tuple(made[name] for name in ("cuGraphLaunch", "cublasLtMatmul", "cuLaunchKernel", "cuStreamBeginCapture"))


GRAPH, ENCODED, CAPTURED = (1, 0, 0, 0), (0, PRODUCTS, 3, 0), (1, PRODUCTS, 4, 1)


@returning
def test_a_replay_is_one_launch_of_a_graph(context, fake):
    run = Runs(context, fake, 1)
    assert run(0) == ENCODED  # which finds algorithms and loads kernels
    assert run(0) == CAPTURED
    assert [run(0) for _ in range(5)] == [GRAPH] * 5


@returning
def test_other_addresses_get_a_graph_of_their_own_when_they_return(context, fake):
    run = Runs(context, fake, 3)
    assert [run(0), run(0), run(0)] == [ENCODED, CAPTURED, GRAPH]
    assert [run(1), run(2)] == [ENCODED] * 2
    assert [run(1), run(2)] == [CAPTURED] * 2
    assert [run(k) for k in (0, 1, 2, 2, 1, 0)] == [GRAPH] * 6


@returning
def test_a_cycle_longer_than_the_list_of_graphs_is_not_captured_again_and_again(context, fake):
    run = Runs(context, fake, 6)
    for _ in range(4):
        for k in range(6):
            run(k)
    seen = [run(k) for _ in range(5) for k in range(6)]
    assert sorted(set(seen)) == [ENCODED, GRAPH] and seen.count(GRAPH) == 20


@returning
def test_graphs_that_are_idle_give_way(context, fake):
    gc.collect()  # of other tests
    before, run = fake.all_calls(), Runs(context, fake, 16)
    for first in (0, 4, 8, 12):
        for _ in range(24):
            for k in range(first, first + 4):
                run(k)
        assert [run(k) for k in range(first, first + 4)] == [GRAPH] * 4
    made = fake.all_calls() - before
    assert (made["cuGraphInstantiate"], made["cuGraphExecDestroy"], made["cuGraphDestroy"]) == (16, 12, 16)


@pytest.mark.parametrize("seed", range(4))
def test_random_addresses(context, fake, seed):
    """Results are kept for a while, so theirs change, too."""
    draw, run, kept = random.Random(seed), Runs(context, fake, 5), []
    before = fake.all_calls()
    for _ in range(120):
        kept.append(run.start(draw.randrange(1 if draw.random() < 0.7 else 5)))
        while len(kept) > draw.randrange(6):
            result, want = kept.pop(draw.randrange(len(kept)))
            near(result.numpy(), want)
    for result, want in kept:
        near(result.numpy(), want)
    made = fake.all_calls() - before
    assert made["cuGraphLaunch"] > 60 and made["cublasLtMatmul"] > 30 and made["cuStreamBeginCapture"] < 20, made


def test_feeds_of_the_host(context, fake):
    plan, w, b = plan_of(context, "cuda", PROGRAM), numbers(64, 64, seed=1), numbers(64, seed=2)
    for k in range(12):
        x = numbers(70 if k % 3 else 3, 64, seed=k)  # 3 rows: too small for cuBLASLt
        near(plan.run(x, w, b)[0], model(x, w, b))


def test_threads_replay_it(context, fake):
    run = Runs(context, fake, 4)

    def work(thread):
        for k in range(30):
            result, want = run.start((thread * k) % 4)
            near(result.numpy(), want)
    together(3, work)
    assert fake.calls("cuGraphLaunch") > 20


def test_without_memory_for_graphs_the_launches_are_encoded(context, fake):
    run = Runs(context, fake, 1)
    run(0)
    fake.fail("cuGraphInstantiate", 1, 2)
    assert run(0) == (0, 2 * PRODUCTS, 6, 1)  # once for the graph
    assert fake.fired() == "cuGraphInstantiate"
    assert [run(0) for _ in range(3)] == [ENCODED] * 3


RELAYED = (1, 0, 1, 0)  # the graph and its table


def test_feeds_that_are_elsewhere_each_time_are_copied_by_the_graph(context, fake):
    run = Runs(context, fake, 24)
    seen = [run(k) for k in range(24)]
    assert seen[2:8] == [ENCODED] * 6 and seen[-6:] == [RELAYED] * 6, seen
    assert run(3) == RELAYED


def test_results_that_are_kept_are_copied_by_the_graph(context, fake):
    run, kept = Runs(context, fake, 1), []
    for _ in range(20):
        before = fake.calls("cuGraphLaunch")
        kept.append(run.start(0))
    assert fake.calls("cuGraphLaunch") == before + 1
    for result, want in kept:
        near(result.numpy(), want)


SHARED = """keel 1
fn @main(x: f16[n, 67], w: f16[67, 67]) -> f16[n, 67], f16[n, 67] {
  a = matmul(x, w)
  b = matmul(x, w){tb=true}
  c = add(a, b)
  d = matmul(c, w)
  e = add(d, x)
  f = matmul(e, w)
  return f, d
}
entry main = @main (x, w) -> (f, d)
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_feed_of_several_products_and_a_result_that_a_product_reads(context, seed):
    """67 * 67 * 2 bytes are no multiple of 16."""
    draw, plan, oracle = random.Random(seed), plan_of(context, "cuda", SHARED), plan_of(context, "reference", SHARED)
    feeds = [(numbers(67, 67, seed=k) / 2).astype(np.float16) for k in range(30)]
    there, kept = [context.array(x).to("cuda").wait() for x in feeds], []
    for _ in range(40):
        x, w = draw.randrange(30), draw.randrange(30) if draw.random() < 0.5 else 0
        kept.append((plan.run_arrays(there[x], there[w]), oracle.run(feeds[x], feeds[w])))
        if len(kept) > 3:
            results, want = kept.pop(draw.randrange(3))
            for result, expected in zip(results, want, strict=True):
                np.testing.assert_allclose(result.numpy(), expected, rtol=2e-2, atol=2e-2)


LONG = """keel 1
fn @main(x: f32[9, 250000], y: f32[9, 250000]) -> f32[9, 9] {
  a = matmul(x, y){tb=true}
  b = matmul(y, y){tb=true}
  c = add(a, b)
  d = neg(c)
  e = neg(d)
  return e
}
entry main = @main (x, y) -> (e)
"""


def test_operands_of_more_than_8_mib_are_not_copied(context, fake):
    plan = plan_of(context, "cuda", LONG)
    feeds = [np.full((9, 250_000), k, np.float32) for k in range(14)]
    there = [context.array(x).to("cuda").wait() for x in feeds]
    before = fake.all_calls()
    for k in range(14):
        np.testing.assert_array_equal(plan.run_arrays(there[k], there[1])[0].numpy(), np.full((9, 9), 250_000 * (k + 1)))
    made = fake.all_calls() - before
    assert made["cuGraphLaunch"] == 1 and made["cublasLtMatmul"] == 28, made  # two in each run


@returning
def test_without_memory_for_copies_the_launches_are_encoded(context, fake):
    run = Runs(context, fake, 24)
    for k in range(8):
        run(k)
    fake.fail("cuMemAlloc", 1, 2)
    seen = [run(k) for k in range(8, 16)]
    assert fake.fired() == "cuMemAlloc" and sum(made == ENCODED for made in seen) == 7, seen
    assert [run(k) for k in range(16, 24)][-1] == RELAYED  # tried again


def test_more_threads_than_graphs_replay_one_recording(context, fake):
    """Each thread has memory of its own for the plan's values."""
    before, plan = fake.calls("cuGraphLaunch"), plan_of(context, "cuda")
    run_in_threads(plan, 7, 40)
    assert fake.calls("cuGraphLaunch") > before + 100


SUMS = """keel 1
fn @main(x: f32[70, 66], w: f32[66, 66], b: f32[66], m: f32[70, 66]) -> f32[70, 66], f32[70, 66] {
  p = matmul(x, w)
  q = add(p, b)
  h = add(q, m)
  t = tanh(h)
  s = matmul(t, w){tb=true}
  u = add(s, x)
  v = neg(u)
  y = matmul(v, w)
  z = add(y, m)
  return z, u
}
entry main = @main (x, w, b, m) -> (z, u)
"""


@pytest.mark.parametrize("seed", range(3))
def test_sums_with_feeds_that_are_elsewhere(context, seed):
    draw, plan = random.Random(seed), context.parse(SUMS).session("cuda", results="device").prepare()
    w, bs = numbers(66, 66, seed=99), [numbers(66, seed=k) for k in range(20)]
    xs, ms = ([numbers(70, 66, seed=k + start) for k in range(20)] for start in (20, 40))
    there = {id(a): context.array(a).to("cuda").wait() for a in (w, *bs, *xs, *ms)}
    kept = []
    for _ in range(40):
        feeds = draw.choice(xs), w, draw.choice(bs) if draw.random() < 0.5 else bs[0], draw.choice(ms)
        x, _, b, m = feeds
        u = np.tanh(x @ w + b + m) @ w.T + x
        kept.append((plan.run_arrays(*(there[id(a)] for a in feeds)), (-u @ w + m, u)))
        if len(kept) > 3:
            for got, want in zip(*kept.pop(draw.randrange(3)), strict=True):
                near(got.numpy(), want)
    impls = [launch["impl"] for launch in plan.report(*(there[id(a)] for a in feeds))["launches"]]
    assert impls.count("cuBLASLt, with sums") == 3, impls
