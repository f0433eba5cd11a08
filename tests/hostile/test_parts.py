"""A placed graph is optimised part by part, each for its own device; answers do not change, reports are joined."""
import hostile
import keel_abi
import numpy as np
import pytest
from onnx_cases import assert_similar, folder_case, tiny_models
from test_place import session

MIDDLE = ("v18", "getitem_12", "relu_4", "v22", "getitem_15")


@pytest.fixture(scope="module")
def resnet(tmp_path_factory):
    return tiny_models(tmp_path_factory.mktemp("tiny"))["resnet_dyn20"]


def split(context, folder, other, **options):
    module = context.import_file(str(folder / "model.onnx"))
    return session(context, module, "cpu", *(f"{node}={other}" for node in MIDDLE), **options).prepare()


@pytest.mark.parametrize("level", [0, 1, 2, 3])
@pytest.mark.parametrize("other", ["reference", "hostile:1"])
def test_a_split_model_answers_the_same_at_each_level(resnet, other, level):
    _, sets, rtol, atol = folder_case(resnet)
    plan = split(hostile.context(level + 1), resnet, other, level=level)
    for inputs, expected in sets:
        assert_similar(expected, plan.run(*inputs), rtol, atol, f"{other}, level {level}")


@pytest.mark.parametrize("other", ["reference:0", "hostile:0"])
def test_the_part_on_cpu_is_fused(resnet, other):
    context = hostile.context(5)
    plain, best = (split(context, resnet, other, level=level).report() for level in (0, 2))
    assert best["placement"] == plain["placement"] and best["copies"] == plain["copies"]
    calls = {device: [x["node"] for x in best["launches"] if x["device"] == device and x["op"] == "call"]
             for device in ("cpu:0", other)}
    assert len(calls["cpu:0"]) >= 2 and not calls[other]  # one before and one after the part without fusion
    assert [x["device"] for x in best["launches"]].count("cpu:0") < [x["device"] for x in plain["launches"]].count("cpu:0")


def test_the_reports_of_the_parts_are_joined(resnet):
    context = hostile.context(6)
    whole = split(context, resnet, "hostile").report()
    assert whole["level"] == 2
    names = [p["name"] for p in whole["passes"]]
    assert len(names) == len(set(names)) and {"fold", "simplify", "nearby", "layout", "epilogue", "map"} <= set(names)
    edits = {p["name"]: p["edits"] for p in whole["passes"]}
    alone = context.import_file(str(resnet / "model.onnx")).session("cpu").prepare().report()
    assert edits["layout"] > {p["name"]: p["edits"] for p in alone["passes"]}["layout"] > 0  # one region more
    only = split(context, resnet, "hostile", passes="fold").report()
    assert [p["name"] for p in only["passes"]] == ["fold"]
    with pytest.raises(keel_abi.KeelError, match='no pass is named "fuse"'):
        split(context, resnet, "hostile", passes="fuse")


def test_parts_know_each_other_s_feeds_and_results():
    """A part's rewrite of a value (a removed double transpose) does not affect other parts."""
    context = hostile.context(7)
    module = context.parse("""keel 1
fn @main(x: f32[b, 3]) -> y: f32[b, 3], f32[3, b] {
  t = transpose(x){perm=[1, 0]} : f32[3, b]
  u = transpose(t){perm=[1, 0]} : f32[b, 3]
  h = neg(u) : f32[b, 3]
  s = identity(h) : f32[b, 3]
  y = exp(s) : f32[b, 3]
  return y, t
}
entry main = @main (x) -> (y, t)
""")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for place in (("h=hostile",), ("h=hostile:1", "y=hostile:0"), ("t=hostile", "s=hostile")):
        y, t = session(context, module, "cpu", *place).prepare().run(x)
        np.testing.assert_allclose(y, np.exp(-x), rtol=1e-6)
        np.testing.assert_array_equal(t, x.T)
