"""The sides of ops.py, each a process that prepares one case of cases.py after another and measures it.

How to read it: `prepare` of a side returns two functions: one runs the op once, one returns its answer.
"""
import ctypes as C
import sys
import tempfile
import time
import timeit
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT / "tools" / "bench"), str(Path(__file__).resolve().parent)]
import programs  # noqa: E402, F401  adds to CASES
from cases import CASES  # noqa: E402
from worker import failure, timed  # noqa: E402


class Keel:
    def __init__(self, threads, device):
        import keel_abi
        self.k, self.device, self.context = keel_abi, device, keel_abi.Context(threads=threads)

    def prepare(self, case):
        import onnx
        with tempfile.NamedTemporaryFile(suffix=".onnx") as file:
            onnx.save(case.model(), file.name)
            plan = self.context.import_file(file.name).session(self.device).prepare()
        keep, inputs = self.k.pointers(self.context, case.arrays()[0])
        n, outputs, error = len(keep), (C.c_void_p * 1)(), C.byref(C.c_void_p())
        run, release = self.k.lib().keel_plan_run, self.k.lib().keel_array_free
        release.argtypes = [C.c_void_p]

        def once():
            if run(plan, inputs, n, outputs, 1, error):
                raise RuntimeError("the run failed")
            release(outputs[0])
        return once, lambda: np.array(plan.run(*keep)[0])


class OnnxRuntime:
    def __init__(self, threads, device):
        import onnxruntime
        self.ort, self.options = onnxruntime, onnxruntime.SessionOptions()
        self.options.intra_op_num_threads, self.options.log_severity_level = threads, 4

    def prepare(self, case):
        session = self.ort.InferenceSession(case.model().SerializeToString(), self.options,
                                            providers=["CPUExecutionProvider"])
        feeds = {i.name: x for i, x in zip(session.get_inputs(), case.arrays()[0])}
        answer, binding = session.run(["y"], feeds)[0], session.io_binding()
        keep = [self.ort.OrtValue.ortvalue_from_numpy(v) for v in (answer, *feeds.values())]
        binding.bind_ortvalue_output("y", keep[0])
        for name, value in zip(feeds, keep[1:]):
            binding.bind_ortvalue_input(name, value)
        return lambda keep=keep: session.run_with_iobinding(binding), lambda: answer


class Torch:
    def __init__(self, threads, device):
        import torch
        self.torch = torch
        torch.set_num_threads(threads)
        torch.inference_mode().__enter__()

    def prepare(self, case):
        """Images and windows channels first, or channels last if that is faster."""
        operands = case.ordered(*([self.torch.tensor(x) for x in part] for part in case.arrays()))
        last = [x.contiguous(memory_format=self.torch.channels_last) if x.ndim == 4 else x for x in operands]
        images = case.family in ("conv", "pool")
        best = min([operands, last] if images else [operands], key=lambda xs: min(
            timeit.repeat(lambda: case.torch(self.torch, *xs), number=1, repeat=5)))
        return lambda: case.torch(self.torch, *best), lambda: case.torch(self.torch, *best).numpy()


SIDES = {"keel": Keel, "onnxruntime": OnnxRuntime, "torch": Torch}


def serve(connection, name, threads, device, cpu_time):
    """On the name of a case: prepares it and sends the answer. On a number: runs that many times and sends the seconds of one run."""
    try:
        side = SIDES[name](threads, device)
        connection.send(None)
    except Exception as e:
        return connection.send(RuntimeError(f"{name}: {e}"))
    once, clock = None, time.process_time if cpu_time else time.perf_counter
    while (wanted := connection.recv()) is not None:
        try:
            if isinstance(wanted, str):
                once, answer = side.prepare(CASES[wanted])
                connection.send(answer())
                continue
            once()  # warms up threads and caches
            connection.send(timed(once, wanted, clock))
        except Exception as e:
            connection.send(failure(name, e))
