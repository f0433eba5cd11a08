"""`keel plan` on the device cpu: by oneDNN or by own loops, and why, for products and convolutions; alone and in fused launches. The oracle reads
the committed table (choices.inc) itself."""
import json
import math
import os
import re
import subprocess
from pathlib import Path

import pytest
from command import command

TABLE = Path(__file__).resolve().parents[2] / "plugins/cpu/matmul/choices.inc"
INTEL = "GenuineIntel" in Path("/proc/cpuinfo").read_text()
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
    assert {x["node"] for x in report["fused"]} and all(x["impl"].startswith("oneDNN") for x in report["fused"])
    text = plan(path, KEEL_CPU_ISA="avx2")
    assert "products and convolutions in fused launches" in text and all(x["impl"] in text for x in report["fused"])


def test_forced_side(tmp_path):
    for side, name in (("own", "own loops: KEEL_CPU_PRODUCTS"), ("onednn", "oneDNN: KEEL_CPU_PRODUCTS")):
        report = json.loads(plan(products(tmp_path), "--json", KEEL_CPU_PRODUCTS=side))
        assert {x["impl"] for x in report["launches"]} == {name, "own loops: small product"}


def test_size_that_is_not_a_number(tmp_path):
    path = tmp_path / "g.keelt"
    path.write_text("keel 1\nfn @main(a: f32[n, 768], b: f32[768, 3072]) {\n  p = matmul(a, b)\n  return p\n}\nentry main = @main (a, b) -> (p)\n")
    assert "oneDNN or own loops, by size" in plan(path)
