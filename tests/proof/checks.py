"""The checks of a graph: CHECKS, each a function of the base that raises Different, or returns the text that it checked.

`rewrites(base)` are the checks that depend on the passes alone and run on the reference device; the others run on every device.
"""
import tempfile
from pathlib import Path

from compare import closely, exactly, same_failure
from gradients import gradients
from oracle import Different, wide


def exact(base, check, device, passes):
    o = base.oracle
    made = o.optimized(base.text, device, passes=",".join(passes))
    if made not in (plain(base), base.normal.get(check)):
        for kind, size in base.exact_runs:
            exactly(base.outcome(kind, size), o.run_text(made, "reference", base.arrays(kind, size)), made)
    return made


def plain(base):
    if "plain" not in base.texts:
        base.texts["plain"] = base.oracle.context.parse(base.text).to_text()
    return base.texts["plain"]


def exact_passes(base):
    return exact(base, "exact_passes", "reference", base.oracle.exact)


def grouping_passes(base):
    """For a device that accepts calls; only groups nodes, so the bits are the same."""
    passes = [p["name"] for p in base.oracle.passes if p["phase"] == "lower" and p["name"] != "compose"]
    return exact(base, "grouping_passes", f"claims:{base.graph.seed % 3}", [*base.oracle.exact, *passes])


def all_passes(base, device="cpu", tiny=False):
    """Runs on the reference device, to check the passes rather than the device's impls."""
    o = base.oracle
    text = base.wide if tiny else base.text
    made = o.optimized(text, device, level=2)
    if made in (plain(base), base.normal.get("all_passes_wide" if tiny else "all_passes")) or not (tiny or base.comparable):
        return made
    for kind, size in base.close_runs:
        arrays = wide(base.arrays(kind, size)) if tiny else base.arrays(kind, size)
        expected = base.outcome(kind, size, "wide") if tiny else base.outcome(kind, size)
        closely(base, expected, o.run_text(made, "reference", arrays), made, kind, size, tiny=tiny)
    return made


def all_passes_wide(base):
    """In float64 a wrong scale, axis or epsilon exceeds the bound by far."""
    return all_passes(base, tiny=True) if base.has_wide else ""


def round_trips(base):
    context, text = base.oracle.context, plain(base)
    if (again := context.parse(text).to_text()) != text:
        raise Different(f"parse(print(g)) is another graph\n{text}\n-- again\n{again}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "g.keel"
        context.parse(text).save(path)
        if (again := context.load(path).to_text()) != text:
            raise Different(f"decode(encode(g)) is another graph\n{text}\n-- again\n{again}")
        return text


def devices(base):
    """Each level on each device, against the original graph on that device and on the reference. NaN and infinities that the
    device itself produces (it may multiply padding by them) are tested in tests/conformance."""
    o = base.oracle
    if not base.comparable:
        return
    for device in [d for d in o.context.devices() if not d.startswith("claims")]:
        for kind, size in base.close_runs:
            try:
                levels(base, device, kind, size)
            except Different as e:
                raise Different(f"{device}, {kind} inputs, b = {size}, {e}") from e


def levels(base, device, kind, size):
    arrays, expected = base.arrays(kind, size), base.outcome(kind, size)
    plainly = base.oracle.run_text(base.text, device, arrays)
    same_failure(expected, plainly, base.text)
    for level in (0, 1, 2):
        got = plainly if level == 0 else base.oracle.run_text(base.text, device, arrays, level)
        try:
            if same_failure(plainly, got, base.text) and not expected.failure:
                first, others = (plainly, [expected]) if level or kind != "plain" else (expected, [])
                closely(base, first, got, base.text, kind, size, others, finite=not level)
        except Different as e:
            raise Different(f"level {level}: {e}") from e


def lanes(base):
    """Concurrent launches give the same result as a serial run with one thread."""
    for kind, size in base.exact_runs[:2]:
        off, on = (base.oracle.run_text(base.text, "cpu", base.arrays(kind, size), level=2, lanes=how, threads=n)
                   for how, n in (("off", 1), ("all", 2)))
        exactly(off, on, base.text)


PASSES = [exact_passes, grouping_passes, all_passes, all_passes_wide]
CHECKS = [*PASSES, round_trips, gradients, devices, lanes]


def failure(base, checks=CHECKS):
    """Returns the name of the first failing check and its message, or None."""
    for check in checks:
        try:
            check(base)
        except Different as e:
            return f"{check.__name__}: {e}"
    return None
