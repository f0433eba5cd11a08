"""keel.profile and keel.span: contents of the file, tracks, and write errors."""
import json
import threading

import keel
import pytest


def events(path, *kinds):
    return [e for e in json.loads(path.read_text()) if e["ph"] == "X" and e.get("cat") in kinds]


def test_a_profile_has_traces_passes_and_launches(tmp_path):
    square = keel.function(lambda x: keel.exp(x) @ x, name="square")
    with keel.profile(tmp_path / "out.json"):
        with keel.span("both", track="mine", epoch=3):
            square(keel.zeros((2, 2)))
            square(keel.zeros((3, 3)))
        keel.array([1., 2.]) + 1
    first, again = events(tmp_path / "out.json", "trace", "retrace")
    assert (first["cat"], again["cat"]) == ("trace", "retrace")
    assert again["args"]["reason"] == "argument x was f32[2, 2], now f32[3, 3]"
    plans = [e["name"] for e in events(tmp_path / "out.json", "plan")]  # also of eager ops that are new in this process
    assert len(events(tmp_path / "out.json", "pass")) > 5 and plans.count("square") == 2
    launched = {e["args"]["op"] for e in events(tmp_path / "out.json", "matmul", "exp")}
    assert launched == {"matmul", "exp"} and "add" in {e["name"] for e in events(tmp_path / "out.json", "eager")}
    span, = events(tmp_path / "out.json", "program")
    assert (span["name"], span["args"]) == ("both", {"epoch": 3})
    assert span["ts"] <= first["ts"] and again["ts"] + again["dur"] <= span["ts"] + span["dur"]
    tracks = {e["args"]["name"]: e["tid"] for e in json.loads((tmp_path / "out.json").read_text()) if e["ph"] == "M"}
    assert tracks["mine"] == span["tid"] and "planning" in tracks


def test_runs_may_be_left_out(tmp_path):
    f = keel.function(lambda x: keel.sin(x))
    with keel.profile(tmp_path / "out.json", runs=False):
        f(keel.zeros(2))
    assert events(tmp_path / "out.json", "trace") and not events(tmp_path / "out.json", "run", "sin", "eager")


def test_spans_come_from_any_thread_and_cost_nothing_without_a_profile(tmp_path):
    def work(name):
        with keel.span(name):
            pass
    work("nobody looks")
    names = [f'thread "{k}" <&>' for k in range(4)]
    with keel.profile(tmp_path / "out.json"):
        threads = [threading.Thread(target=work, args=(name,)) for name in names]
        [t.start() for t in threads], [t.join() for t in threads]
    assert sorted(e["name"] for e in events(tmp_path / "out.json", "program")) == names


def test_the_file_is_whole_when_the_block_fails(tmp_path):
    with pytest.raises(ZeroDivisionError):
        with keel.profile(tmp_path / "out.json"), keel.span("half"):
            1 / 0
    assert [e["name"] for e in events(tmp_path / "out.json", "program")] == ["half"]
    with keel.profile(tmp_path / "again.json"):  # the first profile is finished
        pass


def test_a_profile_decorates(tmp_path):
    @keel.profile(tmp_path / "out.json")
    def program():
        return keel.exp(keel.zeros(2)).tolist()
    assert program() == [1, 1] and events(tmp_path / "out.json", "eager")


def test_wrong_profiles_are_errors(tmp_path):
    with keel.profile(tmp_path / "out.json"):
        with pytest.raises(keel.PreconditionError):
            with keel.profile(tmp_path / "other.json"):
                pass
    for path in (tmp_path / "no" / "out.json", tmp_path):
        with pytest.raises(keel.Error):
            with keel.profile(path):
                pass
    with pytest.raises(TypeError):
        with keel.profile(3):
            pass
    with pytest.raises(TypeError), keel.profile(tmp_path / "out.json"):
        with keel.span("facts", model=object()):
            pass
