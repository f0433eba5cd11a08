"""`keel demo` and the example that writes its file: networks trained on handwritten digits."""
import gzip
import json
import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from command import command

BUILD = Path(os.environ.get("KEEL_BUILD", Path(__file__).resolve().parents[2] / "build/release"))
DIGITS = Path(sysconfig.get_paths()["purelib"]) / "sklearn/datasets/data/digits.csv.gz"


def test_the_demo_verifies_and_trains_on_every_device(keel):
    devices = [d["name"] for d in json.loads(keel("devices", "--json").out)["devices"] if d["usable"]]
    shown = keel("demo").out
    for device in devices:
        for case in ("mlp", "score_mlp", "conv", "score_conv"):
            assert f"ok   {case} on {device}\n" in shown
        assert f"retraining the first network on {device}, from random weights: loss 2." in shown
    told = json.loads(keel("demo", "--json", "-d", devices[0]).out)
    assert told["ok"] and [t["device"] for t in told["training"]] == devices[:1]
    losses = told["training"][0]["losses"]
    assert losses[0] > 1.5 and losses[-1] < 0.5 and told["training"][0]["after"] > 0.9


def test_a_command_without_its_file_says_so(tmp_path):
    (tmp_path / "bin").mkdir()
    shutil.copy(command(), tmp_path / "bin/keel")
    done = subprocess.run([tmp_path / "bin/keel", "demo"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 3 and f"{tmp_path}/share/keel/digits.keel does not exist" in done.stderr
    assert "keel verify FILE" in done.stderr


@pytest.fixture
def digits(tmp_path):
    """The example's program, run in a fresh folder."""
    program = BUILD / "examples/example_digits"
    if not program.is_file():
        pytest.skip("the examples are not built")
    env = {**os.environ, "KEEL_PLUGIN_PATH": str(BUILD / "lib/keel/plugins")}
    return lambda *args: subprocess.run([program, *map(str, args)], cwd=tmp_path, env=env, timeout=500,
                                        capture_output=True, text=True)


def test_the_digits_are_learned_and_shipped(keel, digits, tmp_path):
    if not DIGITS.is_file():
        pytest.skip("scikit-learn's wheel is not in this venv: tools/setup puts it there")
    (tmp_path / "digits.csv").write_bytes(gzip.decompress(DIGITS.read_bytes()))
    done = digits("digits.csv", "digits.keel", 20)
    assert done.returncode == 0, done.stderr + done.stdout  # 1 if fewer than 97 % of the test images are right
    assert "mlp epoch 20: loss 0.0" in done.stdout and "conv epoch 20: loss 0.0" in done.stdout
    assert (tmp_path / "digits.keel").stat().st_size < 125_000  # 97,576 bytes of data, and structure
    devices = json.loads(keel("devices", "--json").out)["devices"]
    assert keel("verify", "digits.keel", "-d", "all").out.count("ok ") == 4 * len(devices) >= 8
    assert "fn @train_mlp(images: u8[n, 64], digits: i32[n]) -> loss: f32" in keel("dump", "digits.keel").out


@pytest.mark.parametrize("text, wrong", [("1,2,3\n", 'digits.csv:1: expected 64 pixels and a digit, separated by commas, got "1,2,3"'),
                                         ("", "digits.csv: 0 images are too few"),
                                         (None, "digits.csv: cannot be read")])
def test_bad_data_is_named(digits, tmp_path, text, wrong):
    if text is not None:
        (tmp_path / "digits.csv").write_text(text)
    done = digits("digits.csv", "out.keel")
    assert done.returncode == 1 and wrong in done.stderr
    assert not (tmp_path / "out.keel").exists()
