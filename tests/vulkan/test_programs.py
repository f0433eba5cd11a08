"""Functions, sessions, variables, training and eager batches. NumPy is the model."""
import re
from pathlib import Path

import numpy as np
import pytest

import keel

pytestmark = pytest.mark.usefixtures("vulkan")
RNG = np.random.default_rng(5)


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def test_a_function_runs_there_and_its_results_stay():
    x, w, b = floats(6, 4), floats(4, 3), floats(3)
    f = keel.function(lambda x, w, b: keel.softmax(x @ w + b, axis=1))
    e = np.exp(x @ w + b)
    for _ in range(4):
        y = f(keel.array(x), keel.array(w), keel.array(b))
        assert str(y.device) == "vulkan:0"
        np.testing.assert_allclose(y.numpy(), e / e.sum(1, keepdims=True), rtol=1e-5, atol=1e-6)
    assert f(keel.array(floats(0, 4)), keel.array(w), keel.array(b)).numpy().shape == (0, 3)


def test_a_saved_session(tmp_path):
    x = floats(5, 4)
    keel.save(tmp_path / "f.keel", main=keel.function(lambda x: keel.reduce_sum(x @ x.T, [0])).concrete(keel.array(x)))
    session = keel.Session(tmp_path / "f.keel", "vulkan")
    for _ in range(4):
        np.testing.assert_allclose(next(iter(session.run(x=x).values())).numpy(), (x @ x.T).sum(0), rtol=1e-5, atol=1e-5)


def test_variables_live_on_the_device():
    v = keel.Variable(np.ones((2, 3), np.float32))
    add = keel.function(lambda x: v.assign(v + x))
    x = floats(2, 3)
    want = np.ones((2, 3), np.float32)
    for k in range(5):
        add(keel.array(x))
        want = want + x
        if k % 2:
            v.assign(keel.array(want) + keel.array(x))
            want = want + x
        np.testing.assert_array_equal((v + 0.0).numpy(), want)


def test_training_steps():
    """Two layers and gradient descent. Steps are products with a matrix."""
    x, first, second = floats(16, 4), floats(4, 3), floats(3, 1)
    steps = [(-0.01 * np.eye(n)).astype(np.float32) for n in (4, 3)]
    a, b = keel.Variable(first), keel.Variable(second)

    @keel.function
    def train(x):
        with keel.Tape() as tape:
            loss = keel.reduce_sum((x @ a) @ b)
        of_a, of_b = tape.gradient(loss, [a, b])
        a.assign(a + keel.array(steps[0]) @ of_a)
        b.assign(b + keel.array(steps[1]) @ of_b)
        return loss

    ones = np.ones((16, 1), np.float32)
    for _ in range(6):
        loss = train(keel.array(x))
        np.testing.assert_allclose(loss.numpy(), (x @ first @ second).sum(), rtol=1e-4, atol=1e-4)
        of_first, of_second = x.T @ ones @ second.T, (x @ first).T @ ones
        first, second = first + steps[0] @ of_first, second + steps[1] @ of_second
    np.testing.assert_allclose((a + 0.0).numpy(), first, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose((b + 0.0).numpy(), second, rtol=1e-4, atol=1e-4)


def test_eager_batches(driver):
    """Eager ops wait for a batch of 32, or for a look at a result."""
    x = keel.array(np.ones(8, np.float32)) + 0.0
    y = x
    before = driver.calls("vkQueueSubmit2")
    for _ in range(200):
        y = y + x
    submits = driver.calls("vkQueueSubmit2") - before
    np.testing.assert_array_equal(y.numpy(), np.full(8, 201, np.float32))
    assert submits <= 30


def test_large_arrays_go_through_staging_memory():
    x = RNG.integers(0, 1000, 9_000_001).astype(np.float32)
    there = keel.array(x).to("vulkan")
    last = keel.slice(there, start=[8_999_990], stop=[9_000_001])
    np.testing.assert_array_equal(last.numpy(), x[-11:])
    np.testing.assert_array_equal(there.numpy(), x)


EXAMPLES = Path(__file__).resolve().parents[2] / "sdk" / "python" / "examples"
RUN = """
import runpy, sys
sys.path.insert(0, {folder!r})
sys.argv = {argv!r}
keel.device({device!r}).__enter__()
{code}
"""
WHOLE = "runpy.run_path(sys.argv[0], run_name='__main__')"
FEW_LETTERS = "import chars\nchars.BATCH, chars.WRITES = 4, 4\nchars.main()"


@pytest.mark.parametrize("name, code, options", ids=["digits", "conv", "chars"], argvalues=[
    ("digits", WHOLE, ["--epochs", "3", "--goal", "0.8"]),
    ("conv", WHOLE, ["--epochs", "2", "--goal", "0", "--data", "few.csv"]),
    ("chars", FEW_LETTERS, ["--steps", "4", "--goal", "9", "--text", "text.txt"])])
def test_the_examples_learn_as_much_as_on_cpu(in_child, tmp_path, name, code, options):
    """The last loss, and the share or the entropy in the test."""
    np.savetxt(tmp_path / "few.csv", RNG.integers(0, 10, (160, 65)), fmt="%d", delimiter=",")
    (tmp_path / "text.txt").write_text("abcdefgh " * 200)
    options = [str(tmp_path / o) if (tmp_path / o).exists() else o for o in options]
    argv = [str(EXAMPLES / f"{name}.py"), "--out", str(tmp_path), *options]
    on_cpu, here = ([float(n) for n in re.findall(r"(?:loss|in the test) (\d+\.\d+)", in_child(RUN.format(
        folder=str(EXAMPLES), argv=argv, device=device, code=code))[0])] for device in ("cpu", "vulkan"))
    assert len(here) == (1 if name == "chars" else 2)
    np.testing.assert_allclose(here, on_cpu, rtol=0, atol=0.005)
