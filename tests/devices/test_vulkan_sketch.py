"""A device with truly asynchronous queues: a dozen ops through Vulkan, on any driver. NumPy is the oracle."""
import json
import os
import subprocess
import sys
import threading

import counting
import keel
import numpy as np
import pytest
from counting import counted

NAME = "vulkan-sketch"


def reasons(report):
    return " ".join(each.get("reason", "") for each in json.loads(report) if NAME in each.get("path", ""))


@pytest.fixture(scope="module")
def loaded():
    if not counting.plugin(NAME).exists():
        pytest.skip("not built: CMake found no vulkan/vulkan.h, glslangValidator or spirv-val")
    keel.load_plugin(str(counting.plugin(NAME)))
    if f"{NAME}:0" not in keel.devices():
        pytest.skip(f"no driver: {reasons(keel.report('plugins'))}")


@pytest.fixture(autouse=True)
def vulkan(loaded):
    with keel.device(NAME):
        yield


def floats(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def agree(got, want, tolerance=1e-5):
    got = got.numpy()
    assert got.shape == np.shape(want)
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "maximum": np.maximum, "minimum": np.minimum}
UNARY = {"neg": np.negative, "abs": np.abs, "exp": np.exp, "sqrt": np.sqrt, "relu": lambda x: np.maximum(x, 0)}
SHAPES = [((), ()), ((7,), (7,)), ((3, 4), (4,)), ((3, 1, 4), (5, 1)), ((2, 3, 4, 5), ()), ((0, 3), (3,)), ((5_000_000,), (1,))]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("op", ["add", "div"])
def test_broadcast_operands(op, shapes):
    x, y = (floats(*shape) for shape in shapes)
    agree(getattr(keel, op)(keel.array(x), keel.array(y)), BINARY[op](x, y))


@pytest.mark.parametrize("op", BINARY | UNARY)
def test_elementwise(op):
    x, y = floats(3, 5), floats(3, 5) + 3
    if op in BINARY:
        agree(getattr(keel, op)(keel.array(x), keel.array(y)), BINARY[op](x, y))
    else:
        x = y if op == "sqrt" else x
        agree(getattr(keel, op)(keel.array(x)), UNARY[op](x))


@pytest.mark.parametrize("ta, tb", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_matmul(ta, tb):
    x, y = floats(*((6, 5) if ta else (5, 6))), floats(*((4, 6) if tb else (6, 4)))
    agree(keel.matmul(keel.array(x), keel.array(y), ta=bool(ta), tb=bool(tb)), (x.T if ta else x) @ (y.T if tb else y))


@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 1], [1, 2], [0, 1, 2]], ids=str)
def test_reductions(axes):
    x = floats(4, 5, 6)
    agree(keel.reduce_sum(keel.array(x), axes), x.sum(tuple(axes)))
    agree(keel.reduce_max(keel.array(x), axes), x.max(tuple(axes)))


@pytest.mark.parametrize("axis", [0, 1])
def test_gather(axis):
    x, index = floats(8, 9), np.array([7, 0, 3], np.int32)
    agree(keel.gather(keel.array(x), keel.array(index), axis=axis), np.take(x, index, axis))


@pytest.mark.parametrize("bad", [-1, 8, 2**31 - 1])
def test_a_bad_index_is_named_and_the_device_goes_on(bad):
    x = keel.array(floats(8, 9))
    with pytest.raises(keel.RangeError, match=rf"index {bad} is not in \[0, 8\), found by device vulkan-sketch:0"):
        keel.gather(x, keel.array(np.array([3, bad], np.int32))).numpy()
    agree(keel.gather(x, keel.array(np.array([3], np.int32))), floats(8, 9)[[3]])


@keel.function
def layers(x, w, b):
    for _ in range(5):
        x = keel.relu(x @ w + b) / 8.0
    return x


def layered(x, w, b):
    for _ in range(5):
        x = np.maximum(x @ w + b, 0) / np.float32(8)
    return x


@pytest.mark.parametrize("n", [1, 3, 64])
def test_a_function_whose_values_share_memory(n):
    """Values that share memory need barriers between their launches."""
    x, w, b = floats(n, n), floats(n, n), floats(n)
    arrays = [keel.array(a) for a in (x, w, b)]
    layers(*arrays)
    with counted(NAME) as seen:
        y = layers(*arrays)
    agree(y, layered(x, w, b))
    assert {key: seen[key] for key in ("launches", "uploads", "upload_bytes")} == {
        "launches": 20, "uploads": 3, "upload_bytes": 4 * (2 * n * n + n)}
    assert not {"downloads", "fills", "host_waits"} & set(seen)


