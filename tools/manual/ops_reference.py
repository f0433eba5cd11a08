"""The op reference: one page for each file of the catalogue, one section for each op.

Signatures, dtypes and documentation come from `keel ops --json`; the definition and the gradient rule are quoted from
kernel/language/opset/*.ops; the example runs on the device `reference` while the page is written. Handwritten examples are in
docs/reference/examples.txt; any other op gets operands that fit its patterns.
"""
import json
import re
import subprocess
import tempfile
from pathlib import Path

TITLES = {"elementwise": "Elementwise", "shape": "Shape and indexing", "reduce": "Reductions", "linear": "Products, convolutions, pooling",
          "composite": "Composites", "control": "Control flow", "effect": "Effects"}
_GUESSES = ("[[-1.5, 0.0, 2.0], [3.0, 0.5, -2.0]]", "[1.0, 4.0, 2.0]", "[[1.0, 2.0], [3.0, 4.0]]", "2.0", "[true, false]", "[5, 3, 2]")
_CLAUSE = re.compile(r"\b(vjp|body)\b(?: *\([^)]*\))? *\{")


def definitions(root):
    """Op name -> (family, its text in the catalogue)."""
    out = {}
    for path in sorted((root / "kernel/language/opset").glob("*.ops")):
        for part in re.split(r"^(?=op \w)", path.read_text(), flags=re.MULTILINE)[1:]:
            out[part.split()[1]] = (path.stem, re.sub(r"\n+(#.*)?$", "", part.rstrip()))
    return out


def block(text, clause):
    """The body or vjp clause of a definition verbatim, or None."""
    for found in _CLAUSE.finditer(text):
        if found[1] == clause:
            depth, at = 0, found.end() - 1
            while at < len(text):
                depth += {"{": 1, "}": -1}.get(text[at], 0)
                at += 1
                if depth == 0:
                    return outdented(text[found.start():at])
    return None


def outdented(text):
    first, *rest = text.split("\n")
    margin = min((len(line) - len(line.lstrip()) for line in rest if line.strip()), default=0)
    return "\n".join([first, *("  " + line[margin:] for line in rest)])


def written_examples(root):
    """Op name -> program, from docs/reference/examples.txt: "== NAME" and then its lines."""
    parts = re.split(r"^== (\w+)\n", (root / "docs/reference/examples.txt").read_text(), flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2])}


def guesses(op):
    """Candidate programs for an op without a written example."""
    attributes = ", ".join(f"{a['name']}={1 if 'dim' in a['type'] or 'i64' in a['type'] else 'f32'}" for a in op["attributes"] if a["default"] == "")
    for operand in _GUESSES:
        count = sum(not o["optional"] for o in op["operands"])
        yield f"{op['name']}({', '.join([operand] * count)})" + (f"{{{attributes}}}" if attributes else "")


class Runner:
    """Runs programs on the device `reference` and returns their output."""

    def __init__(self, build):
        self.keel = build / "bin/keel"

    def command(self, *words, text=None):
        done = subprocess.run([self.keel, *words], input=text, capture_output=True, text=True, check=False, timeout=60)
        return done.returncode, "\n".join(line.rstrip() for line in (done.stderr + done.stdout).strip().splitlines())

    def run(self, program):
        """(exit code, output) of statements, or of a graph's text, whose first line may say "# -i NAME=SPEC ..."."""
        if "\nkeel 1\n" not in "\n" + program:
            return self.command("eval", "-d", "reference", program)
        head, _, graph = program.partition("keel 1\n")
        flags = head.strip().removeprefix("#").split()
        with tempfile.TemporaryDirectory(prefix="keel-") as folder:
            path = Path(folder) / "example.keelt"
            path.write_text("keel 1\n" + graph)
            return self.command("run", str(path), "-d", "reference", *flags)

    def batch(self, programs):
        """Name -> output of programs that are statements, run by one process."""
        text = "".join(f'print "=== {name}"\n{program}\n' for name, program in programs.items())
        _, printed = self.command("eval", "-d", "reference", "-f", "-", text=text)
        parts = re.split(r"^=== (\w+)$", printed, flags=re.MULTILINE)
        return {name: out.strip("\n") for name, out in zip(parts[1::2], parts[2::2])}


