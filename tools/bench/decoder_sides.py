"""The decoder step of decoder.py in Keel, PyTorch and ONNX: `layer` says what a layer computes, a class of operations how."""
import numpy as np

WIDTH, HIDDEN, HEADS, KEPT, BLOCK = 2048, 5504, 16, 256, 32
MATRICES = {name: (WIDTH, WIDTH) for name in ("query", "key", "value", "out")} | {
    "gate": (WIDTH, HIDDEN), "up": (WIDTH, HIDDEN), "down": (HIDDEN, WIDTH)}
SMALL = 1e-5  # keeps a mean of zero from being divided by


def weights(layers):
    """Matrices [rows, columns] in f32, layer by layer; the same on each side."""
    random = np.random.default_rng(0)
    for _ in range(layers):
        yield {name: (random.standard_normal(dims, np.float32) * dims[0]**-0.5) for name, dims in MATRICES.items()}


def layer(o, x, w, keys, values):
    h = o.normed(x)
    query, key, value = (o.heads(o.product(h, w[name])) for name in ("query", "key", "value"))
    mixed = o.attend(query, o.joined(keys, key), o.joined(values, value))
    x = o.add(x, o.product(o.row(mixed), w["out"]))
    h = o.normed(x)
    return o.add(x, o.product(o.gated(o.product(h, w["gate"]), o.product(h, w["up"])), w["down"]))


def step(o, x, kept, matrices):
    for i, w in enumerate(matrices):
        x = layer(o, x, w, kept[2 * i], kept[2 * i + 1])
    return x


