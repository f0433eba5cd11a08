"""tools/bench: statistics with known values, models by NumPy, tables that mark missing measurements."""
import functools
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

BENCH = Path(__file__).resolve().parents[2] / "tools" / "bench"
sys.path[:0] = [str(BENCH), str(BENCH / "ops")]
onnx = pytest.importorskip("onnx", reason="models are written as ONNX files")
from cases import CASES  # noqa: E402
from bench import Field, row_of  # noqa: E402
from figures import UnsettledError, host_text, interval, markdown, refuse_unsettled, verdict  # noqa: E402
from forms import composite_form, onnx_form  # noqa: E402
from host import busy, host  # noqa: E402
import limited  # noqa: E402
from models import WORKLOADS, bert, gpt2, mlp  # noqa: E402
from report import put  # noqa: E402


def test_interval_of_the_median():
    # Order statistics of binomial(n, 1/2): ranks 4 and 12 of 15 cover 96.5 %, 2 and 8 of 9 cover 96.1 %.
    assert interval(list(range(15, 0, -1))) == (4, 12) and interval(range(1, 10)) == (2, 8)
    assert interval([3.0]) == (3.0, 3.0)


ROW = {"name": "thing", "what": "thing", "ms": {"keel_python": 2.0, "torch": 0.0015}, "best": "torch", "ratio": 1.5, "ratio_low": 1.25,
       "ratio_high": 1.5, "rounds": 15, "variants": {"torch": "torch_compiled"}, "peak_bytes": {"keel": 3e6}}
HOST = {"date": "2026-01-02", "cpu": "A CPU", "isa": "AVX2", "cores": 2, "load": 0.5, "commit": "abc", "peers": {"torch": "1.0"}}
REPORT = {"host": HOST, "threads": 2, "results": [ROW]}


def test_tables_say_what_is_not_measured_and_who_is_ahead():
    text = markdown(REPORT, ["onnxruntime", "torch"])
    assert text.startswith("2026-01-02, 2 cores of A CPU (AVX2), load 0.5 at the start, 2 threads, all sides in turn, Keel abc, PyTorch 1.0.\n")
    assert "| thing | 2 ms | not measured | 1.5 µs (compiled) | 1.50 [1.25, 1.50] of PyTorch, **ahead** | 15 |" in text
    assert "| thing | 3 MB | not measured | not measured |" in text
    assert verdict({**ROW, "ratio_low": 0.9, "ratio_high": 1.1}).endswith("of PyTorch, level") and verdict({**ROW, "ratio_low": 0.8, "ratio_high": 0.9}).endswith("of PyTorch")


def test_no_table_of_figures_that_vary_too_much():
    settled = {f"row {i}": (1.0, 1.3) for i in range(3)}
    refuse_unsettled({**settled, "wide": (0.8, 1.1)})
    with pytest.raises(UnsettledError, match=r"2 of 5 rows vary by more than a factor of 1.3 .*wide \[0.80, 1.10\], wider \[0.50, 2.00\]"):
        refuse_unsettled({**settled, "wide": (0.8, 1.1), "wider": (0.5, 2.0)})
    assert verdict({**ROW, "ratio_low": 0.7, "ratio_high": 0.95}).endswith("of PyTorch, not settled")
    with pytest.raises(UnsettledError):
        markdown({**REPORT, "results": [{**ROW, "ratio_high": 2}]}, ["torch"])


def test_busy_processes_are_named():
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        shares = busy(1)
        name = Path(f"/proc/{process.pid}/comm").read_text().strip()
    finally:
        process.kill()
        process.wait()
    assert shares.get(name, 0) > 0.2, shares
    assert host_text({**HOST, "busy": {name: 0.97}}) == f"2 cores of A CPU (AVX2), load 0.5 at the start ({name} 97 %)"


def test_of_a_peer_the_fastest_variant_counts():
    class Side:
        def __init__(self, name):
            self.name, self.first, self.seconds, self.stopped = name, np.ones(2), {"torch": 3, "torch_compiled": 1, "jax": 2}.get(name, 9), False

        def ask(self, what):
            return self.seconds

        def stop(self):
            self.stopped = True
    made = {name: Side(name) for name in ("keel_python", "keel", "torch", "torch_compiled", "jax")}
    field = Field(list(made), {name: (None, None) for name in made}, made.get)
    assert {name: w.name for name, w in field.workers.items()} == {"keel_python": "keel_python", "torch": "torch_compiled", "jax": "jax"}
    assert {name for name, side in made.items() if side.stopped} == {"keel", "torch"}
    assert field.times(3) == {"keel_python": [9] * 3, "torch": [1] * 3, "jax": [2] * 3}
    row = row_of("r", "r", field.times(3), **field.row())
    assert (row["best"], row["ratio"], row["rounds"], row["variants"]["torch"]) == ("torch", 9, 3, "torch_compiled")


def test_a_side_that_computes_something_else_stops_the_row():
    class Side:
        def __init__(self, answer):
            self.first = answer

        def ask(self, what):
            return 1

        def stop(self):
            pass
    answers = {"keel": Side(np.ones(2)), "jax": Side(np.array([1, 1.01]))}
    with pytest.raises(RuntimeError, match="jax: the answer differs by 0.01"):
        Field(list(answers), {name: (None, None) for name in answers}, answers.get)


