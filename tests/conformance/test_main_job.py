"""Two trained models give the same results as ONNX Runtime, on every device, for real input.

A printed seed selects files of this system ($KEEL_SEED repeats a run); whole vectors of probabilities are compared, not the
winners only.
"""
import os
import random
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import onnx
import pytest
from demo_models import (SENTENCE_VECTOR, file_features, file_model, long_enough, sentence_features,
                         sentence_model, similarities)
from keel_abi import BUILD, LIBRARY, ROOT
from onnx_cases import DEVICES, in_doubles

FILES, BATCH, TOLERANCE = 200 if os.environ.get("KEEL_SWEEP") else 50, 25, 1e-5
SENTENCES = ["A man is playing a guitar on the stage.", "Someone plays music for an audience.",
             "The stock market fell by three percent today.", "Share prices dropped this afternoon.",
             "Café crème, s'il vous plaît!", "How do I bake bread at home?",
             "Instructions for making a loaf in your own oven.", "No."]


def system_files(config, seed):
    """Readable files of /usr and /etc for the model, in an order determined by the seed."""
    found = [Path(folder, name) for top in ("/usr", "/etc") for folder, _, names in os.walk(top) for name in names]
    found.sort()
    random.Random(seed).shuffle(found)
    for path in found:
        try:
            if path.is_file() and long_enough(file_features(path, config), config):
                yield path
        except OSError:
            continue


def in_batches(run, features):
    """Concatenates batches; returns the whole matrix of probabilities."""
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return np.concatenate(list(pool.map(run, [features[i:i + BATCH] for i in range(0, FILES, BATCH)])))


def onnxruntime_runner(model):
    import onnxruntime
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    return lambda batch: session.run(None, {"bytes": batch})[0]


@pytest.fixture(scope="module")
def chosen():
    """Returns seed, paths, features, ONNX Runtime's probabilities, and the same computed in doubles."""
    model, config = file_model()
    seed = int(os.environ.get("KEEL_SEED", time.time_ns() % 2**32))
    files = system_files(config, seed)
    paths = [next(files) for _ in range(FILES)]
    features = np.stack([file_features(p, config) for p in paths])
    expected = in_batches(onnxruntime_runner(str(model)), features)
    exact = in_batches(onnxruntime_runner(in_doubles(onnx.load(model)).SerializeToString()), features)
    return seed, paths, features, expected, exact


@pytest.mark.parametrize("device", DEVICES)
def test_types_of_system_files(context, chosen, device, capsys):
    """Each vector must be within the tolerance of ONNX Runtime's. The model computes a variance as the difference of two sums,
    which for some files cancels all but a few bits: there ONNX Runtime's f32 differs from its own f64 by more than the tolerance,
    and Keel's result must be within the tolerance of f64, or closer to it than ONNX Runtime's."""
    seed, paths, features, expected, exact = chosen
    plan = context.import_file(file_model()[0]).session(device).prepare()
    got = in_batches(lambda batch: plan.run(batch)[0], features)
    assert got.shape == expected.shape == exact.shape == (FILES, 214)
    off, away, rounding = (np.abs(a - b).max(axis=1) for a, b in ((got, exact), (got, expected), (expected, exact)))
    with capsys.disabled():
        print(f" [KEEL_SEED={seed}: {FILES} files; furthest from ONNX Runtime {away.max():.2g}, from it in doubles "
              f"{off.max():.2g}; {(away <= TOLERANCE).sum()} within {TOLERANCE} of it] ", end="", flush=True)
    good = (away <= TOLERANCE) | (off <= TOLERANCE) | (off < rounding)
    assert good.all(), [f"seed {seed}: {paths[i]}: {away[i]:.3g} from ONNX Runtime, {off[i]:.3g} from it in doubles, "
                        f"which itself is {rounding[i]:.3g} away" for i in np.flatnonzero(~good)]
    assert (away <= TOLERANCE).mean() > 0.75, "too few files to compare directly"
    assert len(set(expected.argmax(axis=1))) > 3, "the files chosen have too few types to test anything"


@pytest.mark.parametrize("device", DEVICES)
def test_meaning_of_sentences(context, device):
    import onnxruntime
    ids, mask = sentence_features(SENTENCES)
    module = context.import_file(sentence_model())
    entry = module.info()["entries"][0]
    feeds = {"input_ids": ids, "attention_mask": mask}
    got = dict(zip([r["name"] for r in entry["results"]],
                   module.session(device).prepare().run(*[feeds[p["name"]] for p in entry["params"]])))
    session = onnxruntime.InferenceSession(str(sentence_model()), providers=["CPUExecutionProvider"])
    expected = dict(zip([o.name for o in session.get_outputs()], session.run(None, feeds)))
    assert got.keys() == expected.keys()
    for name, want in expected.items():
        np.testing.assert_allclose(got[name], want, rtol=1e-4, atol=TOLERANCE, err_msg=name)
    alike = similarities(got[SENTENCE_VECTOR])
    np.testing.assert_allclose(alike, similarities(expected[SENTENCE_VECTOR]), rtol=0, atol=TOLERANCE)
    assert alike[0, 1] > alike[0, 2] and alike[2, 3] > alike[2, 5], "sentences of like meaning come out unlike"


def test_bytes_become_input_as_the_model_wants(tmp_path):
    config = file_model()[1]
    path = tmp_path / "x"
    path.write_bytes(b" \n" + bytes(range(65, 91)) + b"\t")
    features = file_features(path, config)
    assert features[:27].tolist() == [*range(65, 91), 9]  # only the left end is stripped for the head
    assert features[27] == features[1024] == 256
    assert features[-28:].tolist() == [32, 10, *range(65, 91)]
    path.write_bytes(b"a" * 5000 + b"b" * 1024)
    features = file_features(path, config)
    assert set(features[:1024]) == {97} and set(features[1024:]) == {98}


@pytest.mark.parametrize("language", ["c", "python"])
def test_the_short_example_programs_do_the_same_run(context, tmp_path, language):
    model, config = file_model()
    features = np.asarray(file_features(Path(__file__), config), np.int32)[None]
    context.import_file(model).save(str(tmp_path / "m.keel"))
    (tmp_path / "bytes.bin").write_bytes(features.tobytes())
    program = {"c": [BUILD / "examples/example_run"],
               "python": [sys.executable, ROOT / "sdk/examples/run_ctypes.py", LIBRARY]}[language]
    done = subprocess.run([*map(str, program), "m.keel", "cpu", "i32:1x2048:bytes.bin"], cwd=tmp_path,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    expected = onnxruntime_runner(str(model))(features)[0]
    np.testing.assert_allclose(np.array(done.stdout.split(), np.float32), expected, rtol=0, atol=TOLERANCE)
