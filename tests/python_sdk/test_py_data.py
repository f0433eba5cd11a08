"""keel.data.from_slices and keel.progress: batches of arrays, and a progress bar over them."""
import os
import pty
import subprocess
import sys
import termios

import keel
import numpy as np
import pytest

X = np.arange(20, dtype="f4").reshape(10, 2)
Y = np.arange(10)


def numbers(data):
    return [[leaf.tolist() for leaf in step] for step in data]


def test_entries_and_batches_come_in_order():
    assert numbers(keel.data.from_slices((X[:2], Y[:2]))) == [[[0, 1], 0], [[2, 3], 1]]
    batches = keel.data.from_slices((X, Y), batch=4)
    assert numbers(batches) == [[X[k:k + 4].tolist(), Y[k:k + 4].tolist()] for k in (0, 4, 8)] and len(batches) == 3
    assert [len(y) for _, y in keel.data.from_slices((X, Y), batch=4, drop_last=True, epochs=2)] == [4, 4] * 2
    assert len(keel.data.from_slices(Y, batch=4, drop_last=True, epochs=3)) == 6 and len(keel.data.from_slices(Y, epochs=2)) == 20
    assert [len(y) for y in keel.data.from_slices(Y, batch=5)] == [5, 5]
    assert list(keel.data.from_slices(X[:0], batch=3)) == [] and list(keel.data.from_slices(X[:2], batch=3, drop_last=True)) == []


def test_structures_keep_their_form_and_tensors_their_dtype():
    data = {"x": keel.array(X), "rest": [Y.astype("u1"), keel.Variable(Y.astype("f8"))], "list": [1, 2] * 5}
    with pytest.raises(keel.ShapeError, match="scalar"):  # a list is a structure
        keel.data.from_slices(data)
    del data["list"]
    first = next(iter(keel.data.from_slices(data, batch=3)))
    assert first["x"].type == "f32[3, 2]" and [t.type for t in first["rest"]] == ["u8[3]", "f64[3]"]
    half = keel.array(X).astype("bf16")
    assert [t.type for t in keel.data.from_slices(half, batch=6, shuffle=0)] == ["bf16[6, 2]", "bf16[4, 2]"]


def test_batches_in_order_share_memory_and_do_not_copy():
    for source in (X, keel.array(X)):
        whole = np.asarray(source)
        for k, batch in enumerate(keel.data.from_slices(source, batch=5)):
            assert np.shares_memory(batch.numpy(), whole) and batch.numpy().ctypes.data == whole[5 * k:].ctypes.data
    turned = next(iter(keel.data.from_slices(X.T, batch=2)))
    np.testing.assert_array_equal(turned, X.T)


def test_each_epoch_has_an_order_of_its_own_which_the_seed_tells():
    def order(seed, **more):
        return [y for batch in keel.data.from_slices(Y, batch=4, shuffle=seed, **more) for y in batch.tolist()]
    two = order(7, epochs=2)
    assert sorted(two[:10]) == sorted(two[10:]) == Y.tolist() and two[:10] != two[10:]
    assert two == order(7, epochs=2) and two[:10] == order(7) != order(8)
    again = keel.data.from_slices(Y, batch=4, shuffle=7)
    assert [y for _ in range(2) for batch in again for y in batch.tolist()] == two  # a loop for each epoch
    rows = [x for x, y in keel.data.from_slices((X, Y), shuffle=3) if x.tolist() != X[y.item()].tolist()]
    assert rows == []


@pytest.mark.parametrize("data, options, message", [
    ((X, Y[:9]), {}, r"first sizes differ: 10 of shape \(10, 2\) and 9"), ((X, 3.), {}, "scalar"), ([], {}, "nothing to split"),
    (X, {"batch": 0}, "batch is 0"), (X, {"batch": 2.5}, "batch is 2.5"), (X, {"shuffle": -1}, "shuffle is -1"),
    (X, {"shuffle": True}, "shuffle is True.*\n.*seed"), (X, {"epochs": 0}, "epochs is 0"), (X, {"epochs": None}, "epochs is None")])
def test_wrong_data_are_named(data, options, message):
    with pytest.raises(keel.InvalidError, match=message):
        keel.data.from_slices(data, **options)


def test_there_is_no_bar_where_nobody_looks(capfd):
    bar = keel.progress([1, 2, 3], label="loop")
    assert len(bar) == 3 and len(keel.progress(iter([1]), total=1)) == 1
    for _ in bar:
        bar.note(loss=1.)
    assert list(keel.progress(x for x in "ab")) == ["a", "b"] and capfd.readouterr().err == ""


LOOP = """
import sys, time, keel
hide = sys.argv[1] == "hide"
if hide: sys.modules["tqdm"] = None
seen = []
for k in (bar := keel.progress(range(5), label="train")):
    bar.note("warm", loss=keel.array(0.12345 + k), at="here")
    seen.append(k)
    time.sleep(0.05)
print(seen)
"""


@pytest.mark.parametrize("tqdm", ["there", "hide"])
def test_a_terminal_shows_the_bar(tqdm):
    if tqdm == "there":
        pytest.importorskip("tqdm", reason="the bar is drawn by tqdm")
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 120))
    done = subprocess.run([sys.executable, "-c", LOOP, tqdm], stderr=theirs, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "PYTHONPATH": ":".join(sys.path)})
    os.close(theirs)
    shown = b""
    try:
        while part := os.read(ours, 65536):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    assert done.stdout == "[0, 1, 2, 3, 4]\n", shown
    last = shown.decode().replace("\n", "\r").split("\r")
    if tqdm == "hide":
        assert shown == b""
    else:
        drawn = [line for line in last if "train" in line]
        assert "5/5" in drawn[-1] and "warm, loss 4.123, at here" in drawn[-1] and "it/s" in drawn[-1]
