"""`keel plan` on the device cpu: by oneDNN or by own loops, and why, for products and convolutions; alone and in fused launches. The oracle of
products reads the committed table (choices.inc) itself."""
import json
import math
import os
import re
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from command import command
from onnx import helper, numpy_helper

TABLE = Path(__file__).resolve().parents[2] / "plugins/cpu/matmul/choices.inc"
CPU = Path("/proc/cpuinfo").read_text()
INTEL = "GenuineIntel" in CPU
AVX2 = pytest.mark.skipif(not {"avx2", "fma"} <= set(CPU.split()), reason="no AVX2")
NAMES = {"kSse4": "sse4", "kAvx2": "avx2", "kAvx512": "avx512"}
SHAPES = [(128, 768, 3072), (97, 130, 700), (1, 2048, 8192), (70000, 500, 11), (64, 64, 64), (65, 64, 64)]


def rows(isa):
    """Of this class; those of this maker's processors if there are any."""
    found = re.findall(r"\{Chip::(\w+),\s+Isa::(\w+),\s+(\d+),\s+(\d+),\s+(\d+),\s+(\d+),\s+(\d+)\}", TABLE.read_text())
    lines = [(chip == ("kIntel" if INTEL else "kAmd"), tuple(map(int, numbers))) for chip, name, *numbers in found if NAMES[name] == isa]
    return [line for mine, line in lines if mine] or [line for _, line in lines]


def expected(isa, m, k, n):
    if m * k * n <= 256 * 1024:
        return "own loops: small product"
    near = min(rows(isa), key=lambda r: sum(abs(math.log2(x / y)) for x, y in zip(r, (m, k, n))))
    where = "x".join(map(str, near[:3])) + f" ({isa})"
    return f"oneDNN: own loops take {near[3]} % of its time at {where}" if near[3] > (100 if near[0] <= 8 else 95) else f"own loops: {near[3]} % of oneDNN's time at {where}"


def plan(path, *words, code=0, **env):
    done = subprocess.run([command(), "plan", str(path), "-d", "cpu", *words], env=os.environ | {"KEEL_CPU_TUNED": ""} | env, capture_output=True, text=True, timeout=60)
    assert done.returncode == code, done.stderr
    return done.stdout


def products(tmp_path, after=""):
    """A graph with a product for each shape, and an op after each."""
    path, params, lines, results = tmp_path / "g.keelt", [], [], []
    for i, (m, k, n) in enumerate(SHAPES):
        params += [f"a{i}: f32[{m}, {k}]", f"b{i}: f32[{k}, {n}]"]
        lines.append(f"  p{i} = matmul(a{i}, b{i})\n" + (f"  r{i} = {after}(p{i})\n" if after else ""))
        results.append(f"{'r' if after else 'p'}{i}")
    names = ", ".join(p.split(":")[0] for p in params)
    path.write_text(f"keel 1\nfn @main({', '.join(params)}) {{\n{''.join(lines)}  return {', '.join(results)}\n}}\n"
                    f"entry main = @main ({names}) -> ({', '.join(results)})\n")
    return path


@pytest.mark.parametrize("isa", ["sse4", "avx2"])
def test_reason_of_each_product(tmp_path, isa):
    report = json.loads(plan(products(tmp_path), "--json", KEEL_CPU_ISA=isa))
    assert [x["impl"] for x in report["launches"]] == [expected(isa, *s) for s in SHAPES] and report["fused"] == []


def test_reason_in_fused_launches(tmp_path):
    path = products(tmp_path, "relu")
    report = json.loads(plan(path, "--json", KEEL_CPU_ISA="avx2"))
    found = {x["node"]: x["impl"] for x in report["launches"] + report["fused"] if x["op"] == "matmul"}
    assert found == {f"p{i}": expected("avx2", *s) for i, s in enumerate(SHAPES)}
    assert {x["node"] for x in report["fused"] if x["op"] == "matmul"} == {f"p{i}" for i in range(len(SHAPES))}
    text = plan(path, KEEL_CPU_ISA="avx2")
    assert "steps of fused launches" in text and all(x["impl"] in text for x in report["fused"])


def test_forced_side(tmp_path):
    for side, name in (("own", "own loops: KEEL_CPU_PRODUCTS"), ("onednn", "oneDNN: KEEL_CPU_PRODUCTS")):
        report = json.loads(plan(products(tmp_path), "--json", KEEL_CPU_PRODUCTS=side))
        assert {x["impl"] for x in report["launches"]} == {name, "own loops: small product"}


