"""The measuring host: processor, instruction set, load, Keel's commit and the peers' versions."""
import datetime
import importlib.metadata
import os
import subprocess
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


def host():
    model, kind = cpu()
    return {"date": datetime.date.today().isoformat(), "cpu": model, "isa": kind, "cores": len(os.sched_getaffinity(0)),
            "load": os.getloadavg()[0], "commit": commit(), "peers": versions()}
