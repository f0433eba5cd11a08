"""Rewrites of small graphs by each pass; PASS.cases contains them, before and after."""
import re
from pathlib import Path

import pytest
from optimizer import dump, optimize
from keel_text import expression, outline, read

HERE = Path(__file__).resolve().parent
GROUPS = ("layout", "epilogue", "map")
LISTED = (*GROUPS, "cse")  # these cases list the remaining ops
HEAD = r"(?:const [^\n]*\n|fn [^\n]*\n(?:  [^\n]*\n)*\}\n)*"  # constants and functions
DEVICES = {name: "claims:{}" for name in (*GROUPS, "quantised")} | {"nearby": "cpu", "compose": "cpu"}  # the others: reference


def cases(name):
    """Returns (title, device number, constants and functions, parameters, body, wanted) of each case of a pass."""
    text = re.sub(r"(?m)^#.*\n", "", (HERE / f"{name}.cases").read_text())
    for block in re.split(r"(?m)^== ", text)[1:]:
        title, rest = block.split("\n", 1)
        found = re.fullmatch(rf"(?:\[(\d)\]\n)?({HEAD})(\(.*?\)) (\{{.*\}})\n-> (.*?)\s*", rest, re.S)
        assert found, f"{name}.cases: the case '{title}' cannot be read"
        yield title, int(found[1] or 0), *found.groups()[1:]


def all_cases():
    for name in ("fold", "simplify", "nearby", "inline", "loop", "compose", "transpose", "quantised", *LISTED):
        for title, *rest in cases(name):
            yield pytest.param(name, *rest, id=f"{name}: {title}")


def whole(constants, params, body):
    body = body if "\n" in body else body.replace("{ return", "{\n  return").replace(" }", "\n}")
    names = re.findall(r"(\w+):", params)
    return f"keel 1\n{constants}\nfn @main{params} {body}\n\nentry main = @main ({', '.join(names)})\n"


def rewritten(path, name, device):
    """Runs one pass twice: the second run must change nothing."""
    once, twice = path.with_suffix(".once.keel"), path.with_suffix(".twice.keel")
    optimize(path, once, device, only=name)
    optimize(once, twice, device, only=name)
    text = dump(once)
    assert dump(twice) == text, "a second run changed something"
    return text


def fits(name, after, constants, params, body, wanted, normal):
    """Checks the result of the pass against the case. normal: writes a text in libkeel's format."""
    if name in LISTED:
        assert outline(read(after)[0]) == wanted
        return
    found = re.fullmatch(rf"({HEAD})(\{{.*\}})", wanted, re.S)
    target = whole(constants, params, body) if wanted == "same" else whole(constants + found[1], params, found[2])
    assert expression(*read(after)) == expression(*read(normal(target)))


@pytest.mark.parametrize("name, device, constants, params, body, wanted", all_cases())
def test_pass(tmp_path, name, device, constants, params, body, wanted):
    def normal(text):
        target = tmp_path / "after.keelt"
        target.write_text(text)
        return dump(target)
    before = tmp_path / "before.keelt"
    before.write_text(whole(constants, params, body))
    after = rewritten(before, name, DEVICES.get(name, "reference").format(device))
    fits(name, after, constants, params, body, wanted, normal)
