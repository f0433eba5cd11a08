"""Measures products of f32 by oneDNN and by the own loops of the device cpu, on one thread, and writes the table from which the
device chooses: plugins/cpu/matmul/choices.inc.

    products.py [CLASS...]     classes of KEEL_CPU_ISA (default: sse4 avx2 avx512); others, and processors of other makers, keep their lines
"""
import datetime
import os
import re
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TABLE = ROOT / "plugins/cpu/matmul/choices.inc"
ISAS = {"sse4": "kSse4", "avx2": "kAvx2", "avx512": "kAvx512"}
SHAPES = [  # m, k, n
    (1, 768, 768), (1, 768, 3072), (1, 3072, 768), (1, 2048, 8192), (1, 768, 50257), (2, 768, 3072), (4, 768, 3072), (8, 768, 3072),
    (8, 768, 50257), (16, 1024, 1024), (16, 65536, 16), (32, 768, 3072), (64, 64, 64), (64, 128, 128), (64, 256, 256), (64, 16384, 64),
    (96, 64, 128), (100, 100, 100), (128, 64, 128), (128, 128, 64), (128, 768, 768), (128, 768, 3072), (128, 3072, 768), (128, 768, 50257),
    (197, 768, 2304), (256, 256, 256), (512, 512, 512), (512, 64, 512), (512, 512, 64), (512, 16384, 512), (1024, 128, 128),
    (1024, 768, 3072), (1024, 1024, 1024), (1536, 1536, 1536), (2000, 2000, 2000), (2048, 2048, 2048), (3000, 17, 3000), (4096, 64, 64),
    (4096, 256, 256), (8192, 128, 128), (60000, 784, 128), (60000, 128, 10)]
ROUNDS, SECONDS = 9, 0.02


def with_constant(b):
    import keel
    return lambda a: keel.matmul(a, b)


def serve():
    """Answers each line by the processor time of a run. A line is a shape and whether b is a constant, or empty: the same product again."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    sys.path.insert(0, str(Path(os.environ.get("KEEL_BUILD", ROOT / "build" / "release")) / "python"))
    import keel
    import numpy as np
    run, runs = None, 1
    for line in sys.stdin:
        if line.strip():
            m, k, n, constant = map(int, line.split())
            a, b = (keel.array(np.ones(dims, np.float32)) for dims in ((m, k), (k, n)))
            product = keel.function(with_constant(b) if constant else keel.matmul)
            run = (lambda: product(a)) if constant else (lambda: product(a, b))
            run()
            runs = 1
        before = time.process_time()
        for _ in range(runs):
            run()
        took = (time.process_time() - before) / runs
        runs = max(1, min(2000, round(SECONDS / max(took, 1e-6))))
        print(took, flush=True)


def ask(side, line):
    side.stdin.write(line + "\n")
    side.stdin.flush()
    return float(side.stdout.readline())


def percents(isa):
    """Time of the own loops in percent of oneDNN's: the median of rounds, each of both in turn, as others may use the cores."""
    sides = [subprocess.Popen([sys.executable, __file__, "--worker"], env=os.environ | {"KEEL_CPU_ISA": isa, "KEEL_CPU_PRODUCTS": side},
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for side in ("own", "onednn")]
    lines = []
    for m, k, n in SHAPES:
        lines.append([])
        for constant in (0, 1):
            for side in sides:
                ask(side, f"{m} {k} {n} {constant}")
                ask(side, "")
            ratios = [ask(sides[0], "") / ask(sides[1], "") for _ in range(ROUNDS)]
            lines[-1].append(round(100 * statistics.median(ratios)))
        print(isa, m, k, n, *lines[-1], flush=True)
    for side in sides:
        side.stdin.close()
        side.wait()
    return lines


def main(isas):
    info = Path("/proc/cpuinfo").read_text()
    model = next(line.split(":")[1].strip() for line in info.splitlines() if line.startswith("model name"))
    chip = "Intel" if "GenuineIntel" in info else "Amd"
    starts = {isa: (f"{{Chip::k{chip}, Isa::{ISAS[isa]},", f"// {isa}, {chip.lower()}:") for isa in isas}
    lines = re.sub(r",\s+(?=[{\d])", ", ", TABLE.read_text()).replace("}, {", "},\n{").splitlines()
    kept = [line.strip() for line in lines if not any(line.strip().startswith(start) for start in starts.values())]
    for isa in isas:
        kept.append(f"{starts[isa][1]} {model}, {datetime.date.today()}")
        kept += [f"{starts[isa][0]} {m}, {k}, {n}, {varying}, {constant}}}," for (m, k, n), (varying, constant) in zip(SHAPES, percents(isa))]
    TABLE.write_text("\n".join(kept) + "\n")


if __name__ == "__main__":
    serve() if sys.argv[1:] == ["--worker"] else main(sys.argv[1:] or list(ISAS))
