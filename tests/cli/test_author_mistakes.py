"""Mistakes of the author of a device: each is made in a copy of the example with queues, and named by the command."""
import os

import pytest
from command import command

GRAPH = """keel 1
fn @main(x: f32[n], y: f32[n]) -> z: f32[n] {
  z = add(x, y) : f32[n]
  return z
}
entry main = @main (x, y) -> (z)
"""
RUN = ("run", "g.txt", "-d", "queue_device", "-i", "x=1,2", "-i", "y=3,4")


@pytest.fixture
def mistaken(tmp_path, monkeypatch, graph, example_device):
    """mistaken(right, wrong) compiles the example with this replacement."""
    monkeypatch.setenv("KEEL_PLUGIN_PATH", str(tmp_path))
    graph(GRAPH)

    def make(right="", wrong="", file="keel-queue_device.so"):
        example_device(tmp_path / file, right, wrong)
    return make


def test_the_example_has_none(keel, mistaken):
    mistaken()
    assert keel(*RUN).out == "z: f32[2]\n[4, 6]\n" and "unused" not in keel("doctor").out


@pytest.mark.parametrize("right, wrong, said", [
    ('{"add", 1, 1,', '{"plus", 1, 1,', "unused impl: no plugin defines the op plus"),
    ('{"add", 1, 1,', '{"add", 2, 3,', "unused impl: add is for versions 2 to 3, not 1"),
    ('"T=f32"', '"U=f32"', 'unused impl: add restricts "U", which is no type variable of the op'),
])
def test_impls_that_no_node_can_get(keel, mistaken, right, wrong, said):
    """A type variable that the op does not have restricts nothing: the impl got i32 data."""
    mistaken(right, wrong)
    assert said in keel("doctor").out
    assert "has no impl for 1 op without a body: add (T=f32)" in keel(*RUN, code=5).err


@pytest.mark.parametrize("right, wrong, file, why", [
    ('{"add", 1, 1,', '{"add", 0, 0,', "keel-queue_device.so", 'impl 0 ("add") is for versions 0 to 0 of the op, which begin at 1'),
    (".queue_wait = queue_wait,", "", "keel-queue_device.so", "no function queue_wait"),
    ("", "", "queue_device.so", 'its name does not begin with "keel-"'),
])
def test_files_that_are_not_loaded(keel, mistaken, right, wrong, file, why):
    mistaken(right, wrong, file)
    assert why in keel("doctor").out
    error = keel(*RUN, code=4).err
    assert 'no device "queue_device"' in error and f"{file} was not loaded: " in error and why in error


@pytest.mark.parametrize("does, how", [
    ("*(volatile int*)0 = 1", "crashes: Segmentation fault"),
    ("int raise(int); raise(14)", "does not return within 30 s"),  # the alarm, at once
    ("exit(3)", "exits with code 3"),
])
def test_plugins_that_end_the_process(keel, mistaken, does, how):
    entry = "KEEL_PLUGIN(plugin)"
    mistaken(entry, f"__attribute__((constructor)) static void at_load(void) {{ {does}; }}\n{entry}")
    shown = keel("doctor").out
    assert "  crashed  " in shown and f"a process that loads it and counts its devices {how}" in shown
    assert "devices    cpu:0" in shown


@pytest.mark.parametrize("right, wrong, said", [
    ("kind ? memory : NULL", "kind == 3 ? memory : NULL", "of kind 1 (STAGING)"),
    ("*out = q;", "*out = NULL;", "queue_open returned no queue of kind 0"),
    ("*ticket = q->encoded;", "*ticket = 0;", "submit returned no ticket; tickets begin at 1"),
    ("*ticket = q->encoded;", "*ticket = 1;", "submit returned ticket 1 after 1; the tickets of a queue grow"),
])
def test_functions_that_give_nothing(keel, mistaken, right, wrong, said):
    mistaken(right, wrong)
    assert said in keel(*RUN, code=70).err


def test_dims_that_the_impl_declines_can_run_elsewhere(keel, mistaken, graph):
    graph(GRAPH.replace("x: f32[n]", "x: f32[m, n]").replace("z: f32[n]", "z: f32[m, n]").replace(": f32[n]\n", ": f32[m, n]\n"))
    mistaken()
    sizes = ("-i", "x=f32[2,2]=1", "-i", "y=3,4")
    assert "or give --fallback DEVICE" in keel(*RUN[:4], *sizes, code=5).err
    assert keel(*RUN[:4], *sizes, "--fallback", "cpu").out.endswith("[[4, 5]\n [4, 5]]\n")


def test_a_profile_needs_no_products(keel, mistaken):
    mistaken()
    assert "roofline: ? GFLOP/s" in keel("profile", *RUN[1:], "-n", "2").out


def test_a_wrong_node_is_shown_by_few_of_its_elements(keel, mistaken):
    mistaken("? 0 : i] + b", "? 0 : i] - b")
    shown = keel("compare", "g.txt", "-d", "reference,queue_device", "-i", "x=randn(1)", "-i", "y=randn(2)", "--dim", "n=1000",
                 "--nodes", code=1).out
    assert 'first diverging node: 0 "z" (add)' in shown and shown.count("...") == 4 and len(shown) < 2000
