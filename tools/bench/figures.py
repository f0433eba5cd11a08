"""Statistics of the comparisons, and their tables."""
import math
import statistics

NAMES = {"keel": "Keel", "keel_python": "Keel from Python", "keel_function": "as a function", "numpy": "NumPy", "keel_import": "Keel, from ONNX",
         "onnxruntime": "ONNX Runtime", "torch": "PyTorch", "torch_compiled": "PyTorch compiled", "jax": "JAX", "tensorflow": "TensorFlow",
         "tensorflow_graph": "TensorFlow graph", "tensorflow_xla": "TensorFlow XLA"}
MEMORY = {"keel": "Keel, from a Keel file", "keel_import": "Keel, from ONNX", "onnxruntime": "ONNX Runtime, from ONNX"}
# An interval that spans a larger factor is not settled. No table is written if more than so many of its rows are not.
MOST_SPREAD, MOST_UNSETTLED = 1.3, 0.25
# Text for the fastest variant of a peer in a table cell.
VARIANTS = {"onnxruntime_composite": "composite ops", "onnxruntime_contrib": "its own ops", "torch": "eager", "torch_compiled": "compiled",
            "torch_tuned": "tuned", "jax_constants": "constants", "tensorflow_frozen": "frozen", "tensorflow_xla": "XLA",
            "torch_last": "eager, channels last", "torch_compiled_last": "compiled, channels last", "jax_last": "channels last"}


def interval(values):
    """95 % interval of the median: the k-th smallest and largest, k from the binomial distribution."""
    ordered, n, k, below = sorted(values), len(values), 0, 0.0
    while (below := below + math.comb(n, k) / 2**n) <= 0.025:
        k += 1
    return ordered[max(0, k - 1)], ordered[min(n - 1, n - k)]


def ratio_to_best(times, ours):
    """The fastest other side, the median of the ratios of each round to it, and the interval of that median. times: by side, one per round."""
    best = min((side for side in times if side != ours), key=lambda side: statistics.median(times[side]))
    ratios = [a / b for a, b in zip(times[ours], times[best], strict=True)]
    return best, statistics.median(ratios), interval(ratios)


class UnsettledError(RuntimeError):
    """So much varied between the rounds that a table would mislead."""


def unsettled(low, high):
    return high > MOST_SPREAD * low


def refuse_unsettled(intervals):
    """intervals: by row's name, the interval of its ratio."""
    wide = [f"{name} [{low:.2f}, {high:.2f}]" for name, (low, high) in intervals.items() if unsettled(low, high)]
    if len(wide) > MOST_UNSETTLED * len(intervals):
        raise UnsettledError(f"no table: the ratios of {len(wide)} of {len(intervals)} rows vary by more than a factor of {MOST_SPREAD} from round to "
                        f"round ({', '.join(wide[:4])}{', ...' if len(wide) > 4 else ''}). Measure again with fewer busy processes, with "
                        "--threads 1 --cpu-time, or with more --rounds")


def medians_text(times):
    return "  ".join(f"{side} {time_text(1e3 * statistics.median(each))}" for side, each in times.items())


def time_text(ms):
    if ms >= 1000:
        return f"{ms / 1e3:.3g} s"
    if ms >= 1:
        return f"{ms:.3g} ms"
    return f"{1e3 * ms:.3g} µs" if ms >= 1e-3 else f"{1e6 * ms:.3g} ns"


def ratio_text(r):
    if "ratio" not in r:
        return "–"
    ratio, low, high = (f"{r[k]:.2f}" if r[k] >= 0.1 else f"{r[k]:.2g}" for k in ("ratio", "ratio_low", "ratio_high"))
    return f"{ratio} [{low}, {high}]"


