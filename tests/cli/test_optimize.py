"""`keel optimize`: its effect on files, and its description of changes."""
import json

import numpy as np
import pytest

QUANTISED = """keel 1

const w: i8[64, 64] = [%s]
const c: f32[4] = [1.0, 2.0, 3.0, 4.0]

fn @main(x: f32[2, 64], z: f32[4]) -> f32[2, 64], f32[4] {
  f = cast(w){to=f32}
  d = sub(f, 3.0)
  s = mul(d, 0.5)
  y = matmul(x, s)
  e = exp(c)
  k = mul(z, e)
  return y, k
}

entry main = @main (x, z) -> (y, k)
""" % ", ".join(["2"] * 4096)
RENUMBERED = """keel 1

fn @main(x: f32[4], z: f32[4]) -> f32[4] {
  %s = mul(x, 1.0)
  %s = add(%s, z)
  %s = tanh(%s)
  y = add(%s, 0.5)
  return y
}

entry main = @main (x, z) -> (y)
"""


def test_a_file_keeps_quantised_weights(keel, graph, tmp_path):
    """Of class "folded": folds that enlarge constants are skipped; exp(c) is folded."""
    path = graph(QUANTISED)
    keel("convert", path, "m.keel")
    done = keel("optimize", "m.keel", "-o", "o.keel", "--level", "1")
    small, size = (tmp_path / "m.keel").stat().st_size, (tmp_path / "o.keel").stat().st_size
    assert size < small + 2048 and "wrote o.keel" in done.err
    text = keel("dump", "o.keel").out
    assert "w: i8[64, 64] = ..." in text and "exp(" not in text
    for passes in (["--passes=+unpack"], ["--passes=fold,unpack"]):
        done = keel("optimize", "m.keel", "-o", "big.keel", *passes)
        assert (tmp_path / "big.keel").stat().st_size > 16384
        assert "; m.keel has 8.1 KiB" in done.err and "the constants grow from 4.0 KiB to 16.0 KiB" in done.err
    r = json.loads(keel("optimize", "m.keel", "--json", "--level", "1").out)
    assert r["constant_bytes"] < r["constant_bytes_before"] + 100
    want = np.full((2, 64), -32.0, "f4")
    for file in ("m.keel", "o.keel", "big.keel"):
        keel("run", file, "-i", "x=1", "-i", "z=1", "-o", "@out.npz")
        np.testing.assert_array_equal(np.load(tmp_path / "out.npz")["y"], want)


def test_a_session_unpacks_them(keel, graph):
    plan = json.loads(keel("plan", graph(QUANTISED), "-d", "cpu", "--json").out)
    assert [launch["op"] for launch in plan["launches"]] == ["matmul", "mul"]


def test_a_difference_is_of_structure_not_of_numbers(keel, graph):
    """Dropping `mul(x, 1)` renumbers unnamed values; otherwise only the readers of x change."""
    path = graph(RENUMBERED % ("v0", "v1", "v0", "v2", "v1", "v2"))
    lines = keel("optimize", path, "--passes", "simplify", "--diff").out.splitlines()
    assert lines[0] == " @main" and "-  v0 = mul(x, 1.0) : f32[4]" in lines
    assert len(lines) <= 7, lines
    assert keel("optimize", path, "--level", "0", "--diff").out == ""


def test_what_went_into_a_region_is_said_to_have_moved(keel, graph):
    path = graph(RENUMBERED.replace("1.0", "2.0") % ("a", "b", "a", "c", "b", "c"))
    out = keel("optimize", path, "-d", "cpu", "--diff").out
    assert " @map_1 (2 nodes moved here)\n" in out  # b and c; literals become operands, y the call's name
    assert "tanh(" not in out and "call(" in out
