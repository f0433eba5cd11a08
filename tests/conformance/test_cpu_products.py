"""Products of f32 by oneDNN and by the own loops, whichever the table of measurements prefers: KEEL_CPU_PRODUCTS forces a side.
Small products of all widths. The oracles are NumPy in f64 and in i64."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SCRIPT = """
import sys
sys.path[:0] = {paths!r}
import keel_abi, numpy as np
rng = np.random.default_rng(1)
context = keel_abi.Context()
def draw(*shape):
    return rng.standard_normal(shape).astype(np.float32)
def by_constant(context, a, b):  # the plan of a product
    module = context.module()
    graph = module.graph("main")
    x = graph.param("x", a.dtype, a.shape)
    graph.result("y", graph.node("matmul", x, graph.constant(b)))
    module.entry("main", graph)
    return module.session("cpu").prepare()
def close(got, want, depth):
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=2e-6 * depth ** 0.5)
for m, k, n in ((1, 700, 900), (3, 900, 517), (97, 130, 70), (200, 33, 190), (1000, 65, 9), (9, 65, 1000), (64, 5000, 64), (2000, 16, 17),
                (1, 2051, 403), (16, 70, 130), (20, 40, 70), (22, 300, 200), (17, 1100, 96), (64, 129, 512), (30, 50, 16),
                (430, 1100, 40)):  # the last: blocks of rows, and sums in parts
    a, b, shift = draw(m, k), draw(k, n), draw(n)
    want = a.astype(np.float64) @ b
    for ta in (0, 1):
        for tb in (0, 1):
            left, right = a.T.copy() if ta else a, b.T.copy() if tb else b
            close(context.apply("cpu", "matmul", left, right, ta=bool(ta), tb=bool(tb)), want, k)
    text = f'''keel 1
fn @main(a: f32[{{m}}, {{k}}], b: f32[{{k}}, {{n}}], s: f32[{{n}}]) -> f32[{{m}}, {{n}}] {{{{
  p = matmul(a, b)
  q = add(p, s)
  r = relu(q)
  return r
}}}}
entry main = @main (a, b, s) -> (_)
'''
    session = context.parse(text).session("cpu")
    close(np.array(session.prepare().run(a, b, shift)[0]), np.maximum(want + shift, 0), k)
contexts = [keel_abi.Context(threads=n) for n in (1, 2, 5)]
for m, k, n in ((1, 9, 3000), (2, 1, 2500), (5, 67, 1301), (8, 200, 1025), (9, 40, 700), (1, 33, 130), (3, 517, 67), (7, 300, 2), (13, 600, 65), (22, 300, 200)):
    # a few rows by b in place, by blocks of columns or, transposed, as dot products; the sums do not depend on the threads
    a, b = draw(m, k), draw(k, n)
    want = a.astype(np.float64) @ b
    for ta, tb in ((0, 0), (1, 0), (0, 1), (1, 1)):
        left, right = a.T.copy() if ta else a, b.T.copy() if tb else b
        made = [each.apply("cpu", "matmul", left, right, ta=bool(ta), tb=bool(tb)) for each in contexts]
        close(made[0], want, k)
        for other in made[1:]:
            np.testing.assert_array_equal(made[0], other)
    half = [x.astype(np.float16) for x in (a, b)]
    exact = half[0].astype(np.float64) @ half[1].astype(np.float64)
    for tb in (0, 1):
        got = context.apply("cpu", "matmul", half[0], half[1].T.copy() if tb else half[1], tb=bool(tb))
        np.testing.assert_allclose(got.astype(np.float64), exact, rtol=2e-3, atol=2e-3 * k ** 0.5)
    whole = [np.round(x * 1e4).astype(np.int16) for x in (a, b)]
    np.testing.assert_array_equal(context.apply("cpu", "matmul", whole[0], whole[1].T.copy(), tb=True), context.apply("cpu", "matmul", *whole))
    np.testing.assert_array_equal(context.apply("cpu", "matmul", *whole), (whole[0].astype("i8") @ whole[1].astype("i8")).astype(np.int16))
a, b = draw(3, 4, 40), draw(3, 40, 1100)
close(context.apply("cpu", "matmul", a, b), a.astype(np.float64) @ b, 40)
a, b = draw(3, 4, 140), draw(3, 1100, 140)
close(context.apply("cpu", "matmul", a, b, tb=True), a.astype(np.float64) @ b.transpose(0, 2, 1), 140)
a, b = draw(2, 210, 1100), draw(2, 1100, 100)
close(context.apply("cpu", "matmul", a, b), a.astype(np.float64) @ b, 1100)
close(context.apply("cpu", "matmul", a.astype("f8"), b.astype("f8")), a.astype(np.float64) @ b, 1)
for kind in ("i4", "u8"):
    a, b = (rng.integers(0, 1 << 30, dims).astype(kind) for dims in ((210, 2100), (2100, 40)))
    np.testing.assert_array_equal(context.apply("cpu", "matmul", a, b), (a.astype("u8") @ b.astype("u8")).astype(kind))
