"""The models in PyTorch's own ops: eager, and compiled with frozen weights, also with products tuned."""
import numpy as np
import torch
import torch.nn.functional as F
from forms.onnx_form import Given, weights_of


class TorchForm:
    add, mul, matmul = staticmethod(torch.add), staticmethod(torch.mul), staticmethod(torch.matmul)
    relu, relu6, gelu = staticmethod(F.relu), staticmethod(F.relu6), staticmethod(F.gelu)

    @staticmethod
    def dense(x, w, b):
        return F.linear(x, w, b)  # the weight is [out, in] here

    @staticmethod
    def conv(x, w, stride, groups):
        return F.conv2d(x, w, None, stride, w.shape[-1] // 2, 1, groups)

    @staticmethod
    def batch_norm(x, scale, bias, mean, variance):
        return F.batch_norm(x, mean, variance, scale, bias, eps=1e-5)

    @staticmethod
    def max_pool(x):
        return F.max_pool2d(x, 3, 2, 1)

    @staticmethod
    def global_pool(x):
        return torch.mean(x, (2, 3))

    @staticmethod
    def softmax(x):
        return torch.softmax(x, -1)

    @staticmethod
    def layer_norm(x, scale, bias, epsilon):
        return F.layer_norm(x, scale.shape, scale, bias, epsilon)

    @staticmethod
    def gelu_tanh(x):
        return F.gelu(x, approximate="tanh")

    @staticmethod
    def attention(q, k, v, heads, causal):
        q, k, v = (x.view(*x.shape[:2], heads, -1).transpose(1, 2) for x in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
        return mixed.transpose(1, 2).flatten(2)

    @staticmethod
    def embed(table, ids):
        return F.embedding(ids, table)

    @staticmethod
    def scores(x, table):
        return F.linear(x, table)


def last(tensor):
    """Images channels last, the fastest layout of PyTorch's CPU convolutions."""
    return tensor.contiguous(memory_format=torch.channels_last) if tensor.ndim == 4 else tensor


class TorchModel(torch.nn.Module):
    def __init__(self, model, arrays):
        super().__init__()
        self.model = model
        self.tensors = [torch.nn.Parameter(last(torch.tensor(a)), requires_grad=False) for a in arrays]
        for i, tensor in enumerate(self.tensors):  # freezing requires registered parameters
            self.register_parameter(f"w{i}", tensor)

    def forward(self, *inputs):
        return self.model(TorchForm, Given(self.tensors), *inputs)


def prepare(model, path, inputs, threads, mode=None):
    """-> a function that runs the model once and returns a tensor. mode: None for eager, else the mode of torch.compile."""
    torch.set_num_threads(threads)
    torch.inference_mode().__enter__()
    tensors = [last(torch.tensor(np.asarray(x))) for x in inputs]
    module = TorchModel(model, weights_of(path, turn=True)).eval()
    if mode is None:
        return lambda: module.forward(*tensors)
    torch._inductor.config.freezing = True
    module = torch.compile(module, mode=mode)
    module(*tensors)
    torch.compiler.set_stance("default", skip_guard_eval_unsafe=True)  # the inputs do not change
    return lambda: module(*tensors)
