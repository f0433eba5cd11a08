"""A program that several examples run on the command line, and the outputs of a run."""
import json

REGULAR = """keel 1
fn @a_regular_function(x: f32[1, 1], y: f32[1, 1], b: f32[1, 1]) {
  return matmul(x, y) + b
}
entry a_regular_function = @a_regular_function (x, y, b) -> (_)
"""
REGULAR_INPUTS = ["-i", "x=2", "-i", "y=4", "-i", "b=4"]


def data(run):
    return {name: o["data"] for name, o in json.loads(run.out)["outputs"].items()}
