"""Graphs that once failed: kept/*.keelt, each with its seed and fault in the first lines. `keep` writes one, `all_kept` reads
them."""
from pathlib import Path

from checks import CHECKS, failure
from graphs import read
from oracle import Base
from shrink import shrink, with_types

FOLDER = Path(__file__).resolve().parent / "kept"


def all_kept():
    return sorted(FOLDER.glob("*.keelt"))


def load(context, path):
    return with_types(context, read(path.read_text()))


def cause(oracle, graph, checks=CHECKS):
    """The fault of the graph, as a word and in full; None if it is correct."""
    from keel_abi import KeelError
    try:
        return failure(Base(oracle, graph), checks)
    except KeelError:
        return None


def kind(text):
    """The check that failed, and the message without details of the graph."""
    check, _, rest = text.partition(": ")
    return check, rest.partition(":")[0][:24]


def smaller(new_oracle, graph, text):
    check = next(c for c in CHECKS if c.__name__ == kind(text)[0])

    def fails(candidate):
        found = cause(new_oracle(), candidate, [check])
        return found is not None and kind(found) == kind(text)
    return shrink(graph, fails)


def keep(graph, text, folder=FOLDER, name=None):
    folder.mkdir(exist_ok=True)
    path = folder / f"{name or f'seed{graph.seed}'}.keelt"
    lines = "\n".join(f"# {line}" for line in [f"seed {graph.seed}", *text.split("\n")[:1]])
    path.write_text(f"{lines}\n{graph.text()}")
    return path
