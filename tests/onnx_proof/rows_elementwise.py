"""Rows of operators that compute each element by itself, with broadcasting: arithmetic, comparison, activations, casts."""
import numpy as np
from onnx import helper
from onnx_draw import ALL, BF16, BOOL, FLOATS, INTS, NUMBERS, SIGNED, UNSIGNED, Row, is_float


def unary(attributes=lambda d: {}, kind="any"):
    return lambda d, dtype: ([d.tensor(dtype, kind=kind)], attributes(d))


def binary(kind="any", divisor=False, attributes=lambda d, dtype: {}):
    def make(d, dtype):
        x = d.tensor(dtype, kind=kind)
        whole = divisor and not is_float(dtype)  # no division of integers by zero, and none that overflows
        y = d.tensor(dtype, shape=d.shape(x), kind="positive") if whole else d.beside(x, dtype, kind)
        return ([x, y] if whole or d.chance(0.6) else [y, x]), attributes(d, dtype)
    return make


def variadic(d, dtype):
    x = d.tensor(dtype)
    return [x, *(d.beside(x, dtype, within=True) for _ in range(d.int(0, 3)))], {}


def power(d, dtype):
    x = d.add(d.array(dtype, d.dims(), "positive" if is_float(dtype) else "small"))
    other = d.pick([dtype] if dtype == BF16 else [np.dtype("f"), np.dtype("i"), np.dtype("l"), dtype])
    return [x, d.tensor(other, shape=d.shape(x), kind="positive" if not is_float(dtype) else "unit" if is_float(other) else "small")], {}


def shift(d, dtype):
    x = d.tensor(dtype)
    return [x, d.add(np.minimum(d.array(dtype, d.shape(x), "small"), 7).astype(dtype))], {"direction": d.pick(["LEFT", "RIGHT"])}


def where(d, dtype):
    x = d.tensor(dtype)
    return [d.beside(x, bool), x, d.beside(x, dtype)], {}


def clip(d, dtype):
    x = d.tensor(dtype)
    low = d.add(d.array(dtype, (), "plain")) if d.chance(0.7) else ""
    high = d.add(d.array(dtype, (), "plain")) if d.chance(0.7) else ""
    return [x, low, high] if high else [x, low] if low else [x], {}


def slope(d, dtype):
    x = d.tensor(dtype)
    return [x, d.beside(x, dtype, within=True)], {}


def cast(d, dtype):
    to = d.pick(ALL)
    kind = "any" if is_float(to) or to == bool or not is_float(dtype) else "positive"  # negative floats to unsigned are undefined
    return [d.tensor(dtype, kind=kind)], {"to": helper.np_dtype_to_tensor_dtype(to)}


def cast_like(d, dtype):
    x, attributes = cast(d, dtype)
    return [*x, d.new(helper.tensor_dtype_to_np_dtype(attributes["to"]), d.dims(0, 2))], {}


def along(d, dtype):
    x = d.tensor(dtype, least=1)
    return [x], d.optional(axis=d.axis(len(d.shape(x))))


def number(d, low=-2, high=2):
    return float(np.float32(d.random.uniform(low, high)))


PLAIN_FLOATS = ("Sqrt Reciprocal Exp Log Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Floor Ceil Round Sigmoid Tanh "
                "Softplus Softsign HardSwish Mish")
SINCE = {"HardSwish": 14, "Mish": 18}
UNARY = {"Abs": NUMBERS, "Neg": FLOATS + SIGNED, "Sign": NUMBERS, "Erf": FLOATS, "Relu": FLOATS, "Identity": ALL, "Not": BOOL, "IsNaN": FLOATS}
ROWS = [
    *[Row(op, FLOATS, unary(), SINCE.get(op, 1)) for op in PLAIN_FLOATS.split()],
    *[Row(op, dtypes, unary()) for op, dtypes in UNARY.items()],
    Row("BitwiseNot", INTS, unary(), 18),
    Row("Relu", SIGNED, unary(), 14),
    Row("IsInf", FLOATS[:2], unary(lambda d: d.optional(detect_negative=d.int(0, 1), detect_positive=d.int(0, 1)))),
    *[Row(op, FLOATS, unary(lambda d: d.optional(alpha=number(d)))) for op in ("LeakyRelu", "Elu", "ThresholdedRelu")],
    Row("Celu", FLOATS[:1], unary(lambda d: d.optional(alpha=number(d, 0.2)))),
    Row("Selu", FLOATS, unary(lambda d: d.optional(alpha=number(d, 0.5), gamma=number(d, 1)))),
    Row("HardSigmoid", FLOATS, unary(lambda d: d.optional(alpha=number(d, 0), beta=number(d)))),
    Row("Shrink", FLOATS, unary(lambda d: d.optional(bias=number(d), lambd=number(d)))),
    Row("Shrink", INTS, unary(lambda d: {"bias": float(d.int(0, 2)), "lambd": 2.0}, "plain")),  # no result below 0
    Row("Gelu", FLOATS, unary(lambda d: d.optional(approximate=d.pick(["none", "tanh"]))), 20),
    Row("Swish", FLOATS, unary(lambda d: d.optional(alpha=number(d))), 24),
    *[Row(op, FLOATS, along) for op in ("Softmax", "LogSoftmax", "Hardmax")],
    *[Row(op, NUMBERS, binary()) for op in ("Add", "Sub", "Mul")],
    Row("Div", NUMBERS, binary(divisor=True)),
    Row("Mod", INTS, binary("plain", True)),
    Row("Mod", INTS + FLOATS[:3], binary("plain", True, lambda d, dtype: {"fmod": 1})),
    *[Row(op, NUMBERS, binary()) for op in ("Less", "Greater", "LessOrEqual", "GreaterOrEqual")],
    Row("Equal", ALL, binary()),
    *[Row(op, BOOL, binary()) for op in ("And", "Or", "Xor")],
    *[Row(op, INTS, binary(), 18) for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor")],
    Row("BitShift", UNSIGNED, shift),
    Row("Pow", FLOATS + [np.dtype("i"), np.dtype("l")], power),
    Row("PRelu", FLOATS + [np.dtype(x) for x in "ilIL"], slope),
    *[Row(op, NUMBERS, variadic) for op in ("Max", "Min")],
    *[Row(op, FLOATS, variadic) for op in ("Sum", "Mean")],
    Row("Where", ALL, where),
    Row("Clip", NUMBERS, clip),
    Row("Cast", ALL, cast),
    Row("CastLike", ALL, cast_like, 15),
]
