"""Observed runs through the C ABI: keel_plan_run_observed."""
import ctypes as C

from keel_abi import Tensor, call, lib, pointers


class Event(C.Structure):
    _fields_ = [("struct_size", C.c_uint32), ("n_in", C.c_uint32), ("n_out", C.c_uint32), ("index", C.c_uint32),
                ("node", C.c_char_p), ("op", C.c_char_p), ("impl", C.c_char_p),
                ("inputs", C.POINTER(C.POINTER(Tensor))), ("outputs", C.POINTER(C.POINTER(Tensor))),
                ("out_names", C.POINTER(C.c_char_p))]


OBSERVER = C.CFUNCTYPE(C.c_int32, C.c_void_p, C.POINTER(Event))


def run_observed(plan, observer, *inputs):
    """observer(event) after each launch; a true result stops the run. Results are dropped."""
    keep, ins = pointers(plan.keep[0].context, inputs)
    n = plan.outputs()
    out = (C.c_void_p * max(1, n))()
    told = OBSERVER(lambda _, event: int(bool(observer(event.contents))))
    call("keel_plan_run_observed", plan, ins, len(inputs), out, n, told, None)
    for array in out[:n]:
        lib().keel_array_free(C.c_void_p(array))
