"""keel ops --onnx against ONNX's own list of operators: each of them is supported from a version on, or has a reason."""
import json

import pytest

onnx = pytest.importorskip("onnx")


def test_every_operator_of_onnx_is_listed(keel):
    first = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        key = "" if schema.domain == "ai.onnx" else schema.domain, schema.name
        first[key] = min(schema.since_version, first.get(key, 99))
    listed = json.loads(keel("ops", "--onnx", "--json").out)["onnx"]
    own = {(o["domain"], o["name"]): o for o in listed if o["domain"] != "com.microsoft"}
    assert len(own) == len([o for o in listed if o["domain"] != "com.microsoft"])
    assert own.pop(("", "SimplifiedLayerNormalization"))["since"] == 1  # of ONNX Runtime, which puts it among ONNX's own
    assert sorted(set(first) ^ set(own)) == []
    for key, o in own.items():
        assert ("since" in o) != ("reason" in o)
        assert o.get("since", 99) >= first[key], key
    assert own["", "SequenceMap"]["since"] == 17 and own["", "ImageDecoder"]["reason"] == "images"
    assert [key for key, o in own.items() if o.get("since", 0) > first[key]] == []


def test_the_table(keel):
    lines = keel("ops", "--onnx").out.splitlines()
    assert lines[0].split() == ["operator", "from", "opset"]
    rows = [line.split(maxsplit=2) for line in lines]
    assert ["ai.onnx.ml.TreeEnsemble", "5"] in rows and ["StringSplit", "20"] in rows
