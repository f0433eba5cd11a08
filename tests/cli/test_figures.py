"""The commands that measure: the output of `bench` and `profile`, not speed."""
import json
import re

import pytest

MATMUL = """keel 1

fn @main(x: f32[64, 32], w: f32[32, 48]) -> f32[64, 48] {
  a = matmul(x, w) : f32[64, 48]
  b = exp(a) : f32[64, 48]
  return b
}

entry main = @main (x, w) -> (b)
"""
CONV = """keel 1

fn @main(x: f32[1, 4, 10, 10], w: f32[8, 2, 3, 3]) -> f32[1, 8, 8, 8] {
  y = conv(x, w){groups=2}
  return y
}

entry main = @main (x, w) -> (y)
"""
LOOPS = """keel 1

fn @main(x: f32[300, 8]) -> f32[8], f32[8] {
  z = reduce_sum(x){axes=[0]}
  a = scan(z, x){carry=1}
    body(s, v) { t = tanh(add(s, v))
      yield t }
  c = scan(z, x){carry=1, reverse=true}
    body(s, v) { t = sin(add(s, v))
      yield t }
  return a, c
}

entry main = @main (x) -> (a, c)
"""


def test_bench_gives_the_documented_figures(keel, graph):
    done = keel("bench", graph(), "-d", "reference", "-n", "20", "--json")
    r = json.loads(done.out)
    assert r["n"] == 20 and r["device"] == "reference" and r["peak_bytes"] > 0
    assert 0 < r["min_ms"] <= r["p50_ms"] <= r["p90_ms"] <= r["p99_ms"] and r["first_ms"] > 0 and r["load_ms"] > 0
    assert r["min_ms"] <= r["mean_ms"] and r["mean_low_ms"] < r["mean_ms"] < r["mean_high_ms"]
    assert "generated x=f32[1,2]" in done.err


def test_bench_tells_of_memory_and_of_the_machine(keel, graph):
    r = json.loads(keel("bench", graph(), "-d", "reference", "-n", "9", "--json").out)
    assert r["rss_peak_bytes"] > 1_000_000 and r["rss_peak_bytes"] > r["rss_growth_bytes"] >= 0
    assert isinstance(r["throttling"], str)
    machine = r["machine"]
    assert machine["drift"] > 0 and 0 <= machine["steal"] <= 1 and 0 <= machine["other_processes"] <= 1
    assert machine["preempted"] >= 0 and machine["mhz_first"] >= 0 and machine["mhz_last"] >= 0


def test_one_run_has_no_interval_and_no_drift(keel, graph):
    r = json.loads(keel("bench", graph(), "-d", "reference", "-n", "1", "--json").out)
    assert r["mean_low_ms"] == r["mean_ms"] == r["mean_high_ms"] == r["p50_ms"] == r["p99_ms"]
    assert r["machine"]["drift"] == 1


def test_bench_prints_its_figures(keel, graph):
    out = keel("bench", graph(), "-d", "reference", "-n", "3", "--threads", "1").out
    assert "3 runs, 1 threads" in out
    rows = [line.split()[0] for line in out.splitlines()[1:]]
    assert rows == ["p50_ms", "p90_ms", "p99_ms", "mean_ms", "min_ms", "first_ms", "load_ms", "peak", "throttling"]


@pytest.mark.parametrize("device", ["reference", "cpu"])
def test_profile_tells_the_work_of_each_node(keel, graph, device):
    r = json.loads(keel("profile", graph(MATMUL), "-d", device, "-n", "7", "--level", "0", "--json").out)
    assert r["schema"] == "keel.profile/1" and r["n"] == 7 and r["device"].startswith(device)
    nodes = {n["op"]: n for n in r["nodes"]}
    assert nodes["matmul"]["flops"] == 2 * 64 * 32 * 48 and nodes["exp"]["flops"] == 64 * 48
    assert nodes["matmul"]["bytes"] == 4 * (64 * 32 + 32 * 48 + 64 * 48) and nodes["exp"]["bytes"] == 8 * 64 * 48
    assert nodes["matmul"]["calls"] == 7 and nodes["matmul"]["impl"]
    assert r["roof"]["gflops"] > 0 and r["roof"]["gbytes"] > 0


def test_sums_of_a_profile_agree(keel, graph):
    r = json.loads(keel("profile", graph(MATMUL), "-d", "reference", "-n", "9", "--json").out)
    assert sum(n["ms"] for n in r["nodes"]) == pytest.approx(r["launches_ms"])
    assert sum(n["share"] for n in r["nodes"]) == pytest.approx(1) == sum(o["share"] for o in r["ops"])
    assert r["nodes"][0]["ms"] >= r["nodes"][1]["ms"] > 0 and {o["op"] for o in r["ops"]} == {"matmul", "exp"}
    top = r["nodes"][0]
    assert top["gflops"] == pytest.approx(top["flops"] / top["ms"] / 1e6)
    assert r["distortion_low"] <= r["distortion"] <= r["distortion_high"]


