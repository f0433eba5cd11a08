"""Runs a Keel file on raw inputs with ctypes alone; prints its f32 results, one result per line.
   run_ctypes.py LIBKEEL MODEL DEVICE INPUT...   INPUT: f32:2x3:data.bin (dtype, dims, file), in order"""
import ctypes as c, math, sys

class Tensor(c.Structure):
    _fields_ = [("data", c.c_void_p), ("device", c.c_int32 * 2), ("ndim", c.c_int32), ("dtype", c.c_uint32),
                ("shape", c.POINTER(c.c_int64)), ("strides", c.c_void_p), ("offset", c.c_uint64)]

library, model, device, *inputs = sys.argv[1:]
keel, error = c.CDLL(library), c.c_void_p()
keel.keel_error_text.restype = c.c_char_p

def call(function, *arguments):  # the last parameter of a function that can fail is the error
    if getattr(keel, function)(*arguments, c.byref(error)):
        sys.exit(function + ": " + keel.keel_error_text(error, 0).decode())

def make(function, *arguments):  # ... and the one before it the new object
    out = c.c_void_p()
    call(function, *arguments, c.byref(out))
    return out

def read_input(spec):
    dtype, dims, path = spec.split(":", 2)
    shape = [int(d) for d in dims.split("x") if d]
    code = {"i": 0, "u": 1, "f": 2}[dtype[0]] | int(dtype[1:]) << 8 | 1 << 16
    data = open(path, "rb").read()
    tensor = Tensor(c.cast(data, c.c_void_p), (1, 0), len(shape), code, (c.c_int64 * len(shape))(*shape))
    assert len(data) == math.prod(shape) * int(dtype[1:]) // 8, f"{path}: {len(data)} bytes do not fill {spec}"
    return make("keel_array_from_tensor", context, c.byref(tensor), None, None)

context = make("keel_context_new", None, 0)
call("keel_plugin_load", context, None)
module = make("keel_module_load", context, model.encode())
session = make("keel_session_new", module, device.encode(), None, 0)
plan = make("keel_plan_new", session, None, 0, None, 0, None, 0)
arrays, n_out = [read_input(i) for i in inputs], c.c_uint32()
keel.keel_plan_counts(plan, None, c.byref(n_out))
results = (c.c_void_p * n_out.value)()
call("keel_plan_run", plan, (c.c_void_p * len(arrays))(*arrays), len(arrays), results, n_out)
for r in results:
    tensor = Tensor()
    keel.keel_array_tensor(c.c_void_p(r), c.byref(tensor))
    count = math.prod(tensor.shape[:tensor.ndim])
    print(*("%.9g" % v for v in c.cast(tensor.data, c.POINTER(c.c_float))[:count]))
