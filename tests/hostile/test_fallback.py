"""A device that lacks ops (`lacking`): without a fallback the error names all missing ops; with one, those nodes run there, each
crossing of memories is an explicit copy, and answers are right. Through the C ABI and the command line."""
import hostile
import keel_abi
import numpy as np
import pytest
from test_place import keel, session, where

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
TEXT = """keel 1

fn @inner(a: f32[b, 4]) -> f32[b, 4] {
  t = tanh(a) : f32[b, 4]
  u = neg(t) : f32[b, 4]
  return u
}

fn @main(x: f32[b, 4]) -> y: f32[b, 4], e: f32[b, 4], c: f32[b, 4], m: f32[b] {
  e = exp(x) : f32[b, 4]
  n = neg(e) : f32[b, 4]
  y = softmax(n){axis=1} : f32[b, 4]
  c = call(x){body=@inner} : f32[b, 4]
  m = reduce_max(y){axes=[1]} : f32[b]
  return y, e, c, m
}

entry main = @main (x) -> (y, e, c, m)
"""
LACKED = {"e": "exp (T=f32)", "y": "exp (T=f32) and reduce_max (T=f32)", "c": "tanh (T=f32)", "m": "reduce_max (T=f32)"}


def expected(x):
    e = np.exp(x)
    raised = np.exp(-e - (-e).max(axis=1, initial=-np.inf, keepdims=True))
    y = raised / raised.sum(axis=1, keepdims=True)
    return y, e, -np.tanh(x), y.max(axis=1, initial=-np.inf)


def context(seed=1):
    made = hostile.context(seed)
    hostile.put(hostile.LACKING, seed=seed)
    made.load_plugin(hostile.LACKING)
    return made


def test_the_device_lacks_what_the_test_says():
    has = {device: {op["name"] for op in context().report(f"ops:{device}") if "lacking" in str(op["impls"]) or "hostile" in
                    str(op["impls"])} for device in ("lacking", "hostile")}
    assert has["hostile"] - has["lacking"] == {*hostile.LACKS, *hostile.COPIED} and has["lacking"] < has["hostile"]


@pytest.mark.parametrize("level", [0, 2])
def test_without_fallback_all_that_is_lacking_is_named(level):
    c = context()
    module = c.parse(TEXT)
    with pytest.raises(keel_abi.KeelError) as e:
        module.session("lacking", level=level).prepare()
    assert e.value.code == "UNIMPLEMENTED" and "lacking:0" in e.value.message
    assert all(op in e.value.message for op in hostile.LACKS) and "fallback" in e.value.hint, e.value
    with pytest.raises(keel_abi.KeelError) as e:  # placed by patterns: node by node
        session(c, module, "cpu", "*=lacking:1", level=level).prepare()
    assert e.value.code == "UNIMPLEMENTED" and "for 4 nodes" in e.value.message and "name one as fallback" in e.value.hint
    for node, ops in LACKED.items():
        assert f'{ops} "{node}" on lacking:1' in e.value.message, e.value.message
    assert '"n"' not in e.value.message