def verdict(r):
    """The ratio with its peer; marks rows where the peer is ahead and rows without a significant difference."""
    if "ratio" not in r:
        return "–"
    ahead = ", **ahead**" if r["ratio_low"] > 1 else ", level" if r["ratio_high"] >= 1 else ""
    ahead += ", not settled" if unsettled(r["ratio_low"], r["ratio_high"]) else ""
    return f"{ratio_text(r)} of {NAMES[r['best']]}{ahead}"


def cell(r, side):
    if side not in r["ms"]:
        return "not measured"
    variant = VARIANTS.get(r.get("variants", {}).get(side, ""))
    return time_text(r["ms"][side]) + (f" ({variant})" if variant else "")


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
        text = "  ".join(f"{NAMES[n]} {cell(r, n)}" for n in r.get("ms", {}))
        text += f"  ratio {ratio_text(r)}" if "ratio" in r else ""
        text += f"  from Python {r['from_python']:.2f}" if "from_python" in r else ""
    if peak := r.get("peak_bytes"):
        text += "  peak " + ", ".join(f"{what} {peak[n] / 1e6:.0f} MB" for n, what in MEMORY.items() if n in peak)
    text += "".join(f"  no {n}: {why}" for n, why in r.get("missing", {}).items())
    missed = not r.get("met", True) or r.get("ratio", 0) > 1
    return f"{r['what']:42} {text}{limit_text(r)}{'   MISSED' if missed else ''}"


def table(rows, sides, ours):
    """A table of the times of all sides, the ratio to the best peer and the number of rounds; UnsettledError."""
    refuse_unsettled({r["what"]: (r["ratio_low"], r["ratio_high"]) for r in rows if "ratio" in r})
    lines = [f"| workload | Keel | {' | '.join(NAMES[s] for s in sides)} | of the best peer [95 %] | rounds |",
             "| --- |" + " --- |" * (len(sides) + 3)]
    for r in rows:
        mine = ours if ours in r["ms"] else "keel"
        cells = [cell(r, s) for s in (mine, *sides)]
        lines.append(f"| {r['what']} | {' | '.join(cells)} | {verdict(r)} | {r.get('rounds', '–')} |")
    return lines


def memory(rows):
    peaks = [r for r in rows if r.get("peak_bytes")]
    yield from [f"| peak memory of a process | {' | '.join(MEMORY.values())} |", "| --- | --- | --- | --- |"] if peaks else []
    for r in peaks:
        cells = [f"{r['peak_bytes'][s] / 1e6:.0f} MB" if s in r["peak_bytes"] else "not measured" for s in MEMORY]
        yield f"| {r['what']} | {' | '.join(cells)} |"


def markdown(report, sides, ours="keel_python"):
    """Markdown for a JSON report of bench.py: machine and settings, times, notes, peak memory, figures of Keel alone."""
    rows = report["results"]
    timed = [r for r in rows if "best" in r]
    parts = [[summary(report)], table(timed, sides, ours) if timed else [], [f"- {r['what']}: {r['note']}" for r in timed if "note" in r],
             list(memory(rows)), [f"- {show(r).strip()}" for r in rows if "best" not in r and "peak_bytes" not in r]]
    return "\n\n".join("\n".join(lines) for lines in parts if lines) + "\n"


def host_text(host):
    """The machine and its other busy processes."""
    others = ", ".join(f"{name} {100 * share:.0f} %" for name, share in host.get("busy", {}).items())
    return (f"{host['cores']} cores of {host['cpu']} ({host['isa']}), load {host['load']:.1f} at the start"
            f"{f' ({others})' if others else ''}")


def summary(report):
    """One sentence with date, machine, settings and versions of a report."""
    host = report["host"]
    peers = ", ".join(f"{NAMES.get(n, n)} {v}" for n, v in host["peers"].items())
    clock = "processor time" if report.get("cpu_time") else "all sides in turn"
    return (f"{host['date']}, {host_text(host)}, {report['threads']} thread{'s' * (report['threads'] > 1)}, {clock}, Keel {host['commit']}, {peers}.")
