"""Where the time goes: a file for Perfetto (ui.perfetto.dev) and Chrome's tracing.

    with keel.profile("out.json"):
        with keel.span("epoch 3"):
            step(x, y)
"""
import contextlib
import json
import os

from . import _keel


@contextlib.contextmanager
def profile(path, runs=True):
    """Writes what the process does in the block, on all threads: loading, traces and why code was traced again, plans with
    each pass, and each run, eager op and launch (runs=False: not these). Also a decorator.

    The file is there when the block ends. A launch takes about a microsecond longer. Raises PreconditionError where
    another profile is being taken, NotFoundError or InvalidError for a path that cannot be written.
    """
    _keel.timeline_begin(os.fspath(path), runs)
    try:
        yield
    finally:
        _keel.timeline_end()


@contextlib.contextmanager
def span(name, track="program", **facts):
    """Marks the block in a profile, on the track of that name, with facts to show; nothing where none is taken."""
    begin = _keel.timeline_now()
    try:
        yield
    finally:
        _keel.timeline_span(track, name, begin, json.dumps(facts) if facts else None)
