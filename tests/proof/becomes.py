"""The expected result for a single fragment: `becomes(oracle, graph, wanted)` compares the remaining ops with the expectation of
bait.py."""
import re
from collections import Counter

from oracle import Different

PASSES = "-layout,-epilogue,-map"  # off: these move ops into bodies


def ops_of(text):
    """The ops of @main, without those of its bodies."""
    main = text[text.index("fn @main("):].split("\n}")[0]
    return re.findall(r"(?m)^  (?:[^ ].* = )?(\w+)\(", main)


def elementwise(ops):
    """Names of ops that compute each float from the floats at the same index, according to their patterns."""
    for name, op in ops.items():
        ins, outs = ([o["pattern"] for o in op[k]] for k in ("operands", "results"))
        simple = all(i in ("T[P..]", "T[Q..]") for i in ins) and outs in (["T[P..]"], ["T[bcast(P, Q)..]"])
        if simple and ins and not op["attributes"] and "f32" in op["types"]["T"] and name not in ("identity", "stop_gradient"):
            yield name, len(ins)


def grouped(oracle, name, operands):
    """Elementwise ops are grouped into one call."""
    text = f"keel 1\nfn @main(x: f32[3], y: f32[3]) {{\n  a = tanh(x)\n  b = {name}({', '.join('ay'[:operands])})\n  return b\n}}\n" \
        "entry main = @main (x, y)\n"
    made = oracle.optimized(text, "claims:0", passes="map")
    if ops_of(made) != ["call"]:
        raise Different(f"{name} joins no group: {made}")


def becomes(oracle, graph, wanted):
    made = oracle.optimized(graph.text(), "cpu", level=2, passes=PASSES)
    ops, listed = ops_of(made), wanted.lstrip("!~").split()
    found = set(listed) <= set(ops) if wanted.startswith("~") else not set(listed) & set(ops) if wanted.startswith("!") \
        else Counter(listed) == Counter(ops)
    if not found:
        raise Different(f"expected {wanted!r}, got {' '.join(ops)!r}\n{made}")
    return made
