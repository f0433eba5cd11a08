"""The measuring host: processor, instruction set, load, other busy processes, Keel's commit and the peers' versions."""
import datetime
import importlib.metadata
import os
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PEERS = {"onnxruntime": "onnxruntime", "torch": "torch", "jax": "jax", "tensorflow": "tensorflow-cpu", "ncnn": "ncnn"}  # module: package
CLASSES = [("amx_tile", "AVX-512 with AMX"), ("avx512_vnni", "AVX-512 with VNNI"), ("avx512f", "AVX-512"), ("avx2", "AVX2")]
LIMITS = ("KEEL_CPU_ISA", "ONEDNN_MAX_CPU_ISA")  # environment variables that lower it


def cpu():
    """-> the processor's name and its instruction set."""
    lines = dict(line.split(":", 1) for line in Path("/proc/cpuinfo").read_text().split("\n\n")[0].splitlines() if ":" in line)
    fields = {k.strip(): v.strip() for k, v in lines.items()}
    flags = fields.get("flags", "").split()
    kind = next((name for flag, name in CLASSES if flag in flags), "no AVX2")
    limits = "".join(f", {name}={os.environ[name]}" for name in LIMITS if name in os.environ)
    return fields.get("model name", "an unknown CPU"), kind + limits


def commit():
    done = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty", "--exclude", "*"], capture_output=True, text=True)
    return done.stdout.strip() or "of no commit"


def versions():
    found = {}
    for module, package in PEERS.items():
        try:
            found[module] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            pass
    return found


def processor_ticks():
    """-> by process, its name and the ticks of processor time that it had; and the ticks that this machine's host kept for others."""
    each = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, fields = stat.read_text().split("(", 1)[1].rsplit(")", 1)
        except OSError:
            continue  # it has ended
        each[int(stat.parent.name)] = name, sum(map(int, fields.split()[11:13]))
    return each, int(Path("/proc/stat").read_text().split()[8])


def busy(seconds=0.5):
    """-> {other process of this machine, or "stolen by the host": its share of a core now}, from a twentieth on."""
    (before, stolen), begin = processor_ticks(), time.monotonic()
    time.sleep(seconds)
    (after, stolen_after), core = processor_ticks(), (time.monotonic() - begin) * os.sysconf("SC_CLK_TCK")
    shares = {"stolen by the host": (stolen_after - stolen) / core}
    for pid, (name, ticks) in after.items():
        if pid != os.getpid() and pid in before:
            shares[name] = shares.get(name, 0) + (ticks - before[pid][1]) / core
    return {name: round(share, 2) for name, share in sorted(shares.items(), key=lambda s: -s[1]) if share >= 0.05}


def host():
    model, kind = cpu()
    return {"date": datetime.date.today().isoformat(), "cpu": model, "isa": kind, "cores": len(os.sched_getaffinity(0)),
            "load": os.getloadavg()[0], "busy": busy(), "commit": commit(), "peers": versions()}
