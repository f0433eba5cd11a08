"""The sides of a comparison: a side loads a model once, then runs it on request, with bound inputs.

How to read it: each has `once`, which runs the model, and `answer`. `serve` is the process around one of them.
"""
import ctypes as C
import importlib
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from worker import failure, timed

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tests" / "python")]


class KeelSide:
    kept = True  # a converted Keel file: mapped, not copied

    def __init__(self, model, path, inputs, threads, device):
        import keel_abi as k
        self.k, self.context = k, k.Context(threads=threads)
        self.plan = self.load(path).session(device).prepare()
        self.keep, self.inputs = k.pointers(self.context, inputs)
        self.count, self.outputs = len(inputs), (C.c_void_p * 1)()
        self.run, self.release, self.error = k.lib().keel_plan_run, k.lib().keel_array_free, C.c_void_p()
        self.release.argtypes = [C.c_void_p]

    def load(self, path):
        if not self.kept:
            return self.context.import_file(path)
        kept = Path(path).with_suffix(f".{os.getpid()}.keel")
        subprocess.run([self.k.BUILD / "bin/keel", "convert", path, kept], check=True, capture_output=True)
        module = self.context.load(str(kept))
        kept.unlink()
        return module

    def once(self):
        if self.run(self.plan, self.inputs, self.count, self.outputs, 1, C.byref(self.error)):
            raise self.k.KeelError(3, self.error)
        self.release(self.outputs[0])

    def answer(self):
        return np.array(self.plan.run(*self.keep)[0])


class KeelImportSide(KeelSide):
    """From the ONNX file in the same process, like ONNX Runtime, for peak memory."""
    kept = False


class KeelPythonSide:
    """The same plan through the Python package."""

    def __init__(self, model, path, inputs, threads, device):
        from forms import keel_form
        keel = keel_form.package()
        self.plan = keel.Session(keel.import_file(path), device, threads=threads).prepare()
        self.inputs = [keel.array(x) for x in inputs]

    def once(self):
        self.plan(*self.inputs)

    def answer(self):
        return np.array(self.plan(*self.inputs))


class KeelHostSide(KeelPythonSide):
    """The same from host memory to host memory."""

    def once(self):
        np.array(self.plan(*self.inputs))


class OrtSide:
    form = None  # of the file: as it is given

    def __init__(self, model, path, inputs, threads, device):
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        self.session = ort.InferenceSession(str(self.file(model, path, inputs)), options, providers=["CPUExecutionProvider"])
        self.feeds = {i.name: np.asarray(x) for i, x in zip(self.session.get_inputs(), inputs)}
        self.binding = self.session.io_binding()
        self.values = [ort.OrtValue.ortvalue_from_numpy(v) for v in (self.answer(), *self.feeds.values())]
        self.binding.bind_ortvalue_output("y", self.values[0])
        for name, value in zip(self.feeds, self.values[1:]):
            self.binding.bind_ortvalue_input(name, value)

    def file(self, model, path, inputs):
        if self.form is None:
            return path
        from forms import composite_form, onnx_form
        other = Path(path).with_suffix(f".{self.form}.onnx")
        return onnx_form.write(model, inputs, other, kind=getattr(composite_form, self.form))

    def once(self):
        self.session.run_with_iobinding(self.binding)

    def answer(self):
        return self.session.run(None, self.feeds)[0]


class OrtCompositeSide(OrtSide):
    """The same weights in a file with ONNX's composite ops and fixed sizes."""
    form = "CompositeForm"


class OrtRuntimeSide(OrtSide):
    """The same with ONNX Runtime's own composite ops."""
    form = "RuntimeForm"


def ncnn(*arguments):
    return importlib.import_module("forms.ncnn_form").NcnnSide(*arguments)


def framework(module, **how):
    """A framework: `prepare` of its form, with the settings of one variant."""
    class Side:
        def __init__(self, model, path, inputs, threads, device):
            self.once = importlib.import_module(f"forms.{module}").prepare(model, path, inputs, threads, **how)

        def answer(self):
            return np.asarray(self.once())
    return Side


# name: (class, required module)
SIDES = {
    "keel": (KeelSide, None),
    "keel_python": (KeelPythonSide, None),
    "keel_import": (KeelImportSide, None),
    "keel_host": (KeelHostSide, None),
    "ncnn": (ncnn, "ncnn"),
    "onnxruntime": (OrtSide, "onnxruntime"),
    "onnxruntime_composite": (OrtCompositeSide, "onnxruntime"),
    "onnxruntime_contrib": (OrtRuntimeSide, "onnxruntime"),
    "torch": (framework("torch_form"), "torch"),
    "torch_compiled": (framework("torch_form", mode="default"), "torch"),
    "torch_tuned": (framework("torch_form", mode="max-autotune"), "torch"),
    "jax": (framework("jax_form"), "jax"),
    "jax_constants": (framework("jax_form", constants=True), "jax"),
    "tensorflow": (framework("tf_form"), "tensorflow"),
    "tensorflow_frozen": (framework("tf_form", how="frozen"), "tensorflow"),
    "tensorflow_xla": (framework("tf_form", how="xla"), "tensorflow"),
}
PEERS = ("onnxruntime", "torch", "jax", "tensorflow")  # peer: variants; the fastest one counts


def peak_bytes():
    """Peak resident size of this process. ru_maxrss would include the parent's size before exec."""
    line = next(s for s in Path("/proc/self/status").read_text().splitlines() if s.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])


def serve(connection, name, workload, path, threads, device, cpu_time):
    """Sends the answer; then, per received number of runs, the seconds of one run."""
    clock = time.process_time if cpu_time else time.perf_counter
    try:
        from models import DEVICE_WORKLOADS, WORKLOADS
        model, inputs = (WORKLOADS | DEVICE_WORKLOADS)[workload][:2]
        runner = SIDES[name][0](model, path, inputs(), threads, device)
        connection.send(runner.answer())
        while (runs := connection.recv()) is not None:
            if runs == "peak":
                connection.send(peak_bytes())
                continue
            if runs > 1:  # warms up threads and caches, and maps memory that the system reclaimed while idle
                runner.once()
            connection.send(timed(runner.once, runs, clock))
    except Exception as e:  # the parent reports it
        connection.send(failure(name, e))
