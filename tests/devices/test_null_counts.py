"""Submits, waits and copies of a device with queues, as literal counts. A change that lowers a count updates the literal; a
change that raises one explains it in its message. Each call is counted when warm: the first call also prepares launches."""
import keel
import numpy as np
import pytest
from counting import LACKS_WRAP, counted, counts

pytestmark = pytest.mark.usefixtures("null")


def floats(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def warm(call):
    """The counts of one call after several others."""
    for _ in range(6):
        call()
    with counted("null") as seen:
        call()
    return seen


def there(x):
    """A copy of an array on the device."""
    moved = x + 0.0
    assert moved.device == "null:0"
    return moved


@keel.function
def layers(x, w, b):
    for _ in range(5):
        x = keel.relu(x @ w + b) * 0.1
    return x


def test_a_function_of_host_arrays():
    x, w, b = floats(64, 64), floats(64, 64), floats(64)
    arrays = keel.array(x), keel.array(w), keel.array(b)
    assert warm(lambda: layers(*arrays).numpy()) == {
        "launches": 20, "replays": 1, "submits": 3, "host_waits": 1,
        "uploads": 3, "upload_bytes": 33_024, "downloads": 1, "download_bytes": 16_384, "alone": 1}
    want = x
    for _ in range(5):
        want = np.maximum(want @ w + b, 0) * np.float32(0.1)
    np.testing.assert_allclose(layers(*arrays).numpy(), want, atol=1e-6)


def test_a_function_of_device_arrays_moves_nothing_and_waits_for_nothing():
    arrays = [there(keel.array(a)) for a in (floats(64, 64), floats(64, 64), floats(64))]
    assert warm(lambda: layers(*arrays)) == {"launches": 20, "replays": 1, "submits": 1}
    assert layers(*arrays).device == "null:0"


def test_an_eager_op_is_not_even_submitted():
    x, y = there(keel.array(floats(8))), there(keel.array(floats(8)))
    assert warm(lambda: keel.add(x, y)) == {"launches": 1}


@pytest.mark.parametrize("moved, counts", [
    ((False, False), {"submits": 1, "uploads": 2, "upload_bytes": 64}),
    ((True, False), {"submits": 1, "uploads": 1, "upload_bytes": 32}),
], ids=["host", "mixed"])
def test_an_eager_op_uploads_its_host_operands_together(moved, counts):
    x, y = (there(a) if on else a for a, on in zip((keel.array(floats(8)), keel.array(floats(8))), moved))
    assert warm(lambda: keel.add(x, y)) == {"launches": 1} | counts


def test_a_thousand_eager_adds_and_a_read():
    def adds():
        y = x
        for _ in range(1000):
            y = keel.add(y, one)
        return y.numpy()
    x, one = there(keel.array(floats(8))), there(keel.array(np.ones(8, np.float32)))
    seen = warm(adds)
    assert {key: seen[key] for key in ("launches", "host_waits", "downloads")} == {
        "launches": 1000, "host_waits": 1, "downloads": 1}
    assert 32 <= seen["submits"] <= 34  # 32 launches a batch; the first may be open already
    np.testing.assert_allclose(adds(), floats(8) + 1000, rtol=1e-4)


def test_a_read_of_an_array():
    x = there(keel.array(floats(8)))
    assert warm(x.numpy) == {"submits": 1, "host_waits": 1, "downloads": 1, "download_bytes": 32, "alone": 1}


def test_ten_thousand_unread_runs_keep_memory_flat():
    x = there(keel.array(floats(64, 64)))
    step = keel.function(lambda x: keel.gather(keel.relu(x) * 0.5, keel.array(np.array([0, 63], np.int32))))
    for _ in range(200):
        step(x)
    before = counts("null")["segments"]
    for _ in range(10_000):
        step(x)
    assert counts("null")["segments"] == before


@pytest.mark.parametrize("read", [True, False])
def test_a_very_long_chain_of_runs_that_may_fail(null, read):
    """Each run refers to the outcome of the one before, but not for ever: the stack would overflow."""
    x, one = (keel.add(keel.array(np.full(4, n, np.int32)), 0) for n in (7, 1))
    for _ in range(200_000):
        x = keel.div(x, one)
    if read:
        np.testing.assert_array_equal(x.numpy(), 7)


def test_a_variable_is_moved_once():
    """Its value is where it was computed last; until then each use uploads it."""
    w, x = keel.Variable(np.ones((256, 256), np.float32)), there(keel.array(np.ones((256, 256), np.float32)))
    assert warm(lambda: x * w) == {"launches": 1, "submits": 1, "uploads": 1, "upload_bytes": 262_144}
    y = x * w
    assert warm(lambda: w.assign_sub(y)) == {"launches": 1}
    assert warm(lambda: x * w) == {"launches": 1}
    np.testing.assert_array_equal((x * w).numpy(), -6)
    assert warm(lambda: w.assign(y)) == {}
    np.testing.assert_array_equal(w.numpy(), 1)


def training():
    w1, w2 = keel.Variable(floats(64, 128) * 0.1), keel.Variable(floats(128, 16) * 0.1)

    @keel.function
    def step(x, t):
        with keel.Tape() as tape:
            d = keel.relu(x @ w1) @ w2 - t
            loss = keel.reduce_mean(d * d)
        g1, g2 = tape.gradient(loss, [w1, w2])
        w1.assign_sub(0.05 * g1)
        w2.assign_sub(0.05 * g2)
        return loss
    return step


def test_a_training_step():
    step, x, t = training(), keel.array(floats(32, 64)), keel.array(floats(32, 16))
    with counted("null") as first:
        losses = [step(x, t).numpy()]
    # Constants are folded on the host, so the first step has no other launches than the following ones. It uploads the variables
    # twice: for its products, and for the subtraction, which leaves them there.
    assert first == {"launches": 17, "prepares": 17, "submits": 6, "host_waits": 1, "uploads": 9, "upload_bytes": 94_216,
                     "downloads": 1, "download_bytes": 4, "alone": 1}
    feeds = {"launches": 17, "replays": 1, "uploads": 2, "upload_bytes": 10_240}
    assert warm(lambda: losses.append(step(x, t).numpy())) == feeds | {
        "submits": 3, "host_waits": 1, "downloads": 1, "download_bytes": 4, "alone": 1}
    unread = []
    assert warm(lambda: unread.append(step(x, t))) == feeds | {"submits": 2}
    losses += [loss.numpy() for loss in unread]
    with keel.device("reference"):
        step = training()
        np.testing.assert_allclose(losses, [step(x, t).numpy() for _ in losses], rtol=1e-5)


def per_round(run, few, many):
    counts = [warm(lambda: run(n)) for n in (few, many)]
    gained = {key: n - counts[0].get(key, 0) for key, n in counts[1].items()}
    return {key: n / (many - few) for key, n in gained.items() if n}


def test_a_round_of_a_counted_loop():
    @keel.function
    def loop(x, n):
        i = keel.array(0)
        while i < n:
            x = keel.relu(x * 1.5 - 0.1)
            i = i + 1
        return x
    x = keel.array(floats(32, 64))
    assert per_round(lambda n: loop(x, keel.array(n)), 5, 15) == {
        "launches": 5, "submits": 2, "host_waits": 1, "downloads": 1, "download_bytes": 1, "alone": 1, "moves": 1, "move_bytes": 1}


def test_a_round_of_a_loop_that_data_ends():
    @keel.function
    def halve(x):
        while keel.reduce_sum(x) > 1.0:
            x = x * 0.5
        return x
    assert halve(keel.array(np.full(1024, 1.0, np.float32))).numpy().sum() == 1
    assert per_round(lambda n: halve(keel.array(np.full(2**n, 1.0, np.float32)[:1].repeat(64) * 2**n / 64)), 4, 10) == {
        "launches": 3, "submits": 2, "host_waits": 1, "downloads": 1, "download_bytes": 1, "alone": 1, "moves": 1, "move_bytes": 1}


def test_a_gather_and_its_fault():
    """The fault bytes are in memory that both sides see: no fill, no copy, and no wait before the read."""
    x, good, bad = keel.array(floats(32, 64)), keel.array(np.array([0, 31], np.int32)), keel.array(np.array([0, 99], np.int32))
    gathered = {"launches": 1, "submits": 1, "uploads": 2, "upload_bytes": 8_200}
    assert warm(lambda: keel.gather(x, good)) == gathered
    with counted("null") as seen:
        y = keel.gather(x, bad)
    assert seen == gathered
    with pytest.raises(keel.RangeError, match="gather .* found by device null:0"):
        y.numpy()
    np.testing.assert_array_equal(keel.gather(x, good).numpy(), floats(32, 64)[[0, 31]])


def test_large_arrays_go_in_pieces_of_16_mib(null):
    null.null_lack(LACKS_WRAP)
    x, y = (keel.array(np.ones((4096, 4096), np.float32)) for _ in range(2))
    seen = warm(lambda: keel.add(x, y))
    assert {key: seen[key] for key in ("submits", "uploads", "upload_bytes")} == {
        "submits": 8, "uploads": 8, "upload_bytes": 128 << 20}
    z = keel.add(x, y)
    assert warm(z.numpy) == {"submits": 4, "host_waits": 4, "downloads": 4, "download_bytes": 64 << 20, "alone": 4}


def test_large_arrays_go_without_staging_memory():
    x, y = (keel.array(np.ones((4096, 4096), np.float32)) for _ in range(2))
    seen = warm(lambda: keel.add(x, y))
    assert {key: seen[key] for key in ("uploads", "upload_bytes", "wraps", "host_waits")} == {
        "uploads": 2, "upload_bytes": 128 << 20, "wraps": 2, "host_waits": 2}
    z = keel.add(x, y)
    assert warm(z.numpy) == {"submits": 1, "host_waits": 1, "downloads": 1, "download_bytes": 64 << 20, "alone": 1, "wraps": 1}
    np.testing.assert_array_equal(z.numpy()[::1000], 2)
    assert "wrapped" not in counts("null")


def test_tracing_for_types_runs_no_op():
    """So it works on a device that lacks `fill`."""
    f = keel.function(lambda x: keel.relu(x) * 2.0)
    with counted("null") as seen:
        module = f.concrete(keel.f32[2, 3])
    assert seen == {}
    assert "x: f32[2, 3]" in module.text()


def test_where_arrays_are():
    x = keel.array(np.ones(4, np.float32))
    y = keel.add(x, 1.0)
    z = keel.function(lambda a: keel.relu(a) * 2.0)(y)
    v = keel.Variable(y)
    assert (x.device, y.device, z.device, keel.add(v, 1.0).device) == ("", "null:0", "null:0", "null:0")
    np.testing.assert_array_equal(z.numpy(), 4)
    assert v.device == "null:0"
    with counted("null") as seen:
        v.to("null")
    assert seen == {}
    for device, name in ((None, ""), ("null", "null:0"), ("", "")):
        v.to(device)
        assert v.device == name
        np.testing.assert_array_equal(v.numpy(), 2)
    with pytest.raises(keel.Error, match='no device "moon"'):
        v.to("moon")
