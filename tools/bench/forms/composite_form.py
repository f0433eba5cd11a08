"""The models as ONNX files in three more forms: with standard composite ops, as newer exporters write them; with ONNX Runtime's own
composite ops; and decomposed into primitive ops."""
import numpy as np

from .onnx_form import OnnxForm


class CompositeForm(OnnxForm):
    opset = 23

    def gelu(self, x):
        return self.node("Gelu", x)

    def gelu_tanh(self, x):
        return self.node("Gelu", x, approximate="tanh")

    def heads(self, x, heads, perm=(0, 2, 1, 3)):
        return self.node("Transpose", self.node("Reshape", x, self.constant(np.array([0, 0, heads, 64]))), perm=perm)

    def attend(self, q, k, v, heads, mask):
        return self.node("Attention", *(self.heads(x, heads) for x in (q, k, v)), *mask, scale=0.125)

    def attention(self, q, k, v, heads, causal):
        mask = [self.constant(np.triu(np.full((128, 128), -1e9, np.float32), 1))] if causal else []
        mixed = self.node("Transpose", self.attend(q, k, v, heads, mask), perm=[0, 2, 1, 3])
        return self.node("Reshape", mixed, self.constant(np.array([0, 0, heads * 64])))


class RuntimeForm(CompositeForm):
    """With the ops that ONNX Runtime's transformer optimizer emits."""
    opset, domain = 17, "com.microsoft"

    def gelu(self, x):
        return self.node("Gelu", x, domain=self.domain)

    def gelu_tanh(self, x):
        return self.node("FastGelu", x, domain=self.domain)

    def attention(self, q, k, v, heads, causal):
        return self.node("MultiHeadAttention", q, k, v, num_heads=heads, unidirectional=int(causal), domain=self.domain)


class SpelledForm(CompositeForm):
    opset, gelu, gelu_tanh = OnnxForm.opset, OnnxForm.gelu, OnnxForm.gelu_tanh

    def last(self, op, x):
        """A reduction of the last axis."""
        axes = [self.constant(np.array([-1]))] if op == "ReduceSum" else []
        return self.node(op, x, *axes, keepdims=1, **({} if axes else {"axes": [-1]}))

    def softmax(self, x):
        power = self.node("Exp", self.node("Sub", x, self.last("ReduceMax", x)))
        return self.node("Div", power, self.last("ReduceSum", power))

    def layer_norm(self, x, scale, bias, epsilon):
        d = self.node("Sub", x, self.last("ReduceMean", x))
        variance = self.last("ReduceMean", self.node("Pow", d, self.number(2)))
        deviation = self.node("Sqrt", self.add(variance, self.number(epsilon)))
        return self.add(self.mul(self.node("Div", d, deviation), scale), bias)

    def attend(self, q, k, v, heads, mask):
        score = self.matmul(self.heads(q, heads), self.heads(k, heads, (0, 2, 3, 1)))
        score = self.node("Div", score, self.number(8))
        for m in mask:
            score = self.add(score, m)
        return self.matmul(self.softmax(score), self.heads(v, heads))
