"""A progress bar for long loops: progress, speed, remaining time and notes of the loop.

    for x, y in (bar := keel.progress(batches, label="train")):
        bar.note(loss=step(x, y))

tqdm draws the bar if it is installed (pip install keel-runtime[progress]). Without tqdm, or if stderr is not a terminal
(a file, a pipe), the loop runs without a bar.
"""
import sys


class Progress:
    """Made by progress(): an iterable over the same items."""

    def __init__(self, items, total, label):
        self._items, self._total, self._label = items, total, label
        self._said = ("", {})

    def __len__(self):
        return len(self._items) if self._total is None else self._total

    def __iter__(self):
        make = _bar_type() if sys.stderr and sys.stderr.isatty() else None
        if make is None:
            return iter(self._items)
        bar = make(self._items, total=self._total, desc=self._label, file=sys.stderr)
        bar.text = self._text
        return iter(bar)

    def note(self, text="", **facts):
        """The text after the bar from now on: note("warming up"), note(loss=0.25). Tensors among the facts are read when
        the bar is drawn, a few times per second, so that steps do not wait for them."""
        self._said = (text, facts)

    def _text(self):
        text, facts = self._said
        return ", ".join(([text] if text else []) + [f"{name} {_short(value)}" for name, value in facts.items()])


def _short(value):
    try:
        return f"{float(value):.4g}"
    except (TypeError, ValueError):
        return str(value)


def _bar_type():
    """tqdm with a text computed at drawing time; None if it is not installed."""
    try:
        from tqdm import tqdm
    except ImportError:
        return None

    class Bar(tqdm):
        text = str

        @property
        def format_dict(self):
            return {**super().format_dict, "postfix": self.text()}
    return Bar


def progress(items, total=None, label=None):
    """The items of an iterable, with a bar on stderr during iteration if stderr is a terminal and tqdm is installed.
    total: their number, if len(items) is unavailable. label: a text before the bar."""
    return Progress(items, total, label)
