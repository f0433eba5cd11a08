"""Mutants of Keel's own passes are detected: by random graphs, single fragments and the known cases of tests/passes.
explained.txt lists mutants without an observable effect, each with its reason; they are skipped."""
import os
import time

import pytest
from mutants_run import Trial, explained, known_cases, report

COUNT, SEEDS = 100, 60


@pytest.mark.skipif("KEEL_SANITIZE" in os.environ, reason="forks of a process under a sanitizer are slow")
def test_mutants_are_seen(capsys):
    begin = time.monotonic()
    trial = Trial(range(SEEDS), list(known_cases()))
    numbers = trial.switch.sample(COUNT, explained())
    found = trial.try_all(numbers, os.cpu_count() or 1)
    lines = list(report(trial, found, time.monotonic() - begin))
    with capsys.disabled():
        print(f" [{lines[0]}] ", end="")
    known = explained(still_open=True)
    left = [n for n, both in found.items() if not any(both) and trial.switch.names[n] not in known]
    assert len(left) <= COUNT * 5 // 100, "\n".join(lines)
    assert sum(bool(graphs) for graphs, _ in found.values()) >= COUNT * 4 // 10, "\n".join(lines)


def test_explained_mutants_exist():
    """Each line of explained.txt names an existing mutant."""
    from mutants_run import Switch
    names = set(Switch().names.values())
    assert [name for name in {**explained(), **explained(still_open=True)} if name not in names] == []
