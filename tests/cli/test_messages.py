"""Errors and hints use the terms of the command and refer to its arguments."""
import json
import re

import pytest

from command import ADD

LONG = "keel 1\n\nfn @main(x: f32[n]) -> f32[n] {\n  y = while(x){carry=1}\n    test(a) { return true }\n"


@pytest.mark.parametrize("arguments, code, said, unsaid", [
    (["run", "g.txt", "-i", "x=f32[4000000,2]=1", "--time-limit", "1"], 6, "--time-limit", "timeout_ms"),
    (["run", "g.txt", "-i", "x=f32[400000,2]=1", "--memory", "1M"], 6, "--memory", "option"),
    (["run", "g.txt", "-i", "x=1,2", "--passes=-fold,map"], 5, "--passes", "option"),
    (["run", "g.txt", "-i", "x=1,2", "--place", "y"], 5, "--place", "option"),
    (["run", "g.txt", "-i", "x=1,2", "--level", "9"], 2, "--level", "option \""),
    (["optimize", "g.txt", "--fuel", "many"], 5, "--fuel", "option"),
])
def test_options_of_libkeel_are_flags_here(keel, graph, arguments, code, said, unsaid):
    graph(ADD)
    try:
        err = keel(*arguments, code=code).err
    except AssertionError as wrong:  # the run took less than a millisecond
        if "--time-limit" not in arguments or "exit 0" not in str(wrong):
            raise
        return
    assert said in err and unsaid not in err
    assert not re.search(r"\bkeel_\w+|keel::|KEEL_(?!PLUGIN)", err)


@pytest.mark.parametrize("arguments, meant", [
    (["run", "g.txt", "--devcie", "cpu"], "--device"), (["run", "g.txt", "--levle=1"], "--level"),
    (["bench", "g.txt", "--rnus", "3"], "--runs"), (["compare", "g.txt", "-d", "a,b", "--node"], "--nodes"),
    (["convert", "g.txt", "h.keel", "--shap", "x=1"], "--shape"), (["dump", "g.txt", "--weight"], "--weights"),
    (["plan", "g.txt", "--jsno"], "--json"), (["optimise", "g.txt"], "optimize"),
])
def test_flags_and_commands_get_suggestions(keel, graph, arguments, meant):
    graph()
    assert f'did you mean "{meant}"?' in keel(*arguments, code=2).err


@pytest.mark.parametrize("command", [["run", "g.txt"], ["bench", "g.txt", "-n", "1"], ["plan", "g.txt"],
                                     ["convert", "g.txt", "h.keel"], ["compare", "g.txt", "-d", "cpu,reference"],
                                     ["bisect", "g.txt"], ["convert", "g.txt", "h.keel", "--case"]])
def test_names_of_inputs_get_suggestions(keel, graph, command):
    graph(ADD.replace("x", "image"))
    assert 'did you mean "image"?' in keel(*command, "-i", "imgae=1,2", code=2).err


@pytest.mark.parametrize("text, message, mark", [
    ("1+", "expected a value or an op, but the statement ends", 2),
    ("x = 3 *", "expected a value or an op, but the statement ends", 7),
    ("add(1,", "the statement ends", 6),
    ("(1", "expected ')', but the statement ends", 2),
    ("print 1+", "but the statement ends", 8),
    ("a, b = split([1, 2])+", "but the statement ends", 21),
    ("2 2", "expected the end of the statement, got '2'", 2),
    ("+", "got '+'", 0),
    ("1 + ; 3", "but the statement ends", 3),
])
def test_eval_speaks_of_what_was_typed(keel, text, message, mark):
    done = keel("eval", text, "-d", "reference", code=5)
    assert message in done.err and "'}'" not in done.err
    lines = done.err.splitlines()
    at = next(i for i, line in enumerate(lines) if line.strip(" |") == "^")
    assert lines[at].index("^") - lines[at].index("|") - 2 == mark, done.err


def test_core_ops_are_not_missing(keel):
    for device in ("cpu", "reference"):
        ops = {o["name"]: o["impls"] for o in json.loads(keel("ops", "-d", device, "--json").out)["ops"]}
        for name in ("read", "assign", "assign_add", "assign_sub", "print", "assert"):
            assert set(ops[name].values()) == {"core"}, name
        assert not [name for name, impls in ops.items() if "missing" in impls.values()]


@pytest.mark.parametrize("command", [["run", "g.txt", "-i", "x=1,2"], ["bench", "g.txt", "-n", "1"], ["dump", "g.txt"],
                                     ["convert", "g.txt", "h.keel"], ["inspect", "g.txt"], ["signatures", "g.txt"],
                                     ["graph", "g.txt"], ["plan", "g.txt"], ["optimize", "g.txt"], ["grad", "g.txt"],
                                     ["bisect", "g.txt"], ["compare", "g.txt", "-d", "cpu,reference"],
                                     ["profile", "g.txt", "-n", "1"], ["eval", "1"], ["devices"], ["doctor"], ["ops"],
                                     ["passes"], ["demo", "-d", "cpu"]])
def test_verbose_says_more_on_stderr_everywhere(keel, graph, command):
    graph()
    plain, more = keel(*command), keel(*command, "-v")
    assert more.err.startswith(f"keel {command[0]}: ") and "devices cpu:0, reference:0" in more.err
    assert len(more.err.splitlines()) > len(plain.err.splitlines())
    if "g.txt" in command:
        assert f"keel {command[0]}: opened g.txt (text, entries main) in " in more.err
