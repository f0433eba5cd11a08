"""Shared by the examples: the command line, the plot of the loss, and the comparison with the goal."""
import argparse
import time
from pathlib import Path

from matplotlib.figure import Figure


def arguments(about, /, **defaults):
    """Parses the command line: --out DIR, and an option for each default, of the default's type."""
    parser = argparse.ArgumentParser(description=about.split("\n")[0])
    parser.add_argument("--out", type=Path, default=Path("."), help="the output folder (default: the current folder)")
    for name, value in defaults.items():
        parser.add_argument("--" + name, type=type(value), default=value, help=f"default: {value}")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    return args


def draw(path, title, losses, unit="loss"):
    """losses: {name: (steps, values)}; one line per name."""
    figure = Figure(figsize=(6, 4), layout="constrained")
    axes = figure.add_subplot(title=title, xlabel="step", ylabel=unit)
    for name, (steps, values) in losses.items():
        axes.plot(steps, values, label=name, linewidth=1)
    axes.set_ylim(bottom=0)
    axes.legend()
    figure.savefig(path, dpi=120)


class Clock:
    """Seconds since its construction."""

    def __init__(self):
        self._begin = time.perf_counter()

    def __str__(self):
        return f"{time.perf_counter() - self._begin:.1f} s"


def judge(name, what, got, wanted, least=True):
    """The exit code: 0 if the goal is reached. least: larger is better."""
    reached = got >= wanted if least else got <= wanted
    print(f"{name}: {what} {got:.4f}, expected {'at least' if least else 'at most'} {wanted}: {'reached' if reached else 'MISSED'}")
    return 0 if reached else 1
