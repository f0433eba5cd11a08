"""The sides of a comparison: a side loads a model once, then runs it when told to, with bound inputs.

How to read it: each has `once`, which runs the model, and `answer`. `serve` is the process around one of them.
"""
import ctypes as C
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[2] / "tests" / "python")]


class KeelSide:
    def __init__(self, model, path, inputs, threads, device):
        import keel_abi as k
        self.k, self.context = k, k.Context(threads=threads)
        kept = Path(path).with_suffix(f".{os.getpid()}.keel")  # a file as one ships it: mapped, not copied
        subprocess.run([k.BUILD / "bin/keel", "convert", path, kept], check=True, capture_output=True)
        self.plan = self.context.load(str(kept)).session(device).prepare()
        kept.unlink()
        self.keep, self.inputs = k.pointers(self.context, inputs)
        self.count, self.outputs = len(inputs), (C.c_void_p * 1)()
        self.run, self.release, self.error = k.lib().keel_plan_run, k.lib().keel_array_release, C.c_void_p()
        self.release.argtypes = [C.c_void_p]

    def once(self):
        if self.run(self.plan, self.inputs, self.count, self.outputs, 1, C.byref(self.error)):
            raise self.k.KeelError(3, self.error)
        self.release(self.outputs[0])

    def answer(self):
        return np.array(self.plan.run(*self.keep)[0])


class KeelPythonSide:
    """The same plan from the Python package."""

    def __init__(self, model, path, inputs, threads, device):
        from forms import keel_form
        keel = keel_form.package()
        self.plan = keel.Session(keel.import_file(path), device, threads=threads).prepare()
        self.inputs = [keel.array(x) for x in inputs]

    def once(self):
        self.plan(*self.inputs)

    def answer(self):
        return np.array(self.plan(*self.inputs))


class OrtSide:
    def __init__(self, model, path, inputs, threads, device):
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
        self.session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.feeds = {i.name: np.asarray(x) for i, x in zip(self.session.get_inputs(), inputs)}
        self.binding = self.session.io_binding()
        self.values = [ort.OrtValue.ortvalue_from_numpy(v) for v in (self.answer(), *self.feeds.values())]
        self.binding.bind_ortvalue_output("y", self.values[0])
        for name, value in zip(self.feeds, self.values[1:]):
            self.binding.bind_ortvalue_input(name, value)

    def once(self):
        self.session.run_with_iobinding(self.binding)

    def answer(self):
        return self.session.run(None, self.feeds)[0]


class FrameworkSide:
    """PyTorch, JAX and TensorFlow: `prepare` of their form."""

    def answer(self):
        return np.asarray(self.once())


class TorchSide(FrameworkSide):
    compiled = False

    def __init__(self, model, path, inputs, threads, device):
        from forms import torch_form
        self.once = torch_form.prepare(model, path, inputs, threads, self.compiled)


class TorchCompiledSide(TorchSide):
    compiled = True


class JaxSide(FrameworkSide):
    def __init__(self, model, path, inputs, threads, device):
        from forms import jax_form
        self.once = jax_form.prepare(model, path, inputs, threads)


class TfSide(FrameworkSide):
    def __init__(self, model, path, inputs, threads, device):
        from forms import tf_form
        self.once = tf_form.prepare(model, path, inputs, threads)


# name: (its class, the module that it needs)
SIDES = {
    "keel": (KeelSide, None),
    "keel_python": (KeelPythonSide, None),
    "onnxruntime": (OrtSide, "onnxruntime"),
    "torch": (TorchSide, "torch"),
    "torch_compiled": (TorchCompiledSide, "torch"),
    "jax": (JaxSide, "jax"),
    "tensorflow": (TfSide, "tensorflow"),
}


def peak_bytes():
    """The greatest resident size of this process. ru_maxrss would count the parent's, from before exec."""
    line = next(s for s in Path("/proc/self/status").read_text().splitlines() if s.startswith("VmHWM:"))
    return 1024 * int(line.split()[1])


def serve(connection, name, workload, path, threads, device, cpu_time):
    """Sends the answer; then for each number of runs that comes in, the seconds that one run took."""
    clock = time.process_time if cpu_time else time.perf_counter
    try:
        from models import WORKLOADS
        model, inputs = WORKLOADS[workload][:2]
        runner = SIDES[name][0](model, path, inputs(), threads, device)
        connection.send(runner.answer())
        while (runs := connection.recv()) is not None:
            if runs == "peak":
                connection.send(peak_bytes())
                continue
            runner.once()  # wakes threads and caches up, and memory that the system took for idle in between
            start = clock()
            for _ in range(runs):
                runner.once()
            connection.send((clock() - start) / runs)
    except Exception as e:  # the parent shows it
        connection.send(RuntimeError(f"{name}: {str(e).splitlines()[0] if str(e) else type(e).__name__}"))