def test_launches_that_touch_nothing_in_common_need_no_barrier():
    @keel.function
    def apart(x):
        return [x + 1.0, x + 2.0, x + 3.0, x + 4.0]

    @keel.function
    def chained(x):
        return [x + 1.0 + 2.0 + 3.0 + 4.0]
    x, barriers = keel.array(floats(4)), []
    for f in (apart, chained):
        f(x)
        with counted(NAME) as seen:
            f(x)
        assert seen["launches"] == 4
        barriers.append(seen["barriers"] - seen["submits"])
    assert barriers[0] < barriers[1]


def test_what_a_launch_declines_is_an_error_or_goes_to_the_fallback():
    x, y = floats(2, 3, 4), floats(2, 4, 5)
    with pytest.raises(keel.UnimplementedError, match="only row-major matrices"):
        keel.matmul(keel.array(x), keel.array(y))
    module = keel.function(lambda a, b: a @ b).concrete(keel.array(x), keel.array(y))
    session = keel.Session(module, NAME, fallback="reference")
    agree(next(iter(session.run(a=x, b=y).values())), x @ y)


def test_ops_without_shaders_are_copies_and_fills():
    x, y = floats(3, 4), floats(2, 4)
    a, b = keel.array(x) + 0.0, keel.array(y) + 0.0
    agree(keel.concat([a, b]), np.concatenate([x, y]))
    agree(keel.slice(a, start=[1, 0], stop=[3, 4]), x[1:3])
    agree(keel.slice(a, start=[0, 1], stop=[3, 3]), x[:, 1:3])
    agree(keel.pad(a, 0.0, lo=[1, 0], hi=[0, 2]), np.pad(x, ((1, 0), (0, 2))))
    agree(keel.function(lambda v: keel.fill(keel.reduce_sum(v, [0, 1]), dims=[2, 3]))(a), np.full((2, 3), x.sum()))


def test_the_device_says_what_it_can():
    info, = [d for d in json.loads(keel.report("devices")) if d["name"] == f"{NAME}:0"]
    assert info["capabilities"].startswith("vulkan 1.") and "subgroups of " in info["capabilities"]
    assert len(info["uuid"]) == 36


def test_threads_share_the_device():
    def go(k):
        rng = np.random.default_rng(k)
        x, w, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((24, 24), (24, 24), (24,)))
        with keel.device(NAME):
            for _ in range(5):
                np.testing.assert_allclose(layers(*map(keel.array, (x, w, b))).numpy(), layered(x, w, b), rtol=1e-4, atol=1e-5)
        ended.append(k)
    ended, threads = [], [threading.Thread(target=go, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(ended) == list(range(6))


def run(code, **environment):
    """The output of a new process: a process looks for the library once."""
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | environment
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, env=env)
    assert done.returncode == 0, done.stderr
    return done.stdout


LOAD = f"""
import counting, keel, numpy as np
keel.load_plugin(str(counting.plugin("{NAME}")))
"""


@pytest.mark.parametrize("environment, why", [
    ({"VK_ICD_FILENAMES": "/none.json", "VK_DRIVER_FILES": "/none.json"}, "vkCreateInstance gave -9"),
    ({"VULKAN_SKETCH_LIBRARY": "/none/libvulkan.so.1"}, "/none/libvulkan.so.1"),
], ids=["driver", "library"])
def test_without_a_driver_the_report_says_why(environment, why):
    assert why in reasons(run(LOAD + "print(keel.report('plugins'))", **environment))


def test_the_validation_layer_finds_no_fault():
    said = run(LOAD + f"""
if "{NAME}:0" not in keel.devices(): print(keel.report("plugins")); raise SystemExit
with keel.device("{NAME}"):
    f = keel.function(lambda x, i: keel.reduce_sum(keel.gather(keel.relu(x @ x + 1.0), i), [1]))
    for n in (3, 100):
        for last in (0, n):
            try: f(keel.array(np.ones((n, n), np.float32)), keel.array(np.array([1, last], np.int32)))
            except keel.RangeError: pass
print("messages:", counting.counts("{NAME}").get("validation", 0))
""", VULKAN_SKETCH_VALIDATE="1")
    if "vkCreateInstance gave -6" in said:
        pytest.skip("the layer VK_LAYER_KHRONOS_validation is not installed")
    assert said == "messages: 0\n"
