"""The subcommands: output, written files, errors and exit codes."""
import json
import os
import re
import subprocess
import xml.dom.minidom

import numpy as np
import pytest

from command import ADD, command

CHAIN = """keel 1

fn @main(x: f32[3]) -> f32[3] {
  a = log(x) : f32[3]
  c = mul(a, 2) : f32[3]
  d = add(c, x) : f32[3]
  return d
}

entry main = @main (x) -> (d)
"""


def test_run_prints_readable_arrays(keel, graph, one):
    assert keel("run", graph(), "-i", "x=1,2,3,40").out == "y: f32[2, 2]\n[[ 2,  3]\n [ 4, 41]]\n"
    assert keel("run", one("add(x, 1)", "i32[]"), "-i", "x=41").out == "y: i32[]\n42\n"
    text = keel("run", one("add(x, 0)", "f32[2000]"), "-i", "x=range").out
    assert text == "y: f32[2000]\n[   0,    1,    2, ..., 1997, 1998, 1999]\n"


def test_run_saves_npy_and_npz(keel, graph, tmp_path):
    keel("run", graph(), "-i", "x=1,2", "-o", "@y.npy")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), np.array([[2, 3]], "f4"))
    assert "expected a name" in keel("run", graph(), "-i", "x=1,2", "-o", "y.txt", code=2).err
    assert "cannot write" in keel("run", graph(), "-i", "x=1,2", "-o", "@no/such/y.npz", code=3).err


def test_missing_inputs_are_told_at_once_with_an_example_that_works(keel, one):
    path = one("add(x, z)", "f32[2]", "f32[2]")
    err = keel("run", path, code=2).err
    assert '"x": f32[2]' in err and '"z": f32[2]' in err
    example = re.findall(r"-i '([^']+)'", err)
    keel("run", path, *[a for e in example for a in ("-i", e)])


def test_unknown_names_come_with_a_suggestion(keel, graph):
    assert 'did you mean "x"' in keel("run", graph(), "-i", "X=1,2", code=2).err
    assert "main" in keel("run", graph(), "-i", "x=1,2", "--entry", "mian", code=2).err
    err = keel("run", graph(), "-i", "x=1,2", "-d", "nowhere", code=4).err
    assert "nowhere" in err and "available devices" in err
    assert 'did you mean "run"' in keel("rum", graph(), code=2).err
    assert "twice" in keel("run", graph(), "-i", "x=1,2", "-i", "x=1,2", code=2).err


@pytest.mark.parametrize("arguments, code, word", [
    (["run"], 2, "file"),
    (["run", "g.txt", "--nonsense"], 2, "--nonsense"),
    (["run", "g.txt", "--threads", "0"], 2, "threads"),
    (["run", "g.txt", "--memory", "lots"], 2, "512M"),
    (["run", "g.txt", "-i", "x=1,2", "--dim", "b"], 2, "NAME=NUMBER"),
    (["run", "missing.keel"], 3, "missing.keel"),
    (["run", "/"], 3, "/"),
    (["run", "g.txt", "-i", "x=@missing.npy"], 3, "missing.npy"),
    (["run", "g.txt", "-i", "x=f32[2,3]=1"], 5, "[2, 3]"),
    (["run", "g.txt", "-i", "x=i32[1,2]=1", "--exact-inputs"], 5, "i32"),
    (["run", "g.txt", "-i", "x=f32[2]=1"], 5, "x"),
    (["run", "g.txt", "-i", "x=randn", "--dim", "b=1000", "--memory", "1K"], 6, "memory"),
    (["convert", "g.txt", "/no/such/folder/g.keel"], 3, "/no/such/folder"),
    (["compare", "g.txt", "-d", "reference"], 2, "two devices"),
    (["verify", "g.txt"], 2, "no test cases"),
    (["run", "g.txt", "-i", "x=1,2", "--watch", "zero"], 2, "zero"),
    (["run", "g.txt", "-i", "x=1,2", "--break", "yy"], 2, 'did you mean "y"'),
])
def test_exit_codes_and_messages(keel, graph, arguments, code, word):
    graph()
    done = keel(*arguments, code=code)
    assert done.out == "" and done.err.startswith(f"keel {arguments[0]}: ") and word in done.err
    error = json.loads(keel(*arguments, "--json", code=code).err)["error"]
    assert error["exit"] == code and word in error["message"] + error.get("hint", "")