@pytest.mark.parametrize("level", [0, 2])
@pytest.mark.parametrize("fallback", ["reference", "cpu", "hostile:1"])
def test_with_fallback_copies_are_explicit_and_answers_right(fallback, level):
    for seed in hostile.seeds_of(fallback):
        c = context(seed)
        plan = session(c, c.parse(TEXT), "lacking", fallback=fallback, level=level).prepare()
        report = plan.report(c.array(X))
        other = fallback if ":" in fallback else fallback + ":0"
        for node, (device, why) in where(report).items():
            if node not in LACKED:
                assert (device, why) == ("lacking:0", "default")
                continue
            assert device == other and why == f"fallback: lacking:0 lacks {LACKED[node]}"
        memory = fallback if "hostile" in fallback else "host"
        copies = {(x["value"], x["from"], x["to"]): x["bytes"] for x in report["copies"]}
        assert copies[("e", memory, "lacking:0")] == copies[("n", "lacking:0", memory)] == X.nbytes
        for rows in (3, 1, 0):
            for got, want in zip(plan.run(X[:rows]), expected(X[:rows]), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_fallback_that_lacks_it_too_is_no_help():
    c = context()
    with pytest.raises(keel_abi.KeelError) as e:
        session(c, c.parse(TEXT), "lacking:0", fallback="lacking:1").prepare()
    assert e.value.code == "UNIMPLEMENTED" and "on lacking:1" in e.value.message


@pytest.mark.parametrize("level", [0, 2])
def test_of_several_fallbacks_the_first_that_can_runs_a_node(level):
    c = context()
    plan = session(c, c.parse(TEXT), "lacking:0", fallback="lacking:1,hostile:0,reference", level=level).prepare()
    for node, (device, why) in where(plan.report(c.array(X))).items():
        assert device == ("hostile:0" if node in LACKED else "lacking:0")
        assert why == (f"fallback: lacking:0 lacks {LACKED[node]}, lacking:1 lacks {LACKED[node]}" if node in LACKED else "default")
    for got, want in zip(plan.run(X), expected(X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
    with pytest.raises(keel_abi.KeelError, match='no device "nosuch"'):
        session(c, c.parse(TEXT), "lacking:0", fallback="hostile,nosuch", level=level)


def test_what_each_fallback_declines_as_it_runs_goes_to_the_next():
    c = hostile.context(12)
    plan = session(c, c.parse(TEXT), "hostile:0", fallback="hostile:1,reference").prepare()
    try:
        hostile.fail("run", 1, code=12)
        got = plan.run(X)
    finally:
        hostile.fail()
    for one, want in zip(got, expected(X), strict=True):
        np.testing.assert_allclose(one, want, rtol=1e-5, atol=1e-6)


def test_a_size_that_is_a_number_needs_no_impl():
    c = context()
    text = "keel 1\n\nfn @main(x: f32[4]) -> y: f32[4], n: i64[] {\n  n = dim(){of=%s}\n  y = neg(x)\n  return y, n\n}\n"
    y, n = session(c, c.parse(text % 4), "lacking", level=0).prepare().run(X[0])
    assert n == 4 and (y == -X[0]).all()


@pytest.mark.parametrize("placed", [True, False])
@pytest.mark.parametrize("level", [0, 2])
def test_constants_are_folded_on_the_host_and_need_no_impl(level, placed):
    text = """keel 1
const k: f32[4] = [0.0, 1.0, 2.0, 3.0]
const bad: i64[2] = [1, 9]
fn @main(x: f32[4]) -> y: f32[4], e: f32[4] {
  e = exp(k)
  y = add(x, e)
  return y, e
}
fn @late(x: f32[4]) -> y: f32[2] {
  g = gather(k, bad)
  h = slice(x){start=[0], stop=[2]}
  y = add(h, g)
  return y
}
entry main = @main (x) -> (y, e)
entry late = @late (x) -> (y)
"""
    c = context()
    module = c.parse(text)
    where_to = {"place": "*=lacking:1"} if placed else {}
    plan = module.session("cpu" if placed else "lacking", entry="main", level=level, **where_to).prepare()
    for got, want in zip(plan.run(X[0]), (X[0] + np.exp([0, 1, 2, 3]), np.exp([0, 1, 2, 3])), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    late = module.session("lacking", entry="late", level=level).prepare()  # data that are bad are the error of a run
    with pytest.raises(keel_abi.KeelError, match=r"index 9 is not in \[0, 4\)"):
        late.run(X[0])


@pytest.mark.parametrize("level", [0, 2])
def test_what_an_impl_declines_as_it_runs_goes_to_the_fallback(level):
    """KEEL_UNIMPLEMENTED from `run` for these shapes; without a fallback it is the error of the run."""
    c = hostile.context(11)
    module = c.parse(TEXT)
    try:
        hostile.fail("run", 2, code=12)
        with pytest.raises(keel_abi.KeelError) as e:
            session(c, module, "hostile", level=level).prepare().run(X)
        assert e.value.code == "UNIMPLEMENTED"
        plan = session(c, module, "hostile", fallback="reference", level=level).prepare()
        for n in (2, 1):  # two nodes, one after the other
            hostile.fail("run", n, code=12)
            for got, want in zip(plan.run(X), expected(X), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)
            assert hostile.get("fired") == 1
        moved = [node for node, (device, _) in where(plan.report(c.array(X))).items() if device == "reference:0"]
        assert 1 <= len(moved) < 5 or level, moved
    finally:
        hostile.fail()


def test_a_plugin_that_finds_no_device_says_why(monkeypatch):
    told = keel("doctor", KEEL_PLUGIN_PATH=str(hostile.PLUGIN.parent), KEEL_HOSTILE_NONE="1")
    assert "no device: libhostile.so.1 is not installed" in told.stdout, told
    monkeypatch.setenv("KEEL_HOSTILE_NONE", "1")
    c = keel_abi.Context()
    c.load_plugin(hostile.PLUGIN)
    with pytest.raises(keel_abi.KeelError) as e:
        c.parse(TEXT).session("hostile")
    assert e.value.code == "NOT_FOUND" and "no device: libhostile.so.1 is not installed" in e.value.hint


def test_command_line(tmp_path):
    file = tmp_path / "m.keelt"
    file.write_text(TEXT)
    both = {"KEEL_PLUGIN_PATH": f"{hostile.PLUGIN.parent}:{hostile.LACKING.parent}", "KEEL_HOSTILE_SEED": "3"}
    run = ["run", file, "-i", "x=f32[1,4]=1,2,3,-4"]
    refused = keel(*run, "-d", "lacking", **both)
    assert refused.returncode == 5, refused
    assert all(op in refused.stderr for op in hostile.LACKS), refused.stderr
    plain = keel(*run, "-d", "reference", **both)
    for fallback in ("reference", "hostile"):
        done = keel(*run, "-d", "lacking", "--fallback", fallback, **both)
        assert done.returncode == 0, done.stderr
        assert done.stdout == plain.stdout
    table = keel("plan", file, "-d", "lacking", "--fallback", "reference", "--dim", "b=3", **both)
    assert table.returncode == 0, table.stderr
    assert "fallback: lacking:0 lacks exp" in table.stdout and "copies between memories:" in table.stdout
