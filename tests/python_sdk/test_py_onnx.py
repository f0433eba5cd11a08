"""keel.from_onnx and the interface of keel.onnx.backend: models as paths, bytes and protobufs, and invalid models."""
import subprocess
import sys

import keel
import numpy as np
import pytest

onnx = pytest.importorskip("onnx")
from keel.onnx import backend  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

X = np.array([[1, -2, 3]], "f4")
W = np.arange(6, dtype="f4").reshape(3, 2)


def value(name, dims, dtype=TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, dtype, dims)


def model(nodes, inputs, outputs, constants=(), opset=17):
    graph = helper.make_graph(nodes, "g", inputs, outputs, list(constants))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.fixture
def layer():
    return model([helper.make_node("MatMul", ["in put", "w"], ["495"]), helper.make_node("Relu", ["495"], ["out/relu"])],
                 [value("in put", ["batch", 3])], [value("495", None), value("out/relu", None)],
                 [numpy_helper.from_array(W, "w")])


def test_a_model_comes_as_path_bytes_or_protobuf(layer, tmp_path, device):
    path = tmp_path / "m.onnx"
    path.write_bytes(layer.SerializeToString())
    for source in (path, str(path), layer.SerializeToString(), bytearray(layer.SerializeToString()), layer):
        module = keel.from_onnx(source)
        first, second = module(X)
        np.testing.assert_array_equal(first, X @ W)
        np.testing.assert_array_equal(second, np.maximum(X @ W, 0))


@pytest.mark.parametrize("load", [keel.load, keel.Session])
def test_a_model_that_is_loaded_as_a_keel_file_names_the_import(layer, tmp_path, load):
    path = tmp_path / "m.onnx"
    path.write_bytes(layer.SerializeToString())
    with pytest.raises(keel.InvalidError, match="this is not a Keel file") as e:
        load(path)
    assert "keel.from_onnx" in str(e.value)


def test_names_are_kept_and_results_are_found_by_them(layer):
    module = keel.from_onnx(layer, device="reference")
    assert module.device == "reference" and keel.Session(module).parameters == [("in put", keel.f32, (-1, 3))]
    got = module(**{"in put": X})
    np.testing.assert_array_equal(got["out/relu"], np.maximum(X @ W, 0))
    np.testing.assert_array_equal(got["495"], got[0])
    for call, kind in ((lambda: module(X, X), TypeError), (lambda: module(x=X), TypeError), (lambda: module(), keel.Error),
                       (lambda: module(X[0]), keel.Error), (lambda: got["no"], ValueError)):
        with pytest.raises(kind):
            call()


def test_models_are_part_of_functions_and_of_tapes(layer):
    module = keel.from_onnx(layer, device="reference")
    twice = keel.function(lambda x: module(x)["out/relu"] * 2)
    np.testing.assert_array_equal(twice(X), 2 * np.maximum(X @ W, 0))
    x = keel.array(X)
    with keel.Tape() as tape:
        tape.watch(x)
        y = module(x)[0]
    np.testing.assert_allclose(tape.gradient(y, x), (X @ W > 0) @ W.T.astype("f4"), rtol=1e-6)


def test_weights_stay_when_the_file_of_the_bytes_is_gone(tmp_path):
    big = np.random.default_rng(0).random((3, 100_000), "f4")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    module = keel.from_onnx(model(nodes, [value("x", [1, 3])], [value("y", None)], [numpy_helper.from_array(big, "w")]))
    keel.save(tmp_path / "m.keel", module)
    for each in (module, keel.load(tmp_path / "m.keel")):
        np.testing.assert_allclose(each(X), X @ big, 1e-5, 1e-5)


def test_sizes_that_are_inputs_are_fixed():
    reshape = model([helper.make_node("Reshape", ["x", "shape"], ["y"])],
                    [value("x", [1, 3]), value("shape", [2], TensorProto.INT64)], [value("y", None)])
    with pytest.raises(keel.PreconditionError, match="'shape'"):
        keel.from_onnx(reshape)
    assert keel.from_onnx(reshape, fixed={"shape": np.array([3, 1])})(X).shape == (3, 1)
    rep = backend.prepare(reshape)
    assert [rep.run([X, np.array(s)])[0].shape for s in ((3, 1), (1, 3))] == [(3, 1), (1, 3)]


def test_what_is_no_model_is_named(tmp_path):
    (tmp_path / "text.onnx").write_text("hello")
    unknown = model([helper.make_node("Unheard", ["x"], ["y"]),
                     helper.make_node("ImageDecoder", ["x"], ["z"])], [value("x", [2, 2])], [value("y", None), value("z", None)])
    for source, kind, words in ((tmp_path / "no.onnx", keel.NotFoundError, "no.onnx"), (tmp_path / "text.onnx", keel.InvalidError, "text.onnx"),
                                (b"", keel.InvalidError, "empty"), (b"\x08\x07garbage", keel.InvalidError, "damaged"),
                                (unknown.SerializeToString()[:-20], keel.InvalidError, "damaged"),
                                (unknown, keel.UnimplementedError, r"ImageDecoder: images \(1, at 'z'\)"), (unknown, keel.UnimplementedError, "Unheard"),
                                (3, TypeError, "int"), (None, TypeError, "NoneType")):
        with pytest.raises(kind, match=words):
            keel.from_onnx(source)
    with pytest.raises(keel.DeviceError):
        keel.from_onnx(model([helper.make_node("Relu", ["x"], ["y"])], [value("x", [1, 3])], [value("y", None)]), device="tpu")


