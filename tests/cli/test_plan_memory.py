"""`keel plan`: the memory of a plan, against a count by hand from the report's lifetimes."""
import json
import subprocess

import pytest
from command import command

CHAIN = """keel 1
fn @main(x: f32[1000]) {
  a = neg(x)
  b = reverse(a){axes=[0]}
  c = reverse(b){axes=[0]}
  d = add(c, a)
  e = reverse(d){axes=[0]}
  return e
}
entry main = @main (x)
"""


def keel(*words):
    return subprocess.run([command(), *words], capture_output=True, text=True, check=False)


@pytest.fixture
def graph(tmp_path):
    path = tmp_path / "chain.keelt"
    path.write_text(CHAIN)
    return str(path)


def test_peak_and_its_arrays(graph):
    """a, b and c are live when c is written; d then reuses the memory of one that dies."""
    text = keel("plan", graph, "--level", "0", "-d", "cpu").stdout
    assert "memory: 11.8 KiB for values between launches" in text, text
    assert 'peak: 11.7 KiB alive at launch 2, "c"' in text, text
    rows = {line.split()[0]: line.split() for line in text.splitlines() if line.split()[1:2] == ["f32[1000]"]}
    assert set(rows) == {"a", "b", "c"} and all(row[2] == "4000" for row in rows.values()), text
    assert rows["a"][-3:] == ["0", "to", "3"] and rows["b"][-3:] == ["1", "to", "2"], text


def test_bytes_in_the_report(graph):
    report = json.loads(keel("plan", graph, "--json", "-d", "cpu", "--level", "0").stdout)
    assert [v["bytes"] for launch in report["launches"] for v in launch["out"]] == [4000] * 5


def test_map(graph):
    lines = [line for line in keel("plan", graph, "--level", "0", "-d", "cpu", "--map").stdout.splitlines() if "|" in line]
    assert len(lines) == 5 and all(line.count("|") == 2 for line in lines)
    assert lines[0].count("#") < lines[0].index("|", 8) - 8 and ":" in lines[1], lines


def test_limit_names_the_way_to_look(graph):
    done = keel("run", graph, "-i", "x=randn(1)", "--memory", "10000", "-d", "cpu", "--level", "0")
    assert done.returncode != 0 and "the limit is 10000" in done.stderr and "keel plan" in done.stderr, done.stderr
