"""The two sides of a comparison, each in a process of its own, so that neither's idle threads disturb the
other: a side loads a model once, then measures when told to.

How to read it: KeelSide and OrtSide have `once`, which runs the model with bound inputs; `Worker` is the
process around one of them.
"""
import ctypes as C
import multiprocessing
import time

import numpy as np


class KeelSide:
    def __init__(self, path, x, threads, device):
        import keel_abi as k
        self.k, self.context = k, k.Context(threads=threads)
        self.plan = self.context.import_file(path).session(device).prepare()
        self.keep, self.inputs = k.pointers(self.context, [x])
        self.outputs = (C.c_void_p * 1)()
        self.run, self.release, self.error = k.lib().keel_plan_run, k.lib().keel_array_release, C.c_void_p()
        self.release.argtypes = [C.c_void_p]

    def once(self):
        if self.run(self.plan, self.inputs, 1, self.outputs, 1, C.byref(self.error)):
            raise self.k.KeelError(3, self.error)
        self.release(self.outputs[0])

    def answer(self):
        return np.array(self.plan.run(self.keep[0])[0])


class OrtSide:
    def __init__(self, path, x, threads, device):
        import onnxruntime as ort
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads, options.log_severity_level = threads, 1, 4
        self.session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.x = {self.session.get_inputs()[0].name: x}
        self.binding = self.session.io_binding()
        self.values = [ort.OrtValue.ortvalue_from_numpy(v) for v in (x, self.answer())]
        self.binding.bind_ortvalue_input(next(iter(self.x)), self.values[0])
        self.binding.bind_ortvalue_output(self.session.get_outputs()[0].name, self.values[1])

    def once(self):
        self.session.run_with_iobinding(self.binding)

    def answer(self):
        return self.session.run(None, self.x)[0]


SIDES = {"keel": KeelSide, "onnxruntime": OrtSide}


def serve(connection, side, *arguments):
    """Sends the answer; then for each number of runs that comes in, the seconds that one run took."""
    try:
        runner = SIDES[side](*arguments)
        connection.send(runner.answer())
        while (runs := connection.recv()) is not None:
            runner.once()  # wakes threads and caches up
            start = time.perf_counter()
            for _ in range(runs):
                runner.once()
            connection.send((time.perf_counter() - start) / runs)
    except Exception as e:  # the parent shows it
        connection.send(RuntimeError(f"{side}: {e}"))


class Worker:
    def __init__(self, side, *arguments):
        spawn = multiprocessing.get_context("spawn")
        self.connection, theirs = spawn.Pipe()
        self.process = spawn.Process(target=serve, args=(theirs, side, *arguments), daemon=True)
        self.process.start()
        theirs.close()
        self.answer = self.receive()

    def receive(self):
        got = self.connection.recv()
        if isinstance(got, Exception):
            raise got
        return got

    def measure(self, runs):
        self.connection.send(runs)
        return self.receive()

    def stop(self):
        try:
            self.connection.send(None)
        except BrokenPipeError:
            pass
        self.process.join(10)
