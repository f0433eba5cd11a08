"""A small program for each switch and driver: several ops, a replayed session, a fault, a training step, eager batches. Results are
compared with the device `reference`; the last line is a hash of all bits."""
import hashlib

import numpy as np

import keel

RNG = np.random.default_rng(3)
DIGEST = hashlib.sha256()


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def check(function, *arrays):
    with keel.device("vulkan"):
        there = function(*[keel.array(a) for a in arrays])
        assert str(there.device) == "vulkan:0"
    with keel.device("reference"):
        want = function(*[keel.array(a) for a in arrays]).numpy()
    got = there.numpy()
    DIGEST.update(got.tobytes())
    np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


def ops():
    check(lambda x, y: x + y, floats(33, 7), floats(7))
    check(lambda x, y: x @ y, floats(20, 30), floats(30, 10))
    check(lambda x, y: x @ y, floats(3, 5, 4), floats(4, 6))
    for groups, stride in ((1, 1), (2, 2), (4, 1)):
        check(lambda x, w, g=groups, s=stride: keel.conv(x, w, groups=g, stride=[s, s], lo=[1, 1], hi=[1, 1]),
              floats(2, 4, 7, 6), floats(4, 4 // groups, 3, 3))
    check(lambda x: keel.softmax(x, axis=1), floats(9, 70))
    for op in (keel.reduce_sum, keel.reduce_max, keel.reduce_mean):
        for axes in ([0], [1], [0, 1, 2]):
            check(lambda x, op=op, axes=axes: op(x, axes), floats(6, 5, 40))
    check(lambda x: keel.reduce_sum(x, [0]), RNG.integers(-9, 9, (50, 3)))
    check(lambda x, i: keel.gather(x, i, axis=1), floats(4, 9), np.array([8, 0, 3], np.int32))
    check(lambda x: keel.reverse(keel.transpose(x, perm=[1, 0]), axes=[0]), floats(5, 8))


def replays():
    def f(x, w):
        for _ in range(4):
            x = keel.softmax((x @ w) + x, axis=1)
        return x
    function, w = keel.function(f), floats(8, 8)
    for n in (3, 3, 3, 5, 3, 3, 5, 5):
        check(function, floats(n, 8), w)


def fault():
    with keel.device("vulkan"):
        for bad in (4, -1):
            y = keel.gather(keel.array(floats(4, 3)), keel.array(np.array([0, bad], np.int32)), axis=0)
            try:
                y.numpy()
            except keel.Error as e:
                assert f"index {bad} is not in [0, 4)" in str(e), e
            else:
                raise AssertionError("no fault")


def training():
    x, step = keel.array(floats(16, 4)), keel.array((-0.01 * np.eye(4)).astype(np.float32))
    start, head, results = floats(4, 3), keel.array(floats(3, 2)), []
    for device in ("vulkan", "reference"):
        with keel.device(device):
            w = keel.Variable(start)

            @keel.function
            def train(x):
                with keel.Tape() as tape:
                    loss = keel.reduce_sum((x @ w) @ head)
                w.assign(w + step @ tape.gradient(loss, w))
            for _ in range(5):
                train(x)
            results.append((w + 0.0).numpy())
    DIGEST.update(results[0].tobytes())
    np.testing.assert_allclose(*results, rtol=1e-4, atol=1e-4)


def eager():
    with keel.device("vulkan"):
        x = keel.array(floats(11))
        y = x
        for _ in range(150):
            y = y + x
        big = keel.array(np.arange(600_000, dtype=np.float32)).to("vulkan")
        np.testing.assert_array_equal(big.numpy(), np.arange(600_000, dtype=np.float32))
        DIGEST.update(y.numpy().tobytes())
        np.testing.assert_allclose(y.numpy(), 151 * x.numpy(), rtol=1e-4)


def run():
    for part in (ops, replays, fault, training, eager):
        part()
    print("bits", DIGEST.hexdigest())


if __name__ == "__main__":
    run()
