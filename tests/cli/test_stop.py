"""A time limit and Ctrl-C stop a run with exit code 6 and an ordinary error."""
import json
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from command import ADD, command

STEPS = 3000


@pytest.fixture
def long_graph(tmp_path):
    """Three thousand additions: with ten million elements, far longer than any test waits."""
    lines = ["keel 1", "", "fn @main(x: f32[n]) -> f32[n] {", "  y0 = add(x, x)"]
    lines += [f"  y{i} = add(y{i - 1}, x)" for i in range(1, STEPS)]
    lines += [f"  return y{STEPS - 1}", "}", "", "entry main = @main (x) -> (y)", ""]
    path = tmp_path / "long.txt"
    path.write_text("\n".join(lines))
    return str(path)


@pytest.mark.parametrize("device", ["cpu", "reference"])
def test_a_time_limit_stops_a_run(keel, long_graph, device):
    got = keel("run", long_graph, "-d", device, "-i", "x=f32[10000000]=1", "--time-limit", "50", code=6)
    assert got.err.startswith('keel run: stopped after "y')
    assert "the time limit is 50 ms" in got.err
    assert keel("run", long_graph, "-d", device, "-i", "x=f32[1]=1", "--time-limit", "60000").out == (
        f"y: f32[1]\n[{STEPS + 1}]\n")


def test_a_time_limit_must_be_a_time(keel, long_graph):
    for bad in ("0", "-5", "soon"):
        assert "--time-limit" in keel("run", long_graph, "-i", "x=f32[1]=1", "--time-limit", bad, code=2).err


@pytest.mark.parametrize("subcommand", ["run", "bench"])
def test_an_interrupt_stops_a_run(long_graph, subcommand):
    """Ctrl-C before the run begins ends the process, so it is repeated until it hits a run. A shell that runs the tests in the
    background makes them ignore the signal, and the command respects that."""
    for wait in (0.3, 1, 3, 10):
        process = subprocess.Popen([command(), subcommand, long_graph, "-i", "x=f32[10000000]=1"],
                                   stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
                                   preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        time.sleep(wait)
        process.send_signal(signal.SIGINT)
        err = process.communicate(timeout=60)[1]
        if process.returncode != -signal.SIGINT:
            break
    assert process.returncode == 6, err
    assert "by Ctrl-C" in err and "keel_" not in err


def test_an_interrupt_leaves_what_compare_found_by_then(tmp_path):
    """Each run prints when it begins: Ctrl-C hits the third of three devices, and the second has its row."""
    path = tmp_path / "g.txt"
    path.write_text("""keel 1

fn @main(x: f32[]) {
  print(x){format="begun {}"}
  y = while(x){carry=1}
    test(a) {
      more = less(a, 4000000)
      yield more
    }
    body(a) {
      next = add(a, 1)
      yield next
    }
  return y
}

entry main = @main (x) -> (y)
""")
    for form in ([], ["--json"]):
        process = subprocess.Popen([command(), "compare", path, "-d", "cpu,cpu,reference", "-i", "x=0", *form], text=True,
                                   stderr=subprocess.PIPE, stdout=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
        begun = 0
        for line in process.stderr:
            begun += "begun" in line
            if begun == 3:
                break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 6 and "stopped by Ctrl-C after 1 of 2 devices" in err, (out, err)
        if form:
            told = json.loads(out)
            assert told["ok"] and [row["device"] for row in told["outputs"]] == ["cpu"]
        else:
            assert [line.split()[:2] for line in out.splitlines()[1:]] == [["y", "cpu"]] and out.split()[-1] == "ok"


@pytest.mark.parametrize("stop", ["limit", "Ctrl-C"])
def test_a_device_that_never_finishes_is_left_behind(tmp_path, stop):
    (tmp_path / "keel-null.so").symlink_to(Path(command()).parents[1] / "tests/devices/keel-null.so")
    (tmp_path / "add.txt").write_text(ADD)
    limit = ["--time-limit", "50"] if stop == "limit" else []
    process = subprocess.Popen([command(), "run", tmp_path / "add.txt", "-d", "null", "-i", "x=f32[3,2]=1", *limit],
                               env=os.environ | {"KEEL_PLUGIN_PATH": str(tmp_path), "NULL_HOLD": "1"}, text=True,
                               stderr=subprocess.PIPE, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))
    if stop == "Ctrl-C":
        time.sleep(2)
        process.send_signal(signal.SIGINT)
    err = process.communicate(timeout=60)[1]
    assert process.returncode == 6 and "before device null:0 had finished the work" in err, err
