"""The example programs and the example plugin of sdk/examples, run like a user runs them."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from command import ADD

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("KEEL_BUILD", ROOT / "build/release"))
ADD2 = ADD.replace("(x: f32[b, 2])", "(x: f32[b, 2], z: f32[2])").replace("add(x, 1)", "add(x, z)").replace("(x) ->", "(x, z) ->")


@pytest.fixture
def program():
    if not (BUILD / "examples/example_run").is_file():
        pytest.skip("the examples are not built")
    return {"c": [str(BUILD / "examples/example_run")],
            "python": [sys.executable, str(ROOT / "sdk/examples/run_ctypes.py"), str(BUILD / "lib/libkeel.so")]}


@pytest.mark.parametrize("language", ["c", "python"])
def test_a_short_program_runs_a_model(keel, graph, program, tmp_path, language):
    keel("convert", graph(ADD2), "g.keel")
    x, z = np.array([[1, 2], [3, 4], [5, 6]], "f4"), np.array([0.5, -1], "f4")
    (tmp_path / "x.bin").write_bytes(x.tobytes())
    (tmp_path / "z.bin").write_bytes(z.tobytes())
    run = lambda *inputs: subprocess.run([*program[language], "g.keel", "reference", *inputs], cwd=tmp_path,
                                         capture_output=True, text=True)
    done = run("f32:3x2:x.bin", "f32:2:z.bin")
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.array(done.stdout.split(), "f4").reshape(3, 2), x + z)
    for bad in (["f32:3x2:x.bin", "f32:3:z.bin"], ["f32:3x2:x.bin"], ["f32:3x2:x.bin", "f32:2:no.bin"]):
        done = run(*bad)
        assert done.returncode == 1 and done.stderr


@pytest.mark.parametrize("n, steps", [(27, 111), (1, 0)])
def test_a_loop_that_depends_on_values(program, n, steps):
    done = subprocess.run([BUILD / "examples/example_loop", str(n)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    first, text = done.stdout.split("\n", 1)
    assert first == str(steps)  # known length of the Collatz sequence
    assert text.startswith("keel 1\n") and text.count("while(") == 1 and text.count("cond(") == 1


def test_the_hello_plugin_adds(keel, graph, program):
    folder = ["--plugins", BUILD / "examples"]
    done = keel("run", graph(ADD2), "-d", "hello", *folder, "-i", "x=1,2,3,4", "-i", "z=10,20", "--json")
    assert json.loads(done.out)["outputs"]["y"]["data"] == [11, 22, 13, 24]
    ops = json.loads(keel("ops", "-d", "hello", *folder, "--json").out)["ops"]
    assert next(o for o in ops if o["name"] == "add")["impls"]["f32"] == "hello add"
    err = keel("run", graph(ADD2.replace("add(", "mul(")), "-d", "hello", *folder, "-i", "x=1,2", "-i", "z=1", code=5).err
    assert "mul" in err and "hello" in err


@pytest.mark.parametrize("x, z, sums", [("1,2,3,4", "10,20", [11, 22, 13, 24]), ("5,6", "1,1", [6, 7])])
def test_the_device_with_queues_adds(keel, graph, program, x, z, sums):
    row = ADD2.replace("x: f32[b, 2], z: f32[2]", "x: f32[n], z: f32[n]").replace("f32[b, 2]", "f32[n]")
    z = ",".join([z] * (len(sums) // 2))
    done = keel("run", graph(row), "-d", "queue_device", "--plugins", BUILD / "examples", "-i", f"x={x}", "-i", f"z={z}", "--json")
    assert json.loads(done.out)["outputs"]["y"]["data"] == sums


def test_the_device_with_queues_computes_while_the_program_goes_on(program):
    code = f"""
import keel, numpy as np
keel.load_plugin({str(BUILD / "examples/keel-queue_device.so")!r})
with keel.device("queue_device"):
    for n in (0, 1, 7, 1000):
        x = y = keel.array(np.arange(n, dtype=np.float32))
        for i in range(100): y = y + x + keel.array(np.float32(1))
        np.testing.assert_array_equal(y.numpy(), 101 * np.arange(n, dtype=np.float32) + 100)
    try: (keel.array(np.ones((2, 1), np.float32)) + keel.array(np.ones((1, 3), np.float32))).numpy()
    except keel.UnimplementedError as e: print(e.message)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(BUILD / "python")})
    assert done.returncode == 0, done.stderr
    assert "adds operands of one shape, or of one element" in done.stdout


@pytest.fixture
def wrong(tmp_path):
    """A folder with the hello plugin as a device "wrong", which subtracts instead of adding."""
    if not shutil.which("cc"):
        pytest.skip("no C compiler")
    source = (ROOT / "sdk/examples/hello.c").read_text()
    source = source.replace("i) + at(", "i) - at(").replace('"hello', '"wrong')
    (tmp_path / "wrong.c").write_text(source)
    (tmp_path / "plugins").mkdir()
    subprocess.run(["cc", "-shared", "-fPIC", f"-I{BUILD}/include", tmp_path / "wrong.c", "-o",
                    tmp_path / "plugins/keel-wrong.so"], check=True)
    return tmp_path / "plugins"


def test_compare_finds_the_first_node_that_differs(keel, graph, wrong, monkeypatch):
    monkeypatch.setenv("KEEL_PLUGIN_PATH", str(wrong))
    path = graph("""keel 1

fn @main(x: f32[2]) -> f32[2] {
  a = add(x, 0) : f32[2]
  c = add(a, 3) : f32[2]
  d = add(c, 4) : f32[2]
  return d
}

entry main = @main (x) -> (d)
""")
    done = keel("compare", path, "-d", "reference,wrong", "--nodes", "-i", "x=1,2", code=1)
    assert "FAIL" in done.out and 'first diverging node: 1 "c" (add)' in done.out and "wrong add" in done.out
    r = json.loads(keel("compare", path, "-d", "reference,wrong", "--nodes", "-i", "x=1,2", "--json", code=1).out)
    first = r["first_difference"][0]
    assert first["node"] == "c" and first["wanted"]["data"] == [4, 5] and first["out"][0]["data"] == [-2, -1]
    assert first["in"][0]["name"] == "a" and first["diff"]["max_abs"] == 6 and r["outputs"][0]["max_abs"] == 14
    keel("compare", path, "-d", "reference,wrong", "-i", "x=1,2", "--atol", "20")


def test_verify_fails_on_a_wrong_device(keel, graph, wrong, monkeypatch):
    monkeypatch.setenv("KEEL_PLUGIN_PATH", str(wrong))
    keel("convert", graph(), "g.keel", "--case", "-i", "x=1,2", "-d", "reference")
    assert "got 0, expected 2" in keel("verify", "g.keel", "-d", "wrong", code=1).out