for left, right in (((300, 2048), (2048, 270)), ((4, 210, 1024), (4, 1024, 270)),  # rows 8 and 4 KiB apart; these sums are exact
                    ((17, 128, 64), (17, 64, 128)), ((24, 150, 67), (24, 67, 90)), ((33, 20, 5), (33, 5, 300))):  # each fetches the next
    a, b = (rng.integers(-9, 9, dims).astype(np.float32) for dims in (left, right))
    for each in contexts:
        np.testing.assert_array_equal(each.apply("cpu", "matmul", a, b), a.astype(np.float64) @ b)
a, b = draw(6, 5, 90, 70), draw(5, 70, 110)
close(context.apply("cpu", "matmul", a, b), a.astype(np.float64) @ b, 70)
# One row by constant matrices: panel by panel, each second run backwards.
for kind in ("f4", "f8", "f2", "u1", "i2", "i4", "i8"):
    for matrices, k, n in ((3, 1, 64), (3, 2, 32), (3, 67, 128), (3, 1030, 64), (3, 40, 100), (1, 40, 100), (1, 5, 300)):
        most = {{"f2": 2, "u1": 255}}.get(kind, 99)
        a, b = (rng.integers(0, most, dims).astype(kind) for dims in ((1, 1, k), (matrices, k, n)))
        wide = "u8" if kind[0] == "u" else "i8"
        want = (a.astype(wide) @ b.astype(wide)).astype(kind)  # exact
        for each in contexts:
            plan = by_constant(each, a, b)
            for run in range(3):
                np.testing.assert_array_equal(np.array(plan.run(a)[0]), want)
for kind in ("i4", "u4", "i8", "f4", "f8"):
    for n in (*range(1, 19), 31, 32, 33):
        for m, k in ((1, 1), (2, 3), (5, 10), (12, 2), (7, n)):
            most = 400 if kind == "f4" else 40000
            a, b = (rng.integers(0 if kind[0] == "u" else -most, most, dims).astype(kind) for dims in ((m, k), (k, n)))
            np.testing.assert_array_equal(context.apply("cpu", "matmul", a, b), (a.astype("i8") @ b.astype("i8")).astype(kind))
# The last rows, by whole and by partial panels: with AVX2 eight and nine rows are two blocks of four. Exact.
for kind in ("f4", "f8"):
    for m in (4, 5, 6, 7, 8, 9, 10, 14, 15, 26, 128):
        a, b = (rng.integers(-9, 9, dims).astype(kind) for dims in ((m, 150), (150, 70)))
        np.testing.assert_array_equal(context.apply("cpu", "matmul", a, b), a.astype("f8") @ b)
        np.testing.assert_array_equal(np.array(by_constant(context, a, b).run(a)[0]), a.astype("f8") @ b)
"""


@pytest.mark.parametrize("isa", ["sse4", "avx2", ""])
@pytest.mark.parametrize("side", ["own", "onednn", ""])
def test_products_of_either_side(side, isa):
    code = SCRIPT.format(paths=[str(HERE), str(HERE.parent / "python")])
    env = os.environ | {"KEEL_CPU_PRODUCTS": side, "KEEL_CPU_ISA": isa, "ONEDNN_VERBOSE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    multiplied = "exec,cpu,matmul" in done.stdout or "exec,cpu,inner_product" in done.stdout
    assert side == "" or multiplied == (side == "onednn")


FORCED = """
import sys
sys.path[:0] = {paths!r}
import keel_abi, numpy as np
a, b = np.ones((2, 512), np.float32), np.ones((600, 512), np.float32)
assert (keel_abi.Context().apply("cpu", "matmul", a, b, tb=True) == 512).all()
"""


@pytest.mark.parametrize("side, multiplied", [("own", False), ("onednn", True), ("", False)])
def test_a_forced_side_multiplies_a_few_rows_by_a_transposed_matrix(side, multiplied):
    code = FORCED.format(paths=[str(HERE), str(HERE.parent / "python")])
    env = os.environ | {"KEEL_CPU_PRODUCTS": side, "ONEDNN_VERBOSE": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert ("exec,cpu,matmul" in done.stdout or "exec,cpu,inner_product" in done.stdout) == multiplied
