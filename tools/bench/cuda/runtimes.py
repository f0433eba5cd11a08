"""The runtimes of cuda/run.py on one GPU. A form has the ops that programs.py uses, `put` for an array of NumPy, `prepare` for a function
that runs a program once without waiting, `train` for a function that makes a step, `wait` for a result, and `take` for a result in NumPy."""
import os
import sys
from pathlib import Path

RATE = 0.01


class Keel:
    device = "cuda"

    def __init__(self):
        build = Path(os.environ.get("KEEL_BUILD", Path(__file__).resolve().parents[3] / "build" / "release"))
        sys.path.insert(0, str(build / "python"))
        import keel
        self.keel = keel
        self.matmul, self.tanh, self.exp, self.sqrt, self.softmax = keel.matmul, keel.tanh, keel.exp, keel.sqrt, keel.softmax
        self.linear, self.gather, self.transpose, self.sum, self.rms_norm = keel.linear, keel.gather, keel.transpose, keel.reduce_sum, keel.rms_norm
        self.relu = keel.relu

    def put(self, array):
        return self.keel.array(array).to(self.device)

    def prepare(self, program, arrays):
        code = (lambda *xs: program.code(self, *xs)) if not program.jit else self.keel.function(lambda *xs: program.code(self, *xs))

        def once():
            with self.keel.device(self.device):
                return code(*arrays)
        return once

    def train(self, x, labels, *params):
        keel, params = self.keel, [self.keel.Variable(p) for p in params]

        @keel.function
        def step():
            with keel.Tape() as tape:
                h = x
                for k in range(0, len(params), 2):
                    h = keel.linear(h, params[k], params[k + 1])
                    h = keel.relu(h) if k + 2 < len(params) else h
                loss = keel.reduce_mean(keel.cross_entropy(h, labels))
            for p, g in zip(params, tape.gradient(loss, params), strict=True):
                p.assign(p - RATE * g)
            return loss

        def once():
            with keel.device(self.device):
                return step()
        return once

    def wait(self, y):
        with self.keel.device(self.device):
            self.keel.reshape(y, [-1])[:1].numpy()

    def take(self, y):
        return y.numpy()

    def copy(self, x):
        return x + 0.0

    def gelu(self, x):
        return self.keel.gelu(x, tanh=True)

    def layer_norm(self, x, g):
        return self.keel.layer_norm(x, g, g)

    def attention(self, q, k, v):
        return self.keel.attention(q, k, v, causal=True)

    def heads(self, x, heads):
        b, t, width = x.shape
        return self.keel.transpose(self.keel.reshape(x, [b, t, heads, width // heads]), [0, 2, 1, 3])

    def together(self, x):
        b, heads, t, width = x.shape
        return self.keel.reshape(self.keel.transpose(x, [0, 2, 1, 3]), [b, t, heads * width])

    def matmul_transposed(self, x, table):
        return self.keel.matmul(x, table, tb=True)

    def conv(self, x, w, stride, pad, groups):
        return self.keel.conv(x, w, stride=[stride] * 2, lo=[pad] * 2, hi=[pad] * 2, groups=groups)

    def max_pool(self, x, window, stride, pad):
        return self.keel.max_pool(x, window=[window] * 2, stride=[stride] * 2, lo=[pad] * 2, hi=[pad] * 2)


class Torch:
    mode = None

    def __init__(self):
        import torch
        import torch.nn.functional as F
        torch.inference_mode().__enter__()
        torch.backends.cudnn.allow_tf32 = False  # f32 is IEEE on all sides
        self.torch, self.F = torch, F
        self.matmul, self.tanh, self.exp, self.sqrt, self.relu = torch.matmul, torch.tanh, torch.exp, torch.sqrt, torch.relu

    def put(self, array):
        if array.dtype.name == "bfloat16":
            return self.torch.tensor(array.view("int16")).view(self.torch.bfloat16).cuda()
        return self.torch.tensor(array).cuda()

    def compiled(self, code):
        return code

    def prepare(self, program, arrays):
        code = lambda *xs: program.code(self, *xs)  # noqa: E731
        code = self.compiled(code) if program.jit else code
        code(*arrays)
        return lambda: code(*arrays)

    def train(self, x, labels, *params):
        torch, F = self.torch, self.F
        torch.inference_mode(False).__enter__()
        x, labels, params = x.clone(), labels.clone(), [p.clone().requires_grad_() for p in params]

        def loss_of():
            h = x
            for k in range(0, len(params), 2):
                h = torch.addmm(params[k + 1], h, params[k])
                h = F.relu(h) if k + 2 < len(params) else h
            return F.cross_entropy(h, labels)
        forward = self.compiled(loss_of)

        def once():
            loss = forward()
            with torch.no_grad():
                torch._foreach_add_(params, torch.autograd.grad(loss, params), alpha=-RATE)
            return loss.detach()
        return once

    def wait(self, y):
        self.torch.cuda.synchronize()

    def take(self, y):
        return y.float().cpu().numpy()

    def copy(self, x):
        return x.clone()

    def linear(self, x, w, b):
        return self.torch.addmm(b, x, w) if x.ndim == 2 else x @ w + b

    def gather(self, x, i):
        return self.F.embedding(i, x)

    def transpose(self, x):
        return x.T.contiguous()

    def sum(self, x, axes):
        return self.torch.sum(x, axes)

    def softmax(self, x):
        return self.torch.softmax(x, -1)

    def gelu(self, x):
        return self.F.gelu(x, approximate="tanh")

    def layer_norm(self, x, g):
        return self.F.layer_norm(x, g.shape, g, g)

    def rms_norm(self, x, g):
        return self.F.rms_norm(x, g.shape, g, 1e-5)

    def attention(self, q, k, v):
        return self.F.scaled_dot_product_attention(q, k, v, is_causal=True)

    def heads(self, x, heads):
        return x.view(*x.shape[:2], heads, -1).transpose(1, 2)

    def together(self, x):
        return x.transpose(1, 2).flatten(2)

    def matmul_transposed(self, x, table):
        return x @ table.T

    def conv(self, x, w, stride, pad, groups):
        return self.F.conv2d(x, w, stride=stride, padding=pad, groups=groups)

    def max_pool(self, x, window, stride, pad):
        return self.F.max_pool2d(x, window, stride, pad)


class TorchCompiled(Torch):
    def compiled(self, code):
        return self.torch.compile(code)


class TorchGraph(Torch):
    """Eager ops, replayed as a CUDA graph."""

    def prepare(self, program, arrays):
        code, torch = super().prepare(program, arrays), self.torch
        if not program.jit:
            return code
        stream = torch.cuda.Stream()
        with torch.cuda.stream(stream):
            code()
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            y = code()
        self.graph = graph

        def once():
            graph.replay()
            return y
        return once


class Jax:
    def __init__(self):
        os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
        import jax
        jax.config.update("jax_enable_x64", True)
        jax.config.update("jax_default_matmul_precision", "highest")  # f32 is IEEE on all sides
        self.jax, self.np = jax, jax.numpy
        self.matmul, self.tanh, self.exp, self.sqrt = self.np.matmul, self.np.tanh, self.np.exp, self.np.sqrt
        self.transpose, self.sum, self.softmax, self.relu = self.np.transpose, self.np.sum, jax.nn.softmax, jax.nn.relu

    def put(self, array):
        return self.jax.device_put(array)

    def prepare(self, program, arrays):
        code = lambda *xs: program.code(self, *xs)  # noqa: E731
        code = self.jax.jit(code) if program.jit else code
        return lambda: code(*arrays)

    def train(self, x, labels, *params):
        from forms.train_form import jax_update
        update, params = jax_update(RATE), list(params)

        def once():
            nonlocal params
            params, loss = update(params, x, labels)
            return loss
        return once

    def wait(self, y):
        y.block_until_ready()

    def take(self, y):
        return self.np.asarray(y, self.np.float32).__array__()

    def copy(self, x):
        return self.np.copy(x)

    def linear(self, x, w, b):
        return x @ w + b

    def gather(self, x, i):
        return x[i]

    def gelu(self, x):
        return self.jax.nn.gelu(x, approximate=True)

    def layer_norm(self, x, g):
        y = x.astype(self.np.float32)
        y = y - y.mean(-1, keepdims=True)
        return (y * self.jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype) * g + g

    def rms_norm(self, x, g):
        y = x.astype(self.np.float32)
        return (y * self.jax.lax.rsqrt((y * y).mean(-1, keepdims=True) + 1e-5)).astype(x.dtype) * g

    def attention(self, q, k, v):
        q, k, v = (x.transpose(0, 2, 1, 3) for x in (q, k, v))
        return self.jax.nn.dot_product_attention(q, k, v, is_causal=True, implementation="cudnn").transpose(0, 2, 1, 3)

    def heads(self, x, heads):
        return x.reshape(*x.shape[:2], heads, -1).transpose(0, 2, 1, 3)

    def together(self, x):
        return x.transpose(0, 2, 1, 3).reshape(x.shape[0], x.shape[2], -1)

    def matmul_transposed(self, x, table):
        return x @ table.T

    def conv(self, x, w, stride, pad, groups):
        return self.jax.lax.conv_general_dilated(x, w, (stride,) * 2, [(pad, pad)] * 2, feature_group_count=groups)

    def max_pool(self, x, window, stride, pad):
        lax = self.jax.lax
        return lax.reduce_window(x, -self.np.inf, lax.max, (1, 1, window, window), (1, 1, stride, stride), [(0, 0)] * 2 + [(pad, pad)] * 2)


RUNTIMES = {"keel": Keel, "torch": Torch, "torch_compiled": TorchCompiled, "torch_graph": TorchGraph, "jax": Jax}
