"""Models whose weights go to a second file, ONNX's external data: who reads them, what they hold, and that the pair appears as a
whole or not at all. KEEL_ONNX_FILE_BYTES stands for the 2 GiB of the format."""
import os
import resource
import subprocess
import sys

import keel
import numpy as np
import onnx
import onnxruntime as ort
import pytest

SIZES = [1, 255, 256, 1000, 300_000]  # of weights: below the 1 KiB that may move, at it, and of more than 1 MiB
PAGE, UNIT = 4096, 65536


def weights():
    rng = np.random.default_rng(5)
    return [rng.standard_normal(n).astype("f4") for n in SIZES] + [np.array([np.nan, np.inf, -np.inf, -0.0] * 64, "f4")]


def program():
    held = [keel.Variable(w) for w in weights()]

    @keel.function
    def f(x):
        return [keel.reduce_sum(x) + w for w in held]

    return f.concrete(np.ones(2, "f4"))


@pytest.fixture
def small_files(monkeypatch):
    monkeypatch.setenv("KEEL_ONNX_FILE_BYTES", "100000")


def entries_of(model):
    return {t.name: {e.key: e.value for e in t.external_data} for t in model.graph.initializer if t.external_data}


def results_of(path):
    got = ort.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, {"x": np.ones(2, "f4")})
    return [np.asarray(each) for each in got]


def test_readers_find_the_weights(tmp_path, small_files):
    path = tmp_path / "f.onnx"
    keel.onnx.save(path, program())
    onnx.checker.check_model(str(path), full_check=True)
    want = [2 + w for w in weights()]
    read = onnx.load(path)
    held = [onnx.numpy_helper.to_array(t) for t in read.graph.initializer]
    again = [np.asarray(each) for each in keel.from_onnx(path)(np.ones(2, "f4"))]
    for each, bare, of_ort, of_keel in zip(want, weights(), results_of(path), again):
        assert any(np.array_equal(bare, h, equal_nan=True) for h in held)
        np.testing.assert_array_equal(of_ort, each)
        np.testing.assert_array_equal(of_keel, each)


def test_large_weights_start_where_they_can_be_mapped(tmp_path, small_files):
    path = tmp_path / "f.onnx"
    keel.onnx.save(path, program())
    data = (tmp_path / "f.onnx.data").read_bytes()
    entries = entries_of(onnx.load(path, load_external_data=False))
    assert sorted(int(e["length"]) for e in entries.values()) == sorted(4 * n for n in SIZES + [256] if n >= 256)
    wanted = [w.tobytes() for w in weights()]
    end = 0
    for entry in sorted(entries.values(), key=lambda e: int(e["offset"])):
        offset, length = int(entry["offset"]), int(entry["length"])
        assert entry["location"] == "f.onnx.data"
        assert offset % (UNIT if length >= 1 << 20 else PAGE) == 0 and offset >= end
        assert data[end:offset] == bytes(offset - end)
        assert data[offset:offset + length] in wanted
        end = offset + length
    assert end == len(data)


def test_a_model_below_the_limit_is_one_file(tmp_path, monkeypatch):
    for limit in (None, "10000000", str(1 << 62)):
        if limit:
            monkeypatch.setenv("KEEL_ONNX_FILE_BYTES", limit)
        keel.onnx.save(tmp_path / "f.onnx", program())
        assert os.listdir(tmp_path) == ["f.onnx"]
        assert entries_of(onnx.load(tmp_path / "f.onnx")) == {}


def test_the_limit_is_a_number(tmp_path, monkeypatch):
    for bad in ("2GB", "-1", " 7", str(1 << 64)):
        monkeypatch.setenv("KEEL_ONNX_FILE_BYTES", bad)
        with pytest.raises(keel.InvalidError, match=f"KEEL_ONNX_FILE_BYTES is '{bad}'; expected a number of bytes"):
            keel.onnx.save(tmp_path / "f.onnx", program())
        assert os.listdir(tmp_path) == []


def test_a_pair_replaces_a_pair(tmp_path, small_files, monkeypatch):
    path = tmp_path / "f.onnx"
    keel.onnx.save(path, keel.function(lambda x: keel.Variable(np.zeros(60000, "f4")) + keel.reduce_sum(x)).concrete(np.ones(2, "f4")))
    keel.onnx.save(path, program())
    for got, weight in zip(results_of(path), weights()):
        np.testing.assert_array_equal(got, 2 + weight)
    assert sorted(os.listdir(tmp_path)) == ["f.onnx", "f.onnx.data"]


def test_no_file_where_one_cannot_be_written(tmp_path, small_files):
    (tmp_path / "f.onnx.data").mkdir()
    with pytest.raises(keel.PreconditionError, match=r"f\.onnx\.data': it exists and is not a regular file"):
        keel.onnx.save(tmp_path / "f.onnx", program())
    assert os.listdir(tmp_path) == ["f.onnx.data"]
    (tmp_path / "f.onnx.data").rmdir()
    (tmp_path / "f.onnx").mkdir()
    with pytest.raises(keel.PreconditionError, match=r"f\.onnx': it exists and is not a regular file"):
        keel.onnx.save(tmp_path / "f.onnx", program())
    assert os.listdir(tmp_path) == ["f.onnx"]


def run_limited(path, most):
    """Saves in a process whose files have at most so many bytes, as on a full disk."""
    code = f"import signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); import test_onnx_export_data as t, keel; keel.onnx.save({str(path)!r}, t.program())"
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=os.path.dirname(__file__), timeout=120,
                          env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most, most)))


def test_the_old_pair_stays_where_the_disk_is_full(tmp_path, small_files):
    path = tmp_path / "f.onnx"
    failed = run_limited(path, 200_000)
    assert "f.onnx.data" in failed.stderr and "the previous file is unchanged" in failed.stderr
    assert os.listdir(tmp_path) == []
    keel.onnx.save(path, program())
    before = {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)}
    assert run_limited(path, 200_000).returncode == 1
    assert {name: (tmp_path / name).read_bytes() for name in os.listdir(tmp_path)} == before
    assert run_limited(path, 10_000_000).returncode == 0
