"""Models that torch exports, for test_onnx_torch.py: run by a Python that has torch, it writes each model by each exporter.

Usage: torch_models.py FOLDER [NAME ...]    -> FOLDER/NAME-EXPORTER.onnx, or .txt with why the export failed; FOLDER/NAME.npz: for each
                                              size k the inputs "k x NAME" and torch's results "k y INDEX"
The model is exported with the first size; the others are for its open sizes.
"""
import sys
import traceback
import warnings
from pathlib import Path

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

EXPORTERS = ("dynamo", "torchscript")
WORDS, WIDTH, HEADS = 40, 16, 4


def words(*shape):
    return torch.randint(0, WORDS, shape)


class Translator(nn.Module):
    """An encoder and a decoder, with words of both sides padded."""
    sizes = [(2, 5, 4), (1, 5, 4), (1, 7, 3), (3, 2, 1)]
    open = {"source": {0: "batch", 1: "far"}, "padded": {0: "batch", 1: "far"}, "target": {0: "batch", 1: "near"}}
    closed = {"torchscript": ["far", "near"]}

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Parameter(torch.randn(32, WIDTH))
        self.net = nn.Transformer(WIDTH, HEADS, 2, 2, 32, batch_first=True)
        self.last = nn.Linear(WIDTH, WORDS)

    def placed(self, x):
        return self.words(x) * WIDTH**0.5 + self.places[:x.shape[1]]

    def forward(self, source, padded, target):
        n = target.shape[1]
        later = torch.triu(torch.full((n, n), float("-inf")), diagonal=1)
        y = self.net(self.placed(source), self.placed(target), tgt_mask=later, src_key_padding_mask=padded,
                     memory_key_padding_mask=padded, tgt_is_causal=True)
        return self.last(y)

    def feeds(self, batch, far, near):
        return {"source": words(batch, far), "padded": torch.arange(far).expand(batch, far) > far - 2 + torch.arange(batch)[:, None],
                "target": words(batch, near)}


