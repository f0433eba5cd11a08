"""What must become of a fragment that stands alone: `becomes(oracle, graph, wanted)` holds the ops that are left against
what bait.py says."""
from collections import Counter

from keel_text import read
from oracle import Different

PASSES = "-layout,-epilogue,-map"  # what these group is written in bodies


def ops_of(text):
    return [op for _, op, *_ in read(text)[0]["main"].nodes]


def becomes(oracle, graph, wanted):
    made = oracle.optimized(graph.text(), "cpu", level=2, passes=PASSES)
    ops, listed = ops_of(made), wanted.lstrip("!~").split()
    found = set(listed) <= set(ops) if wanted.startswith("~") else not set(listed) & set(ops) if wanted.startswith("!") \
        else Counter(listed) == Counter(ops)
    if not found:
        raise Different(f"wanted {wanted!r}, got {' '.join(ops)!r}\n{made}")
    return made
