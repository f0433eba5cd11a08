"""Commands that a run encodes: launches, copies and their bytes, fills and barriers, counted by the loader of driver/."""
import contextlib

import numpy as np
import pytest
from vulkan_build import is_on

import keel

pytestmark = pytest.mark.usefixtures("vulkan")
COMMANDS = {"launches": "vkCmdDispatch", "copies": "vkCmdCopyBuffer", "fills": "vkCmdFillBuffer", "barriers": "vkCmdPipelineBarrier2"}


@contextlib.contextmanager
def counted(driver):
    def counts():
        return {key: driver.calls(name) for key, name in COMMANDS.items()} | {"bytes": driver.copied()}
    before, seen = counts(), {}
    yield seen
    seen.update((key, n - before[key]) for key, n in counts().items())


def ones(*shape):
    return keel.array(np.ones(shape, np.float32))


def there(*shape):
    """An array on the device, whose upload is done."""
    x = ones(*shape).to("vulkan")
    x.numpy()
    return x


def without_barriers(seen):
    return {key: n for key, n in seen.items() if key != "barriers"}


@pytest.mark.parametrize("n", [1, 3, 64])
def test_a_run_uploads_its_feeds_and_no_more(driver, n):
    @keel.function
    def layers(x, w, b):
        for _ in range(5):
            x = keel.softmax(x @ w + b, axis=1)
        return x
    feeds = ones(n, n), ones(n, n), ones(n)
    for launches in [15, 16, 1, 1]:  # the second run is also recorded; a replay launches the relocation of its addresses
        with counted(driver) as seen:
            y = layers(*feeds)
        expected = 15 if is_on("KEEL_VULKAN_NO_RECORDINGS") else launches
        assert without_barriers(seen) == {"launches": expected, "copies": 3, "fills": 0, "bytes": 4 * (2 * n * n + n)}
    with counted(driver) as seen:
        y.numpy()
    assert without_barriers(seen) == {"launches": 0, "copies": 1, "fills": 0, "bytes": 4 * n * n}


def test_a_feed_on_the_device_is_not_copied(driver):
    f = keel.function(lambda x: keel.softmax(x, axis=0))
    x = there(4)
    for _ in range(3):
        with counted(driver) as seen:
            f(x)
        assert (seen["copies"], seen["bytes"]) == (0, 0)


def apart(x):
    return [keel.reverse(x, axes=[0]), keel.softmax(x, axis=0), keel.reduce_sum(x, [0]), keel.cumsum(x, axis=0)]


def chained(x):
    for _ in range(4):
        x = keel.softmax(x, axis=0)
    return x


@pytest.mark.skipif(is_on("KEEL_VULKAN_BARRIERS"), reason="a barrier before each command")
def test_only_launches_that_depend_on_one_another_have_a_barrier_between_them(driver):
    """Without a recording: a batch of 4 launches with an upload before it has 4 barriers, next to those between launches."""
    barriers = []
    for body in (apart, chained):
        f, x = keel.function(body), ones(3, 3)
        with counted(driver) as seen:
            f(x)
        assert seen["launches"] == 4
        barriers.append(seen["barriers"])
    assert barriers == [4, 7]


@pytest.mark.skipif(is_on("KEEL_VULKAN_BARRIERS") or is_on("KEEL_VULKAN_NO_RECORDINGS"), reason="no recordings, or more barriers")
@pytest.mark.parametrize("launches", [4, 90])
def test_the_commands_of_a_replay_do_not_grow_with_its_launches(driver, launches):
    @keel.function
    def chain(x):
        for _ in range(launches):
            x = keel.softmax(x, axis=0)
        return x
    x = there(4)
    chain(x), chain(x)
    with counted(driver) as seen:
        chain(x)
    assert seen == {"launches": 1, "copies": 0, "fills": 0, "barriers": 4, "bytes": 0}