class Scaled(nn.Module):
    """RMSNorm written out: the TorchScript exporter lacks it."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(WIDTH))

    def forward(self, x):
        wide = x.float()
        return self.scale * (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).to(x.dtype)


class Block(nn.Module):
    """A layer of a decoder that goes on from kept keys and values."""

    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList([nn.LayerNorm(WIDTH), Scaled()])
        self.split, self.joined = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH, bias=False)
        self.wide, self.narrow = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x, keys, values, mask):
        q, k, v = (y.view(*x.shape[:2], HEADS, -1).transpose(1, 2) for y in self.split(self.norms[0](x)).chunk(3, -1))
        keys, values = torch.cat([keys, k], 2), torch.cat([values, v], 2)
        y = F.scaled_dot_product_attention(q, keys, values, attn_mask=mask)
        x = x + self.joined(y.transpose(1, 2).reshape(x.shape))
        return x + self.narrow(F.gelu(self.wide(self.norms[1](x)))), keys, values


class Decoder(nn.Module):
    """Two layers; the kept keys and values are inputs and results."""
    sizes = [(2, 3, 4), (1, 1, 9), (2, 5, 1)]
    open = {"text": {0: "batch", 1: "new"}, "keys": {1: "batch", 3: "kept"}, "values": {1: "batch", 3: "kept"}}

    def __init__(self):
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, WIDTH), nn.Embedding(64, WIDTH)
        self.blocks, self.last = nn.ModuleList([Block(), Block()]), nn.LayerNorm(WIDTH)

    def forward(self, text, keys, values):
        new, kept = text.shape[1], keys.shape[3]
        at = torch.arange(kept, kept + new)
        x, mask = self.words(text) + self.places(at), at[:, None] >= torch.arange(kept + new)
        grown = []
        for i, block in enumerate(self.blocks):
            x, k, v = block(x, keys[i], values[i], mask)
            grown.append((k, v))
        return self.last(x) @ self.words.weight.T, torch.stack([k for k, _ in grown]), torch.stack([v for _, v in grown])

    def feeds(self, batch, new, kept):
        shape = (2, batch, HEADS, kept, WIDTH // HEADS)
        kind = self.places.weight.dtype
        return {"text": words(batch, new), "keys": torch.randn(shape, dtype=kind), "values": torch.randn(shape, dtype=kind)}


class Causal(nn.Module):
    """scaled_dot_product_attention that makes its own mask, with rotated places and fewer heads of keys."""
    sizes = [(2, 6), (1, 1), (3, 9)]
    open = {"x": {0: "batch", 1: "length"}}

    def __init__(self):
        super().__init__()
        self.q, self.kv, self.out = nn.Linear(WIDTH, 32, bias=False), nn.Linear(WIDTH, 32, bias=False), nn.Linear(32, WIDTH, bias=False)
        self.register_buffer("speeds", 1 / 100 ** torch.linspace(0, 1, 4))

    def turned(self, x, angles):
        a, b = x.chunk(2, -1)
        return torch.cat([a * angles.cos() - b * angles.sin(), a * angles.sin() + b * angles.cos()], -1)

    def forward(self, x):
        batch, length, _ = x.shape
        angles = torch.outer(torch.arange(length, device=x.device).to(x.dtype), self.speeds)
        q = self.q(x).view(batch, length, 4, 8).transpose(1, 2)
        k, v = self.kv(x).view(batch, length, 2, 2, 8).permute(2, 0, 3, 1, 4)
        k, v = (y.repeat_interleave(2, 1) for y in (k, v))
        y = F.scaled_dot_product_attention(self.turned(q, angles), self.turned(k, angles), v, is_causal=True)
        return F.silu(self.out(y.transpose(1, 2).reshape(batch, length, -1)))

    def feeds(self, *shape):
        return {"x": torch.randn(*shape, WIDTH)}


class Encoder(nn.Module):
    """nn.TransformerEncoder, its mean over the words that are no padding."""
    sizes = [(3, 6), (1, 6), (1, 2), (2, 11)]
    open = {"text": {0: "batch", 1: "length"}, "mask": {0: "batch", 1: "length"}}
    closed = {"torchscript": ["length"]}

    def __init__(self):
        super().__init__()
        layer = nn.TransformerEncoderLayer(WIDTH, HEADS, 32, activation="gelu", batch_first=True, norm_first=True)
        self.words, self.net = nn.Embedding(WORDS, WIDTH), nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH), enable_nested_tensor=False)

    def forward(self, text, mask):
        y = self.net(self.words(text), src_key_padding_mask=mask == 0)
        weight = mask[..., None].to(y.dtype)
        return F.normalize((y * weight).sum(1) / weight.sum(1).clamp(min=1e-6), dim=-1), y.argmax(-1)

    def feeds(self, batch, length):
        return {"text": words(batch, length), "mask": (torch.arange(length) < length - torch.arange(batch)[:, None].clamp(max=length - 1)).long()}


class Attention(nn.Module):
    """nn.MultiheadAttention of other widths of keys and values, with its weights."""
    sizes = [(2, 3, 5), (1, 1, 1), (2, 7, 2)]
    open = {"q": {0: "batch", 1: "a"}, "k": {0: "batch", 1: "b"}, "v": {0: "batch", 1: "b"}}

    def __init__(self):
        super().__init__()
        self.net = nn.MultiheadAttention(WIDTH, HEADS, kdim=6, vdim=10, batch_first=True, add_bias_kv=True)

    def forward(self, q, k, v):
        return self.net(q, k, v)

    def feeds(self, batch, a, b):
        return {"q": torch.randn(batch, a, WIDTH), "k": torch.randn(batch, b, 6), "v": torch.randn(batch, b, 10)}


class Images(nn.Module):
    """Convolutions of all kinds around pooling and resizing, with a skip."""
    sizes = [(2, 16, 24), (1, 32, 8), (3, 8, 8)]
    open = {"x": {0: "batch", 2: "height", 3: "width"}}

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(nn.Conv2d(3, 8, 3, 2, 1, bias=False), nn.BatchNorm2d(8), nn.SiLU())
        self.body = nn.Sequential(nn.Conv2d(8, 8, 5, padding=4, groups=8, dilation=2), nn.GroupNorm(2, 8), nn.Hardswish(),
                                  nn.Conv2d(8, 12, 1), nn.InstanceNorm2d(12, affine=True), nn.PReLU(12), nn.MaxPool2d(3, 2, 1, ceil_mode=True))
        self.up = nn.ConvTranspose2d(12, 8, 3, 2, 1, 1)
        self.gate = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Conv2d(8, 8, 1), nn.Hardsigmoid())
        self.classes = nn.Linear(8, 5)

    def forward(self, x):
        near = self.first(x)
        far = F.interpolate(self.body(near), size=near.shape[-2:], mode="bilinear", align_corners=False)
        y = self.up(far)
        y = F.interpolate(near, scale_factor=2.0, mode="nearest") + y * self.gate(y)
        y = F.pad(y, (1, 2, 0, 1), mode="reflect")
        return F.pixel_unshuffle(F.avg_pool2d(y, 3, 1, 1)[..., :-1, 3:-4], 2), self.classes(y.mean((2, 3))).log_softmax(-1)

    def feeds(self, batch, height, width):
        return {"x": torch.randn(batch, 3, height, width)}


class Recurrent(nn.Module):
    """Layers of LSTM, GRU and RNN; the state of the LSTM is an input and a result."""
    sizes = [(2, 6), (1, 6), (1, 1), (4, 9)]
    open = {"x": {0: "batch", 1: "steps"}, "h": {1: "batch"}, "c": {1: "batch"}}
    closed = {"dynamo": ["steps"]}

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(5, 8, 2, batch_first=True, bidirectional=True)
        self.gru, self.rnn = nn.GRU(16, 6, batch_first=True), nn.RNN(6, 7, nonlinearity="relu", batch_first=True)

    def forward(self, x, h, c):
        y, (h, c) = self.lstm(x, (h, c))
        y, last = self.gru(y)
        return self.rnn(y)[0], h, c, last

    def feeds(self, batch, steps):
        return {"x": torch.randn(batch, steps, 5), "h": torch.randn(4, batch, 8), "c": torch.randn(4, batch, 8)}


class Half(Decoder):
    exporters = ["dynamo"]  # the other one mixes f16 with f32

    def __init__(self):
        super().__init__()
        self.half()


MODELS = {"translator": Translator, "decoder": Decoder, "decoder of f16": Half, "causal": Causal, "encoder": Encoder,
          "attention": Attention, "images": Images, "recurrent": Recurrent}


def export(model, feeds, results, exporter, path):
    """Sizes that this exporter writes into the file as numbers, whatever it is told, are not open."""
    closed = getattr(model, "closed", {}).get(exporter, [])
    axes = {name: {i: dim for i, dim in dims.items() if dim not in closed} for name, dims in model.open.items()}
    common = {"input_names": list(feeds), "output_names": [f"y{i}" for i in range(len(results))]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if exporter == "dynamo":
            shapes = {name: {i: torch.export.Dim.DYNAMIC for i in dims} for name, dims in axes.items()}
            torch.onnx.export(model, tuple(feeds.values()), path, dynamo=True, dynamic_shapes=shapes, external_data=False, verbose=False,
                              **common)
        else:
            torch.onnx.export(model, tuple(feeds.values()), path, dynamo=False, dynamic_axes=axes, opset_version=18, **common)


def listed(results):
    return [results] if isinstance(results, torch.Tensor) else list(results)


def write(folder, name):
    torch.manual_seed(3)
    model, arrays = MODELS[name]().eval(), {}
    for k, size in enumerate(model.sizes):
        feeds = model.feeds(*size)
        with torch.no_grad():
            results = listed(model(**feeds))
        arrays |= {f"{k} x {i}": x.numpy() for i, x in feeds.items()} | {f"{k} y {i}": y.numpy() for i, y in enumerate(results)}
        for exporter in getattr(model, "exporters", EXPORTERS) if k == 0 else ():
            try:
                export(model, feeds, results, exporter, folder / f"{name}-{exporter}.onnx")
            except Exception:
                (folder / f"{name}-{exporter}.txt").write_text(traceback.format_exc())
    np.savez(folder / f"{name}.npz", **arrays)


if __name__ == "__main__":
    for chosen in sys.argv[2:] or MODELS:
        write(Path(sys.argv[1]), chosen)
