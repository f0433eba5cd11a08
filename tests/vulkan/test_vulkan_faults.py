"""Indices out of range: the error is that of the device cpu, it travels with results, and the process goes on."""
import numpy as np
import pytest

import keel

pytestmark = pytest.mark.usefixtures("loaded")
X = np.arange(12, dtype=np.float32).reshape(4, 3)


def gathered(x, i, axis=0):
    return keel.gather(x, i, axis=axis)


def error_of(device, function, *arrays):
    with keel.device(device), pytest.raises(keel.Error) as e:
        function(*[keel.array(a) for a in arrays]).numpy()
    return e.value


BAD = [4, -1, 2**31 - 1, -2**31]


@pytest.mark.parametrize("bad", BAD)
@pytest.mark.parametrize("axis", [0, 1])
def test_the_error_is_that_of_cpu(bad, axis):
    index = np.array([0, bad, 1], np.int32)
    there, here = (error_of(d, lambda x, i: gathered(x, i, axis), X, index) for d in ("vulkan", "cpu"))
    assert type(there) is type(here)
    for text in ("gather", f"index {bad} is not in [0, {X.shape[axis]})"):
        assert text in str(there) and text in str(here)


def test_an_index_of_64_bits():
    for bad in (2**32, -2**32, 2**63 - 1):
        assert f"index {bad} is not in [0, 4)" in str(error_of("vulkan", gathered, X, np.array([0, bad], np.int64)))


def test_a_fault_travels_through_later_ops_and_functions():
    f = keel.function(lambda x, i: keel.gather(x, i, axis=0) + 1.0)
    message = r"index 9 is not in \[0, 4\)"
    with keel.device("vulkan"):
        y = f(keel.array(X), keel.array(np.array([9, 0], np.int32)))
        with pytest.raises(keel.Error, match=message):
            keel.matmul(y + y, keel.array(np.ones((3, 2), np.float32))).numpy()
        for _ in range(2):
            with pytest.raises(keel.Error, match=message):
                y.numpy()
        np.testing.assert_array_equal(f(keel.array(X), keel.array(np.array([3, 0], np.int32))).numpy(), X[[3, 0]] + 1)


def test_one_of_many_threads_of_a_launch_reports():
    """All indices are wrong: exactly one of them is named."""
    index = np.arange(100, 5100, dtype=np.int32)
    text = str(error_of("vulkan", gathered, X, index))
    named = int(text.split("index ")[1].split(" ")[0])
    assert 100 <= named < 5100 and "[0, 4)" in text


def test_only_the_faulty_result_fails():
    with keel.device("vulkan"):
        x = keel.array(X)
        good = [gathered(x, keel.array(np.array([k], np.int32))) for k in range(4)]
        bad = gathered(x, keel.array(np.array([7], np.int32)))
        more = [gathered(x, keel.array(np.array([k], np.int32))) for k in range(4)]
        for k in range(4):
            np.testing.assert_array_equal(good[k].numpy(), X[[k]])
            np.testing.assert_array_equal(more[k].numpy(), X[[k]])
        with pytest.raises(keel.Error, match="index 7"):
            bad.numpy()


def test_many_faults_leave_the_device_usable():
    with keel.device("vulkan"):
        for k in range(300):
            y = gathered(keel.array(X), keel.array(np.array([k % 8], np.int32)))
            if k % 8 < 4:
                np.testing.assert_array_equal(y.numpy(), X[[k % 8]])
            elif k % 3:
                with pytest.raises(keel.Error, match=f"index {k % 8} "):
                    y.numpy()