def test_profile_knows_convolutions(keel, graph):
    r = json.loads(keel("profile", graph(CONV), "-d", "reference", "-n", "2", "--json").out)
    conv = next(n for n in r["nodes"] if n["op"] == "conv")
    assert conv["flops"] == 2 * (8 * 8 * 8) * (2 * 3 * 3)


def test_a_region_is_told_by_the_models_nodes(keel, graph):
    """A convolution whose weights absorb the scale after it: its name disappears, so its reader's name is used."""
    path = graph("""keel 1

const w: f32[8, 4, 3, 3] = [%s]

fn @main(x: f32[b, 4, n, n]) -> f32[b, 8, n-2, n-2] {
  c = conv(x, w)
  s = mul(c, 0.5)
  y = relu(s)
  return y
}

entry main = @main (x) -> (y)
""" % ", ".join(["0.5"] * 288))
    arguments = ("profile", path, "-d", "cpu", "-n", "3", "-i", "x=f32[2,4,10,10]=1")
    r = json.loads(keel(*arguments, "--json").out)
    (call,) = r["nodes"]
    conv, relu = 2 * (2 * 8 * 64) * 36, 2 * 8 * 64
    assert call["op"] == "call" and call["contains"] == "conv, relu"
    assert [(n["op"], n["flops"]) for n in call["body"]] == [("conv", conv), ("relu", relu)]
    assert {n["node"] for n in call["body"]} <= {"c", "s", "y"}
    assert call["flops"] == conv + relu == r["ops"][0]["flops"]
    text = keel(*arguments).out
    assert "in y, 2 nodes (conv, relu), the most arithmetic:" in text
    assert ["0.07373", "98.6", "%", "s", "conv"] in [line.split() for line in text.splitlines()]


def test_what_is_not_known_is_not_made_up(keel, graph):
    r = json.loads(keel("profile", graph(LOOPS), "-d", "cpu", "-n", "2", "--json").out)
    assert {n["flops"] for n in r["nodes"] if n["op"] == "scan"} <= {None}
    assert "?" in keel("profile", graph(LOOPS), "-d", "cpu", "-n", "2").out


def test_noise_is_not_told_as_what_watching_changed(keel, graph):
    for n in (1, 5):
        assert "too few runs to measure the overhead of observation" in keel("profile", graph(MATMUL), "-d", "cpu", "-n", str(n)).out
    r = json.loads(keel("profile", graph(MATMUL), "-d", "cpu", "-n", "30", "--json").out)
    text = keel("profile", graph(MATMUL), "-d", "cpu", "-n", "30").out
    assert re.search(r"; observed, its \d launches take ", text)  # may take longer than a run without an observer
    assert r["distortion_low"] <= r["distortion"] <= r["distortion_high"]
    assert "observation has no measurable effect on the time of a run (" in text or " to " in text.splitlines()[1]


def test_rows_that_are_not_picked_are_not_read(keel, one):
    path = one("gather(x, z){axis=0}", "f32[1000, 8]", "i64[3]", result="f32[3, 8]")
    r = json.loads(keel("profile", path, "-d", "reference", "-n", "2", "--json").out)
    assert r["nodes"][0]["bytes"] == 2 * 4 * 3 * 8 + 8 * 3 and r["nodes"][0]["flops"] == 0  # it only moves


def test_profile_sees_the_plan_as_it_is(keel, graph):
    plan = json.loads(keel("plan", graph(MATMUL), "-d", "cpu", "--json").out)
    profile = json.loads(keel("profile", graph(MATMUL), "-d", "cpu", "-n", "2", "--json").out)
    by_index = sorted(profile["nodes"], key=lambda n: n["index"])
    assert [(n["node"], n["op"], n["impl"]) for n in by_index] == \
        [(launch["node"], launch["op"], launch["impl"]) for launch in plan["launches"]]


def test_a_trace_holds_every_launch_of_every_run(keel, graph, tmp_path):
    keel("profile", graph(MATMUL), "-d", "reference", "-n", "5", "--trace", "out.json")
    launches = [e for name, events in tracks(tmp_path / "out.json").items() if name != "planning" for e in events]
    assert [(e["args"]["run"], e["cat"]) for e in launches] == [(k, op) for k in range(5) for op in ("matmul", "exp")]
    assert all(e["dur"] >= 0 and e["pid"] == 1 and e["tid"] for e in launches)
    ends = [e["ts"] + e["dur"] for e in launches]
    assert all(end <= e["ts"] + 0.01 for end, e in zip(ends, launches[1:])), "launches overlap"


