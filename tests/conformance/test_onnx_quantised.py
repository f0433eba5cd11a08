"""Nets of QuantizeLinear and DequantizeLinear, as quantisers write them, whose contractions cpu computes in integers.

Oracle: the same graph without passes on reference, in floats. A sum next to the middle between two integers may be rounded the other way:
results differ by one step at most, and few do. Then the launches: no convolution is left in floats where the processor can do better.
"""
import functools

import keel_abi
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx_cases import DEVICES, onnxruntime_run, run_model
from test_cpu_isa import call_in_each_class

F = np.float32


class Net:
    """Nodes of a quantised model; a quantised value is (name, scale, zero point, dtype)."""

    def __init__(self, dims, seed=5, dtype=np.uint8):
        self.rng, self.nodes, self.constants, self.dims, self.dtype = np.random.default_rng(seed), [], [], dims, dtype
        self.input = self.quantised("x", 0.03, 0 if dtype == np.int8 else 117)

    def node(self, op, *inputs, **attrs):
        self.nodes.append(helper.make_node(op, list(inputs), [f"v{len(self.nodes)}"], **attrs))
        return self.nodes[-1].output[0]

    def constant(self, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def quantised(self, value, scale, zero, dtype=None):
        parts = self.constant(F(scale)), self.constant((dtype or self.dtype)(zero))
        return self.node("QuantizeLinear", value, *parts), *parts

    def floats(self, x, axis=None):
        return self.node("DequantizeLinear", *x, **({} if axis is None else {"axis": axis}))

    def weights(self, *shape, axis=0, zero=False):
        scale = self.rng.uniform(0.004, 0.02, shape[axis]).astype(F)
        zeros = np.full(shape[axis], 3 if zero else 0, np.int8)
        w = self.rng.integers(-127, 128, shape).astype(np.int8)
        return self.floats((self.constant(w), self.constant(scale), self.constant(zeros)), axis)

    def conv(self, x, c, o, size, scale, zero=0, relu=False, bias=True, **attrs):
        w = self.weights(o, c // attrs.get("group", 1), *[size] * (len(self.dims) - 2), zero=attrs.pop("weight_zero", False))
        b = self.floats((self.constant(self.rng.integers(-3000, 3000, o).astype(np.int32)), self.constant(np.full(o, 1e-3, F)),
                         self.constant(np.zeros(o, np.int32))), 0)
        y = self.node("Conv", self.floats(x), w, *([b] if bias else []), **attrs)
        return self.quantised(self.node("Relu", y) if relu else y, scale, zero)

    def add(self, x, y, scale, zero=0, relu=False):
        z = self.node("Add", self.floats(x), self.floats(y))
        return self.quantised(self.node("Relu", z) if relu else z, scale, zero)

    def model(self, *results):
        """The results as they are, quantised, or floats."""
        graph = helper.make_graph(self.nodes, "net", [helper.make_tensor_value_info("x", TensorProto.FLOAT, self.dims)],
                                  [helper.make_empty_tensor_value_info(r) for r in results], self.constants)
        return onnx.shape_inference.infer_shapes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8))


def chain(dtype=np.uint8, batch=2):
    net = Net([batch, 3, 17, 13], dtype=dtype)
    y = net.conv(net.input, 3, 16, 3, 0.4, relu=True, strides=[2, 2], pads=[1, 1, 1, 1])
    y = net.conv(y, 16, 32, 1, 0.9, zero=5, relu=True)
    y = net.conv(y, 32, 32, 3, 1.1, zero=-7 if dtype == np.int8 else 120, group=32, pads=[1, 1, 1, 1], bias=False)
    return net.model(net.conv(y, 32, 7, 1, 1.3, zero=4)[0])


def depthwise(dtype=np.uint8, channels=24):
    """Of channels that are no whole vectors, with windows of odd and even counts of cells."""
    net = Net([2, channels, 15, 11], dtype=dtype)
    y = net.conv(net.input, channels, channels, 3, 1.1, zero=9, group=channels, pads=[1, 1, 1, 1])
    y = net.conv(y, channels, channels, 5, 1.9, zero=-20 if dtype == np.int8 else 100, group=channels, strides=[2, 1], pads=[2, 1, 2, 0])
    z = net.conv(y, channels, channels, 2, 1.2, group=channels, dilations=[1, 2], relu=True, weight_zero=True)
    return net.model(y[0], z[0])


def residual(zero=121, relu=True, dtype=np.uint8):
    net = Net([1, 8, 12, 12], dtype=dtype)
    x = net.conv(net.input, 8, 16, 3, 0.5, relu=True, pads=[1, 1, 1, 1])
    y = net.conv(x, 16, 16, 3, 1.4, zero=zero, pads=[1, 1, 1, 1])
    z = net.add(x, y, 1.5, zero=0 if relu else zero, relu=relu)
    return net.model(net.conv(z, 16, 16, 1, 2.0, zero=zero)[0], z[0], y[0])


