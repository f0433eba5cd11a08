"""--tune measures products while planning; the file keeps the results for later plans. `keel plan` shows who decided."""
import json
import os
import re
import subprocess

import numpy as np
import pytest
from command import command

GRAPH = """keel 1
fn @main(a: f32[60, 300], b: f32[300, 200], c: f32[200, 90]) {
  p = matmul(a, b)
  q = matmul(p, c)
  return q
}
entry main = @main (a, b, c) -> (q)
"""


@pytest.fixture
def plan(tmp_path):
    """plan("--tune", file=...) -> the impls of the two products, and stderr."""
    (tmp_path / "g.keelt").write_text(GRAPH)

    def run(*words, file=tmp_path / "tuned" / "products", **env):
        env = os.environ | {"KEEL_CPU_TUNED": str(file)} | env
        done = subprocess.run([command(), "plan", str(tmp_path / "g.keelt"), "-d", "cpu", "--json", *words], env=env, capture_output=True, text=True,
                              check=True, timeout=60)
        return [x["impl"] for x in json.loads(done.stdout)["launches"]], done.stderr
    run.file = tmp_path / "tuned" / "products"
    return run


def is_tuned(impls):
    return all(x.endswith("tuned on this machine") for x in impls)


def test_measured_once_and_used_later(plan):
    assert not any("tuned" in x for x in plan()[0]) and not plan.file.exists()  # nothing is measured or written unasked
    impls, errors = plan("--tune")
    assert is_tuned(impls) and errors == ""
    kept = plan.file.read_text()
    rows = [list(map(int, line.split())) for line in kept.splitlines()[3:]]
    assert [row[:6] for row in rows] == [[60, 200, 90, 0, 0, 0], [60, 300, 200, 0, 0, 0]]
    for (*_, own, onednn), impl in zip(reversed(rows), impls, strict=True):
        assert 1000 < own < 10**9 and 1000 < onednn < 10**9
        assert impl.split(":")[0] == ("oneDNN" if own > 0.95 * onednn else "own loops")
    assert plan()[0] == impls and plan.file.read_text() == kept
    assert plan("--tune")[0] == impls and plan.file.read_text() == kept  # not measured again
    assert not any("tuned" in x for x in plan(file="")[0])


def signed(text):
    """The file with the hash of its lines."""
    start, _, rest = text.split("\n", 2)
    number = 0xcbf29ce484222325
    for byte in rest.encode():
        number = (number ^ byte) * 0x100000001b3 % 2**64
    return f"{start}\n{number:016x}\n{rest}"


def test_file_decides(plan):
    plan("--tune")
    for own, onednn, side in ((50, 100, "own loops"), (100, 100, "oneDNN"), (94, 100, "own loops"), (96, 100, "oneDNN")):
        plan.file.write_text(signed(re.sub(r"\d+ \d+$", f"{own} {onednn}", plan.file.read_text(), flags=re.M)))
        assert plan()[0] == [f"{side}: tuned on this machine"] * 2


@pytest.mark.parametrize("damage, why", [
    (lambda t: t.replace("300", "301"), "its hash is wrong"), (lambda t: t[:-5], "its hash is wrong"), (lambda t: "", "does not begin with"),
    (lambda t: t.replace("products 1", "products 9"), "does not begin with"), (lambda t: t[:25], "does not begin with"),
    (lambda t: signed(t.replace("; class ", "; class of ")), "it was measured on another machine"),
    (lambda t: signed(t + "1 2 3\n"), "a line is no product"), (lambda t: signed(t + "1 2 3 0 0 0 -5 7\n"), "a line is no product"),
    (lambda t: t + " " * (1 << 20), "no file of at most"),
])
def test_damaged_file_is_ignored_and_replaced(plan, damage, why):
    plan("--tune")
    plan.file.write_text(damage(plan.file.read_text()))
    impls, errors = plan()
    assert not any("tuned" in x for x in impls)
    assert why in errors and str(plan.file) in errors and "it is ignored, and --tune replaces it" in errors
    assert is_tuned(plan("--tune")[0])
    impls, errors = plan()
    assert is_tuned(impls) and errors == ""


def test_folder_that_cannot_be_written(plan, tmp_path):
    (tmp_path / "file").write_text("")
    impls, errors = plan("--tune", file=tmp_path / "file" / "products")
    assert is_tuned(impls) and "it cannot be written" in errors and "as long as this process" in errors


def test_place_of_the_file(plan, tmp_path):
    env = {k: v for k, v in os.environ.items() if k != "KEEL_CPU_TUNED"} | {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    subprocess.run([command(), "plan", str(tmp_path / "g.keelt"), "--tune", "--isa", "sse4"], env=env, check=True, capture_output=True)
    assert [p.name for p in (tmp_path / "cache" / "keel").iterdir()] == ["cpu-products-sse4"]


def test_same_results(plan, tmp_path):
    values = {"a": (60, 300), "b": (300, 200), "c": (200, 90)}
    rng = np.random.default_rng(1)
    values = {name: rng.standard_normal(dims).astype(np.float32) for name, dims in values.items()}
    np.savez(tmp_path / "in.npz", **values)
    words = [command(), "run", str(tmp_path / "g.keelt"), "-d", "cpu", "--tune", "-i", f"@{tmp_path / 'in.npz'}", "-o", f"@{tmp_path / 'out.npz'}"]
    subprocess.run(words, env=os.environ | {"KEEL_CPU_TUNED": str(plan.file)}, check=True, capture_output=True)
    wanted = values["a"].astype(np.float64) @ values["b"] @ values["c"]
    np.testing.assert_allclose(np.load(tmp_path / "out.npz")["q"], wanted, atol=2e-3)
    assert plan.file.exists()
