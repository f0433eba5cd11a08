"""Shared by the tests of this folder: the import path of helpers, and a check that no rule of the contract is broken."""
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "conformance"), str(HERE.parent / "python"), str(HERE.parents[1] / "tools")]


@pytest.fixture(autouse=True)
def rules():
    """Restores the settings afterwards, and checks that the device saw no broken rule and nothing of it is leaked."""
    import gc

    import hostile
    both = (hostile.PLUGIN, hostile.LACKING)
    for plugin in both:
        hostile.put(plugin, violations=0)
    yield
    hostile.fail()
    hostile.put(drop_wait=0, early_free=0, late_read=0, lost=0, delay=0, peers=1, shared=1, downloads=2, wraps=1, params=0, records=1, memory=256 << 20, max_segment=0)
    gc.collect()
    alive = ("segments", "wrapped", "queues", "devices", "states", "recordings")
    for plugin in both:
        assert hostile.get("violations", plugin) == 0
        assert {name: hostile.get(name, plugin) for name in alive} == dict.fromkeys(alive, 0)
