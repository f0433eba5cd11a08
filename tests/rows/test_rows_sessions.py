"""The example programs of sessions on the command line: feeds and fetches, names of values, signatures, saved graphs; see README.md."""
import json

import numpy as np
from regular import REGULAR, REGULAR_INPUTS, data

CHAIN = "keel 1\nfn @g(x: i32[]) {\n  y = add(x, 1)\n  z = mul(y, 2)\n  return z\n}\nentry g = @g (x) -> (z)\n"
SUM = "keel 1\nconst const: i32[] = [3]\nconst b: i32[] = [5]\nfn @g() {\n  c = add(const, b)\n  return c\n}\nentry g = @g () -> (c)\n"


def test_Z1_feed_and_fetch(keel, graph, on):
    path = graph(CHAIN)
    assert data(keel("run", path, "-i", "x=3", "--fetch", "z", "--fetch", "y", "--json", *on)) == {"z": [8], "y": [4]}
    assert data(keel("run", path, "-i", "y=10", "--json", *on)) == {"z": [20]}
    assert data(keel("run", path, "-i", "y=10", "--fetch", "y:0", "--json", *on)) == {"y:0": [10]}
    assert "no value 'w'" in keel("run", path, "-i", "x=3", "--fetch", "w", code=2).err
    assert 'a value for parameter "x"' in keel("run", path, "--fetch", "z", code=5).err


def test_Z2_sessions_on_devices(keel, graph, on):
    path = graph(SUM)
    assert data(keel("run", path, "--json", *on)) == {"c": [8]}
    assert data(keel("run", path, "--place", "c=reference", "--json", *on)) == {"c": [8]}


def test_Z4_inputs_are_cast(keel, graph, on, tmp_path):
    path = graph("keel 1\nfn @f(x: f32[4, 4]) {\n  return matmul(x, x)\n}\nentry f = @f (x) -> (y)\n")
    np.save(tmp_path / "x.npy", np.full((4, 4), 0.5))
    assert data(keel("run", path, "-i", "x=@x.npy", "--json", *on)) == {"y": [1] * 16}
    err = keel("run", path, "-i", "x=f32[3,3]=0", *on, code=5).err
    assert 'Cannot feed value of shape [3, 3] for "x", which is f32[4, 4]' in err


def test_Z16_placeholders_are_not_eager(keel, on):
    err = keel("eval", "x = placeholder(){dtype=f32}", *on, code=2).err
    assert "placeholder() is not compatible with eager execution." in err


def test_Z17_a_checkpoint_in_a_session(keel, graph, on, tmp_path):
    """A module that contains only variables is a checkpoint (abi/FILE.md)."""
    keel("convert", graph("keel 1\nvar \"layer/w\": f32[2] = [2.0, 3.0]\n", "ckpt.txt"), "ckpt.keel")
    path = graph("keel 1\nvar \"layer/w\": f32[2] = [0.0, 0.0]\nfn @f(x: f32[]) {\n  y = read(\"layer/w\") * x\n"
                 "  return y\n}\nentry f = @f (x) -> (y)\n")
    assert data(keel("run", path, "-i", "x=10", "--json", *on)) == {"y": [0, 0]}
    assert data(keel("run", path, "-i", "x=10", "--checkpoint", "ckpt.keel", "--json", *on)) == {"y": [20, 30]}
    keel("convert", graph(SUM, "s.txt"), "s.keel")
    assert "no variable 'layer/w'" in keel("run", path, "-i", "x=10", "--checkpoint", "s.keel", code=3).err


def test_V12_runs_eagerly(keel, graph):
    path = graph("keel 1\nfn @f(x: f32[1]) {\n  y = gather(x, i32(1))\n  return x\n}\nentry f = @f (x) -> (z)\n")
    assert data(keel("run", path, "-i", "x=0", "--json")) == {"z": [0]}
    assert "index 1 is not in [0, 1)" in keel("run", path, "-i", "x=0", "--eagerly", code=5).err
    run = json.loads(keel("run", graph(REGULAR), *REGULAR_INPUTS, "--eagerly", "--json").out)
    assert run["device"] == "reference" and [o["data"] for o in run["outputs"].values()] == [[12]]
    assert "--eagerly" in keel("run", path, "-i", "x=0", "--eagerly", "--level", "2", code=2).err


def test_T11_signatures(keel, graph):
    text = graph("""keel 1
meta "signature/my_relu_1" = "my_relu(x=[1, -1])"
const c: f32[2] = [1.0, 0.0]
fn @a(x: f32[]) {
  return maximum(f32(0.0), x)
}
fn @b() {
  return c
}
fn @c(x: f32[2]) {
  return maximum(f32(0.0), x)
}
entry my_relu = @a (x) -> (_)
entry my_relu_1 = @b () -> (_)
entry my_relu_2 = @c (x) -> (_)
""")
    assert keel("signatures", text).out == """my_relu(x)
  Args:
    x: float32 Tensor, shape=()
  Returns:
    float32 Tensor, shape=()

my_relu(x=[1, -1])
  Returns:
    float32 Tensor, shape=(2,)

my_relu_2(x)
  Args:
    x: float32 Tensor, shape=(2,)
  Returns:
    float32 Tensor, shape=(2,)
"""


def test_K1_four_steps(keel, graph, on):
    assert keel("run", graph(SUM), "--fetch", "c", *on).out == "c: i32[]\n8\n"


def test_K4_names_of_values(keel, graph, on):
    assert keel("run", graph(SUM), "--fetch", "const:0", *on).out == "const:0: i32[]\n3\n"


def test_K5_names_hold_values(keel, on):
    assert keel("eval", "const = 3; other = const; const = 5; print other, const", *on).out == "3 5\n"


def test_Z3_says_what_was_not_fed(keel, graph):
    path = graph("keel 1\nfn @f(x: f32[1024, 1024]) {\n  return matmul(x, x)\n}\nentry f = @f (x) -> (y)\n")
    assert '"x": f32[1024, 1024]' in keel("run", path, code=2).err


def test_Z12_T1_saved_graphs_run_without_their_source(keel, graph, tmp_path, on):
    source = graph(REGULAR)
    keel("convert", source, "m.keel")
    source.unlink()
    run = json.loads(keel("run", "m.keel", *REGULAR_INPUTS, "--json", *on).out)
    assert [o["data"] for o in run["outputs"].values()] == [[12]]
