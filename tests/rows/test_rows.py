"""The example programs on the command line, named by their ids; see README.md."""
import json
import subprocess
from pathlib import Path

import numpy as np
from command import command
from regular import REGULAR, REGULAR_INPUTS, data


def test_V1_hello_matmul(keel, on):
    assert keel("eval", 'print "hello, {}", matmul([[2.]], [[2.]])', *on).out == "hello, [[4.]]\n"


def test_V2_errors_tell_op_types_and_place(keel, on):
    err = keel("eval", "x = [[1., 2.]]\ny = matmul(x, x)", *on, code=5).err
    assert "line 2: matmul: " in err and "f32[1, 2]" in err and "  | y = matmul(x, x)\n  |     ^" in err


def test_V3_the_same_code_on_other_hardware(keel, graph, on):
    assert keel("eval", "print matmul([[2.]], [[4.]]) + [[4.]]", *on).out == "[[12.]]\n"
    assert keel("run", graph(REGULAR), *REGULAR_INPUTS, *on).out == "v1: f32[1, 1]\n[[12]]\n"


def test_V4_graphs_can_be_seen(keel, graph):
    dot = keel("graph", graph(REGULAR)).out
    assert dot.startswith("digraph") and "matmul" in dot and "f32[1, 1]" in dot and "->" in dot


def test_V5_runs_without_python():
    libraries = subprocess.run(["ldd", command()], check=True, capture_output=True, text=True).stdout
    assert "libkeel" in libraries and "python" not in libraries


def test_V6_constants_are_folded(keel, graph, on):
    path = graph("keel 1\nfn @f(x: f32[2]) {\n  return x * (f32(1.0) + f32(1.0))\n}\nentry f = @f (x) -> (y)\n")
    assert "add(" in keel("dump", path).out
    text = keel("optimize", path, "--passes=fold", *on).out
    assert "add(" not in text and "2.0" in text and "mul(x, " in text


LOOPS = """keel 1
fn @f(x: f32[1000]) {
  z = reduce_sum(x)
  k = f32(2.0) * f32(3.0)
  a = scan(z, x){carry=1}
    body(s, v) { t = tanh(s + v)
      yield t }
  y = reduce_sum(x)
  b = scan(y, x){carry=1, reverse=true}
    body(s, v) { t = sin(s + v)
      yield t }
  return a * k, b
}
entry f = @f (x) -> (c, d)
"""


def test_V7_independent_parts_run_side_by_side(keel, graph, tmp_path):
    path = graph(LOOPS)
    assert "in parallel: " in keel("plan", path, "-d", "cpu", "--threads", "2").out
    keel("profile", path, "-d", "cpu", "--threads", "2", "-n", "50", "--trace", "t.json")
    named = {e["args"]["name"] for e in json.loads((tmp_path / "t.json").read_text()) if e["ph"] == "M"}
    assert {"planning", "cpu:0"} <= named <= {"planning", "cpu:0", "cpu:0, lane 1"}
    results = [keel("run", path, "-i", "x=randn(7)", "-d", "cpu", "--threads", "2", "--lanes", lanes).out for lanes in ("auto", "off")]
    assert results[0] == results[1]


def test_T3_folded_once_and_split_over_threads_and_devices(keel, graph):
    path = graph(LOOPS)
    plan = keel("plan", path, "-d", "cpu", "--threads", "2").out
    assert " k " not in plan and " y " not in plan and "in parallel: " in plan
    split = keel("plan", path, "-d", "cpu", "--place", "b=reference").out
    assert "reference:0" in split
    assert keel("run", path, "-i", "x=randn(7)", "-d", "cpu", "--place", "b=reference").out == keel("run", path, "-i", "x=randn(7)", "-d", "cpu").out


def test_V8_equal_nodes_are_one(keel, graph, on):
    path = graph("keel 1\nvar v: f32[] = 1.0\nfn @f(x: f32[]) {\n  a = exp(x) + read(v)\n  assign_add(v, x)\n"
                 "  b = exp(x) + read(v)\n  return a * exp(x) + b\n}\nentry f = @f (x) -> (y)\n")
    text = keel("optimize", path, "--passes=cse", *on).out
    assert text.count(" = exp(") == 1 and text.count(" = read(") == 2
    assert keel("run", path, "-i", "x=0", *on).out == keel("run", path, "-i", "x=0", "--level", "0", *on).out


def test_V14_old_files_stay_readable(keel, graph, on):
    """tests/data keeps files in their original form; each contains the expected answers."""
    old = Path(__file__).resolve().parents[1] / "data/digits.keel"
    assert keel("verify", old, *on).out.count("ok ") >= 4
    assert "version 2 of the text form; this reader supports version 1" in keel("dump", graph("keel 2\n"), code=3).err
    assert "C ABI" in keel("--version").out


def test_V9_says_what_building_costs(keel, graph):
    figures = json.loads(keel("bench", graph(REGULAR), *REGULAR_INPUTS, "-n", "3", "-d", "reference", "--json").out)
    assert figures["load_ms"] > 0 and figures["first_ms"] > 0 and figures["p50_ms"] > 0


