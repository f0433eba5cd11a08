"""Products of a few rows by one or several constant matrices: each second run walks the packed panels in the other direction. All runs,
of any number of threads, give the same bits. Oracle: NumPy in f64."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SCRIPT = """
import sys
sys.path[:0] = {paths!r}
import keel_abi, numpy as np, subprocess
from regions import as_nodes
rng = np.random.default_rng(7)
contexts = [keel_abi.Context(threads=n) for n in (1, 2, 5)]
def bits_of_runs(a, b, **attrs):
    for context in contexts:
        plan = as_nodes(context, lambda g, x, y: g.node("matmul", x, y, **attrs), [a], [b], device="cpu")
        for _ in range(3):
            yield np.array(plan.run(a)[0])
def check(left, right):
    a, b = rng.standard_normal(left), rng.standard_normal(right)
    want, faulty = a @ b, a.astype(np.float32)
    for dtype, rtol in ((np.float32, 1e-5), (np.float64, 1e-12)):
        first, *others = bits_of_runs(a.astype(dtype), np.swapaxes(b, -1, -2).astype(dtype), tb=True)
        np.testing.assert_allclose(first, want, rtol=rtol, atol=rtol * (1 + left[-1]) ** 0.5)
        assert all((each == first).all() for each in others)
    if faulty.size == 0 or b.size == 0:
        return
    faulty.flat[0], faulty.flat[-1] = np.nan, np.inf
    first, *others = bits_of_runs(faulty, b.astype(np.float32))
    np.testing.assert_array_equal(np.isfinite(first), np.isfinite(faulty @ b))
    assert all(each.tobytes() == first.tobytes() for each in others)
for m in (0, 1, 2, 9, 32, 33):
    for k, n in ((0, 5), (9, 0), (1, 1), (70, 31), (300, 65), (130, 260)):
        check((m, k), (k, n))
    for left, right in (((m, 65), (3, 65, 70)), ((1, m, 9), (4, 9, 5)), ((2, m, 70), (2, 70, 33)), ((1, m, 3), (0, 3, 4)), ((2, 1, m, 5), (3, 5, 40))):
        check(left, right)
n = 5 * int(subprocess.check_output(["getconf", "LEVEL2_CACHE_SIZE"])) // (4 * 700) + 7  # from memory: backwards by runs of panels
for m in (1, 3):
    check((m, 700), (700, n))
    check((1, m, 350), (2, 350, n))
"""


@pytest.mark.parametrize("isa", ["sse4", "avx2", ""])
def test_runs_in_either_direction_give_the_same_bits(isa):
    code = SCRIPT.format(paths=[str(HERE), str(HERE.parent / "python")])
    env = os.environ | {"KEEL_CPU_PRODUCTS": "own", "KEEL_CPU_ISA": isa}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
