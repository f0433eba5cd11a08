"""Timelines: a file for Perfetto (ui.perfetto.dev) and Chrome's tracing.

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
    """Records the process in the block, on all threads: loading, traces and their reasons, plans with each pass, and each
    run, eager op and launch (runs=False: without these). Also a decorator.

    The file is complete when the block ends. A launch takes about a microsecond longer. Raises PreconditionError during
    another profile, NotFoundError or InvalidError for a path that cannot be written.
    """
    _keel.timeline_begin(os.fspath(path), runs)
    try:
        yield
    finally:
        _keel.timeline_end()


@contextlib.contextmanager
def span(name, track="program", **facts):
    """Marks the block in a profile, on the track of that name, with facts to show; no effect without a profile."""
    begin = _keel.timeline_now()
    try:
        yield
    finally:
        _keel.timeline_span(track, name, begin, json.dumps(facts) if facts else None)
