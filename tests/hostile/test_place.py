"""Graphs on several devices: where each node runs and why, copies, equal results for every placement; the command line, device
scopes in text and file, fallback, bad input."""
import subprocess
import sys

import hostile
import keel_abi
import numpy as np
import pytest

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
W = np.arange(20, dtype=np.float32).reshape(4, 5) / 7
TEXT = """keel 1
const w: f32[4, 5] = [%s]
fn @main(x: f32[b, 4]) -> y: f32[b, 5], side: f32[b, 4] {
  first = exp(x) : f32[b, 4]
  product = matmul(first, w)%s : f32[b, 5]
  second = exp(product) : f32[b, 5]
  conv_a = neg(second) : f32[b, 5]
  conv_b = tanh(conv_a) : f32[b, 5]
  other = neg(first) : f32[b, 4]
  return conv_b, other
}
entry main = @main (x) -> (y, side)
"""


def text(scope=""):
    return TEXT % (", ".join(str(v) for v in W.ravel()), scope)


def session(context, module, device, *place, **options):
    args = [(keel_abi.encode("place").decode(), p) for p in place] + [(k, str(v)) for k, v in options.items()]
    kv = (keel_abi.Kv * max(1, len(args)))(*[(k.encode(), v.encode()) for k, v in args])
    return module.make(keel_abi.Session, "keel_session_new", device.encode(), kv, len(args))


def expected(x=X):
    first = np.exp(x)
    return np.tanh(-np.exp(first @ W)), -first


def where(report):
    return {p["node"]: (p["device"], p["why"]) for p in report["placement"]}


@pytest.mark.parametrize("home", ["reference", "cpu", "hostile:0", "hostile:1"])
@pytest.mark.parametrize("place", [(), ("*=hostile:1",), ("conv_*=hostile:0", "*=reference"), ("product=hostile:0", "other=hostile:1"),
                                   ("?ir*=hostile:0", "second=hostile:1", "conv_b=cpu"), ("second=reference", "product=hostile")],
                         ids=" ".join)
def test_same_results_wherever_nodes_run(place, home):
    context = hostile.context(hostile.seeds_of(f"{place}{home}")[0])
    plan = session(context, context.parse(text()), home, *place).prepare()
    for rows in (3, 1, 0):
        x = X[:rows]
        for got, want in zip(plan.run(x), expected(x)):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_the_report_says_where_why_and_what_is_copied():
    context = hostile.context(2)
    module = context.parse(text(' @"hostile:1"'))
    plan = session(context, module, "reference", "conv_*=hostile:0", "conv_a=cpu").prepare()
    report = plan.report(context.array(X))
    assert where(report) == {"first": ("reference:0", "default"), "product": ("hostile:1", "scope"),
                             "second": ("reference:0", "default"), "conv_a": ("hostile:0", "pattern conv_*"),
                             "conv_b": ("hostile:0", "pattern conv_*"), "other": ("reference:0", "default")}
    assert {(c["value"], c["from"], c["to"], c["bytes"]) for c in report["copies"]} == {
        ("first", "host", "hostile:1", 48), ("product", "hostile:1", "host", 60), ("second", "host", "hostile:0", 60),
        ("conv_b", "hostile:0", "host", 60)}
    assert [x["device"] for x in report["launches"]] == ["reference:0", "reference:0", "hostile:1", "reference:0",
                                                          "hostile:0", "hostile:0"]
    for got, want in zip(plan.run(X), expected()):
        np.testing.assert_allclose(got, want, rtol=1e-5)


def test_nodes_of_one_device_stay_together():
    """other could run between, but one change of device in each direction is enough."""
    context = hostile.context(2)
    plan = session(context, context.parse(text()), "reference", "product=hostile").prepare()
    assert len(plan.report(context.array(X))["copies"]) == 2


def test_results_stay_where_they_were_made():
    context = hostile.context(3)
    plan = session(context, context.parse(text()), "hostile:0", "other=hostile:1", results="device").prepare()
    arrays = plan.run_arrays(X)
    assert [a.device for a in arrays] == ["hostile:0", "hostile:1"]
    fed = session(context, context.parse(text()), "hostile:1", "second=reference").prepare().run(arrays[1])
    np.testing.assert_allclose(fed[1], -np.exp(expected()[1]), rtol=1e-5)