def tracks(path):
    """The events of each track, by its name."""
    events = json.loads(path.read_text())
    names = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    found = {name: [] for name in names.values()}
    for e in events:
        if e["ph"] == "X":
            found[names[e["tid"]]].append(e)
    return found


def inside(inner, outer):
    return outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.01


def test_a_trace_tells_what_came_before_the_runs(keel, graph, tmp_path):
    keel("profile", graph(MATMUL), "-d", "cpu", "-n", "2", "--trace", "out.json")
    planning = tracks(tmp_path / "out.json")["planning"]
    of = {kind: [e for e in planning if e["cat"] == kind] for kind in ("parse", "pass", "plan", "sizes", "program")}
    assert [len(of[kind]) for kind in ("parse", "plan", "sizes")] == [1, 1, 1]
    assert [e["name"] for e in of["program"]] == ["first run"] and of["plan"][0]["args"] == {"device": "cpu:0"}
    assert {"fold", "simplify", "epilogue", "map"} <= {e["name"] for e in of["pass"]}
    ends = [e["ts"] + e["dur"] for e in of["pass"]]
    assert all(end <= e["ts"] + 0.01 for end, e in zip(ends, of["pass"][1:])), "passes overlap"
    plan, sizes, run = of["plan"][0], of["sizes"][0], of["program"][0]
    assert all(inside(e, plan) for e in of["pass"]) and inside(sizes, run) and not inside(plan, run)


def test_a_trace_has_a_track_for_each_lane(keel, graph, tmp_path):
    keel("profile", graph(LOOPS), "-d", "cpu", "-n", "20", "--threads", "2", "--lanes", "all", "--trace", "out.json")
    found = tracks(tmp_path / "out.json")
    assert set(found) <= {"planning", "cpu:0", "cpu:0, lane 1"}
    launches = [e for name, events in found.items() if name != "planning" for e in events]
    assert len(launches) == 60 and {e["name"] for e in launches} == {"a", "c", "z"}
    for events in found.values():
        if found["planning"] is events:
            continue
        ends = [e["ts"] + e["dur"] for e in sorted(events, key=lambda e: e["ts"])]
        starts = sorted(e["ts"] for e in events)
        assert all(end <= start + 0.01 for end, start in zip(ends, starts[1:])), "one lane does one thing at a time"
    assert "in parallel: z, a, c" in keel("plan", graph(LOOPS), "-d", "cpu", "--threads", "2", "--lanes", "all").out
    assert "in parallel" not in keel("plan", graph(LOOPS), "-d", "cpu", "--threads", "2", "--lanes", "off").out
    assert "--lanes" in keel("plan", graph(LOOPS), "--lanes", "some", code=2).err


def test_a_trace_marks_what_fell_back(keel, graph, tmp_path):
    keel("profile", graph(MATMUL), "-d", "cpu", "--place", "b=reference", "-n", "2", "--level", "0", "--trace", "out.json")
    found = tracks(tmp_path / "out.json")
    assert {e["cat"] for e in found["reference:0 (fallback)"]} == {"exp"} and {e["cat"] for e in found["cpu:0"]} == {"matmul"}


def test_profile_prints_ops_and_nodes_beside_the_roof(keel, graph):
    done = keel("profile", graph(MATMUL), "-d", "reference", "-n", "3")
    assert "generated x=f32[64,32]" in done.err and "its 2 launches take" in done.out and "measured roofline" in done.out
    heads = [line.split() for line in done.out.splitlines() if line.startswith("ms ")]
    assert heads[0][:4] == ["ms", "share", "op", "launches"] and heads[1][:4] == ["ms", "share", "node", "op"]


def test_what_cannot_be_profiled_is_refused(keel, graph, tmp_path):
    assert "--runs" in keel("profile", graph(), "-n", "0", code=2).err
    assert "device" in keel("profile", graph(), "-d", "nosuch", code=4).err
    assert "cannot write the timeline" in keel("profile", graph(), "-d", "reference", "--trace", "no/such/t.json", code=3).err
    error = json.loads(keel("profile", "missing.keel", "--json", code=3).err)["error"]
    assert error["command"] == "profile" and "missing.keel" in error["message"]


def test_only_profile_writes_traces(keel, graph):
    assert "--trace" in keel("bench", graph(), "--trace", "t.json", code=2).err