class KeelOps:
    def __init__(self, package):
        self.keel = package

    def normed(self, x):
        return x * self.keel.rsqrt(self.keel.reduce_mean(x * x, -1, keep=True) + SMALL)

    def product(self, x, w):
        return self.keel.matmul(x, w)

    def heads(self, x):
        return self.keel.reshape(x, [HEADS, 1, WIDTH // HEADS])

    def row(self, x):
        return self.keel.reshape(x, [1, WIDTH])

    def joined(self, kept, x):
        return self.keel.concat([kept, x], 1)

    def attend(self, query, keys, values):
        scores = self.keel.matmul(query, keys, tb=True) * (WIDTH // HEADS)**-0.5
        return self.keel.matmul(self.keel.softmax(scores), values)

    def add(self, x, y):
        return x + y

    def gated(self, x, y):
        return self.keel.silu(x) * y


class TorchOps:
    def __init__(self):
        import torch
        self.torch = torch

    def normed(self, x):
        return self.torch.nn.functional.rms_norm(x, (WIDTH,), eps=SMALL)

    def product(self, x, w):
        return self.torch.nn.functional.linear(x, w)

    def heads(self, x):
        return x.view(HEADS, 1, WIDTH // HEADS)

    def row(self, x):
        return x.reshape(1, WIDTH)

    def joined(self, kept, x):
        return self.torch.cat([kept, x], 1)

    def attend(self, query, keys, values):
        return self.torch.nn.functional.scaled_dot_product_attention(query[None], keys[None], values[None])[0]

    def add(self, x, y):
        return x + y

    def gated(self, x, y):
        return self.torch.nn.functional.silu(x) * y


class OnnxOps:
    """Writes nodes; values are names."""

    def __init__(self, form):
        self.form, self.nodes, self.constants = form, [], []

    def constant(self, value):
        from onnx import numpy_helper
        self.constants.append(numpy_helper.from_array(np.asarray(value), f"c{len(self.constants)}"))
        return self.constants[-1].name

    def node(self, op, *inputs, **attrs):
        from onnx import helper
        self.nodes.append(helper.make_node(op, list(inputs), [f"v{len(self.nodes)}"], **attrs))
        return self.nodes[-1].output[0]

    def normed(self, x):
        mean = self.node("ReduceMean", self.node("Mul", x, x), self.constant(np.array([-1])), keepdims=1)
        return self.node("Div", x, self.node("Sqrt", self.node("Add", mean, self.constant(np.float32(SMALL)))))

    def product(self, x, w):
        if self.form == "f32":
            return self.node("MatMul", x, self.constant(w))
        bits, level = int(self.form[1]), 4 if self.form.endswith("i") else 0
        blocks = w.T.reshape(w.shape[1], -1, BLOCK)
        scale = np.abs(blocks).max(-1, keepdims=True) / (2**(bits - 1) - 1)
        codes = (np.round(blocks / scale) + 2**(bits - 1)).astype(np.uint8)
        packed = codes if bits == 8 else codes[..., ::2] | codes[..., 1::2] << 4
        return self.node("MatMulNBits", x, self.constant(packed), self.constant(scale.astype(np.float32).reshape(-1)), domain="com.microsoft",
                         K=w.shape[0], N=w.shape[1], bits=bits, block_size=BLOCK, accuracy_level=level)

    def shaped(self, x, *dims):
        return self.node("Reshape", x, self.constant(np.array(dims)))

    def heads(self, x):
        return self.shaped(x, HEADS, 1, WIDTH // HEADS)

    def row(self, x):
        return self.shaped(x, 1, WIDTH)

    def joined(self, kept, x):
        return self.node("Concat", kept, x, axis=1)

    def attend(self, query, keys, values):
        scores = self.node("MatMul", query, self.node("Transpose", keys, perm=[0, 2, 1]))
        return self.node("MatMul", self.node("Softmax", self.node("Mul", scores, self.constant(np.float32((WIDTH // HEADS)**-0.5))), axis=-1), values)

    def add(self, x, y):
        return self.node("Add", x, y)

    def gated(self, x, y):
        return self.node("Mul", self.node("Mul", x, self.node("Sigmoid", x)), y)


def write_onnx(form, path, layers):
    import onnx
    from onnx import TensorProto, helper
    o, kept = OnnxOps(form), [f"x{i}" for i in range(1, 2 * layers + 1)]
    result = step(o, "x0", kept, weights(layers))
    values = [helper.make_tensor_value_info("x0", TensorProto.FLOAT, [1, WIDTH])]
    values += [helper.make_tensor_value_info(name, TensorProto.FLOAT, [HEADS, KEPT, WIDTH // HEADS]) for name in kept]
    graph = helper.make_graph(o.nodes, "decoder", values, [helper.make_tensor_value_info(result, TensorProto.FLOAT, [1, WIDTH])], o.constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
    onnx.save(model, path, save_as_external_data=True, location="weights")


def keel(form, path, values, threads):
    import ml_dtypes
    from forms import keel_form
    keel = keel_form.package()
    dtype = ml_dtypes.bfloat16 if form == "bf16" else np.float32
    count = (len(values) - 1) // 2

    @keel.function(threads=threads)
    def run(x, *kept):
        return step(KeelOps(keel), x, kept, ({name: keel.constant(w.astype(dtype)) for name, w in each.items()} for each in weights(count)))
    given = [keel.array(x.astype(dtype)) for x in values]
    return lambda: np.asarray(run(*given), np.float32)


def keel_import(form, path, values, threads):
    from forms import keel_form
    keel = keel_form.package()
    plan = keel.Session(keel.import_file(path), "cpu", threads=threads).prepare()
    given = [keel.array(x) for x in values]
    return lambda: np.asarray(plan(*given), np.float32)


def torch(form, path, values, threads):
    import torch as library
    library.set_num_threads(threads)
    dtype = library.bfloat16 if form == "bf16" else library.float32
    matrices = [{name: library.from_numpy(w.T.copy()).to(dtype) for name, w in each.items()} for each in weights((len(values) - 1) // 2)]
    x, *kept = (library.from_numpy(value).to(dtype) for value in values)

    def run():
        with library.inference_mode():
            return step(TorchOps(), x, kept, matrices).float().numpy()
    return run


def onnxruntime(form, path, values, threads):
    import onnxruntime as library
    options = library.SessionOptions()
    options.intra_op_num_threads = threads
    session = library.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {f"x{i}": x for i, x in enumerate(values)})[0]


SIDES = {"keel": keel, "keel_import": keel_import, "torch": torch, "onnxruntime": onnxruntime}