def test_scopes_by_the_c_abi_stay_in_text_and_file(tmp_path):
    context = hostile.context(4)
    module = context.module()
    graph = module.graph("main")
    x = graph.param("x", np.float32, [2])
    keel_abi.call("keel_graph_device", graph, b"hostile:1")
    y = graph.node("neg", x, name="there")
    keel_abi.call("keel_graph_device", graph, None)
    graph.result("z", graph.node("exp", y, name="here"))
    module.entry("main", graph)
    printed = module.to_text()
    assert 'there = neg(x) @"hostile:1" : f32[2]' in printed and "here = exp(there) : f32[2]" in printed
    module.save(str(tmp_path / "m.keel"))
    loaded = context.load(str(tmp_path / "m.keel"))
    assert loaded.to_text() == printed == context.parse(printed).to_text()
    for each in (module, loaded):
        plan = each.session("reference").prepare()
        assert where(plan.report(context.array(np.ones(2, np.float32))))["there"] == ("hostile:1", "scope")
        np.testing.assert_allclose(plan.run(np.float32([0, 1]))[0], np.exp(-np.float32([0, 1])), rtol=1e-6)


LACKING = """keel 1
fn @main(x: f32[3]) -> f32[3] {
  a = neg(x) : f32[3]
  b = hello.missing(a) : f32[3]
  return b
}
"""


def test_bad_input_is_named():
    context = hostile.context(5)
    module = context.parse(text())
    for place, message in [(("conv",), 'got "conv", expected PATTERN=DEVICE'), (("=cpu",), "expected PATTERN=DEVICE"),
                           (("conv=",), "expected PATTERN=DEVICE"), (("conv*=nowhere",), 'no device "nowhere"')]:
        with pytest.raises(keel_abi.KeelError, match=message.replace("*", r"\*")):
            session(context, module, "cpu", *place)
    with pytest.raises(keel_abi.KeelError, match='no device "nowhere"'):
        session(context, module, "cpu", fallback="nowhere")
    with pytest.raises(keel_abi.KeelError) as e:
        session(context, module, "cpu", "nothing*=hostile").prepare()
    assert e.value.code == "NOT_FOUND" and '"nothing*" matches no node' in e.value.message and "conv_a" in e.value.message
    with pytest.raises(keel_abi.KeelError) as e:
        context.parse(text(' @"nowhere:3"')).session("cpu").prepare()
    assert 'scope of node "product"' in e.value.message and 'no device "nowhere:3"' in e.value.message
    with pytest.raises(keel_abi.KeelError, match="results"):
        session(context, module, "cpu", results="moon")


def keel(*args, **env):
    import os
    command = [str(keel_abi.BUILD / "bin" / "keel"), *map(str, args)]
    full = {**os.environ, "KEEL_PLUGIN_PATH": str(hostile.PLUGIN.parent), **env}
    return subprocess.run(command, capture_output=True, text=True, env=full)


def test_command_line(tmp_path):
    file = tmp_path / "m.keelt"
    file.write_text(text())
    run = ["run", file, "-i", "x=f32[1,4]=1,2,3,4"]
    plain = keel(*run, "-d", "reference")
    assert plain.returncode == 0, plain.stderr
    for flags in (["-d", "hostile"], ["-d", "reference", "--place", "conv_*=hostile:1", "--place", "product=hostile"],
                  ["-d", "hostile:1", "--fallback", "reference"]):
        placed = keel(*run, *flags, KEEL_HOSTILE_SEED="7")
        assert placed.returncode == 0, placed.stderr
        assert placed.stdout == plain.stdout
    table = keel("plan", file, "-d", "reference", "--place", "conv_*=hostile", "--dim", "b=2")
    assert table.returncode == 0, table.stderr
    assert "conv_a" in table.stdout and "pattern conv_*" in table.stdout and "copies between memories: 2" in table.stdout
    for flags, exit, message in [(["--place", "conv"], 5, "expected PATTERN=DEVICE"), (["--place", "zz*=cpu"], 2, "matches no node"),
                                 (["--place", "conv*=moon"], 4, 'no device "moon"'), (["--fallback", "moon"], 4, 'no device "moon"')]:
        bad = keel(*run, *flags)
        assert bad.returncode != 0 and message in bad.stderr, (flags, bad.returncode, bad.stderr)
    assert sys.executable


def test_a_text_that_several_devices_match_is_an_error():
    module = hostile.context(1).parse(text())
    with pytest.raises(keel_abi.KeelError, match='several devices match "hostile:Random ORDER"; available devices: hostile:0, hostile:1') as e:
        session(None, module, "hostile:Random ORDER")
    assert e.value.code == "NOT_FOUND"