@pytest.mark.parametrize("data", [b"", b"\0" * 64, b"keel", b"keel 1 x", b"keel 999\n", b"\x00\x00\x00\x00\x00\x00\x00\x00KEEL",
                                  b"\xff\xff\xff\x7f0000KEEL" + b"\xff" * 99, b"#" * 5000, os.urandom(3000)])
def test_files_that_are_none_are_refused(keel, tmp_path, data):
    (tmp_path / "bad.keel").write_bytes(data)
    for name in ("run", "inspect", "dump"):
        assert keel(name, "bad.keel", code=3).err.startswith(f"keel {name}: ")


def test_a_text_with_a_fault_is_refused_with_its_place(keel, graph):
    err = keel("dump", graph(ADD.replace("add(", "ad(")), code=3).err
    assert "ad" in err and "4" in err


def test_convert_dump_round_trip(keel, graph, tmp_path):
    keel("convert", graph(), "g.keel")
    first = keel("dump", "g.keel").out
    assert "add(" in first
    keel("convert", "g.keel", "again.txt")
    assert (tmp_path / "again.txt").read_text() == first
    keel("convert", "again.txt", "again.keel")
    assert (tmp_path / "again.keel").read_bytes() == (tmp_path / "g.keel").read_bytes()
    assert keel("run", "again.keel", "-i", "x=1,2").out == "y: f32[1, 2]\n[[2, 3]]\n"
    assert "not needed" in keel("convert", "g.keel", "h.keel", "-i", "x=1,2", code=2).err


def test_cases_are_stored_and_verified(keel, graph, tmp_path):
    keel("convert", graph(), "g.keel", "--case", "-i", "x=1,2,3,4", "-d", "reference")
    assert keel("verify", "g.keel", "-d", "all").out.count("ok") >= 1
    assert json.loads(keel("verify", "g.keel", "-d", "reference", "--json").out)["ok"] is True
    keel("dump", "g.keel", "-o", "g2.txt")
    text = (tmp_path / "g2.txt").read_text()
    assert "[2.0, 3.0, 4.0, 5.0]" in text
    (tmp_path / "g2.txt").write_text(text.replace("[2.0, 3.0, 4.0, 5.0]", "[2.0, 3.0, 4.0, 6.0]"))
    out = keel("verify", "g2.txt", "-d", "reference", code=1).out
    assert "FAIL" in out and "got 5" in out and "expected 6" in out


def test_inspect_tells_entries_ops_and_devices(keel, graph):
    out = keel("inspect", graph(CHAIN)).out
    assert "entry main" in out and "x: f32[3]" in out and "d: f32[3]" in out and "log 1" in out
    assert re.search(r"^on reference(:0)?: runs$", out, re.M)
    info = json.loads(keel("inspect", graph(CHAIN), "--json").out)
    assert info["schema"] == "keel.inspect/1" and info["entries"][0]["name"] == "main"


def test_graph_draws_dot_and_svg(keel, graph, tmp_path):
    dot = keel("graph", graph(CHAIN)).out
    assert dot.startswith("digraph") and dot.count("->") == 5 and "log" in dot
    done = subprocess.run(["which", "dot"], capture_output=True)
    if done.returncode:
        assert "graphviz" in keel("graph", graph(CHAIN), "--svg", code=4).err
        return
    keel("graph", graph(CHAIN), "-o", "g.svg")
    svg = xml.dom.minidom.parse(str(tmp_path / "g.svg"))
    assert svg.documentElement.tagName == "svg" and len(svg.getElementsByTagName("path")) >= 5


