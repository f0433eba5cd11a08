"""Passes do not change the results of whole models: small exports and trained ones on the reference device, the light image
models on cpu. Exact passes keep every bit; all passes of the default level stay within rounding."""
import numpy as np
import pytest
from optimizer import dump, keel, optimize
from operands import same_bits

import demo_models
from light_weights import image, reseeded
from onnx_cases import folder_case, light_models, tiny_models

TINY = [f"{kind}_{form}" for kind in ("bert", "gpt2", "resnet", "vit") for form in ("dyn20", "dyn23", "ts17")]
EXACT = "inline,loop,fold,simplify,transpose,map"


def run(context, path, device, inputs):
    return [np.array(y) for y in context.load(path).session(device, level=0).prepare().run(*inputs)]


def rewritten(tmp_path, source, device, only=None):
    """Returns the imported model and the optimised one; a second run of the passes must change nothing."""
    before, after, again = (tmp_path / f"{name}.keel" for name in ("before", "after", "again"))
    keel("convert", source, before)
    optimize(before, after, device, only, level=2)
    optimize(after, again, device, only, level=2)
    assert dump(again) == dump(after), "a second run changed something"
    return before, after


def close(expected, got):
    for a, b in zip(expected, got, strict=True):
        scale = np.abs(a).max(initial=0)
        assert np.abs(a - b).max(initial=0) <= 2e-5 * scale, np.abs(a - b).max() / scale


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return tiny_models(tmp_path_factory.mktemp("tiny"))


@pytest.mark.parametrize("only", [EXACT, None], ids=["exact", "all"])
@pytest.mark.parametrize("name", TINY)
def test_tiny(context, tmp_path, folders, name, only):
    before, after = rewritten(tmp_path, folders[name] / "model.onnx", "claims:0", only)
    for inputs, _ in folder_case(folders[name])[1]:
        expected, got = (run(context, path, "reference", inputs) for path in (before, after))
        if only:
            assert all(same_bits(a, b) for a, b in zip(expected, got, strict=True))
        else:
            close(expected, got)


@pytest.mark.parametrize("only", [EXACT, None], ids=["exact", "all"])
def test_sentences(context, tmp_path, only):
    source = demo_models.installed(demo_models.SENTENCE_PACKAGE, ".onnx")
    before, after = rewritten(tmp_path, source, "claims:0", only)
    ids = np.array([[101, 7592, 2088, 2003, 102]], np.int64)
    inputs = [ids, np.ones_like(ids)]
    expected, got = (run(context, path, "reference", inputs) for path in (before, after))
    if only:
        assert all(same_bits(a, b) for a, b in zip(expected, got, strict=True))
    else:
        close(expected, got)


@pytest.mark.parametrize("only", [EXACT, None], ids=["exact", "all"])
def test_files(context, tmp_path, only):
    source, config = demo_models.file_model()
    before, after = rewritten(tmp_path, source, "claims:0", only)
    inputs = [demo_models.file_features(__file__, config)[None]]
    expected, got = (run(context, path, "cpu", inputs) for path in (before, after))
    close(expected, got)


@pytest.mark.parametrize("name", sorted(light_models()))
def test_light(context, tmp_path, name):
    model = reseeded(light_models()[name])
    source = tmp_path / "model.onnx"
    source.write_bytes(model.SerializeToString())
    before, after = rewritten(tmp_path, source, "cpu")
    expected, got = (run(context, path, "cpu", [image(model)]) for path in (before, after))
    assert len(np.unique(expected[0])) >= 800, "the weights leave too few distinct outputs to test anything"
    close(expected, got)