def test_many_matrices(tmp_path):
    """By own loops if all of them exceed the second-level cache and two are small compared with it, on a processor on which that was measured."""
    cache, path = int(subprocess.check_output(["getconf", "LEVEL2_CACHE_SIZE"])), tmp_path / "g.keelt"
    for n, rows, many in ((cache // (200 * 64 * 4) + 1, 100, True), (2, 100, False), (200, 32, False), (2, cache // 256, False)):
        path.write_text(f"keel 1\nfn @main(a: f32[{n}, {rows}, 64], b: f32[{n}, 64, 100]) {{\n  p = matmul(a, b)\n  return p\n}}\nentry main = @main (a, b) -> (p)\n")
        assert ("own loops: many matrices" in plan(path, KEEL_CPU_ISA="avx2")) == (many and not INTEL)


def test_size_that_is_not_a_number(tmp_path):
    path = tmp_path / "g.keelt"
    path.write_text("keel 1\nfn @main(a: f32[n, 768], b: f32[768, 3072]) {\n  p = matmul(a, b)\n  return p\n}\nentry main = @main (a, b) -> (p)\n")
    assert "oneDNN or own loops, by size" in plan(path)


# Shapes of an image and its weights, attributes of the ONNX node, and the way with AVX2.
CONVOLUTIONS = {"depthwise": ([1, 32, 40, 40], [32, 1, 3, 3], {"group": 32}, "own loops: each channel alone, of plain images"),
                "grouped": ([1, 32, 28, 28], [32, 4, 3, 3], {"group": 8}, "own products: groups of few channels, of plain images"),
                "few channels": ([1, 3, 64, 64], [16, 3, 3, 3], {"strides": [2, 2], "pads": [1, 1, 1, 1]}, "own products: plain images of few channels"),
                "tiles": ([1, 64, 56, 56], [64, 64, 3, 3], {"pads": [1, 1, 1, 1]}, "Winograd: 3x3 windows, channels last, many tiles"),
                "pixels": ([1, 64, 20, 20], [64, 64, 1, 1], {}, "own products: 1x1 windows of plain images, by panels of pixels"),
                "many channels": ([1, 512, 14, 14], [256, 512, 3, 3], {"strides": [2, 2]}, "own products, channels last: no slower than oneDNN at this size"),
                "large windows": ([1, 3, 64, 64], [16, 3, 7, 7], {"strides": [2, 2]}, "oneDNN, in a layout of its own: no own loops serve it or are faster")}


def convolutions(tmp_path, cases, chained=False):
    """A file with these convolutions, each of its own image, or each of the relu of the one before it; and their images."""
    rng, inputs, constants, nodes, last = np.random.default_rng(5), {}, [], [], None
    for name, (x, w, attrs, *_) in cases.items():
        if not (chained and last):
            inputs[f"{name} x"] = rng.standard_normal(x, dtype=np.float32)
        constants.append(numpy_helper.from_array(rng.standard_normal(w, dtype=np.float32), f"{name} w"))
        nodes.append(helper.make_node("Conv", [last if chained and last else f"{name} x", f"{name} w"], [name], **attrs))
        if chained:
            nodes.append(helper.make_node("Relu", [name], [f"{name} relu"]))
        last = f"{name} relu"
    results = [last] if chained else list(cases)
    graph = helper.make_graph(nodes, "g", [helper.make_tensor_value_info(name, 1, x.shape) for name, x in inputs.items()],
                              [helper.make_tensor_value_info(name, 1, None) for name in results], constants)
    path = tmp_path / "g.onnx"
    onnx.save(helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)]), path)
    return path, inputs


@AVX2
def test_way_of_each_convolution(tmp_path):
    path, _ = convolutions(tmp_path, CONVOLUTIONS)
    report = json.loads(plan(path, "--json", KEEL_CPU_ISA="avx2"))
    assert {x["node"]: x["impl"] for x in report["launches"]} == {name: case[3] for name, case in CONVOLUTIONS.items()} and report["fused"] == []
    text = plan(path, KEEL_CPU_ISA="avx2")
    assert all(case[3] in text for case in CONVOLUTIONS.values())


@AVX2
def test_way_of_convolutions_in_fused_launches(tmp_path):
    """Between two others the depthwise convolution's images are blocked, so oneDNN computes it; a plan without fusion would choose loops."""
    cases = {"first": ([1, 32, 40, 40], [32, 32, 3, 3], {"pads": [1, 1, 1, 1]}), "depthwise": (None, [32, 1, 3, 3], {"group": 32}),
             "last": (None, [24, 32, 5, 5], {})}
    report = json.loads(plan(convolutions(tmp_path, cases, chained=True)[0], "--json", KEEL_CPU_ISA="avx2"))
    assert [x["op"] for x in report["launches"]] == ["call"]
    ways = {x["node"]: re.split("[:,]", x["impl"])[0] for x in report["fused"]}
    assert ways == {"first": "Winograd", "depthwise": "oneDNN", "last": "oneDNN"}
    assert {x["launch"] for x in report["fused"]} == {report["launches"][0]["node"]}


@AVX2
def test_winograd_is_named_where_its_bits_are(tmp_path):
    """--exact-convolution turns Winograd's algorithm off: the bits of the named convolutions change, and no others."""
    path, images = convolutions(tmp_path, CONVOLUTIONS)
    given = []
    for i, (name, image) in enumerate(images.items()):
        np.save(tmp_path / f"{i}.npy", image)
        given += ["-i", f"{name}=@{tmp_path}/{i}.npy"]

    def results(*words):
        file = tmp_path / ("exact.npz" if words else "fast.npz")
        subprocess.run([command(), "run", str(path), "-d", "cpu", "--isa", "avx2", *given, *words, "-o", f"@{file}"], check=True, timeout=60)
        return {name: y.tobytes() for name, y in np.load(file).items()}
    fast, exact = results(), results("--exact-convolution")
    named = {x["node"] for x in json.loads(plan(path, "--json", KEEL_CPU_ISA="avx2"))["launches"] if x["impl"].startswith("Winograd")}
    assert {name for name in fast if fast[name] != exact[name]} == named == {"tiles"}
