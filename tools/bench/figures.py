"""Statistics of the comparisons, and their tables."""
import math

NAMES = {"keel": "Keel", "keel_python": "Keel from Python", "keel_function": "as a function", "numpy": "NumPy",
         "onnxruntime": "ONNX Runtime", "torch": "PyTorch", "torch_compiled": "PyTorch compiled",
         "jax": "JAX", "tensorflow": "TensorFlow"}


def interval(values):
    """95 % interval of the median: the k-th smallest and largest, k from the binomial distribution."""
    ordered, n, k, below = sorted(values), len(values), 0, 0.0
    while (below := below + math.comb(n, k) / 2**n) <= 0.025:
        k += 1
    return ordered[max(0, k - 1)], ordered[min(n - 1, n - k)]


def time_text(ms):
    if ms >= 1:
        return f"{ms:.3g} ms"
    return f"{1e3 * ms:.3g} µs" if ms >= 1e-3 else f"{1e6 * ms:.3g} ns"


def ratio_text(r):
    return f"{r['ratio']:.2f} [{r['ratio_low']:.2f}, {r['ratio_high']:.2f}]" if "ratio" in r else "–"


def limit_text(r):
    if "limit_ms" in r:
        return f", limit {time_text(r['limit_ms'])}"
    return f", limit {r['limit_bytes']:,} bytes" if "limit_bytes" in r else ""


def show(r):
    """One result as a line."""
    if "error" in r:
        return f"{r['what']:42} failed: {r['error']}"
    if "bytes" in r:
        text = f"{r['bytes']:,} bytes"
    else:
        text = "  ".join(f"{NAMES[n]} {time_text(t)}" for n, t in r["ms"].items())
        text += f"  ratio {ratio_text(r)}" if "ratio" in r else ""
        text += f"  from Python {r['from_python']:.2f}" if "from_python" in r else ""
    if peak := r.get("peak_bytes"):
        text += "  peak " + ", ".join(f"{NAMES[n]} {b / 1e6:.0f} MB" for n, b in peak.items() if n in ("keel", "onnxruntime"))
    text += "".join(f"  no {n}: {why}" for n, why in r.get("missing", {}).items())
    missed = not r.get("met", True) or r.get("ratio", 0) > 1
    return f"{r['what']:42} {text}{limit_text(r)}{'   MISSED' if missed else ''}"


def markdown(rows, sides):
    """Times of all sides; then peak memory of Keel and ONNX Runtime; then the figures of Keel alone."""
    timed = [r for r in rows if "ms" in r]
    lines = [f"| workload | {' | '.join(NAMES[s] for s in sides)} | ratio to the best peer [95 %] |",
             "| --- |" + " --- |" * (len(sides) + 1)]
    for r in timed:
        cells = [time_text(r["ms"][s]) if s in r["ms"] else "not measured" for s in sides]
        lines.append(f"| {r['what']} | {' | '.join(cells)} | {ratio_text(r)} |")
    lines += ["", "| peak memory of a process | Keel | ONNX Runtime |", "| --- | --- | --- |"]
    for r in timed:
        if peak := r.get("peak_bytes"):
            cells = [f"{peak[s] / 1e6:.0f} MB" if s in peak else "not measured" for s in ("keel", "onnxruntime")]
            lines.append(f"| {r['what']} | {' | '.join(cells)} |")
    lines += ["", *(f"- {show(r).strip()}" for r in rows if "ms" not in r)]
    return "\n".join(lines) + "\n"