def test_V10_T4_graph_equals_eager(keel, graph, on):
    assert keel("eval", "x = [[2.]]; y = [[4.]]; b = [[4.]]; matmul(x, y) + b", *on).out == "[[12.]]\n"
    run = json.loads(keel("run", graph(REGULAR), *REGULAR_INPUTS, "--json", *on).out)
    assert [o["data"] for o in run["outputs"].values()] == [[12]]


def test_V11_no_session_no_placeholder(keel, on):
    assert keel("eval", "[1, 2] * 2", *on).out == "[2 4]\n"


def test_V13_eager_is_the_default(keel, on):
    assert keel("eval", "x = 1\nprint x\ny = x + 1\nprint y", *on).out == "1\n2\n"


def test_V15_one_program_both_ways(keel, graph, on, tmp_path):
    body = "softmax(tanh(x) * 3.0)"
    x = np.random.default_rng(5).standard_normal((4, 5), dtype=np.float32)
    np.save(tmp_path / "x.npy", x)
    path = graph(f"keel 1\nfn @f(x: f32[4, 5]) {{\n  return {body}\n}}\nentry f = @f (x) -> (y)\n")
    keel("run", path, "-i", "x=@x.npy", "-o", "y.npy", *on)
    eager = json.loads(keel("eval", f"x = {x.tolist()}; y = {body}", "--json", *on).out)["values"]["y"]["data"]
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy").ravel(), np.array(eager, "f4"))


SQUARE = """keel 1
var w: f32[1, 1] = [1.0]
fn @f() {
  at = read(w)
  seen = mul(at, at)
  hidden = stop_gradient(seen)
  return seen, hidden
}
entry f = @f () -> (loss, none)
"""


def gradient(keel, graph, tmp_path, on, of):
    out = str(tmp_path / "grad.keel")
    keel("grad", graph(SQUARE), "--of", of, "--wrt", "at", "-o", out)
    run = json.loads(keel("run", out, "--entry", "grad", "--json", *on).out)
    return run["outputs"]["d_at"]


def test_Z7_gradient_of_a_variables_square(keel, graph, tmp_path, on):
    d = gradient(keel, graph, tmp_path, on, "seen")
    assert (d["data"], d["shape"], d["dtype"]) == ([2], [1, 1], "f32")


def test_Z18_one_excludes_the_other_includes(keel, graph, tmp_path, on):
    assert gradient(keel, graph, tmp_path, on, "hidden")["data"] == [0]
    assert gradient(keel, graph, tmp_path, on, "seen")["data"] == [2]


RELU = """keel 1
fn @simple_relu(x: i32[]) {
  return cond(x > 0, x) then(x) { yield x } else(x) { yield i32(0) }
}
entry simple_relu = @simple_relu (x) -> (_)
"""


def test_T6_simple_relu(keel, graph, on):
    said = RELU.replace("yield x", 'print(x){format="First branch, with graph: {}"}\n yield x')
    said = said.replace("yield i32(0)", 'print(i32(0)){format="Second branch, with graph: {}"}\n yield i32(0)')
    path = graph(said)
    for x, text, y in (("1", "First branch, with graph: 1\n", 1), ("-1", "Second branch, with graph: 0\n", 0)):
        run = keel("run", path, "-i", f"x={x}", "--json", *on)
        assert run.err == text and list(data(run).values()) == [[y]]


def test_T8_the_graph_of_a_branch(keel, graph, tmp_path):
    keel("convert", graph(RELU), "relu.keel")
    assert keel("dump", "relu.keel").out == """keel 1

fn @simple_relu(x: i32[]) -> i32[] {
  v0 = greater(x, 0) : bool[]
  v1 = cond(v0, x)
    then(x) {
      yield x
    }
    else(x) {
      yield i32(0)
    } : i32[]
  return v1
}

entry simple_relu = @simple_relu (x) -> (_)
"""


OBSERVABLE = """keel 1
var v: i32[] = 0
fn @f(x: i32[1]) {
  unused = gather(x, i32(1))
  print(x){format="x is {}"}
  small = reduce_max(x) < 9
  assert(small){message="too large"}
  assign_add(v, i32(1))
  return x * 2, read(v)
}
entry f = @f (x) -> (y, now)
"""


def test_T16_only_observable_effects_run(keel, graph, on):
    path = graph(OBSERVABLE)
    run = keel("run", path, "-i", "x=3", "--json", *on)
    assert data(run) == {"y": [6], "now": [1]} and run.err == "x is [3]\n"
    failed = keel("run", path, "-i", "x=9", *on, code=5)
    assert failed.err.startswith("x is [9]\n") and "too large" in failed.err and failed.out == ""


def test_Z13_data_go_to_any_device_and_back(keel, graph, monkeypatch):
    """The hostile device has its own memory, which the host cannot read."""
    monkeypatch.setenv("KEEL_PLUGIN_PATH", str(Path(command()).resolve().parents[1] / "tests/hostile"))
    path = graph("keel 1\nfn @f(x: i32[2]) {\n  return x + x\n}\nentry f = @f (x) -> (y)\n")
    for device in ("hostile:0", "cpu", "reference"):
        assert json.loads(keel("run", path, "-d", device, "-i", "x=1,2", "--json").out)["outputs"]["y"]["data"] == [2, 4]
    assert "hostile" in keel("devices").out


