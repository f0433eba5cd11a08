"""Memory of the counting device: what it says of itself, tensors of other libraries, memory of the program, its queue of downloads,
memory for the states of launches."""
import ctypes as C
import gc
import json
import threading

import counting
import keel
import keel_abi
import numpy as np
import pytest
from counting import LACKS_DOWNLOADS, LACKS_WRAP, counted, counts

pytestmark = pytest.mark.usefixtures("null")
X = np.arange(12, dtype=np.float32).reshape(3, 4)


def there(x):
    moved = keel.array(x) + 0.0
    assert moved.device == "null:0"
    return moved


def wrapped():
    gc.collect()
    return counts("null").get("wrapped", 0)


def test_what_the_device_says_of_itself():
    info, = [d for d in json.loads(keel.report("devices")) if d["name"] == "null:0"]
    assert info["uuid"] == "00112233-4455-6677-8899-aabbccddeeff"
    assert info["capabilities"] == "every op of the reference, counts"
    other, = [d for d in json.loads(keel.report("devices")) if d["name"] == "reference:0"]
    assert other.get("uuid", "") == "" and other.get("capabilities", "") == ""


def test_a_tensor_goes_out_and_in_without_a_copy():
    x = there(X)
    x.numpy()
    assert x.__dlpack_device__() == (12, 7)
    with counted("null") as seen:
        y = keel.from_dlpack(x)
    assert seen == {"wraps": 1} and y.device == "null:0"
    assert wrapped() == 1
    del x
    gc.collect()
    np.testing.assert_array_equal((y + 1.0).numpy(), X + 1)
    np.testing.assert_array_equal(y.numpy(), X)
    del y
    assert wrapped() == 0


def test_a_legacy_capsule_and_an_empty_tensor():
    from keel import _keel
    y = _keel.take_dlpack(there(X).__dlpack__())
    np.testing.assert_array_equal(y.numpy(), X)
    empty = keel.from_dlpack(there(np.empty((0, 3), np.float32)))
    assert empty.shape == (0, 3) and empty.device == "null:0"


def test_memory_in_use_is_released_once_its_work_is_done(null):
    x = there(X)
    x.numpy()
    y = keel.from_dlpack(x)
    z = y * 2.0
    null.null_hold(1)
    z = y * 2.0
    del y
    assert wrapped() == 1
    null.null_hold(0)
    np.testing.assert_array_equal(z.numpy(), X * 2)
    x = x + 1.0  # the next run releases it
    assert wrapped() == 0


def test_an_export_waits_until_the_elements_are_ready(null):
    context = keel_abi.Context()
    context.load_plugin(counting.plugin("null"))
    neg, x, exports = context.bind("null", "neg"), context.array(X).to("null").wait(), []
    neg(x)
    null.null_hold(1)
    y = neg.arrays(x)[0]

    def export():
        out = C.c_void_p()
        keel_abi.call("keel_array_to_dlpack", y, C.byref(out), None)
        exports.append(out)
    thread = threading.Thread(target=export)  # ctypes releases the GIL
    thread.start()
    thread.join(0.1)
    assert thread.is_alive() and not exports
    null.null_hold(0)
    thread.join(20)
    back = C.c_void_p()
    keel_abi.call("keel_array_from_dlpack", context, exports[0], None, C.byref(back))
    np.testing.assert_array_equal(keel_abi.Array(back, context).numpy(), -X)


def test_memory_that_no_device_takes_is_an_error(null):
    x = there(X)
    null.null_lack(LACKS_WRAP)
    with pytest.raises(keel.UnimplementedError, match=r"device \(12, 7\).*wraps no memory today") as e:
        keel.from_dlpack(x)
    assert "copy it to host memory" in str(e.value)
    np.testing.assert_array_equal(x.numpy(), X)


class Strided:
    """A tensor of the device with other strides or another address."""
    def __init__(self, x, offset=0, strides=None):
        from keel_types import Tensor
        self.capsule = x.__dlpack__()
        get = C.pythonapi.PyCapsule_GetPointer
        get.restype, get.argtypes = C.c_void_p, [C.py_object, C.c_char_p]
        tensor = Tensor.from_address(get(self.capsule, b"dltensor"))
        tensor.byte_offset += offset
        for d, stride in enumerate(strides or ()):
            tensor.strides[d] = stride

    def __dlpack__(self):
        return self.capsule


@pytest.mark.parametrize("change, why", [({"strides": (1, 3)}, "is strided"), ({"offset": 4}, "not a multiple of 64")])
def test_a_tensor_that_launches_cannot_read_is_an_error(change, why):
    with pytest.raises(keel.InvalidError, match=why):
        keel.from_dlpack(Strided(there(X), **change))
    assert wrapped() == 0


@pytest.mark.parametrize("lacks, queues, alone", [(0, 3, 1), (LACKS_DOWNLOADS, 2, 0)])
def test_downloads_have_a_queue_of_their_own(null, lacks, queues, alone):
    null.null_lack(lacks)
    before = counts("null").get("queues", 0)
    context = keel_abi.Context()
    context.load_plugin(counting.plugin("null"))
    x = context.array(X).to("null")
    assert counts("null")["queues"] - before == queues
    with counted("null") as seen:
        np.testing.assert_array_equal(x.numpy(), X)
    assert seen.get("alone", 0) == alone
    assert seen.get("queue_waits", 0) == 0  # the upload is done by now


MATMUL = """keel 1
const w: f32[2, 3] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
fn @main(x: f32[n, 2]) -> y: f32[n, 3] {
  y = matmul(x, w)
  return y
}
entry main = @main (x) -> (y)
"""


def test_memory_for_packed_weights():
    context = keel_abi.Context()
    context.load_plugin(counting.plugin("null"))
    module = context.parse(MATMUL)
    context.array(X).to("null").wait()
    with counted("null") as seen:
        plan = module.session("null", level=0).prepare()
    assert seen["prepares"] == 1 and "host_waits" not in seen
    assert (seen["uploads"], seen["upload_bytes"]) == (2, 48)  # the operand itself, and the copy of the launch
    weights = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    for n in (1, 4):
        x = np.arange(2 * n, dtype=np.float32).reshape(n, 2)
        with counted("null") as seen:
            got, = plan.run(x)
        np.testing.assert_array_equal(got, x @ weights)
        assert (seen["uploads"], seen["upload_bytes"], seen["host_waits"]) == (1, 8 * n, 1)
