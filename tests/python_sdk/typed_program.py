"""Not run: test_py_guest_types.py checks mypy's report on it. Wrong lines end with the code of the error."""
from typing import Any, assert_type

import keel
import keel.compat.v1 as tf1
import keel.compat.v2 as tf
import numpy as np

x = keel.array([[1., 2.], [3., 4.]])
w = keel.Variable(keel.zeros((2, 2)), name="w")

assert_type(keel.matmul(x, x, tb=True), keel.Tensor)
assert_type(keel.add(x, 1) + w * np.ones((2, 2)) - [1, 2], keel.Tensor)
assert_type(2 - x[:, -1] @ x[0] / x[..., None].T, keel.Tensor)
assert_type(x > 0, keel.Tensor)
assert_type(keel.top_k(x, 1), tuple[keel.Tensor, keel.Tensor])
assert_type(keel.split(x, [1, 1]), tuple[keel.Tensor, ...])
assert_type(keel.cast(x, np.float64).astype("i32").dtype, keel.DType)
assert_type(keel.random(keel.array([1, 2]), (3,), kind="normal"), keel.Tensor)
assert_type(keel.random.normal((2, 3), stddev=0.1), keel.Tensor)
assert_type([row.shape for row in x], list[tuple[int, ...]])
keel.reshape(x, (x.shape[0] * 2, -1))
keel.concat([x, w, np.ones((2, 2))], axis=1)

keel.add("a", x)  # E: arg-type
keel.matmul(x)  # E: call-arg
keel.matmul(x, x, tx=True)  # E: call-arg
keel.matmul(x, x, ta="yes")  # E: arg-type
keel.random(keel.array([1, 2]), (3,), kind="even")  # E: arg-type
keel.reduce_sum(x, axes="0")  # E: arg-type
keel.no_such_op(x)  # E: attr-defined
x + "a"  # E: operator
x[1.5]  # E: index
x["a"]  # E: index
x[0] = x  # E: index
x.shape = (1,)  # E: misc
keel.zeros("ab")  # E: arg-type


@keel.function
def scaled(x: keel.Tensor, factor: float = 2.0, *, shift: int) -> keel.Tensor:
    return x * factor + shift


@keel.function(signature=[keel.f32["b", 784]], any_after="never", threads=2)
def both(x: keel.Tensor) -> dict[str, keel.Tensor]:
    return {"y": x}


class Layer:
    @keel.function
    def forward(self, x: keel.Tensor) -> keel.Tensor:
        return x @ w


assert_type(scaled(x, shift=1), keel.Tensor)
assert_type(both(x)["y"], keel.Tensor)
assert_type(Layer().forward(x), keel.Tensor)
assert_type(scaled.concrete(keel.f32[2, 2], shift=1), keel.Module)
scaled(x)  # E: call-arg
scaled(x, "2", shift=1)  # E: arg-type
Layer().forward()  # E: call-arg
keel.function(any_after="often")(lambda x: x)  # E: call-overload

assert_type(keel.cond(x[0, 0] > 0, lambda: x, lambda: 0), keel.Tensor)
assert_type(keel.cond(x[0, 0] > 0, lambda: [x], lambda: [x + 1]), list[keel.Tensor])
assert_type(keel.while_loop(x, lambda x: keel.reduce_sum(x) < 9, lambda x: x + 1), keel.Tensor)
assert_type(keel.while_loop({"x": x}, lambda c: c["x"] < 9, lambda c: c), dict[str, keel.Tensor])
i, total = keel.while_loop((0, x), lambda i, _: i < 3, lambda i, t: (i + 1, t * 2))
keel.cond(True, 1, 2)  # E: call-overload

with keel.Tape(persistent=True) as tape, keel.device("cpu"):
    tape.watch(x)
    loss = keel.reduce_mean(x @ w)
w.assign_sub(0.1 * tape.gradient(loss, w))
assert_type(keel.value_and_grad(lambda x: keel.reduce_sum(x))(x)[0], keel.Tensor)
tape.watch(1.0)  # E: arg-type

session = keel.Session("m.keel", device="cpu")
assert_type(session.run(x=np.ones(2))["y"], keel.Tensor)
assert_type(session.run("y", {"x": 1.0}), keel.Tensor)
assert_type(session.prepare().inputs, int)
keel.Session(3)  # E: arg-type
with keel.Graph().as_default() as graph:
    p = keel.placeholder(keel.f32, (None, 2), name="p")
    assert_type(keel.Session(graph).run(p * 2, {p: x}), keel.Tensor)
try:
    session.prepare()(x)
except keel.ShapeError as error:
    assert_type((error.code, error.hint), tuple[keel.Code, str])
sizes: Any = [d.symbolic for d in (x, keel.f32([1]))]

adam = keel.optim.Adam(0.001)
adam.apply({"w": x}, {"w": w})
keel.optim.SGD(lr="fast")  # E: arg-type
for batch in keel.progress(keel.data.from_slices((x, x), batch=2, shuffle=1), label="train"):
    pass
keel.data.from_slices(x, batch="two")  # E: arg-type
model = keel.from_onnx("model.onnx", device="cpu")
assert_type(model["serve"], keel.Entry)
assert_type(model.variables()["w"], keel.Variable)
with keel.profile("out.json"), keel.span("epoch", number=1):
    model(x)

assert_type(keel.convert.to_code(scaled), str)
assert_type(keel.convert.skip(Layer), type[Layer])
keel.convert.to_code("scaled")  # E: arg-type
variable = tf.Variable([1.0, 2.0], name="w")


@tf.function(reduce_retracing=True)
def product(a: tf.Tensor, dtype: tf.DType = tf.float32) -> keel.Tensor:
    with tf.GradientTape() as recorded:
        total: keel.Tensor = a * tf.cast(variable, dtype)
    return total


assert_type(product(tf.constant([1.0, 2.0])), keel.Tensor)
product("1.0")  # E: arg-type
product.get_concrete_function(x)
with tf1.Graph().as_default(), tf1.Session() as graphs:
    graphs.run(tf1.placeholder(tf1.float32, [None], name="x") * 2.0)