def test_Z15_add_and_multiply(keel, on):
    text = "a = [[1, 2], [3, 4]]; b = add(a, 1); print a; print b; print a * b"
    assert keel("eval", text, *on).out == "[[1 2]\n [3 4]]\n[[2 3]\n [4 5]]\n[[ 2  6]\n [12 20]]\n"


def test_T9_my_relu(keel, on):
    text = "maximum(0., 5.5); maximum(0., [1, -1]); maximum(0., [3., -3.])"
    assert keel("eval", text, *on).out == "5.5\n[1. 0.]\n[3. 0.]\n"


def test_T10_my_relu_again(keel, on):
    assert keel("eval", "maximum(0., -2.5); maximum(0., [-1., 1.])", *on).out == "0.0\n[0. 1.]\n"


def test_T12_mse_of_integers(keel, on):
    text = "a = [1, 0, 4, 4, 7]; b = [3, 6, 3, 0, 6]; reduce_mean(pow(a - b, 2))"
    assert keel("eval", text, *on).out == "11\n"


def test_T17_eager_gather_out_of_range_fails(keel, on):
    assert "index 1 is not in [0, 1)" in keel("eval", "gather([0.], 1)", *on, code=5).err


def test_T18_an_unused_gather_is_pruned(keel, graph, on):
    path = graph("keel 1\nfn @f(x: f32[1]) {\n  y = gather(x, i32(1))\n  return x\n}\nentry f = @f (x) -> (x2)\n")
    run = json.loads(keel("run", path, "-i", "x=0", "--json", *on).out)
    assert [o["data"] for o in run["outputs"].values()] == [[0]]


def test_T20_power_wraps(keel, on):
    text = "x = [[1, 1], [1, 0]]; y = x\n" + "y = matmul(y, x)\n" * 59 + "print y"
    assert keel("eval", text, *on).out == "[[  764848393  1820529360]\n [ 1820529360 -1055680967]]\n"


def test_T25_random_and_eye(keel, on):
    out = keel("eval", "eye(){rows=2, dtype=i32}; reduce_sum(eye(){rows=10, dtype=i32})", *on).out
    assert out == "[[1 0]\n [0 1]]\n10\n"
    text = "x = random_uniform(u64(8), -1, 3){dims=[10, 10]}; print reduce_min(x) >= -1, reduce_max(x) < 3"
    assert keel("eval", text, *on).out == "True True\n"


def test_T26_one_graph_for_all_sizes(keel, graph, on):
    path = graph("keel 1\nfn @f(x: f32[n]) {\n  return x + 1.0\n}\nentry f = @f (x) -> (y)\n")
    for n in (1, 2, 5):
        run = json.loads(keel("run", path, "-i", f"x=f32[{n}]=1", "--json", *on).out)
        assert [o["data"] for o in run["outputs"].values()] == [[2] * n]


def test_K2_values_between(keel, graph, on):
    path = graph("keel 1\nfn @g(x: i32[]) {\n  y = add(x, 1)\n  z = mul(y, 2)\n  return z\n}\nentry g = @g (x) -> (z)\n")
    out = keel("run", path, "-i", "x=3", "--break", "y", *on).out
    assert "stopped after" in out and "y: i32[]\n4" in out.replace("  ", "")


def test_K3_three_plus_five(keel, on):
    assert keel("eval", "a = 3; b = 5; print a, b, a + b", *on).out == "3 5 8\n"


def test_K6_mnist_becomes_rows(keel, on):
    text = "x = cast(fill(u8(7)){dims=[60000, 28, 28]}){to=f32}; y = reshape(x){to=[-1, 784]}"
    out = keel("eval", text + "; reduce_sum(slice(y){start=[59999, 0], stop=[60000, 784]})", *on).out
    assert out == "5488.0\n"


def test_Z9_stateful_and_stateless(keel, graph, on):
    path = graph("keel 1\nvar v: i32[2] = [1, 2]\nfn @f(x: i32[2]) {\n  assign_add(v, x)\n  y = read(v)\n"
                 "  z = add(y, 1)\n  return y, z\n}\nentry f = @f (x) -> (y, z)\n")
    run = json.loads(keel("run", path, "-i", "x=10,10", "--json", *on).out)
    assert [o["data"] for o in run["outputs"].values()] == [[11, 12], [12, 13]]


def test_Z11_devices_by_name(keel, graph, on):
    placed = 'keel 1\nfn @f(x: f32[]) {\n  y = add(x, 1.0) @"%s"\n  return y * 2.0\n}\nentry f = @f (x) -> (z)\n'
    path = graph(placed % "reference:0")
    assert '@"reference:0"' in keel("dump", path).out
    assert keel("run", path, "-i", "x=1", *on).out == "z: f32[]\n4\n"
    assert 'no device "gpu:7"' in keel("run", graph(placed % "gpu:7"), "-i", "x=1", *on, code=2).err
