"""The models as ncnn files, in its own layers: batch norm and activations are in their convolution, attention is one layer."""
import numpy as np
from forms.onnx_form import Weights


class NcnnForm:
    """Layers of one net; each op returns the name of its result. A blob has one reader: others read from a Split."""

    def __init__(self):
        self.layers, self.pending = [], {}  # pending: the three dense layers of an attention without its last one

    @staticmethod
    def constant(array, kind):
        return array

    def layer(self, kind, inputs, numbers=(), weights=()):
        """weights: (array, whether its type is written before it)"""
        name = f"{kind}_{len(self.layers)}"
        self.layers.append({"kind": kind, "inputs": list(inputs), "name": name, "numbers": dict(numbers), "weights": list(weights)})
        return name

    def last(self, name):
        assert self.layers[-1]["name"] == name
        return self.layers[-1]

    def add(self, x, y):
        return self.layer("BinaryOp", [x, y], {0: 0})

    def matmul(self, x, y):
        return self.layer("Gemm", [x, y])

    def dense(self, x, w, b):
        turned = w.T.copy()
        if x not in self.pending:
            return self.layer("InnerProduct", [x], {0: w.shape[1], 1: 1, 2: w.size}, [(turned, True), (b, False)])
        parts, heads = self.pending.pop(x)
        weights = [part for each in parts for part in each["weights"]] + [(turned, True), (b, False)]
        return self.layer("MultiHeadAttention", parts[0]["inputs"], {0: w.shape[1], 1: heads, 2: w.size}, weights)

    def attention(self, q, k, v, heads, causal):
        self.pending["attention"] = self.layers[-3:], heads
        del self.layers[-3:]
        return "attention"

    def conv(self, x, w, stride, groups):
        kernel, numbers = w.shape[2], {0: w.shape[0], 1: w.shape[2], 3: stride, 4: w.shape[2] // 2, 6: w.size}
        assert kernel == w.shape[3]
        if groups > 1:
            return self.layer("ConvolutionDepthWise", [x], numbers | {7: groups}, [(w, True)])
        return self.layer("Convolution", [x], numbers, [(w, True)])

    def batch_norm(self, x, scale, bias, mean, variance):
        conv, factor = self.last(x), scale / np.sqrt(variance + 1e-5)
        conv["numbers"][5] = 1
        conv["weights"] = [(conv["weights"][0][0] * factor[:, None, None, None], True), (bias - mean * factor, False)]
        return x

    def relu(self, x):
        if self.layers[-1]["name"] != x or "Convolution" not in self.layers[-1]["kind"]:
            return self.layer("ReLU", [x])
        self.layers[-1]["numbers"][9] = 1
        return x

    def relu6(self, x):
        self.last(x)["numbers"] |= {9: 3, -23310: "2,0.0,6.0"}
        return x

    def max_pool(self, x):
        return self.layer("Pooling", [x], {0: 0, 1: 3, 2: 2, 3: 1, 5: 1})

    def global_pool(self, x):
        return self.layer("Pooling", [x], {0: 1, 4: 1})

    def softmax(self, x):
        return self.layer("Softmax", [x], {0: 0, 1: 1})

    def layer_norm(self, x, scale, bias, epsilon):
        return self.layer("LayerNorm", [x], {0: scale.size, 1: epsilon, 2: 1}, [(scale, False), (bias, False)])

    def gelu(self, x):
        return self.layer("GELU", [x])


def split(layers):
    """Puts a Split behind each blob of several readers."""
    readers, given, result = {}, {}, []
    for layer in layers:
        for blob in layer["inputs"]:
            readers[blob] = readers.get(blob, 0) + 1
    for layer in layers:
        for i, blob in enumerate(layer["inputs"]):
            if readers[blob] > 1:
                given[blob] = given.get(blob, -1) + 1
                layer["inputs"][i] = f"{blob}_{given[blob]}"
        result.append((layer, [layer["name"]]))
        if (n := readers.get(layer["name"], 0)) > 1:
            outs = [f"{layer['name']}_{i}" for i in range(n)]
            result.append(({"kind": "Split", "inputs": [layer["name"]], "name": "split_" + layer["name"], "numbers": {}, "weights": []}, outs))
    return result


def write(model, count, path):
    """Files of a model with `count` inputs: path.param, path.bin. -> the names of the inputs and the result"""
    form = NcnnForm()
    names = [form.layer("Input", []) for _ in range(count)]
    y = model(form, Weights(form), *names)
    rows = split(form.layers)
    lines = [" ".join([layer["kind"], layer["name"], str(len(layer["inputs"])), str(len(outs)), *layer["inputs"], *outs,
                       *(f"{k}={v}" for k, v in layer["numbers"].items())]) for layer, outs in rows]
    with open(f"{path}.param", "w") as file:
        file.write("\n".join(["7767517", f"{len(rows)} {sum(len(outs) for _, outs in rows)}", *lines]) + "\n")
    with open(f"{path}.bin", "wb") as file:
        for layer, _ in rows:
            for array, typed in layer["weights"]:
                file.write(bytes(4) * typed + np.ascontiguousarray(array, np.float32).tobytes())
    return names, y


class NcnnSide:
    """Its Vulkan path in f32, from host memory to host memory."""

    def __init__(self, model, path, inputs, threads, device):
        import ncnn
        self.ncnn, self.net = ncnn, ncnn.Net()
        options = self.net.opt
        options.use_vulkan_compute, options.num_threads = True, threads
        for name in ("use_fp16_packed", "use_fp16_storage", "use_fp16_arithmetic", "use_bf16_storage"):
            setattr(options, name, False)
        names, self.result = write(model, len(inputs), f"{path}.ncnn")
        if self.net.load_param(f"{path}.ncnn.param") or self.net.load_model(f"{path}.ncnn.bin"):
            raise RuntimeError("ncnn did not load its files")
        self.kept = inputs  # a Mat has no memory of its own
        self.feeds = [(n, ncnn.Mat(x[0] if x.ndim > 2 else x)) for n, x in zip(names, inputs)]

    def once(self):
        self.answer()

    def answer(self):
        run = self.net.create_extractor()
        for name, x in self.feeds:
            run.input(name, x)
        failed, y = run.extract(self.result)
        if failed:
            raise RuntimeError("ncnn did not run its net")
        return np.array(y)
