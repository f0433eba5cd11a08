"""`keel grad` adds an entry with gradients to a file."""
import json

import numpy as np

LOSS = """keel 1

const w: f32[2] = [3.0, -1.0]

fn @main(x: f32[2], m: f32[3], i: i32[]) -> f32[] {
  p = mul(x, w) : f32[2]
  q = mul(p, p) : f32[2]
  loss = reduce_sum(q) : f32[]
  return loss
}

entry main = @main (x, m, i) -> (loss)
"""
TWO = LOSS.replace("return loss", "return loss, q").replace("-> f32[] {", "-> f32[], f32[2] {").replace("(loss)\n", "(loss, q)\n")
INPUTS = ["-i", "x=1,2", "-i", "m=0", "-i", "i=0"]


def test_gradients_of_a_file_with_respect_to_parameters_and_constants(keel, graph, tmp_path):
    done = keel("grad", graph(LOSS), "--of", "loss", "--wrt", "x", "--wrt", "w", "-o", "g.keel")
    assert done.out == "" and done.err == ""
    assert json.loads(keel("inspect", "g.keel", "--json").out)["entries"][1]["name"] == "grad"
    keel("run", "g.keel", "--entry", "grad", *INPUTS, "-o", "@g.npz")
    got = np.load(tmp_path / "g.npz")
    assert sorted(got) == ["d_w", "d_x", "loss"]
    assert got["loss"] == 13 and got["d_x"].tolist() == [18, 4] and got["d_w"].tolist() == [6, -8]
    assert "loss: f32[]\n13" in keel("run", "g.keel", "--entry", "main", *INPUTS).out  # as before


def test_defaults_are_the_only_result_and_the_float_parameters(keel, graph, tmp_path):
    done = keel("grad", graph(LOSS))
    assert "fn @grad(" in done.out and "return loss, " in done.out
    assert 'does not depend on "m"' in done.err and '"i"' not in done.err
    (tmp_path / "again.txt").write_text(done.out)
    assert "d_m: f32[3]\n[0, 0, 0]" in keel("run", "again.txt", "--entry", "grad", *INPUTS).out


def test_gradients_of_gradients(keel, graph):
    keel("grad", graph(LOSS), "--wrt", "x", "-o", "first.keel")
    keel("grad", "first.keel", "--entry", "grad", "--of", "d_x", "--wrt", "x", "--as", "second", "-o", "second.txt")
    assert "d_x: f32[2]\n[18,  4]\nd_d_x: f32[2]\n[18,  2]" in keel("run", "second.txt", "--entry", "second", *INPUTS).out


def test_json_says_what_depends_on_what(keel, graph):
    done = json.loads(keel("grad", graph(LOSS), "--wrt", "x", "--wrt", "m", "--json").out)
    assert done["schema"] == "keel.grad/1" and done["of"] == ["loss"] and done["entry"] == "grad"
    assert done["gradients"] == [{"wrt": "x", "result": "d_x", "connected": True}, {"wrt": "m", "result": "d_m", "connected": False}]
    assert "fn @grad" in done["text"]


def test_errors_name_what_is_wrong(keel, graph):
    assert "--of loss" in keel("grad", graph(TWO), code=2).err
    assert "'lsos'; close names: 'loss'" in keel("grad", graph(LOSS), "--of", "lsos", code=2).err
    assert "'i' is i32[]" in keel("grad", graph(LOSS), "--of", "i", code=5).err
    assert "nowhere" in keel("grad", graph(LOSS), "--wrt", "nowhere", code=2).err
    assert "'main'" in keel("grad", graph(LOSS), "--as", "main", code=2).err
    assert "no/such" in keel("grad", graph(LOSS), "-o", "no/such/g.keel", code=3).err


LOOP = """keel 1

fn @main(k: i32[], x: f32[2]) -> f32[2] {
  i, y = while(0, x, k){carry=2}
    test(i, a, k) {
      t = less(i, k)
      yield t
    }
    body(i, a, k) {
      j = i + 1
      p = greater(i, 0)
      b = cond(p, a)
        then(a) {
          c = a * a
          yield c
        }
        else(a) {
          c = a * 3.0
          yield c
        }
      yield j, b
    }
  return y
}

entry main = @main (k, x) -> (y)
"""


def test_gradients_go_through_control_flow(keel, graph, tmp_path):
    keel("grad", graph(LOOP), "--wrt", "x", "-o", "g.keel")
    for k, x, want in ((0, "1,2", "[1, 1]"), (1, "1,2", "[3, 3]"), (2, "1,2", "[18, 36]")):  # x, 3 x, 9 x^2
        for device in ("reference", "cpu"):
            assert f"d_x: f32[2]\n{want}" in keel("run", "g.keel", "--entry", "grad", "-d", device, "-i", f"k={k}", "-i", f"x={x}").out
    keel("grad", "g.keel", "--entry", "grad", "--of", "d_x", "--wrt", "x", "--as", "second", "-o", "second.txt")
    assert "d_d_x: f32[2]\n[18, 18]" in keel("run", "second.txt", "--entry", "second", "-i", "k=2", "-i", "x=1,2").out


def test_a_jacobian_has_the_dims_of_both(keel, graph):
    keel("grad", graph(LOSS), "--of", "q", "--wrt", "x", "--jacobian", "-o", "j.txt")
    assert "d_x: f32[2, 2]\n[[18,  0]\n [ 0,  4]]" in keel("run", "j.txt", "--entry", "grad", *INPUTS).out
    assert "requires one value, got 2" in keel("grad", graph(LOSS), "--of", "q", "--of", "p", "--jacobian", code=2).err
