"""The examples of sdk/python/examples in a short form, run like a user runs them; their files in the command line tool and in
NumPy."""
import json
import os
import subprocess
import sys
from pathlib import Path

import keel
import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "sdk/python/examples"
TOOL = Path(os.environ.get("KEEL_BUILD", ROOT / "build/release")) / "bin/keel"


@pytest.fixture
def example(tmp_path):
    pytest.importorskip("matplotlib", reason="the examples draw curves with matplotlib")

    def run(name, *options, code=0):
        done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py", "--out", tmp_path / "out", *map(str, options)], text=True,
                              capture_output=True, cwd=tmp_path, env={**os.environ, "PYTHONPATH": ":".join(sys.path)},
                              preexec_fn=one_core)
        assert done.returncode == code, done.stdout + done.stderr
        assert done.stderr == "" or code == 1 and "Traceback" not in done.stderr
        return done.stdout
    return run


@pytest.fixture
def tool(tmp_path):
    """`keel run` on a file of the example, alone in a folder."""
    if not TOOL.is_file():
        pytest.skip("the command line tool is not built")

    def run(file, entry, **inputs):
        for name, value in inputs.items():
            np.save(tmp_path / f"{name}.npy", value)
        given = [word for name in inputs for word in ("-i", f"{name}=@{tmp_path / name}.npy")]
        done = subprocess.run([TOOL, "run", tmp_path / "out" / file, "--entry", entry, *given, "--json"], capture_output=True,
                              text=True, cwd="/", check=True)
        (result,) = json.loads(done.stdout)["outputs"].values()
        return np.reshape(result["data"], result["shape"])
    return run


def one_core():
    """Limits threads: on a shared machine, threads that wait for descheduled ones are slow."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:1])


def is_picture(path):
    data = path.read_bytes()
    return data.startswith(b"\x89PNG\r\n") and len(data) > 5000


def test_digits_are_learned_and_run_elsewhere(example, tool, tmp_path):
    assert "reached" in example("digits", "--epochs", 12) and is_picture(tmp_path / "out/digits.png")
    images = np.random.default_rng(0).random((3, 64)).astype("f4")
    module = keel.load(tmp_path / "out/digits.keel")
    w = {name: module.variable(name).numpy() for name in ("hidden/w", "hidden/b", "out/w", "out/b")}
    want = np.maximum(images @ w["hidden/w"] + w["hidden/b"], 0) @ w["out/w"] + w["out/b"]
    np.testing.assert_allclose(tool("digits.keel", "serve", images=images), want, rtol=1e-4, atol=1e-4)


def test_a_goal_that_is_missed_is_a_failure(example):
    assert "MISSED" in example("digits", "--epochs", 1, "--goal", 0.999, code=1)


def test_images_are_learned_by_convolutions(example, tool, tmp_path):
    assert "reached" in example("conv", "--epochs", 5, "--goal", 0.9) and is_picture(tmp_path / "out/conv.png")
    sys.path.insert(0, str(EXAMPLES))
    try:
        import images
    finally:
        sys.path.remove(str(EXAMPLES))
    _, (x, digits) = images.read()
    assert (tool("conv.keel", "serve", images=x).argmax(1) == digits).mean() >= 0.9


def test_a_transformer_learns_letters_and_its_file_writes(example, tool, tmp_path):
    (tmp_path / "text.txt").write_text("abcdefgh " * 200)
    said = example("chars", "--steps", 25, "--goal", 0.5, "--text", tmp_path / "text.txt")
    assert "reached" in said and is_picture(tmp_path / "out/chars.png")
    alphabet = "".join(map(chr, tool("chars.keel", "alphabet")))
    assert alphabet == " abcdefgh"
    start = np.array([alphabet.index(c) for c in ("abcdefgh " * 8)[:64]], "i4")
    written = tool("chars.keel", "write", text=start, key=np.uint64(5))
    text = "".join(alphabet[k] for k in written)
    assert len(text) == 240 and np.mean([pair in "abcdefgh a" for pair in map("".join, zip(text, text[1:]))]) > 0.9
    assert tool("chars.keel", "serve", text=start[None]).shape == (1, 64, 9)


@pytest.mark.parametrize("name, options, message", [("digits", ("--data", "no.csv"), "no.csv: no such file"), ("conv", ("--data", "bad.csv"), "expected at least 100 lines"),
                                                    ("chars", ("--text", "no.txt"), "no.txt")])
def test_data_that_is_not_there_is_named(example, tmp_path, name, options, message):
    (tmp_path / "bad.csv").write_text("1,2,3\n")
    done = subprocess.run([sys.executable, EXAMPLES / f"{name}.py", *options], text=True, capture_output=True, cwd=tmp_path,
                          env={**os.environ, "PYTHONPATH": ":".join(sys.path)})
    assert done.returncode == 1 and message in done.stderr and "Traceback" not in done.stderr