def pooled():
    net = Net([1, 3, 24, 24])
    y = net.conv(net.input, 3, 32, 7, 1.0, relu=True, strides=[2, 2], pads=[3, 3, 3, 3])
    pool = net.node("MaxPool", net.floats(y), kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    y = net.conv((net.node("QuantizeLinear", pool, *y[1:]), *y[1:]), 32, 32, 1, 1.7, zero=9, relu=True)
    mean = net.quantised(net.node("GlobalAveragePool", net.floats(y)), 0.7, 3)
    flat = net.node("Flatten", net.floats(mean))
    return net.model(net.quantised(net.node("Gemm", flat, net.weights(10, 32), transB=1), 0.6, 100)[0])


def floats_after(dims=(1, 4, 9, 9)):
    """Results that stay floats, weights with zero points, a sum without a quantisation between."""
    net = Net(list(dims))
    size = [3] * (len(dims) - 2)
    w, z = net.weights(6, 4, *size), net.weights(6, 4, *size, zero=True)
    y = net.node("Conv", net.floats(net.input), w)
    return net.model(y, net.node("Relu", net.node("Conv", net.floats(net.input), z)), net.node("Add", y, y))


def joined():
    net = Net([1, 8, 10, 10])
    a, b = (net.conv(net.input, 8, n, 1, 0.5, zero=3, relu=True) for n in (8, 24))
    both = net.quantised(net.node("Concat", net.floats(a), net.floats(b), axis=1), 0.5, 3)
    return net.model(net.conv(both, 32, 8, 3, 2.2, zero=40)[0])


def layers(dims=(2, 5, 70), dtype=np.uint8):
    """Products with a bias, relu and quantisation after them, and one that stays in floats; the last has a residual."""
    net = Net(list(dims), dtype=dtype)
    width = dims[-1]

    def product(x, outs):
        bias = net.constant(net.rng.normal(size=outs).astype(F))
        return net.node("Add", net.node("MatMul", net.floats(x), net.weights(width, outs, axis=1)), bias)

    a = net.quantised(net.node("Relu", product(net.input, width)), 0.3, 0)
    b = net.quantised(product(a, width), 0.9, 121 if dtype == np.uint8 else -3)
    c = product(b, width)
    return net.model(a[0], b[0], c, net.node("Add", c, net.floats(a)), net.node("Erf", product(b, 33)))


NETS = {"layers": layers, "layers of i8": functools.partial(layers, dtype=np.int8), "a row": functools.partial(layers, (1, 64)),
        "no row": functools.partial(layers, (3, 0, 70)), "no column": functools.partial(layers, (2, 3, 0)), "many rows": functools.partial(layers, (2, 130, 9)), "chain": chain, "chain of i8": functools.partial(chain, np.int8), "depthwise": depthwise,
        "depthwise of i8": functools.partial(depthwise, np.int8, 37), "no image": functools.partial(chain, batch=0),
        "residual": residual, "residual without relu": functools.partial(residual, relu=False),
        "residual with an odd zero point of i8": functools.partial(residual, -3, False, np.int8), "pooled": pooled,
        "floats after": floats_after, "one dim": functools.partial(floats_after, (2, 4, 11)),
        "three dims": functools.partial(floats_after, (1, 4, 5, 6, 7)), "joined": joined}


def fed(model):
    shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
    return [np.random.default_rng(2).uniform(-4, 4, shape).astype(F)]


def assert_close(want, got):
    for a, b in zip(want, got):
        assert a.shape == b.shape and a.dtype == b.dtype
        if a.dtype == F:
            np.testing.assert_allclose(b, a, rtol=1e-4, atol=1e-4)
        else:
            apart = np.abs(a.astype(int) - b.astype(int))
            assert not apart.size or (apart.max() <= 1 and np.mean(apart > 0) < 0.02), (apart.max(), np.mean(apart > 0))


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("name", NETS)
def test_nets(context, device, name):
    model = NETS[name]()
    assert_close(run_model(context, "reference", model, fed(model), level=0), run_model(context, device, model, fed(model)))


@pytest.mark.parametrize("name", ["chain of i8", "residual", "pooled", "layers", "many rows"])
def test_nets_beside_onnxruntime(context, name):
    model = NETS[name]()
    assert_close(onnxruntime_run(model, fed(model), optimised=False), run_model(context, "cpu", model, fed(model)))


@pytest.mark.parametrize("threads", [1, 5])
@pytest.mark.parametrize("name", ["chain", "depthwise", "residual", "pooled", "many rows"])
def test_the_same_bits_for_any_number_of_threads(name, threads):
    model = NETS[name]()
    for a, b in zip(*(run_model(keel_abi.Context(threads=n), "cpu", model, fed(model)) for n in (2, threads))):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("name, launches", [("chain", 2), ("residual", 2), ("joined", 2), ("pooled", 6)])
def test_one_launch_from_image_to_image(context, tmp_path, name, launches):
    """One for the quantisation of the input, one for all convolutions; pooled has a product after them."""
    path = tmp_path / "net.onnx"
    onnx.save(NETS[name](), path)
    plan = context.import_file(path).session("cpu").prepare()
    impls = [launch["impl"] for launch in plan.report(*fed(NETS[name]()))["launches"]]
    assert impls.count("oneDNN region") == 1 and len(impls) <= launches, impls


def test_a_product_and_its_quantisation_are_one_launch(context, tmp_path):
    path = tmp_path / "net.onnx"
    onnx.save(layers(), path)
    plan = context.import_file(path).session("cpu").prepare()
    impls = [launch["impl"] for launch in plan.report(*fed(layers()))["launches"]]
    assert impls.count("oneDNN region") == 4 and "blocked loops of 8-bit integers" not in impls and len(impls) <= 8, impls


def test_each_class_of_processor():
    call_in_each_class("test_onnx_quantised", "all_nets")


def all_nets():
    context = keel_abi.Context(threads=2)
    for make in NETS.values():
        model = make()
        assert_close(run_model(context, "reference", model, fed(model), level=0), run_model(context, "cpu", model, fed(model)))
