"""`keel profile --program` and KEEL_TRACE: a program's traces, plans and runs. The programs are tests of the C++ SDK."""
import json
import os
import pathlib
import subprocess

BUILD = pathlib.Path(os.environ["KEEL_BUILD"])
FUNCTIONS = BUILD / "tests/sdk_test"
RETRACES = "--gtest_filter=*/Functions.TraceOncePerSignature/cpu"


def report(out):
    """The last JSON object of the output: the program prints too."""
    return json.loads(out[out.index('{"schema"'):])


def test_retraces_have_their_reasons(keel, tmp_path):
    r = report(keel("profile", "--json", "--program", FUNCTIONS, "--trace", "t.json", "--", RETRACES).out)
    assert [(t["call"], t["again"], t["reason"]) for t in r["traces"]] == [
        ("f(x0, x1)", False, "first call"), ("f(x0, x1)", True, "argument 0 was i32[2], now f32[1]")]
    assert r["exit"] == "0" and r["ms"] > 0
    plans = {p["name"]: p for p in r["planned"] if p["kind"] == "plan"}
    assert plans["f"]["count"] == 2
    assert {"inline", "map"} <= {p["name"] for p in r["planned"] if p["kind"] == "pass"}
    runs = {(t["track"], t["name"]): t["count"] for t in r["ran"] if t["kind"] == "run"}
    assert runs[("cpu:0", "f")] == 3
    events = json.loads((tmp_path / "t.json").read_text())
    again = [e for e in events if e.get("cat") == "retrace"]
    assert len(again) == 1 and again[0]["args"]["signature"] == "f(x0: f32[1], x1: f32[1]) -> f32[1]"


def test_the_summary_is_for_people_too(keel):
    out = keel("profile", "--program", FUNCTIONS, "--", RETRACES).out
    assert "ended with 0 after" in out and "argument 0 was i32[2], now f32[1]" in out and "ran on" in out


def test_launches_lie_in_their_runs(keel, tmp_path):
    keel("profile", "--program", FUNCTIONS, "--trace", "t.json", "--", RETRACES)
    on = [e for e in json.loads((tmp_path / "t.json").read_text()) if e["ph"] == "X"]
    runs = [e for e in on if e["cat"] == "run" and e["name"] == "f"]
    launches = [e for e in on if "impl" in e["args"]]
    inside = [sum(r["ts"] <= e["ts"] and e["ts"] + e["dur"] <= r["ts"] + r["dur"] + 0.01 for r in runs) for e in launches]
    assert len(runs) == 3 and sum(inside) >= 3 and set(inside) <= {0, 1}


def test_any_program_writes_a_trace(tmp_path):
    done = subprocess.run([FUNCTIONS, RETRACES], env={**os.environ, "KEEL_TRACE": str(tmp_path / "t.json")}, capture_output=True)
    kinds = {e.get("cat") for e in json.loads((tmp_path / "t.json").read_text())}
    assert done.returncode == 0 and {"trace", "retrace", "pass", "plan", "run", "plugin"} <= kinds


def test_a_trace_that_cannot_be_written_is_a_warning(tmp_path):
    env = {**os.environ, "KEEL_TRACE": str(tmp_path / "no/t.json")}
    done = subprocess.run([FUNCTIONS, RETRACES], env=env, capture_output=True, text=True)
    assert done.returncode == 0
    assert "KEEL_TRACE: cannot write the timeline" in done.stdout + done.stderr


def test_a_trace_that_is_lost_at_the_end_is_told():
    done = subprocess.run([FUNCTIONS, RETRACES], env={**os.environ, "KEEL_TRACE": "/dev/full"}, capture_output=True, text=True)
    assert done.returncode == 0
    assert 'keel: cannot write the timeline "/dev/full": No space left on device' in done.stderr


def test_the_exit_code_is_that_of_the_program(keel):
    r = report(keel("profile", "--json", "--program", "/bin/sh", "--", "-c",
                    f"{FUNCTIONS} {RETRACES} > /dev/null; exit 3", code=3).out)
    assert r["exit"] == "3" and r["traces"]


def test_what_is_no_program_is_refused(keel, graph):
    assert "cannot run ./nope" in keel("profile", "--program", "./nope", code=3).err
    assert "did not write a complete timeline" in keel("profile", "--program", "/bin/true", code=3).err
    assert "require --program" in keel("profile", graph(), "more", code=2).err
