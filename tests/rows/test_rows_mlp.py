"""The example programs about the perceptron on the command line; see README.md."""
import json


def test_K7_generate_w_b(keel, graph, on):
    path = graph("keel 1\nvar w: f32[3, 2] = [0.0, 0.0, 0.0, 0.0, 0.0, 0.0]\nvar b: f32[2] = [0.0, 0.0]\n"
                 "fn @generate_w_b(key: u64[]) {\n  assign(w, random(key){dims=[3, 2], kind=\"normal\"})\n"
                 "  x = read(w)\n  y = read(b)\n  return x, y\n}\nentry f = @generate_w_b (key) -> (w, b)\n")
    run = json.loads(keel("run", path, "-i", "key=7", "--json", *on).out)["outputs"]
    assert run["b"]["data"] == [0, 0] and len(set(run["w"]["data"])) == 6 and run["w"]["shape"] == [3, 2]


MLP = """keel 1
fn @mlp(x: f32[n, 784], w0: f32[784, 128], b0: f32[128], w1: f32[128, 128], b1: f32[128],
        w2: f32[128, 128], b2: f32[128], w3: f32[128, 10], b3: f32[10]) {
  h0 = relu(matmul(x, w0) + b0)
  h1 = relu(matmul(h0, w1) + b1)
  h2 = relu(matmul(h1, w2) + b2)
  y = matmul(h2, w3) + b3
  return %s
}
entry mlp = @mlp (x, w0, b0, w1, b1, w2, b2, w3, b3) -> (%s)
"""
MLP_SIZES = (784, 128, 128, 128, 10)
# Each logit is 784/1024 + 4, exactly.
MLP_INPUTS = ["-i", "x=f32[3,784]=1"] + [
    word for k, (i, o) in enumerate(zip(MLP_SIZES, MLP_SIZES[1:]))
    for word in ("-i", f"w{k}=f32[{i},{o}]={1 / 1024 if k == 0 else 1 / 128}", "-i", f"b{k}=f32[{o}]=1")]


def test_K8_mlp_eager(keel, on):
    text = "x = fill(1.0){dims=[3, 784]}"
    for k, (i, o) in enumerate(zip(MLP_SIZES, MLP_SIZES[1:])):
        text += f"; y = matmul(x, fill({1 / 1024 if k == 0 else 1 / 128}){{dims=[{i}, {o}]}}) + fill(1.0){{dims=[{o}]}}"
        text += "; x = relu(y)" if k < 3 else ""
    assert json.loads(keel("eval", text, "--json", *on).out)["values"]["y"]["data"] == [4.765625] * 30


def test_K9_mlp_pruned_and_mlp_returned(keel, graph, on):
    pruned = graph(MLP % ("", ""))
    assert "0 of 11 compute nodes needed\n" in keel("plan", pruned, *on).out
    assert json.loads(keel("run", pruned, *MLP_INPUTS, "--json", *on).out)["outputs"] == {}
    returned = graph(MLP % ("y", "y"))
    assert "11 of 11 compute nodes needed\n" in keel("plan", returned, *on).out
    run = json.loads(keel("run", returned, *MLP_INPUTS, "--json", *on).out)
    assert run["outputs"]["y"]["data"] == [4.765625] * 30


def test_T21_building_has_a_cost_of_its_own(keel, graph):
    figures = json.loads(keel("bench", graph(MLP % ("y", "y")), *MLP_INPUTS, "-n", "3", "-d", "reference", "--json").out)
    assert figures["load_ms"] > 0 and figures["first_ms"] > 0 and figures["n"] == 3


def test_K10_eager_then_graph(keel, graph, on):
    assert keel("eval", "relu([0., 3.] - 1)", *on).out == "[0. 2.]\n"
    path = graph("keel 1\nfn @step(x: f32[2]) {\n  return relu(x - 1.0)\n}\nentry step = @step (x) -> (y)\n")
    run = json.loads(keel("run", path, "-i", "x=0,3", "--json", *on).out)
    assert [o["data"] for o in run["outputs"].values()] == [[0, 2]]