def test_paths_and_bytes_need_no_onnx_package(layer, tmp_path):
    (tmp_path / "m.onnx").write_bytes(layer.SerializeToString())
    code = ("import sys; sys.modules['onnx'] = None\nimport keel\n"
            "for m in (sys.argv[1], open(sys.argv[1], 'rb').read()):\n    print(keel.from_onnx(m)([[1., -2., 3.]])[0].tolist())")
    done = subprocess.run([sys.executable, "-c", code, tmp_path / "m.onnx"], capture_output=True, text=True, env={"PYTHONPATH": ":".join(sys.path)})
    assert done.stdout == f"{(X @ W).tolist()}\n" * 2, done.stderr


def test_the_backend_follows_the_interface(layer):
    assert issubclass(backend.KeelBackend, onnx.backend.base.Backend)
    for inputs in ([X], X, {"in put": X}):
        out = backend.run_model(layer, inputs)
        assert isinstance(out[0], np.ndarray)
        np.testing.assert_array_equal(out["out/relu"], np.maximum(X @ W, 0))
    with pytest.raises(ValueError, match="2 inputs"):
        backend.prepare(layer).run([X, X])
    assert [backend.supports_device(d) for d in ("CPU", "CPU:0", "reference", "TPU", "CPU:7")] == [True, True, True, False, False]
    assert backend.is_compatible(layer)
    node = helper.make_node("ImageDecoder", ["x"], ["y"])
    assert not backend.is_compatible(model([node], [value("x", [2, 2])], [value("y", None)]))


def test_sequences_have_a_length_at_import_and_are_lists_in_the_backend():
    kinds = [helper.make_tensor_sequence_value_info(name, TensorProto.FLOAT, None) for name in ("s", "y")]
    nodes = [helper.make_node("ConcatFromSequence", ["s"], ["c"], axis=0), helper.make_node("SequenceInsert", ["s", "c"], ["y"])]
    source, parts = model(nodes, kinds[:1], kinds[1:]), [np.array([1, 2], np.float32), np.array([3], np.float32)]
    with pytest.raises(keel.PreconditionError, match="the length of 's', a sequence"):
        keel.from_onnx(source)
    got = keel.from_onnx(source, **{"length.s": 2, "shape.s": "2"})
    assert [r.shape for r in got(s_0=[1, 2], s_1=[3, 4])] == [(2,), (2,), (4,)]
    (out,) = backend.run_model(source, [parts])
    assert [x.tolist() for x in out] == [[1, 2], [3], [1, 2, 3]]
    with pytest.raises(keel.InvalidError, match="the sequence is empty"):
        backend.run_model(source, [[]])


def test_weights_that_are_listed_as_inputs_are_not_fed():
    old = model([helper.make_node("MatMul", ["x", "w"], ["y"])], [value("w", [3, 2]), value("x", [1, 3])], [value("y", None)],
                [numpy_helper.from_array(W, "w")])
    np.testing.assert_array_equal(backend.run_model(old, [X])[0], X @ W)
    np.testing.assert_array_equal(keel.from_onnx(old)(X), X @ W)


def test_a_single_node_is_run():
    for node, inputs, expected in (
            (helper.make_node("Add", ["a", "b"], ["c"]), [X, X], X + X),
            (helper.make_node("Clip", ["x", "", "high"], ["y"]), [X, np.array(1, "f4")], np.minimum(X, 1)),
            (helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0), [X, np.array([1])], X.sum(1))):
        np.testing.assert_array_equal(backend.run_node(node, inputs)[0], expected)
    old = helper.make_node("ReduceSum", ["x"], ["y"], axes=[1], keepdims=0)
    np.testing.assert_array_equal(backend.run_node(old, [X], opset_version=11)[0], X.sum(1))
    with pytest.raises(keel.UnimplementedError):
        backend.run_node(helper.make_node("ImageDecoder", ["x"], ["y"]), [np.eye(2, dtype="u1")])


def test_a_function_is_written_as_a_model(tmp_path, device):
    weights = keel.Variable(W)

    @keel.function
    def f(x):
        if keel.reduce_sum(x) > 0:
            return keel.relu(x @ weights)
        return keel.zeros((x.shape[0], 2))

    path = tmp_path / "f.onnx"
    keel.onnx.save(path, f.concrete(X))
    onnx.checker.check_model(onnx.load(path), full_check=True)
    again = keel.from_onnx(path)
    np.testing.assert_array_equal(again(X), np.maximum(X @ W, 0))
    np.testing.assert_array_equal(again(-X), np.zeros((1, 2)))


def test_one_entry_is_written(tmp_path):
    f = keel.function(lambda x: x * 2)
    g = keel.function(lambda x: x + 1)
    both = keel.join(f=f.concrete(X), g=g.concrete(X))
    with pytest.raises(keel.NotFoundError, match="holds one entry"):
        keel.onnx.save(tmp_path / "m.onnx", both)
    keel.onnx.save(tmp_path / "m.onnx", both, entry="g")
    np.testing.assert_array_equal(keel.from_onnx(tmp_path / "m.onnx")(X), X + 1)


def test_what_cannot_be_written(tmp_path):
    f = keel.function(lambda x: x * 2)
    with pytest.raises(TypeError, match=r"f\.concrete\(x\)"):
        keel.onnx.save(tmp_path / "m.onnx", f)
    with pytest.raises(keel.InvalidError, match="ends in .onnx"):
        keel.onnx.save(tmp_path / "m.pb", f.concrete(X))
    with pytest.raises(keel.NotFoundError, match="no entry 'h'"):
        keel.onnx.save(tmp_path / "m.onnx", f.concrete(X), entry="h")
    assert list(tmp_path.iterdir()) == []