def test_devices_doctor_and_ops(keel):
    devices = json.loads(keel("devices", "--json").out)["devices"]
    assert any(d["name"].startswith("reference") for d in devices)
    assert "reference" in keel("devices").out
    doctor = json.loads(keel("doctor", "--json").out)
    assert any(p["verdict"] == "taken" and "reference" in p["path"] for p in doctor["plugins"])
    assert doctor["machine"]["cpus"] >= 1 and "taken" in keel("doctor").out
    names = [o["name"] for o in json.loads(keel("ops", "--json").out)["ops"]]
    assert {"add", "matmul"} <= set(names)
    ops = json.loads(keel("ops", "-d", "reference", "--json").out)["ops"]
    add = next(o for o in ops if o["name"] == "add")
    assert add["impls"]["f32"] not in ("missing", "body")
    assert "add(" in keel("ops").out and "matmul" in keel("ops", "-d", "reference").out


def test_doctor_explains_a_refused_plugin(keel, tmp_path):
    (tmp_path / "plugins").mkdir()
    (tmp_path / "plugins" / "keel-fake.so").write_bytes(b"not an ELF file")
    doctor = json.loads(keel("doctor", "--plugins", tmp_path / "plugins", "--json").out)
    mine = [p for p in doctor["plugins"] if p["path"].endswith("keel-fake.so")]
    assert mine and mine[0]["verdict"] == "refused" and mine[0]["reason"]


def test_plan_lists_launches_and_memory(keel, graph):
    out = keel("plan", graph(CHAIN), "-d", "reference", "--level", "0").out
    assert [line.split()[2] for line in out.splitlines()[2:5]] == ["log", "mul", "add"] and "arena_bytes" in out
    plan = json.loads(keel("plan", graph(CHAIN), "-d", "reference", "--json").out)
    assert [launch["op"] for launch in plan["launches"]] == ["log", "mul", "add"]


def test_watch_stops_at_the_first_nan_or_inf(keel, graph):
    out = keel("run", graph(CHAIN), "-d", "reference", "-i", "x=1,-1,2", "--watch", "nan|inf", code=1).out
    assert '"a" has 1 NaN of 3 elements' in out and "log" in out and "x: f32[3]" in out and "mul" not in out
    out = keel("run", graph(CHAIN), "-d", "reference", "-i", "x=1,0,2", "--watch", "inf", "--json", code=1).out
    stopped = json.loads(out)["stopped"]
    assert stopped["op"] == "log" and stopped["in"][0]["data"] == [1, 0, 2] and stopped["out"][0]["data"][1] == "-inf"
    assert keel("run", graph(CHAIN), "-d", "reference", "-i", "x=1,1,1", "--watch", "nan").out.startswith("d: f32[3]")


def test_break_shows_the_values_of_a_node(keel, graph):
    out = keel("run", graph(CHAIN), "-d", "reference", "-i", "x=1,1,1", "--break", "c").out
    assert "stopped after" in out and "c: f32[3]\n[0, 0, 0]" in out and "d:" not in out


def test_compare_agrees_with_itself(keel, graph):
    out = keel("compare", graph(CHAIN), "-d", "reference,reference", "-i", "x=1,2,3", "--nodes").out
    assert "ok" in out and "FAIL" not in out and "no single node" in out


def test_version_and_help(keel):
    assert re.match(r"keel \d+\.\d+\.\d+ \(C ABI 0\.\d+ draft \d+\)", keel("--version").out)
    assert "compare" in keel().out and "--watch" in keel("run", "--help").out


def test_a_full_disk_is_no_success(graph):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    with open("/dev/full", "w") as full:
        done = subprocess.run([command(), "dump", graph()], stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 3 and b"stdout" in done.stderr