def test_tables_go_between_their_marks():
    text = "a\n<!-- figures: x -->\nold\n<!-- end -->\nb\n<!-- figures: y -->\nkept\n<!-- end -->\n"
    assert put(text, "x", "new\n") == text.replace("old", "new")


def test_the_host_says_what_it_is():
    found = host()
    assert found["cpu"] and found["isa"] and found["cores"] >= 1 and found["commit"]


@pytest.mark.parametrize("kind", [composite_form.CompositeForm, composite_form.RuntimeForm, composite_form.SpelledForm])
@pytest.mark.parametrize("model, inputs", [(functools.partial(gpt2, layers=1, words=60), lambda: [np.arange(128)[None] % 60]),
                                           (functools.partial(bert, layers=1, inner=96), lambda: [np.random.default_rng(2).standard_normal(
                                               (1, 4, 768)).astype(np.float32)])], ids=["gpt2", "bert"])
def test_all_kinds_of_files_are_the_same_model(tmp_path, model, inputs, kind):
    ort = pytest.importorskip("onnxruntime")
    options, answers = ort.SessionOptions(), []
    options.intra_op_num_threads = 1
    for each in (onnx_form.OnnxForm, kind):
        path = onnx_form.write(model, inputs(), tmp_path / "m.onnx", kind=each)
        answers.append(ort.InferenceSession(path, options, providers=["CPUExecutionProvider"]).run(None, {"x0": inputs()[0]})[0])
    np.testing.assert_allclose(answers[1], answers[0], rtol=1e-3, atol=1e-3)


def test_all_forms_get_the_same_weights(tmp_path, context, device):
    x = np.random.default_rng(1).standard_normal((3, 784)).astype(np.float32)
    path = onnx_form.write(mlp, [x], tmp_path / "mlp.onnx", free_rows=True)
    weights, y = onnx_form.weights_of(path), x
    assert [w.shape for w in weights[::2]] == [(784, 128), (128, 128), (128, 128), (128, 10)]
    for w, b in zip(weights[::2], weights[1::2]):
        y = np.maximum(y, 0) if y is not x else y
        y = y @ w + b
    got, = context.import_file(path).session(device).prepare().run(x)
    np.testing.assert_allclose(got, y, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", ["chain", "power", "one"])
def test_small_models_compute_what_they_say(tmp_path, context, name):
    model, inputs, _ = WORKLOADS[name]
    path = onnx_form.write(model, inputs(), tmp_path / "m.onnx")
    given = inputs()
    if name == "power":
        wanted = given[0]
        for _ in range(100):
            wanted = wanted @ given[0]
    else:
        wanted, b = given
        for _ in range(100 if name == "chain" else 1):
            wanted = np.float32(np.float32(wanted * b) + b) if name == "chain" else wanted + b
    got, = context.import_file(path).session("reference").prepare().run(*given)
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


@pytest.mark.parametrize("family", ["attention", "cast", "expand", "pad", "pool", "slice", "transpose"])
def test_cases_of_ops_are_sound(family):
    cases = [c for c in CASES.values() if c.family == family]
    assert cases
    for case in cases:
        inferred = onnx.shape_inference.infer_shapes(case.model(), check_type=True, strict_mode=True)
        assert inferred.graph.output[0].type.tensor_type.elem_type, case.name


def test_a_library_limited_to_avx2_sees_no_avx512(tmp_path):
    """Its copy has a breakpoint in place of each cpuid; the preloaded handler answers all leaves as the processor, but for newer vectors."""
    (tmp_path / "leaf.c").write_text("#include <cpuid.h>\nvoid leaf(unsigned l, unsigned s, unsigned* r) { __cpuid_count(l, s, r[0], r[1], r[2], r[3]); }\n")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", tmp_path / "own.so", tmp_path / "leaf.c"], check=True)
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", tmp_path / "trap.so", BENCH / "cpuid_avx2.c"], check=True)
    shutil.copy(tmp_path / "own.so", tmp_path / "limited.so")
    assert len(limited.cpuid_places(tmp_path / "own.so")) == 1
    limited.without_cpuid(tmp_path / "limited.so")
    assert limited.cpuid_places(tmp_path / "limited.so") == []
    ask = ("import ctypes, sys; r = (ctypes.c_uint * 4)(); leaf = ctypes.CDLL(sys.argv[1]).leaf\n"
           "for l, s in ((0, 0), (7, 0), (7, 1)): leaf(l, s, r); print(*r)")
    own, less = (np.array(subprocess.run([sys.executable, "-c", ask, tmp_path / f"{name}.so"], env={**os.environ, "LD_PRELOAD": str(tmp_path / "trap.so")},
                                         capture_output=True, text=True, check=True).stdout.split(), np.uint32).reshape(3, 4) for name in ("own", "limited"))
    assert (own[0] == less[0]).all() and not (less[1:] & ~own[1:]).any()
    assert not less[1, 1] & 1 << 16 and less[1, 1] & 1 << 5 == own[1, 1] & 1 << 5  # AVX512F; AVX2
    assert (own[1:] & ~less[1:]).any() == ("avx512f" in Path("/proc/cpuinfo").read_text())
