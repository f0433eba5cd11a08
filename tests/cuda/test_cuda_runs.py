"""Runs: recordings, faults that travel with results, queues in a random order, profiles, several threads."""
import json
import random

import numpy as np
import pytest
import replays

import keel

X = np.arange(12, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize("seed", range(3))
def test_random_feeds_sizes_and_faults(context, fake, seed):
    before = fake.calls("cuGraphLaunch")
    replays.run_at_random(context, "cuda", replays.plan_of(context, "cuda"), random.Random(seed))
    assert fake.calls("cuGraphLaunch") > before + 30


def test_threads_replay_one_recording(context):
    replays.run_in_threads(replays.plan_of(context, "cuda"), 4, 25)


def test_variables_after_a_fault_in_a_replay(context):
    replays.update_a_variable(context, "cuda")


def test_a_replay_launches_a_graph_and_the_table_if_it_changed(context, fake):
    lines = "".join(f"  s{k + 1} = add(s{k}, y)\n" for k in range(50))
    text = f"keel 1\nfn @main(s0: f32[3], y: f32[3]) -> f32[3] {{\n{lines}  return s50\n}}\nentry main = @main (s0, y) -> (_)\n"
    plan, y = replays.plan_of(context, "cuda", text), np.array([1, 2, -3], np.float32)
    there = context.array(y).to("cuda").wait()
    starts = [context.array(np.full(3, k, np.float32)).to("cuda").wait() for k in range(12)]
    seen = []
    for k in (*range(12), *range(4, 12), *[9] * 6, *[3, 9] * 6):
        before = fake.calls("cuLaunchKernel"), fake.calls("cuGraphLaunch")
        got, = plan.run_arrays(starts[k], there)
        seen.append((fake.calls("cuLaunchKernel") - before[0], fake.calls("cuGraphLaunch") - before[1]))
        np.testing.assert_array_equal(got.numpy(), k + 50 * y)
        del got  # its memory is that of the next result
    assert seen[2:12] == [(1, 1)] * 10, seen  # other addresses each time
    assert seen[-20:-12][3:] == [(0, 1)] * 5 and seen[-4:] == [(0, 1)] * 4, seen


def test_replays_read_the_tables_of_casts(context, fake):
    """A recording keeps the address of a table, which belongs to the launch."""
    text = """keel 1
fn @main(x: f32[n]) -> f32[n] {
  a = cast(x){to=f8e4m3fn}
  b = cast(a){to=f4e2m1}
  c = cast(b){to=f8e5m2}
  y = cast(c){to=f32}
  return y
}
entry main = @main (x) -> (y)
"""
    plan, oracle = (replays.plan_of(context, device, text) for device in ("cuda", "reference"))
    before = fake.calls("cuGraphLaunch")
    for k in range(6):
        x = np.linspace(-9, 9, 37, dtype=np.float32) * (k + 1) / 3
        np.testing.assert_array_equal(plan.run(x)[0], oracle.run(x)[0])
    assert fake.calls("cuGraphLaunch") == before + 5


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("bad", [4, -1, 2**31 - 1, -2**31, 2**40])
def test_an_index_out_of_range_is_named(bad):
    y = keel.gather(keel.array(X), keel.array(np.array([0, bad], np.int64)), axis=0)
    with pytest.raises(keel.Error, match=rf"index {bad} is not in \[0, 4\)"):
        keel.matmul(y + y, keel.array(np.ones((3, 2), np.float32))).numpy()


@pytest.mark.usefixtures("cuda")
@pytest.mark.parametrize("op", ["div", "mod", "rem"])
def test_division_by_zero_is_an_error(op):
    x, y = np.array([1, 2, 3], np.int32), np.array([1, 0, 1], np.int32)
    with pytest.raises(keel.Error, match="zero"):
        getattr(keel, op)(keel.array(x), keel.array(y)).numpy()
    assert getattr(keel, op)(keel.array(x), keel.array(np.array([1, 1, 1], np.int32))).numpy().shape == (3,)


@pytest.mark.parametrize("seed", range(4))
def test_uploads_work_and_downloads_meet_in_any_order_of_streams(in_child, seed):
    """Without a wait between queues, the fake driver would give NaN for some order."""
    out, _ = in_child("""
rng = np.random.default_rng(0)
with keel.device("cuda"):
    for k in range(30):
        x, y = (rng.standard_normal((9, 9)).astype(np.float32) for _ in range(2))
        z = keel.matmul(keel.array(x), keel.array(y)) + keel.array(x)
        np.testing.assert_allclose(z.numpy(), x @ y + x, rtol=1e-5, atol=1e-5)
    big = rng.standard_normal(900_000).astype(np.float32)
    np.testing.assert_array_equal((keel.array(big) + keel.array(big)).numpy(), big + big)
print("ok")
""", FAKECUDA_SEED=str(seed))
    assert out == "ok\n"


@pytest.mark.usefixtures("cuda")
def test_launches_have_times_of_the_device(tmp_path):
    x = np.ones((60, 60), np.float32)
    f = keel.function(lambda x: x @ x + x)
    f(keel.array(x)).numpy()
    with keel.profile(tmp_path / "out.json"):
        f(keel.array(x)).numpy()
    seen = [e for e in json.loads((tmp_path / "out.json").read_text()) if e["ph"] == "X" and e.get("cat") in ("matmul", "add")]
    assert sorted(e["cat"] for e in seen) == ["add", "matmul"] and all(e["dur"] > 0 for e in seen)


def test_a_training_step_is_that_of_the_reference(loaded):
    rng, results = np.random.default_rng(3), []
    x, start, head = (rng.standard_normal(s).astype(np.float32) for s in ((16, 4), (4, 3), (3, 2)))
    for device in ("cuda", "reference"):
        with keel.device(device):
            w, inputs, h = keel.Variable(start), keel.array(x), keel.array(head)

            @keel.function
            def train(x):
                with keel.Tape() as tape:
                    loss = keel.reduce_mean(keel.square(keel.tanh(x @ w) @ h))
                w.assign(w - tape.gradient(loss, w) * 0.1)
                return loss
            losses = [float(train(inputs).numpy()) for _ in range(5)]
            results.append([*losses, *(w + 0.0).numpy().ravel()])
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-4)
