"""Output of the command: forms by file name, files that it refuses to overwrite, stdin and stdout as "-"."""
import io
import os
import subprocess

import numpy as np
import pytest

from command import ADD, command

WEIGHTS = "keel 1\n\nconst w: f32[200] = [" + ", ".join(["0.5"] * 200) + """]

fn @main(x: f32[200]) -> f32[200] {
  y = add(x, w) : f32[200]
  return y
}

entry main = @main (x) -> (y)
"""


@pytest.mark.parametrize("arguments, word", [
    (["convert", "g.txt", "m.pb"], ".onnx"),
    (["convert", "g.txt", "m.PNG"], ".png"),
    (["convert", "g.txt", "m.html"], ".html"),
    (["convert", "g.txt", "m.npz"], ".keel"),
    (["convert", "g.txt", "m.keel", "--text"], ".txt"),
    (["optimize", "g.txt", "-o", "m.pt"], ".onnx"),
    (["grad", "g.txt", "-o", "m.pb"], ".pb"),
    (["dump", "g.txt", "-o", "m.keel"], ".txt"),
    (["dump", "g.txt", "-o", "m.json"], ".txt"),
    (["graph", "g.txt", "-o", "m.png"], "dot -Tpng"),
    (["graph", "g.txt", "-o", "m.keel"], ".svg"),
    (["graph", "g.txt", "-o", "m.svg", "--dot"], "--dot"),
])
def test_a_name_of_another_format_is_refused_with_what_is_possible(keel, graph, tmp_path, arguments, word):
    graph()
    assert word in keel(*arguments, code=2).err
    assert sorted(os.listdir(tmp_path)) == ["g.txt"]


def test_drawings_come_from_convert_too(keel, graph, tmp_path):
    keel("convert", graph(), "m.dot")
    assert (tmp_path / "m.dot").read_text() == keel("graph", graph()).out
    for name in ("model", "model-1.0", ".hidden"):  # no extension: a Keel file
        keel("convert", graph(), name)
        assert (tmp_path / name).read_bytes()[8:12] == b"KEEL"


def test_what_is_read_is_not_overwritten(keel, graph, tmp_path):
    path = graph()
    keel("convert", path, "m.keel")
    before = (tmp_path / "m.keel").read_bytes()
    os.symlink("m.keel", tmp_path / "link.keel")
    os.link(tmp_path / "m.keel", tmp_path / "hard.keel")
    for name in ("m.keel", "./m.keel", "link.keel", "hard.keel"):
        assert "overwritten" in keel("convert", "m.keel", name, code=2).err
        assert "overwritten" in keel("optimize", "m.keel", "-o", name, code=2).err
        assert "overwritten" in keel("grad", "m.keel", "-o", name, code=2).err
    assert "overwritten" in keel("dump", path, "-o", path, code=2).err
    assert "overwritten" in keel("profile", "m.keel", "-n", "1", "--trace", "m.keel", code=2).err
    assert "cannot write .onnx files" in keel("profile", "m.keel", "-n", "1", "--trace", "other.onnx", code=2).err
    np.save(tmp_path / "x.npy", np.ones((1, 2), "f4"))
    assert "overwritten" in keel("run", "m.keel", "-i", "x=@x.npy", "-o", "@x.npy", code=2).err
    assert (tmp_path / "m.keel").read_bytes() == before


def test_models_and_results_go_through_pipes(keel, graph, tmp_path):
    made = keel("convert", "-", "-", stdin=ADD.encode()).stdout
    (tmp_path / "m.keel").write_bytes(made)
    keel("convert", graph(), "other.keel")
    assert (tmp_path / "other.keel").read_bytes() == made
    for model in (made, ADD.encode()):
        done = keel("run", "-", "-i", "x=1,2", "-o", "-", stdin=model)
        np.testing.assert_array_equal(np.load(io.BytesIO(done.stdout)), np.array([[2, 3]], "f4"))
    assert keel("dump", "-", stdin=made).out == keel("convert", "m.keel", "-", "--text").out == keel("dump", "m.keel").out
    assert keel("optimize", "-", "-o", "-", stdin=made).stdout[8:12] == b"KEEL"
    assert "stdin is empty" in keel("dump", "-", stdin=b"", code=3).err
    assert "stdin" in keel("dump", "-", stdin=b"no model", code=3).err
    assert "stdin" in keel("run", "-", "-i", "x=@-", stdin=made, code=2).err
    assert "--json" in keel("convert", "m.keel", "-", "--json", code=2).err


def test_long_weights_are_left_out_for_people_only(keel, graph, tmp_path):
    path = graph(WEIGHTS)
    shown = keel("dump", path).out
    assert "const w: f32[200] = ...\n" in shown and len(shown) < 300
    whole = keel("dump", path, "--weights").out
    keel("dump", path, "-o", "whole.txt")
    assert (tmp_path / "whole.txt").read_text() == whole and len(whole) > 1000
    assert "= ...\n" in keel("optimize", path).out and "= ...\n" in keel("grad", path).out
    (tmp_path / "shown.txt").write_text(shown)
    assert "omitted" in keel("dump", "shown.txt", code=3).err


@pytest.mark.parametrize("arguments", [["dump", "g.txt"], ["run", "g.txt", "-i", "x=1,2"], ["devices"], ["ops"], ["passes"],
                                       ["eval", "1 + 1"], ["inspect", "g.txt", "--json"], ["graph", "g.txt"], ["doctor"],
                                       ["signatures", "g.txt"], ["plan", "g.txt"], ["convert", "g.txt", "-"],
                                       ["run", "g.txt", "-i", "x=1,2", "-o", "-"], ["--help"], ["--version"],
                                       ["compare", "g.txt", "-d", "reference,cpu"]])
def test_a_full_disk_is_said_to_be_one(graph, tmp_path, arguments):
    if not os.path.exists("/dev/full"):
        pytest.skip("no /dev/full")
    graph()
    with open("/dev/full", "w") as full:
        done = subprocess.run([command(), *arguments], stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, text=True)
    assert done.returncode == 3
    told = [line for line in done.stderr.splitlines() if "generated" not in line]
    assert len(told) == 1 and "cannot write to stdout: No space left on device" in told[0]
