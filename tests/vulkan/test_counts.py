"""Commands that a run encodes: launches, copies and their bytes, fills and barriers, and its submissions, counted by the loader of
driver/. Small copies are done by the host where it reaches the device's memory."""
import contextlib
import os
import subprocess

import numpy as np
import pytest
from vulkan_build import BUILD, PLUGIN, is_on

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


@pytest.fixture
def by_host(driver):
    """Whether the host does small copies: it reaches the memory of the device."""
    with counted(driver) as seen:
        there(1)
    return seen["copies"] == 0


def test_the_host_copies_to_memory_that_it_reaches(driver, by_host):
    assert not (by_host and (is_on("KEEL_VULKAN_STAGING") or is_on("DRIVER_DISCRETE")))
    lavapipe = "llvmpipe" in keel.report("devices")
    assert by_host or not lavapipe or is_on("KEEL_VULKAN_STAGING") or is_on("DRIVER_DISCRETE")


def submissions(driver, run):
    before = driver.calls("vkQueueSubmit2")
    result = run()
    return driver.calls("vkQueueSubmit2") - before, result


BY_HOST = 65536  # f32 elements of the largest copy that the host does


@pytest.mark.parametrize("n", [0, 1, 7, 1000, BY_HOST, BY_HOST + 1])
def test_a_small_run_from_host_memory_is_one_submission(driver, by_host, n):
    """An eager op and a plan; otherwise the upload and the download are submitted, too."""
    host = np.arange(n, dtype=np.float32)
    module = keel.function(lambda x, y: x + y).concrete(keel.array(host), keel.array(host))
    session = keel.Session(module, "vulkan")
    for run in (lambda: (keel.array(host) + keel.array(host)).numpy(),
                lambda: next(iter(session.run(x=host, y=host).values())).numpy()):
        for _ in range(3):
            submits, result = submissions(driver, run)
            np.testing.assert_array_equal(result, 2 * host)
        if n and not is_on("KEEL_VULKAN_BARRIERS"):
            assert submits == (1 if by_host and n <= BY_HOST else 3)


def test_an_upload_does_not_overtake_work_in_flight(driver, by_host):
    """A small upload after a large one, and memory that earlier runs still use."""
    big, results = np.ones(4_000_000, np.float32), []
    for i in range(50):
        large = keel.array(big).to("vulkan") if i % 10 == 0 else None
        small = keel.array(np.full(300, i, np.float32))
        results.append(keel.reduce_sum(small + small, [0]) + (large[0] if large is not None else 0.0))
        del large
    for i, each in enumerate(results):
        assert each.numpy() == 600 * i + (1 if i % 10 == 0 else 0)


def test_keel_run_is_one_submission(driver, by_host, tmp_path):
    (tmp_path / "add.keelt").write_text("keel 1\nfn @main(x: f32[1000], y: f32[1000]) -> f32[1000] {\n  z = add(x, y)\n  return z\n}\n"
                                        "entry main = @main (x, y) -> (_)\n")
    run = subprocess.run([BUILD / "bin" / "keel", "run", tmp_path / "add.keelt", "-d", "vulkan", "-i", "x=range", "-i", "y=range"],
                         capture_output=True, text=True, timeout=60, env=os.environ | {"DRIVER_COUNT": "1", "KEEL_PLUGIN_PATH": str(PLUGIN.parent)})
    assert run.returncode == 0 and run.stdout.split()[-1] == "1998]", run.stdout
    counts = dict(line.split()[1:] for line in run.stderr.splitlines() if line.startswith("driver: "))
    assert counts["vkQueueSubmit2"] == ("1" if by_host else "3")


def without_barriers(seen):
    return {key: n for key, n in seen.items() if key != "barriers"}


@pytest.mark.parametrize("n", [1, 3, 64])
def test_a_run_uploads_its_feeds_and_no_more(driver, by_host, n):
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
        copied = {"copies": 0, "bytes": 0} if by_host else {"copies": 3, "bytes": 4 * (2 * n * n + n)}
        assert without_barriers(seen) == {"launches": expected, "fills": 0} | copied
    with counted(driver) as seen:
        y.numpy()
    copied = {"copies": 0, "bytes": 0} if by_host else {"copies": 1, "bytes": 4 * n * n}
    assert without_barriers(seen) == {"launches": 0, "fills": 0} | copied


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
def test_only_launches_that_depend_on_one_another_have_a_barrier_between_them(driver, by_host):
    """Without a recording: a batch of 4 launches has 2 barriers, next to those between launches, and an upload before it 2."""
    barriers = []
    for body in (apart, chained):
        f, x = keel.function(body), ones(3, 3)
        with counted(driver) as seen:
            f(x)
        assert seen["launches"] == 4
        barriers.append(seen["barriers"])
    assert barriers == ([2, 5] if by_host else [4, 7])


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
