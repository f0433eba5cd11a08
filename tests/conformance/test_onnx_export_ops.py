"""Graphs of Keel's own ops, written as ONNX: the results are those of the device reference, also where ONNX's operators differ
from Keel's ops or leave results open (NaN, ties, integers that wrap, floats that do not fit, indices)."""
import numpy as np
import pytest
from keel_abi import KeelError
from onnx_cases import assert_similar
from onnx_export import exported, run_onnx

NAN, INF = float("nan"), float("inf")
F = np.array([[1.5, NAN, -2.5, INF], [0.0, -INF, 3e9, -3e9]], "f4")
I = np.array([[-7, 7, 0, 5], [-2**31, 2**31 - 1, -1, 3]], "i4")
W = np.array([[-7, 7, 0, 5], [-2**63, 2**63 - 1, -1, 3]], "i8")
U = np.array([[0, 1, 200, 255]], "u1")
X = np.arange(24, dtype="f4").reshape(2, 3, 4) - 11
IMAGE = np.sin(np.arange(2 * 4 * 5 * 6, dtype="f4")).reshape(2, 4, 5, 6)
HOLES = np.where(IMAGE > 0.9, np.float32(NAN), IMAGE)


with np.errstate(over="ignore"):
    HALF = F.astype("f2")
# A graph's parameters, its body, and the value.
ELEMENTWISE = [
    ("x: f32[2, 4]", f"cast(x){{to={t}}}", F) for t in ("i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "bool", "f64", "f16")
] + [
    ("x: f64[2, 4]", "cast(x){to=i32}", F.astype("f8")), ("x: f16[2, 4]", "cast(x){to=u16}", HALF),
    ("x: i32[2, 4]", "cast(x){to=i8}", I), ("x: i32[2, 4]", "cast(x){to=u64}", I), ("x: i64[2, 4]", "cast(x){to=f32}", W),
    ("x: i32[2, 4]", "x + 1", I), ("x: u8[1, 4]", "x * 3", U), ("x: u8[1, 4]", "-x", U), ("x: i32[2, 4]", "-x", I),
    ("x: i32[2, 4]", "div(x, 2)", I), ("x: i32[2, 4]", "div(x, -1)", I), ("x: i64[2, 4]", "div(x, -3)", W),
    ("x: i32[2, 4]", "mod(x, 3)", I), ("x: i32[2, 4]", "mod(x, -1)", I), ("x: i32[2, 4]", "rem(x, -3)", I),
    ("x: i64[2, 4]", "rem(x, -1)", W), ("x: f32[2, 4]", "mod(x, 1.25)", F), ("x: f32[2, 4]", "mod(x, -1.25)", F),
    ("x: f32[2, 4]", "rem(x, -1.25)", F), ("x: u8[1, 4]", "div(x, 7)", U),
    ("x: i32[2, 4]", "pow(x, 3)", I), ("x: u8[1, 4]", "pow(x, 5)", U), ("x: f32[2, 4]", "pow(x, 0.5)", F),
    ("x: f32[2, 4]", "maximum(x, 1)", F), ("x: f32[2, 4]", "minimum(x, 1)", F), ("x: f32[2, 4]", "clamp(x, -1, 2)", F),
    ("x: f32[2, 4]", "sign(x)", F), ("x: f32[2, 4]", "log1p(abs(x) * 1e-6)", F), ("x: f32[2, 4]", "log1p(x)", F),
    ("x: f64[2, 4]", "log1p(x * 1e-12)", F.astype("f8")), ("x: f16[2, 4]", "log1p(x)", HALF),
    ("x: f32[2, 4]", "rsqrt(x)", F), ("x: f32[2, 4]", "round(x)", F), ("x: f32[2, 4]", "is_finite(x)", F),
    ("x: i32[2, 4]", "reduce_sum(x * 3){axes=[1]}", I), ("x: i32[2, 4]", "reduce_prod(x - 1){axes=[0]}", I),
    ("x: f32[2, 4]", "not_equal(x, 1.5)", F), ("x: f32[2, 4]", "relu(x)", F), ("x: f64[2, 4]", "leaky_relu(x){alpha=0.1}", F.astype("f8")),
    ("x: u8[1, 4]", "shift_left(x, 1)", U), ("x: u8[1, 4]", "shift_right(200, x)", U), ("x: u8[1, 4]", "shift_left(x, x)", U),
    ("x: f32[2, 4]", "gelu(x)", F), ("x: f32[2, 4]", "softplus(x)", F), ("x: f32[2, 4]", "atan(x)", F),
    ("x: f32[2, 4]", "bit_cast(x){to=i32}", F),
]
SHAPES = [
    ("x: f32[2, 3, 4]", body, X) for body in (
        "reshape(x){to=[4, -1]}", "broadcast_to(x){dims=[2, 2, 3, 4]}", "sum_to(x){dims=[3, 1]}", "transpose(x)",
        "concat(x, x){axis=1}", "slice(x){start=[0, 1, 0], stop=[2, 3, 4], step=[1, 1, 3]}", "reverse(x){axes=[0, 2]}",
        "pad(x, 7){lo=[1, 0, 2], hi=[0, 3, 0]}", "pad(x, 7){lo=[1, 0, 0], gap=[0, 2, 1]}", "tile(x){times=[2, 1, 3]}",
        "triangle(x){k=1, upper=true}", "roll(x){shift=1, axis=2}", "fill(2.0){dims=[3, 0]}", "iota(){dims=[2, 3], axis=0}",
        "iota(){dims=[3], dtype=f32}", "eye(){rows=2, cols=3}", "linspace(0.0, 1.0){n=5}", "slice(x){stop=[0, 3, 4]}",
        "reduce_sum(x){axes=[0, 2]}", "reduce_mean(x)", "reduce_prod(x){axes=[1], keep=true}", "reduce_var(x){axes=[1]}",
        "reduce_mean(cast(x){to=i32}){axes=[0]}", "reduce_sum(cast(x){to=i8})", "reduce_sum(x){axes=[]}",
        "reduce_max(slice(x){stop=[2, 0, 4]}){axes=[1]}", "reduce_mean(slice(x){stop=[2, 0, 4]}){axes=[1]}",
        "reduce_min(cast(slice(x){stop=[2, 0, 4]}){to=i16}){axes=[1]}", "reduce_max(x > 3){axes=[1]}", "cumsum(x){axis=1, exclusive=true, reverse=true}",
        "cumsum(cast(x * 9){to=i8}){axis=2}", "cumprod(x){axis=2, exclusive=true}", "cumprod(cast(x * 9){to=i8}){axis=1, reverse=true}", "arg_max(x){axis=2}", "arg_min(x * x){axis=0, last=true}", "sort(x){axis=1, descending=true}",
        "argsort(abs(x))", "log_sum_exp(x)", "softmax(x){axis=1}", "log_softmax(x)", "matmul(x, x){tb=true}", "matmul(x, x){ta=true}",
        "matmul(cast(x){to=i8}, cast(x){to=i8}){ta=true}", "layer_norm(x, fill(2.0){dims=[4]}, fill(1.0){dims=[4]})",
        "rms_norm(x, fill(2.0){dims=[4]})", "one_hot(cast(x){to=i32}){depth=5}", "one_hot(cast(x){to=i64}){depth=5, axis=1}",
        "matmul_blocks(x, cast(iota(){dims=[5, 3, 1]}){to=u8}, fill(0.5){dims=[5, 3]}){rounded=true}",
        "einsum(x, x){x=[0, 1, 2], y=[0, 3, 2], to=[0, 3, 1]}", "einsum(x, x){x=[7, -1, 3], y=[4, -1, 3], to=[4, 7]}",
        "einsum(cast(x){to=i8}, cast(x){to=i8}){x=[0, 1, 2], y=[0, 1, 3], to=[3, 2]}", "einsum(cast(x){to=u64}, cast(x){to=u64}){x=[0, 1, 2], y=[0, 1, 2], to=[]}",
        "einsum(slice(x){stop=[2, 0, 4]}, x){x=[0, 1, 2], y=[0, 3, 2], to=[1, 3]}",
        "attention(x, x, x){causal=true}", "cross_entropy(x, fill(2){dims=[2, 3]})",
    )
] + [
    ("x: f32[2, 4]", "reduce_max(x){axes=[1]}", F), ("x: f32[2, 4]", "reduce_min(x){axes=[0], keep=true}", F),
    ("x: f32[2, 4]", "arg_max(x){axis=1}", F), ("x: f32[2, 4]", "arg_min(x){axis=1}", F),
    ("x: f32[4]", "arg_max(x){axis=0, last=true}", np.array([1, NAN, NAN, 2], "f4")),
    ("x: f32[5]", "sort(x)", np.array([1, NAN, 3, -1, 2], "f4")), ("x: f32[5]", "argsort(x){descending=true}", np.array([1, 1, NAN, -1, 1], "f4")),
    ("x: f32[2, 4]", "softmax(x)", F), ("x: i64[6]", "gather(reshape(iota(){dims=[12]}){to=[3, 4]}, x){axis=1}", np.arange(6) % 4),
    ("x: i64[2, 2]", "scatter_add(x, iota(){dims=[3, 2, 2], axis=0}){axis=1, size=4}", np.array([[0, 3], [3, 3]])),
    ("x: i32[2]", "scatter_add(x, iota(){dims=[2, 3], axis=1}){size=3}", np.array([2, 2], "i4")),
    ("x: i32[3, 2]", "scatter_nd(fill(1.0){dims=[3, 3]}, x, fill(2.0){dims=[3]}){mode=add}", np.array([[0, 0], [1, 2], [1, 2]], "i4")),
    ("x: i32[2, 3]", "gather_elements(iota(){dims=[2, 4], axis=1}, x){axis=1}", np.array([[0, 3, 1], [2, 2, 0]], "i4")),
]
IMAGES = [
    ("x: f32[2, 4, 5, 6]", body, image) for image in (IMAGE, HOLES) for body in (
        "max_pool(x){window=[2, 3]}", "max_pool(x){window=[2, 2], stride=[2, 1], lo=[1, 1], hi=[0, 1], dil=[1, 2]}",
        "max_pool(x){window=[1, 2], lo=[2, 2], hi=[1, 0]}", "max_pool_index(x){window=[2, 2], stride=[2, 2], lo=[1, 0]}",
        "avg_pool(x){window=[2, 3], lo=[1, 1], hi=[0, 1]}", "avg_pool(x){window=[2, 3], lo=[1, 1], count_pad=true}",
        "avg_pool(x){window=[2, 2], stride=[2, 2], over=[1, 0], hi=[0, 0], count_pad=true}",
        "avg_pool(x){window=[2, 2], lo=[3, 2], hi=[2, 0], count_pad=true}", "lrn(x){size=3}", "lrn(x){size=2}",
        "avg_pool(x){window=[3, 3], stride=[2, 2], lo=[1, 0], over=[1, 1], count_pad=true}",
        "batch_norm(x, fill(2.0){dims=[4]}, fill(1.0){dims=[4]}, fill(0.5){dims=[4]}, fill(0.25){dims=[4]})",
    )
] + [
    ("x: f32[2, 4, 5, 6]", body, IMAGE) for body in (
        "conv(x, slice(x){stop=[2, 4, 2, 3]}){lo=[1, 2], hi=[0, 1], stride=[2, 1]}", "conv(x, slice(x){stop=[2, 2, 2, 3]}){groups=2, dil=[2, 1]}",
        "conv_grad_x(x, slice(transpose(x){perm=[1, 0, 2, 3]}){stop=[4, 2, 3, 2]}){dims=[2, 2, 7, 7]}",
        "conv_grad_x(x, slice(transpose(x){perm=[1, 0, 2, 3]}){stop=[4, 2, 3, 2]}){dims=[2, 2, 12, 9], stride=[2, 1], lo=[1, 1]}",
        "conv_grad_x(x, slice(transpose(x){perm=[1, 0, 2, 3]}){stop=[4, 2, 3, 2]}){dims=[2, 4, 6, 7], groups=2, lo=[1, 0]}",
        "conv_grad_w(slice(x){stop=[2, 3, 4, 4]}, x){dims=[3, 4, 2, 3]}",
        "conv_grad_w(slice(x){stop=[2, 3, 3, 2]}, x){dims=[3, 4, 2, 3], stride=[2, 3], lo=[1, 2], dil=[2, 1]}",
        "conv_grad_w(slice(x){stop=[2, 4, 3, 3]}, x){dims=[4, 2, 2, 2], groups=2, stride=[1, 2]}",
        "conv_grad_w(x, x){dims=[4, 1, 3, 2], groups=4, lo=[1, 1]}",
        "max_pool_index(cast(x){to=f16}){window=[2, 2], stride=[2, 2], hi=[1, 0]}",
        "cast(max_pool(cast(x * 100){to=i16}){window=[2, 2]}){to=i32}",
    )
]
BYTES = np.arange(2 * 4 * 5 * 6).reshape(2, 4, 5, 6).astype("u1")
QUANTISED = [
    ("x: u8[2, 4, 5, 6]", body, BYTES) for body in (
        "conv_integer(x, cast(slice(x){stop=[2, 4, 2, 3]}){to=i8})", "conv_integer(x, slice(x){stop=[2, 4, 2, 3]}, u8(7), u8(9)){lo=[1, 2], hi=[0, 1]}",
        "conv_integer(x, slice(x){stop=[2, 4, 2, 3]}, u8(7), cast(iota(){dims=[2, 1, 1, 1]}){to=u8}){stride=[2, 1]}",
        "conv_integer(x, slice(x){stop=[2, 2, 2, 3]}, fill(u8(7)){dims=[1, 1]}){groups=2, dil=[2, 1]}",
        "matmul_integer(x, slice(transpose(x){perm=[0, 1, 3, 2]}){stop=[2, 4, 6, 3]}, u8(7), cast(iota(){dims=[3]}){to=u8})",
        "matmul_integer(x, cast(iota(){dims=[6, 3]}){to=i8}, u8(7), cast(iota(){dims=[3]}){to=i8})",
        "matmul_integer(x, slice(transpose(x){perm=[0, 1, 3, 2]}){stop=[2, 4, 6, 3]}, slice(x){stop=[2, 4, 5, 1]}, u8(3))",
    )
] + [
    # Bytes below 128: without VNNI, ONNX Runtime adds pairs of products with i8 in 16 bits, which saturate.
    ("x: u8[2, 4, 5, 6]", "matmul_integer(x, cast(slice(transpose(x){perm=[0, 1, 3, 2]}){stop=[2, 4, 6, 3]}){to=i8})", BYTES % 128)
]
# Symbolic sizes: of each, a value that the shapes alone do not show.
SIZES = [
    ("x: f32[b, 3, n]", body, X) for body in (
        "reshape(x){to=[3 * b, n]}", "reshape(x){to=[n, 3, b]}", "broadcast_to(x){dims=[2, b, 3, n]}", "iota(){dims=[b, n], axis=1}",
        "dim(){of=2 * b + n // 3 - 1}", "dim(){of=max(b, n), dtype=f32}", "slice(x){stop=[b, 1, n - 1]}", "pad(x, 0){hi=[b, 0, n]}",
        "reduce_mean(x){axes=[0, 2]}", "roll(x){shift=1, axis=2}", "concat(x, x){axis=0}", "tile(x){times=[1, 2, n]}",
        "fill(1.0){dims=[(b - 5) // 2 + 9]}", "split(x){sizes=[1, n - 1], axis=2}", "attention(x, x, x)", "sort(x)",
    )
]


def check(context, tmp_path, text, *arrays):
    module = context.parse(text)
    want = module.session("reference").prepare().run(*arrays)
    model = exported(module, tmp_path)
    got = run_onnx(model, {i.name: a for i, a in zip(model.graph.input, arrays)})
    half = any(a.dtype == np.float16 for a in want)
    assert_similar(want, got, 2e-3 if half else 2e-5, 1e-6)
    return model


@pytest.mark.parametrize("params, body, x", [
    pytest.param(*case, id=f"{name}{k} {case[1][:40]}")
    for name, cases in (("element", ELEMENTWISE), ("shape", SHAPES), ("image", IMAGES), ("quantised", QUANTISED), ("size", SIZES)) for k, case in enumerate(cases)])
def test_op(context, tmp_path, params, body, x):
    two = body.startswith(("sort", "split"))
    lines = f"  y, z = {body}\n  return y, z\n" if two else f"  y = {body}\n  return y\n"
    check(context, tmp_path, f"keel 1\n\nfn @main({params}) {{\n{lines}}}\n\nentry main = @main\n", x)


@pytest.mark.parametrize("zeros, words", [
    ("slice(x){stop=[1, 4, 1, 1]}, u8(1)", "zero points of images: not one number"),
    ("u8(1), fill(u8(2)){dims=[2, 1]}", "zero points along the window")])
def test_zero_points_that_convinteger_lacks(context, tmp_path, zeros, words):
    module = context.parse("keel 1\n\nfn @main(x: u8[2, 4, 5, 6]) {\n"
                           f"  y = conv_integer(x, slice(x){{stop=[2, 4, 2, 3]}}, {zeros})\n  return y\n}}\n\nentry main = @main\n")
    with pytest.raises(KeelError, match=words):
        module.save(tmp_path / "m.onnx")


CONTROL = """keel 1

fn @more(x: f32[n], i: i64[], k: i64[]) { return i < k }
fn @turn(x: f32[n], i: i64[], k: i64[]) { return x * 2 + cast(dim(){of=n}){to=f32}, i + 1 }
fn @plus(x: f32[n]) { return x + 1 }
fn @same(x: f32[n]) { return x }
fn @step(sum: f32[], scale: f32[], x: f32[]) { s = sum + x * scale
  return s, s * s }
fn @grow(x: f32[n]) { return x + 1, x }
fn @flag(sum: f32[], x: f32[]) { return sum * 0.5 + x, sum > 1, sum }

fn @main(x: f32[n], p: bool[], i: i64[], f: f32[]) {
  a = cond(p, x){then=@plus, else=@same}
  b = switch(i, x){branches=[@same, @plus, @same]}
  c, d = while(x, i, 5){test=@more, body=@turn, carry=2}
  e, g = scan(f, 2.0, x){body=@step, carry=1, invariants=1}
  h, j = scan(f, 2.0, x){body=@step, carry=1, invariants=1, reverse=true}
  k, l = scan(x){body=@grow, carry=1, length=3, reverse=true}
  m, o, q = scan(f, x, minimum(i, dim(){of=n})){body=@flag, carry=1, counted=true}
  r, s, t = scan(f, x, minimum(i, dim(){of=n})){body=@flag, carry=1, counted=true, reverse=true}
  u, v = scan(x, i){body=@grow, carry=1, length=3, counted=true}
  return a, b, c, d, e, g, h, j, k, l, m, o, q, r, s, t, u, v
}

entry main = @main
"""


@pytest.mark.parametrize("p, i", [(True, 0), (False, 1), (True, 2), (False, 2)])
@pytest.mark.parametrize("n", [1, 4])
def test_control_flow(context, tmp_path, p, i, n):
    model = check(context, tmp_path, CONTROL, np.arange(n, dtype="f4"), np.array(p), np.array(i), np.array(1.5, "f4"))
    assert {"If", "Loop", "Scan"} <= {node.op_type for node in model.graph.node}


@pytest.mark.parametrize("fed", [False, True])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("most, low", [(2, "0.3"), (9, "-1.0"), (0, "0.3"), (3, "nan")])
def test_boxes(context, tmp_path, most, low, center, fed):
    random = np.random.default_rng(3)
    corners = random.uniform(0, 1, (2, 7, 2, 2)).astype("f4")
    boxes = np.concatenate([corners.min(2), corners.max(2)], -1)
    text = ("keel 1\n\nfn @main(boxes: f32[2, 7, 4], scores: f32[2, 3, 7], most: i64[], low: f32[]) {\n"
            f"  found, count = non_max_suppression(boxes, scores, most, 0.3, {'low' if fed else low}){{size=4, center={str(center).lower()}}}\n"
            "  return found, count, low\n}\n\nentry main = @main\n")
    check(context, tmp_path, text, boxes, random.uniform(0, 1, (2, 3, 7)).astype("f4"), np.array(most), np.array(low, "f4"))


SELECTED = """keel 1

fn @main(x: DTYPE[n, m]) {
  at = nonzero(x) : i64[2, found]
  pairs = fill(1){dims=[found, 2]}
  v, first, inverse, counts = unique(reshape(x){to=[-1]})
  again = gather(v, inverse)
  return at, pairs, again, v, first, inverse, counts
}

entry main = @main
"""


@pytest.mark.parametrize("shape", [(3, 4), (1, 1), (5, 7)], ids=str)
@pytest.mark.parametrize("dtype", ["bool", "i8", "u8", "i16", "u16", "i32", "u32", "i64", "f16", "f32", "f64"])
def test_nonzero_and_unique(context, tmp_path, dtype, shape):
    x = (np.arange(np.prod(shape)).reshape(shape) * 7 % 5).astype("?" if dtype == "bool" else f"{dtype[0]}{int(dtype[1:]) // 8}")
    model = check(context, tmp_path, SELECTED.replace("DTYPE", dtype), x)
    written = {node.op_type for node in model.graph.node}
    assert {"NonZero", "Unique"} < written and "TopK" not in written
    check(context, tmp_path, SELECTED.replace("DTYPE", dtype), np.zeros_like(x))


def test_names_types_and_weights_stay(context, tmp_path):
    text = """keel 1
const weight: f32[2, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
var bias: f32[3] = [1.0, 2.0, 3.0]

fn @main(image: f32[batch, 2]) -> f32[batch, 3] {
  b = read(){var=bias}
  y = matmul(image, weight) + b
  return y, image, y
}

entry main = @main (image) -> (scores, copy, again)
"""
    text = text.replace("read(){var=bias}", "read(bias)").replace(" -> f32[batch, 3] {", " {")
    model = check(context, tmp_path, text, np.ones((4, 2), "f4"))
    assert [i.name for i in model.graph.input] == ["image"]
    assert [d.dim_param or d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim] == ["batch", 2]
    assert [o.name for o in model.graph.output] == ["scores", "copy", "again"]
    assert {i.name for i in model.graph.initializer} >= {"weight", "bias"}
    assert model.ir_version == 10 and model.opset_import[0].version == 22


def refused(context, tmp_path, body, *words, consts=""):
    text = f"keel 1\n{consts}\nfn @main(x: f32[2, 3]) {{\n{body}\n}}\n\nentry main = @main\n"
    (tmp_path / "m.onnx").write_bytes(b"before")
    with pytest.raises(KeelError) as caught:
        context.parse(text).save(tmp_path / "m.onnx")
    assert caught.value.code == "UNIMPLEMENTED", caught.value.message
    for word in ("m.onnx: ", *words):
        assert word in caught.value.message
    assert [p.name for p in tmp_path.iterdir()] == ["m.onnx"] and (tmp_path / "m.onnx").read_bytes() == b"before"


def test_all_that_has_no_form_is_named_at_once(context, tmp_path):
    refused(context, tmp_path, "  print(x)\n  a = random(1){dims=[2, 3]}\n  b = random(2){dims=[2, 3]}\n"
            "  return a * b, pow(cast(x){to=i32}, cast(x){to=i32})",
            "print: ONNX has no such effect", "random (2): ", "pow: an integer power whose exponent is not a constant")
    refused(context, tmp_path, "  assign_add(total, reduce_sum(x))\n  return x + read(total)", "assign_add: the graph writes variables",
            "read: the graph writes variables", consts="var total: f32[] = 0.0")


def test_a_module_of_several_entries(context, tmp_path):
    text = "keel 1\n\nfn @f(x: f32[]) { return x }\n\nentry f = @f\nentry g = @f\n"
    with pytest.raises(KeelError, match="holds one entry"):
        context.parse(text).save(tmp_path / "m.onnx")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_missing(context, tmp_path):
    with pytest.raises(KeelError, match="cannot save to"):
        context.parse("keel 1\n\nfn @f(x: f32[]) { return x }\n\nentry f = @f\n").save(tmp_path / "no" / "m.onnx")
