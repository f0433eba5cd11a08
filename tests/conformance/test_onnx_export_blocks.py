"""matmul_blocks written as MatMulNBits of com.microsoft where it has that form, else as its body; read again by Keel it is one op.
Oracle: ONNX Runtime, the device reference and NumPy."""
import numpy as np
import onnx
import pytest
from onnx_cases import assert_similar
from onnx_export import exported, run_onnx

RANDOM = np.random.default_rng(11)
DTYPES = {"f32": ("f4", 1e-4), "f16": ("f2", 2e-2), "f64": ("f8", 1e-9)}


def operands(bits, size, k, rows, blocks, zero, dtype, n=5):
    of = DTYPES[dtype][0]
    values = {"x": RANDOM.standard_normal((*rows, k)).astype(of), "w": RANDOM.integers(0, 256, (n, blocks, size * bits // 8)).astype("u1"),
              "s": (RANDOM.random((n, blocks)) * 0.1 + 0.01).astype(of)}
    return values | ({"z": RANDOM.integers(0, 1 << bits, (n, blocks)).astype(of)} if zero else {})


def made(context, values, bits, rounded, held, open_rows):
    """The module, and the operands that it is fed."""
    def dtype(v):
        return {"u1": "u8"}.get(v.dtype.str[1:], f"f{8 * v.dtype.itemsize}")

    def dims(name, v):
        return [*(["r"] if name == "x" and open_rows else v.shape[:1]), *v.shape[1:]]
    types = {name: f"{name}: {dtype(v)}[{', '.join(map(str, dims(name, v)))}]" for name, v in values.items()}
    fed = ["x"] if held else list(values)
    consts = "".join(f"const {types[name]} = {[v.item() for v in values[name].ravel()]}\n" for name in values if name not in fed)
    body = f"matmul_blocks({', '.join(values)}){{bits={bits}, rounded={str(rounded).lower()}}}"
    text = f"keel 1\n{consts}\nfn @main({', '.join(types[name] for name in fed)}) {{\n  y = {body}\n  return y\n}}\n\nentry main = @main\n"
    return context.parse(text), {name: values[name] for name in fed}


def by_hand(values, bits):
    n, blocks, _ = values["w"].shape
    k = values["x"].shape[-1]
    numbers = np.stack([values["w"] >> at & ((1 << bits) - 1) for at in range(0, 8, bits)], -1).reshape(n, blocks, -1).astype("f8")
    zero = values["z"].astype("f8")[..., None] if "z" in values else 1 << (bits - 1)
    return values["x"].astype("f8") @ ((numbers - zero) * values["s"].astype("f8")[..., None]).reshape(n, -1)[:, :k].T


def check(context, folder, whole, bits=4, size=32, k=64, rows=(3,), blocks=None, zero=False, rounded=False, dtype="f32", held=True,
          open_rows=False):
    values = operands(bits, size, k, rows, -(-k // size) if blocks is None else blocks, zero, dtype)
    module, feeds = made(context, values, bits, rounded, held, open_rows)
    model = exported(module, folder)
    operators = [node.op_type for node in model.graph.node]
    assert (operators == ["MatMulNBits"]) == whole, operators
    tolerance = DTYPES[dtype][1]
    expected = module.session("reference").prepare().run(*feeds.values())
    assert_similar(expected, run_onnx(model, feeds), tolerance, tolerance)
    if not rounded:
        assert_similar([by_hand(values, bits)], [expected[0].astype("f8")], tolerance, tolerance)
    again = context.import_file(folder / "exported.onnx")
    assert ("matmul_blocks" in again.to_text()) == whole
    return model


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("size, k", [(16, 1), (16, 16), (16, 47), (32, 64), (128, 130)])
def test_weights_of_all_bits_and_blocks(context, tmp_path, bits, size, k):
    model = check(context, tmp_path, True, bits, size, k)
    assert {(d.domain, d.version) for d in model.opset_import} == {("", 22), ("com.microsoft", 1)}
    assert onnx.helper.get_node_attr_value(model.graph.node[0], "block_size") == size


FORMS = [dict(rows=(2, 3)), dict(rows=(1,)), dict(rows=(7,), open_rows=True), dict(zero=True), dict(zero=True, bits=2), dict(dtype="f16"),
         dict(dtype="f16", zero=True), dict(held=False), dict(held=False, zero=True), dict(rounded=True), dict(rounded=True, bits=8)]


@pytest.mark.parametrize("form", FORMS, ids=str)
def test_other_operands(context, tmp_path, form):
    check(context, tmp_path, True, **form)


# Blocks of another size, spare blocks, zero points of 8-bit weights, other dtypes, rounding by weights that are not held, no rows or columns.
MISFITS = [dict(size=24, k=48), dict(size=8, k=16), dict(blocks=3, k=64), dict(bits=8, zero=True), dict(dtype="f64"),
           dict(rounded=True, held=False), dict(k=0, blocks=1)]


@pytest.mark.parametrize("form", MISFITS, ids=str)
def test_forms_that_the_operator_lacks_are_written_out(context, tmp_path, form):
    check(context, tmp_path, False, **form)
