"""Products of quantised operands and attention of ONNX Runtime's exports, domain com.microsoft. Oracle: ONNX Runtime, and NumPy for the
unpacking of 4-bit weights. Then refusals.
"""
import numpy as np
import pytest
from onnx import numpy_helper
from onnx_cases import DEVICES, assert_refused, assert_similar, onnxruntime_run, run_model
from test_onnx_families import agrees, model_of, normal

F, L, I = np.float32, np.int64, np.int32
RANDOM = np.random.default_rng(282)


def contrib(op, inputs, attributes, n_out=1):
    return model_of(op, [None if x is None else np.asarray(x) for x in inputs], 17, attributes, n_out, "com.microsoft")


def u8(*shape, most=256):
    return RANDOM.integers(0, most, shape).astype(np.uint8)


def s8(*shape):
    """In 7 bits: without VNNI, ONNX Runtime adds pairs of u8 by i8 in 16 bits, which saturate beyond."""
    return RANDOM.integers(-64, 64, shape).astype(np.int8)


def n_bits(bits, block, k, n, zeros=None, bias=False, rows=(3,), flat=False, level=0):
    count = -(-k // block)
    shape = (n * count,) if flat else (n, count)
    scales = (RANDOM.random(shape) * 0.1 + 0.01).astype(F)
    zero = {None: None, "packed": u8(n * (-(-count * bits // 8)) if flat else n, *([] if flat else [-(-count * bits // 8)])),
            "floats": (RANDOM.random(shape) * 9).astype(F)}[zeros]
    inputs = [normal(*rows, k), u8(n, count, block * bits // 8), scales, zero, None, normal(n) if bias else None]
    while inputs[-1] is None:
        inputs.pop()
    return contrib("MatMulNBits", inputs, {"K": k, "N": n, "bits": bits, "block_size": block, "accuracy_level": level})


N_BITS = [dict(bits=4, block=32, k=64, n=5), dict(bits=4, block=16, k=48, n=6, zeros="packed"), dict(bits=8, block=32, k=64, n=5),
          dict(bits=8, block=16, k=32, n=4, zeros="packed"), dict(bits=4, block=32, k=70, n=3, zeros="packed", rows=(2, 3)),
          dict(bits=4, block=16, k=32, n=4, zeros="floats"), dict(bits=4, block=128, k=128, n=8, bias=True),
          dict(bits=4, block=16, k=80, n=7, zeros="packed", flat=True), dict(bits=2, block=32, k=64, n=4)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("options", N_BITS, ids=range(len(N_BITS)))
def test_matmul_of_few_bits(context, device, options):
    model, inputs = n_bits(**options)
    assert_similar(onnxruntime_run(model, inputs, optimised=False), run_model(context, device, model, inputs), 1e-3, 1e-3)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("options", [o for o in N_BITS if o["bits"] != 2 and o.get("zeros") != "floats"], ids=str)
def test_accuracy_level_4_rounds_the_values(context, device, options):
    """ONNX Runtime does so with weights that the model holds."""
    model, inputs = weights_held(*n_bits(**options, level=4))
    assert_similar(onnxruntime_run(model, inputs, optimised=False), run_model(context, device, model, inputs), 1e-4, 1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_low_bits_come_first(context, device):
    """Row 0 has the numbers 0 ... 15, zero point 8, scale 0.5: literals, and weights that the model holds."""
    packed = np.array([[[k * 2 | (k * 2 + 1) << 4 for k in range(8)]]], np.uint8)
    model, inputs = weights_held(*contrib("MatMulNBits", [np.eye(16, dtype=F), packed, np.array([[0.5]], F)],
                                          {"K": 16, "N": 1, "bits": 4, "block_size": 16}))
    assert_similar([((np.arange(16, dtype=F) - 8) / 2).reshape(16, 1)], run_model(context, device, model, inputs), 1e-6, 1e-6)


def weights_held(model, inputs):
    """The model with all but its first input as weights."""
    for value, array in zip(list(model.graph.input)[1:], inputs[1:]):
        model.graph.initializer.append(numpy_helper.from_array(array, value.name))
        model.graph.input.remove(value)
    return model, inputs[:1]


PRODUCTS = [("DynamicQuantizeMatMul", [normal(3, 8), s8(8, 5), F(0.02)]), ("DynamicQuantizeMatMul", [normal(2, 3, 8), u8(8, 5), F(0.02), np.uint8(120), normal(5)]),
            ("DynamicQuantizeMatMul", [normal(3, 8), s8(8, 5), normal(5) ** 2 + F(0.01), s8(5), normal(5)]),
            ("MatMulIntegerToFloat", [u8(3, 8), u8(8, 5), F(0.1), F(0.2), np.uint8(9), np.uint8(7), normal(5)]),
            ("MatMulIntegerToFloat", [u8(3, 8), s8(8, 5), F(0.1), normal(5) ** 2 + F(0.01), np.uint8(9), s8(5)])]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op, inputs", PRODUCTS, ids=range(len(PRODUCTS)))
def test_products_of_quantised_operands(context, device, op, inputs):
    model, inputs = contrib(op, inputs, {})
    assert_similar(onnxruntime_run(model, inputs, optimised=False), run_model(context, device, model, inputs), 1e-3, 1e-3)


# ---- attention: batch 2, 3 queries, 2 heads of width 4
B, S, H, D = 2, 3, 2, 4
W = H * D
X, WEIGHTS, BIAS = normal(B, S, 6), normal(6, 3 * W), normal(3 * W)
Q, K, V, Q4 = normal(B, S, W), normal(B, 5, W), normal(B, 5, W), normal(B, H, 5, D)
HEADS = {"num_heads": H}
KEEP = np.array([[1, 1, 0], [1, 0, 0]], I)
PAST = normal(2, B, H, 2, D)
ATTENTION = [
    ("Attention", [X, WEIGHTS, BIAS], HEADS, 1), ("Attention", [X, WEIGHTS, BIAS], {**HEADS, "unidirectional": 1}, 1),
    ("Attention", [X, WEIGHTS, BIAS, KEEP], {**HEADS, "scale": 0.3}, 1), ("Attention", [X, WEIGHTS, BIAS, np.array([2, 3], I)], HEADS, 1),
    ("Attention", [X, WEIGHTS, BIAS, np.array([3, 2, 0, 1], I)], HEADS, 1),
    ("Attention", [X, WEIGHTS, BIAS, RANDOM.integers(0, 2, (B, S, S)).astype(I) | np.eye(S, dtype=I)], HEADS, 1),
    ("Attention", [X, WEIGHTS, BIAS, None, PAST], {**HEADS, "unidirectional": 1}, 2),
    ("Attention", [X, WEIGHTS, BIAS, None, None, normal(1, H, S, S)], HEADS, 1),
    ("Attention", [X, normal(6, 20), normal(20)], {**HEADS, "qkv_hidden_sizes": [8, 8, 4]}, 1),
    ("QAttention", [u8(B, S, 6), u8(6, 3 * W), BIAS, F(0.02), F(0.03), None, np.uint8(120), np.uint8(130)], HEADS, 1),
    ("QAttention", [u8(B, S, 6), s8(6, 3 * W), BIAS, F(0.02), F(0.03), KEEP, np.uint8(120), np.int8(3)], {**HEADS, "unidirectional": 1}, 1),
    ("MultiHeadAttention", [Q, K, V], HEADS, 1), ("MultiHeadAttention", [Q, K, V, BIAS], {**HEADS, "scale": 0.2}, 1),
    ("MultiHeadAttention", [Q, Q4, normal(B, H, 5, D)], HEADS, 1), ("MultiHeadAttention", [Q, K, V, None, np.array([2, 5], I)], HEADS, 1),
    ("MultiHeadAttention", [Q, K, V, None, np.array([[1, 1, 0, 1, 1], [0, 1, 1, 1, 0]], I), normal(B, H, S, 5)], HEADS, 1),
    ("MultiHeadAttention", [Q, normal(B, S, W), normal(B, S, W), None, None, None, normal(B, H, 2, D), normal(B, H, 2, D)],
     {**HEADS, "unidirectional": 1}, 3),
]
COS, SIN = (f(RANDOM.random((8, D // 2)) * 6).astype(F) for f in (np.cos, np.sin))
COS2, SIN2 = COS[:, :1].copy(), SIN[:, :1].copy()
ROTARY = [
    ("RotaryEmbedding", [Q, np.array([2], L), COS, SIN], {}, 1), ("RotaryEmbedding", [Q, np.array([[1, 2, 3], [0, 4, 5]], L), COS, SIN], {"interleaved": 1}, 1),
    ("RotaryEmbedding", [normal(B, H, S, D), np.array([0], L), COS, SIN], {}, 1),
    ("RotaryEmbedding", [Q, np.array([1], L), COS2, SIN2], {"rotary_embedding_dim": 2, "num_heads": H}, 1),
]


def quantised_cell(kind, directions, per_channel, peepholes, **attributes):
    """Sequences of 5 steps, 3 in a batch, of 4 numbers; 6 hidden units."""
    weights = s8 if kind == np.int8 else u8
    columns = (directions, 24) if per_channel else (directions,)
    zeros = np.zeros(columns, np.int8) if kind == np.int8 else np.full(columns, 128, np.uint8)
    scales = [(np.abs(normal(*columns)) / 100 + 0.004).astype(F) for _ in range(2)]
    inputs = [normal(5, 3, 4), weights(directions, 4, 24), weights(directions, 6, 24), normal(directions, 48), None,
              normal(directions, 3, 6), normal(directions, 3, 6), normal(directions, 18) if peepholes else None,
              scales[0], zeros, scales[1], zeros]
    way = {"direction": "bidirectional"} if directions == 2 else {}
    return contrib("DynamicQuantizeLSTM", inputs, {"hidden_size": 6, **way, **attributes}, 3)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [np.int8, np.uint8])
@pytest.mark.parametrize("directions, per_channel, peepholes, more", [
    (1, False, False, {}), (2, True, False, {}), (1, True, True, {"clip": 0.5}), (1, False, False, {"direction": "reverse", "input_forget": 1})])
def test_recurrent_cells_of_8_bits(context, device, kind, directions, per_channel, peepholes, more):
    """A state at the middle between two integers may be rounded the other way: a step is a 255th of its range."""
    agrees(context, device, *quantised_cell(kind, directions, per_channel, peepholes, **more), rtol=0, atol=2e-3)


def test_recurrent_cells_without_scales_are_refused(context):
    model, inputs = quantised_cell(np.int8, 1, False, False)
    del model.graph.node[0].input[8:]
    del model.graph.input[-4:]
    assert_refused(context, model, inputs[:-4], "INVALID", ["operand 8 is missing", "DynamicQuantizeLSTM"])


def grouped(past, counts, packed=False, width=8, **attributes):
    """4 query heads and 2 key heads; `counts`: all keys of each sequence, past ones included. ONNX Runtime takes several sequences
    with a past only for one query each."""
    s, b = 1 if len(counts) > 1 and past else S, len(counts)
    now = [normal(b, s, 8 * width), None, None] if packed else [normal(b, s, 4 * width), normal(b, s, 2 * width), normal(b, s, 2 * width)]
    before = [normal(b, 2, past, width), normal(b, 2, past, width)]
    rotary = [np.cos(a := RANDOM.random((16, width // 2)) * 6).astype(F), np.sin(a).astype(F)] if attributes.get("do_rotary") else []
    total = past + s if past else max(s, *counts)
    inputs = [*now, *before, np.array(counts, I) - 1, np.array(total, I), *rotary]
    return contrib("GroupQueryAttention", inputs, {"num_heads": 4, "kv_num_heads": 2, **attributes}, 3)


GROUPED = [dict(past=0, counts=[3, 3]), dict(past=0, counts=[3, 3], packed=True), dict(past=2, counts=[5]), dict(past=0, counts=[3, 3], do_rotary=1, width=16),
           dict(past=2, counts=[5], do_rotary=1, rotary_interleaved=1, width=16), dict(past=3, counts=[6], local_window_size=2), dict(past=2, counts=[5], softcap=2.0),
           dict(past=2, counts=[5], scale=0.7), dict(past=4, counts=[5, 3], do_rotary=1, width=16), dict(past=4, counts=[5, 3], local_window_size=2)]


def similar_attention(context, device, model, inputs, compared=3):
    want, got = onnxruntime_run(model, inputs, optimised=False), run_model(context, device, model, inputs)
    assert_similar(want[:compared], got[:compared], 1e-3, 1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op, inputs, attributes, n_out", ATTENTION + ROTARY, ids=[f"{case[0]}-{k}" for k, case in enumerate(ATTENTION + ROTARY)])
def test_attention(context, device, op, inputs, attributes, n_out):
    similar_attention(context, device, *contrib(op, inputs, attributes, n_out))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("packed", ["key and value", "all"])
def test_packed_operands_are_the_same_attention(context, device, packed):
    """ONNX Runtime has packed operands on GPUs only: its answer to the separate ones is the oracle."""
    q, k, v = (normal(B, S, H, D) for _ in range(3))
    model, inputs = contrib("MultiHeadAttention", [x.reshape(B, S, W) for x in (q, k, v)], HEADS)
    want = onnxruntime_run(model, inputs, optimised=False)
    joined = [np.stack([q, k, v], 3)] if packed == "all" else [q.reshape(B, S, W), np.stack([k, v], 3)]
    assert_similar(want, run_model(context, device, *contrib("MultiHeadAttention", joined, HEADS)), 1e-3, 1e-4)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("options", GROUPED, ids=range(len(GROUPED)))
def test_grouped_attention(context, device, options):
    """Sequences of different lengths: only the first result, as the rest of present is not defined."""
    similar_attention(context, device, *grouped(**options), compared=3 if len(set(options["counts"])) == 1 else 1)


@pytest.mark.parametrize("device", DEVICES)
def test_grouped_attention_with_room_in_its_past(context, device):
    """A past of 6 entries; the sequences use 4 and 2: ONNX Runtime's present has 6, as the total is known."""
    model, inputs = grouped(past=6, counts=[5, 3])
    inputs[6] = np.array(5, I)
    model.graph.initializer.append(numpy_helper.from_array(inputs[6], "x6"))
    model.graph.input.remove(model.graph.input[6])
    inputs.pop(6)
    want, got = onnxruntime_run(model, inputs, optimised=False), run_model(context, device, model, inputs)
    assert_similar(want[:1], got[:1], 1e-3, 1e-4)
    assert [x.shape for x in got] == [x.shape for x in want]


# ---- sizes that only a run knows, as exports have them
NAMED = {
    "Attention": (("Attention", [X, WEIGHTS, BIAS, np.array([[1, 1, 0, 1, 1], [0, 1, 1, 1, 0]], I), PAST], {**HEADS, "unidirectional": 1}, 2),
                  {0: ["b", "s", 6], 3: ["b", "all"], 4: [2, "b", H, "past", D]}),
    "QAttention": (("QAttention", [u8(B, S, 6), u8(6, 3 * W), BIAS, F(0.02), F(0.03), KEEP, np.uint8(120), np.uint8(130)], HEADS, 1),
                   {0: ["b", "s", 6], 5: ["b", "s"]}),
    "MultiHeadAttention": (("MultiHeadAttention", [Q, K, V, BIAS, np.array([[1, 1, 0, 1, 1], [0, 1, 1, 1, 0]], I)], HEADS, 1),
                           {0: ["b", "s", W], 1: ["b", "t", W], 2: ["b", "t", W], 4: ["b", "t"]}),
    "RotaryEmbedding": (("RotaryEmbedding", [Q, np.array([[1, 2, 3], [0, 4, 5]], L), COS, SIN], {}, 1), {0: ["b", "s", W], 1: ["b", "s"]}),
    "DynamicQuantizeMatMul": (("DynamicQuantizeMatMul", [normal(2, 3, 8), s8(8, 5), F(0.02)], {}, 1), {0: ["b", "s", 8]}),
}


def with_names(model, names):
    for k, dims in names.items():
        value = next(v for v in model.graph.input if v.name == f"x{k}")
        for dim, name in zip(value.type.tensor_type.shape.dim, dims):
            if isinstance(name, str):
                dim.dim_param = name
    return model


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NAMED)
def test_symbolic_sizes(context, device, name):
    case, names = NAMED[name]
    model, inputs = contrib(*case)
    similar_attention(context, device, with_names(model, names), inputs)


@pytest.mark.parametrize("device", DEVICES)
def test_grouped_attention_with_symbolic_sizes(context, device):
    model, inputs = grouped(past=4, counts=[5, 3], do_rotary=1, width=16)
    names = {0: ["b", "s", 64], 1: ["b", "s", 32], 2: ["b", "s", 32], 3: ["b", 2, "past", 16], 4: ["b", 2, "past", 16], 5: ["b"]}
    similar_attention(context, device, with_names(model, names), inputs, compared=1)


# ---- refusals
REFUSED = [
    (lambda: contrib("MatMulNBits", [normal(3, 32), u8(4, 1, 16), normal(4, 1)], {"K": 32, "N": 4, "bits": 3, "block_size": 32}), "UNIMPLEMENTED", ["bits is 3"]),
    (lambda: contrib("MatMulNBits", [normal(3, 32), u8(4, 1, 16), normal(4, 1)], {"K": 32, "N": 4, "block_size": 24}), "INVALID", ["block_size is 24"]),
    (lambda: contrib("MatMulNBits", [normal(3, 32), u8(4, 1, 15), normal(4, 1)], {"K": 32, "N": 4, "block_size": 32}), "INVALID", ["60 elements", "expected 64"]),
    (lambda: contrib("MatMulNBits", [normal(3, 32), u8(4, 1, 16), normal(3, 1)], {"K": 32, "N": 4, "block_size": 32}), "INVALID", ["operand 2", "expected 4"]),
    (lambda: contrib("MatMulNBits", [normal(3, 32), u8(4, 1, 16), normal(4, 1)], {"K": 2**40, "N": 4, "block_size": 32}), "INVALID", ["N and K"]),
    (lambda: contrib("MatMulNBits", [normal(3, 32), u8(4, 1, 16), normal(4, 1), None, np.zeros(32, I)], {"K": 32, "N": 4, "block_size": 32}),
     "UNIMPLEMENTED", ["g_idx"]),
    (lambda: contrib("Attention", [X, WEIGHTS, BIAS], {**HEADS, "do_rotary": 1}), "UNIMPLEMENTED", ["do_rotary"]),
    (lambda: contrib("Attention", [X, WEIGHTS, BIAS], {"num_heads": 0}), "INVALID", ["num_heads is 0"]),
    (lambda: contrib("Attention", [X, WEIGHTS, BIAS], {"num_heads": 3}), "INVALID", ["width of 8", "3 heads"]),
    (lambda: contrib("Attention", [X, WEIGHTS, BIAS], {**HEADS, "qkv_hidden_sizes": [8, 8, 4]}), "INVALID", ["qkv_hidden_sizes", "24"]),
    (lambda: contrib("Attention", [X, WEIGHTS, BIAS, np.ones((B, 1, 9, 9), I)], HEADS), "UNIMPLEMENTED", ["mask of 4 dims"]),
    (lambda: contrib("MultiHeadAttention", [Q, K, V, None, None, None, None, None, np.array([2], I)], HEADS), "UNIMPLEMENTED", ["past_sequence_length"]),
    (lambda: contrib("MultiHeadAttention", [Q], HEADS), "INVALID", ["without a key"]),
    (lambda: contrib("RotaryEmbedding", [Q, np.array([0], L), COS, SIN], {"is_packed_batching": 1}), "UNIMPLEMENTED", ["is_packed_batching"]),
    (lambda: contrib("Attention", [X, WEIGHTS, BIAS], {**HEADS, "qkv_hidden_sizes": [-8, 24, 8]}), "INVALID", ["qkv_hidden_sizes"]),
    (lambda: contrib("RotaryEmbedding", [Q, np.zeros((1, 1, 3), L), COS, SIN], {}), "INVALID", ["positions have 3 dims"]),
    (lambda: contrib("RotaryEmbedding", [normal(2, 2, 3), np.zeros(1, L), COS, SIN], {}), "INVALID", ["width of 3", "one head"]),
    (lambda: grouped(2, [5], local_window_size=0), "INVALID", ["local_window_size is 0"]),
    (lambda: grouped(2, [5], num_heads=2**62), "INVALID", ["num_heads"]),
    (lambda: grouped(2, [5], smooth_softmax=1), "UNIMPLEMENTED", ["smooth_softmax"]),
    (lambda: grouped(2, [5], k_quant_type="PER_TENSOR"), "UNIMPLEMENTED", ["k_quant_type"]),
    (lambda: grouped(2, [5], kv_num_heads=3), "INVALID", ["kv_num_heads", "multiple"]),
]


@pytest.mark.parametrize("made, code, words", REFUSED, ids=range(len(REFUSED)))
def test_contrib_refusals_name_the_reason(context, made, code, words):
    assert_refused(context, *made(), code, words)


def scaled(*parts):
    """Operands with their scale and zero point: (array, scale, zero point) ..."""
    return [np.asarray(p) for part in parts for p in part]


IMAGE_U8, IMAGE_S8 = u8(2, 3, 4, 5), s8(2, 3, 4, 5)
OUT_U8, OUT_S8 = (F(0.07), np.uint8(113)), (F(0.09), np.int8(-5))
QUANTISED = [
    ("QLinearAdd", scaled((IMAGE_U8, F(0.03), np.uint8(120)), (u8(4, 5), F(0.02), np.uint8(7)), OUT_U8), {}),
    ("QLinearAdd", scaled((IMAGE_S8, F(0.03), np.int8(2)), (s8(1, 3, 1, 1), F(0.02), np.int8(-7)), OUT_S8), {}),
    ("QLinearMul", scaled((IMAGE_U8, F(0.03), np.uint8(120)), (u8(2, 3, 4, 5), F(0.02), np.uint8(7)), OUT_U8), {}),
    ("QLinearSigmoid", scaled((IMAGE_U8, F(0.05), np.uint8(120)), (F(0.004), np.uint8(0))), {}),
    ("QLinearLeakyRelu", scaled((IMAGE_S8, F(0.05), np.int8(3)), OUT_S8), {"alpha": 0.2}),
    ("QLinearSoftmax", scaled((IMAGE_U8, F(0.05), np.uint8(120)), (F(0.004), np.uint8(0))), {"axis": 1, "opset": 12}),
    ("QLinearSoftmax", scaled((IMAGE_U8, F(0.05), np.uint8(120)), (F(0.004), np.uint8(0))), {"axis": -1, "opset": 13}),
    ("QLinearGlobalAveragePool", scaled((IMAGE_U8, F(0.05), np.uint8(120)), OUT_U8), {"channels_last": 0}),
    ("QLinearGlobalAveragePool", scaled((IMAGE_U8, F(0.05), np.uint8(120)), OUT_U8), {"channels_last": 1}),
    ("QLinearConcat", scaled(OUT_U8, (IMAGE_U8, F(0.05), np.uint8(120)), (u8(2, 1, 4, 5), F(0.09), np.uint8(9))), {"axis": 1}),
    ("QGemm", [*scaled((u8(5, 7), F(0.05), np.uint8(120)), (s8(7, 6), F(0.02), np.int8(0))), RANDOM.integers(-900, 900, 6).astype(I), F(0.5), np.uint8(99)],
     {"alpha": 0.9}),
    ("QGemm", [*scaled((u8(5, 7), F(0.05), np.uint8(120)), (s8(6, 7), np.linspace(0.01, 0.03, 6, dtype=F), np.zeros(6, np.int8))), None, None, None],
     {"transB": 1}),
]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("op, inputs, attributes", QUANTISED, ids=[f"{q[0]} {i}" for i, q in enumerate(QUANTISED)])
def test_quantised_operators(context, device, op, inputs, attributes):
    """Up to one step: ONNX Runtime rounds in another order."""
    while inputs[-1] is None:
        inputs = inputs[:-1]
    model, fed = contrib(op, inputs, attributes)
    want, got = onnxruntime_run(model, fed, optimised=False)[0], run_model(context, device, model, fed)[0]
    assert want.shape == got.shape and want.dtype == got.dtype
    if want.dtype == F:
        np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-5)
    else:
        assert np.abs(want.astype(int) - got).max() <= 1


@pytest.mark.parametrize("op, inputs, attributes, words", [
    ("QLinearConcat", scaled(OUT_U8, (IMAGE_U8, F(0.05))), {"axis": 1}, "it has 4 operands; expected a scale, a zero point and three for each operand"),
    ("QGemm", scaled((IMAGE_U8, F(0.05), np.uint8(1)), (s8(7, 6), F(0.02), np.int8(0))), {}, "its operands must be matrices"),
    ("QLinearGlobalAveragePool", scaled((u8(2, 3), F(0.05), np.uint8(1)), OUT_U8), {}, "its operand has 2 dims; expected images")])
def test_malformed_quantised_operators(context, op, inputs, attributes, words):
    assert_refused(context, *contrib(op, inputs, attributes), "INVALID", [op, words])
