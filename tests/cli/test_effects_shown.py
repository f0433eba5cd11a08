"""Effects in the output of `keel`: prints on stderr, assertions as errors, --strict, variables in dump and inspect."""
import json

TEXT = """keel 1
var w: f32[2] = [1.0, 2.0]

fn @main(x: f32[2], i: i32[]) -> y: f32[2] {
  v0 = read(w)
  y = add(v0, x)
  unused = gather(x, i)
  print(y){format="y is {}"}
  assign(w, y)
  positive = greater(i, 0)
  assert(positive, i){message="i is not positive"}
  print(i){stream=out}
  return y
}

entry main = @main (x, i) -> (y)
"""
FAILED = 5  # exit code: a value out of range
RUN = ("run", "g.txt", "-i", "x=f32[2]=1,1", "-d", "reference")


def test_prints_go_to_stderr_and_assertions_are_errors(keel, graph):
    graph(TEXT)
    done = keel(*RUN, "-i", "i=i32[]=1")
    assert done.err == "y is [2 3]\n"
    assert done.out.startswith("1\ny: f32[2]\n")
    assert "[2" in done.out
    stopped = keel(*RUN, "-i", "i=i32[]=-1", code=FAILED)
    assert stopped.err.startswith("y is [2 3]\n") and "i is not positive: -1" in stopped.err
    assert stopped.out == ""


def test_strict_runs_what_nobody_needs(keel, graph):
    graph(TEXT)
    keel(*RUN, "-i", "i=i32[]=9")
    assert "index 9" in keel(*RUN, "-i", "i=i32[]=9", "--strict", code=FAILED).err


def test_dump_and_inspect_show_effects(keel, graph):
    graph(TEXT)
    assert "-> y: f32[2] {  # reads w  writes w  prints err, out  may stop\n" in keel("dump", "g.txt").out
    assert "variable w: f32[2]" in keel("inspect", "g.txt", "-d", "reference").out
    info = json.loads(keel("inspect", "g.txt", "-d", "reference", "--json").out)
    assert info["variables"][0]["name"] == "w"


def test_nodes_without_results_are_drawn_watched_and_planned(keel, graph):
    graph(TEXT)
    assert "print" in keel("graph", "g.txt", "--dot").out
    assert "print" in keel("plan", "g.txt", "-d", "reference").out
    keel(*RUN, "-i", "i=i32[]=1", "--watch", "nan")
    assert "stopped after" in keel(*RUN, "-i", "i=i32[]=1", "--break", "v3").out
