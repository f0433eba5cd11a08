"""Convolutions of ResNet-50 and MobileNetV2 by oneDNN, as regions run them, and the products of the same work by the own loops of the
device cpu, on one pinned thread; both in turn, minimums.

    convolutions.py [CLASS...]     classes of KEEL_CPU_ISA (default: avx2 avx512)

Regions keep images with the channels last, so a 1x1 window with stride 1 is the product of the image [pixels, in] and the constant weights
[in, out]. Any other is the product of [pixels, window * in] and the weights: the copy of the windows is not part of the time, which is then a
lower bound. Depthwise convolutions are no products and are left out. In a model the weights of a layer are not in the cache when its turn
comes, but its image is: so it is here, too.
"""
import collections
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "bench"
MODELS = ("resnet50", "mobilenet")
ROUNDS, RUNS, SECONDS = 4, 4, 0.2
OTHERS = 64 << 20  # bytes that push the weights out of the caches
LINE = re.compile(r"exec,cpu,convolution,([^,]*),.*,mb(\d+)_ic(\d+)oc(\d+)_ih\d+oh(\d+)kh(\d+)sh(\d+)dh\d+ph\d+_iw\d+ow(\d+)kw(\d+)\S*,([\d.e+-]+)$")


def abi():
    sys.path.insert(0, str(ROOT / "tests" / "python"))
    import keel_abi
    return keel_abi


def files():
    """The models as ONNX files."""
    sys.path.insert(0, str(ROOT / "tools" / "bench"))
    from forms import onnx_form
    from models import WORKLOADS
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in MODELS:
        model, inputs, _ = WORKLOADS[name]
        if not (FOLDER / f"{name}.onnx").exists():
            onnx_form.write(model, inputs(), FOLDER / f"{name}.onnx")


def pin():
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def run_models():
    pin()
    import numpy as np
    context = abi().Context()
    for name in MODELS:
        plan = context.import_file(FOLDER / f"{name}.onnx").session("cpu", threads=1).prepare()
        x = np.ones((1, 3, 224, 224), np.float32)
        for _ in range(RUNS):
            plan.run(x)


def run_products(shapes):
    pin()
    import numpy as np
    context, out, others = abi().Context(threads=1), [], np.ones(OTHERS, np.uint8)
    for m, k, n in shapes:
        module, a, times = context.module(), context.array(np.ones((m, k), np.float32)), []
        g = module.graph("main")
        g.result("c", g.node("matmul", g.param("a", np.float32, (m, k)), g.constant(np.ones((k, n), np.float32))))
        module.entry("main", g)
        plan = module.session("cpu", threads=1).prepare()
        plan.run_arrays(a)
        start = time.perf_counter()
        while len(times) < 5 or time.perf_counter() - start < SECONDS:
            others += 1
            a.numpy().sum()
            before = time.perf_counter()
            plan.run_arrays(a)
            times.append(time.perf_counter() - before)
        out.append(min(times) * 1e3)
    print(json.dumps(out))


def worker(isa, *arguments, **env):
    done = subprocess.run([sys.executable, __file__, "--worker", *arguments], env=os.environ | {"KEEL_CPU_ISA": isa} | env,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def measure(isa):
    """{(in, out, pixels, window, stride): (ms of oneDNN, ms of the product, its code)}"""
    onednn, own, code = {}, {}, {}
    for _ in range(ROUNDS):
        for line in worker(isa, "models", ONEDNN_VERBOSE="1").splitlines():
            if found := LINE.search(line):
                *shape, ms = (float(v) if i == 9 else v for i, v in enumerate(found.groups()))
                kind, _, c, o, oh, kh, sh, ow, kw = shape
                key = (int(c), int(o), int(oh) * int(ow), int(kh) * int(kw), int(sh))
                onednn[key] = min(onednn.get(key, 1e9), ms)
                code[key] = kind
        shapes = sorted(onednn)
        products = json.loads(worker(isa, json.dumps([(p, c * w, o) for c, o, p, w, _ in shapes]), KEEL_CPU_PRODUCTS="own"))
        for shape, ms in zip(shapes, products):
            own[shape] = min(own.get(shape, 1e9), ms)
    return {s: (onednn[s], own[s], code[s]) for s in onednn}


def main(isas):
    files()
    for isa in isas:
        print(f"{isa}: in, out, pixels, window, stride: ms and GFLOP/s of oneDNN, ms and GFLOP/s of the product, ratio")
        groups = collections.defaultdict(list)
        for (c, o, p, w, s), (theirs, ours, kind) in sorted(measure(isa).items(), key=lambda i: (i[0][3], i[0])):
            gflop = 2e-6 * c * o * p * w
            groups[(w, s)].append(ours / theirs)
            print(f"{c:5} {o:5} {p:6} {w:3} {s:2} {theirs:9.3f} {gflop / theirs:7.1f} {ours:9.3f} {gflop / ours:7.1f} {ours / theirs:6.2f}  {kind}")
        for (w, s), ratios in sorted(groups.items()):
            print(f"window {w}, stride {s}: ratio {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        run_models() if sys.argv[2] == "models" else run_products(json.loads(sys.argv[2]))
    else:
        main(sys.argv[1:] or ["avx2", "avx512"])