def examples(root, build, ops):
    """Op name -> (program, output). An op without one is a defect of the manual: its test says so."""
    runner, written, out = Runner(build), written_examples(root), {}
    statements = {n: p for n, p in written.items() if "keel 1\n" not in p}
    printed = runner.batch(statements)
    for op in ops:
        name = op["name"]
        if name in printed and printed[name]:
            out[name] = (written[name], printed[name])
            continue
        for program in [written[name]] if name in written else guesses(op):
            status, text = runner.run(program)
            if status == 0:
                out[name] = (program, text)
                break
        else:
            if name in written:
                raise SystemExit(f"manual: docs/reference/examples.txt: the example of {name} failed:\n{text}")
    return out


def call(op):
    operands = [("?" if o["optional"] else "") + o["name"] + ("..." if o["variadic"] else "") for o in op["operands"]]
    required = [f"{a['name']}=..." for a in op["attributes"] if a["default"] == ""]
    results = ", ".join(r["name"] for r in op["results"]) or "nothing"
    return f"{op['name']}({', '.join(operands)})" + (f"{{{', '.join(required)}}}" if required else "") + f" -> {results}"


def table(op):
    rows = [(o["name"], "operand", o["pattern"], "optional" if o["optional"] else "any number" if o["variadic"] else "") for o in op["operands"]]
    rows += [(a["name"], "attribute", a["type"], f"default `{a['default']}`" if a["default"] else "required") for a in op["attributes"]]
    rows += [(r["name"], "result", r["pattern"], "") for r in op["results"]]
    lines = ["| name | kind | type and shape | |", "| --- | --- | --- | --- |"]
    return lines + [f"| `{n}` | {kind} | `{pattern.replace('|', chr(92) + '|')}` | {note} |" for n, kind, pattern, note in rows]


def gradient(op, text):
    rule = block(text, "vjp") if text else None
    if op["vjp"] == "rule" and rule:
        return ["Gradient rule:", "", "```text", rule, "```", ""]
    return [{"body": "Gradient: that of its definition.", "none": "Gradient: none flows through this op.",
             "missing": "Gradient: built from its bodies by the kernel."}.get(op["vjp"], "Gradient: a rule of the catalogue."), ""]


def section(op, text, example):
    out = [f"(op-{op['name']})=", f"## {op['name']}", "", "```{index} single: " + f"{op['name']} (op)" + "\n```", "", f"`{call(op)}`", ""]
    out += [literal(op["doc"]), ""] if op["doc"] else []
    out += table(op) + [""]
    if op["types"]:
        out += ["Dtypes: " + "; ".join(f"`{name}` is one of {' '.join(types)}" for name, types in op["types"].items()) + ".", ""]
    if "class close" in text:
        out += ["Class: close. Devices may round the result differently.", ""]
    fails = re.findall(r'^ *fails \w+[^"\n]*"([^"]*)"', text, re.MULTILINE)
    out += [f"Fails in a run: {', '.join(literal(f) for f in fails)}.", ""] if fails else []
    body = block(text, "body") if text else None
    out += ["Definition:", "", "```text", body, "```", ""] if body else []
    out += gradient(op, text)
    if example:
        out += ["Example, run on the device `reference`:", "", "```text", example[0], "```", "", "```text", example[1] or "(prints nothing)", "```", ""]
    return out


def literal(text):
    return re.sub(r"([\\`*_{}\[\]<>#|~^$])", r"\\\1", text)


def catalogue(build):
    done = subprocess.run([build / "bin/keel", "ops", "--json"], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)["ops"]


def pages(root, build):
    ops, texts = catalogue(build), definitions(root)
    ran = examples(root, build, ops)
    families = {}
    for op in ops:
        families.setdefault(texts.get(op["name"], ("other", ""))[0], []).append(op)
    order = [f for f in TITLES if f in families] + sorted(set(families) - set(TITLES))
    out = {}
    for family in order:
        lines = [f"# {TITLES.get(family, family)}", ""]
        for op in families[family]:
            lines += section(op, texts.get(op["name"], ("", ""))[1], ran.get(op["name"]))
        out[f"reference/ops/{family}.md"] = "\n".join(lines) + "\n"
    index = [(root / "docs/reference/ops/index.md").read_text().rstrip(), "", "| op | does |", "| --- | --- |"]
    index += [f"| [{op['name']}](#op-{op['name']}) | {literal(op['doc'].split('. ')[0].rstrip('.'))} |" for op in ops]
    index += ["", "```{toctree}", ":hidden:", "", *order, "```", ""]
    return out | {"reference/ops/index.md": "\n".join(index)}
