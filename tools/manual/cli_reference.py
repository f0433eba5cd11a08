"""The reference of the command: one page for each subcommand, and the list of passes, from the command's own output."""
import json
import re
import subprocess

CLASSES = ("exact", "close", "fast")


def help_of(build, *words):
    text = subprocess.run([build / "bin/keel", *words, "--help"], capture_output=True, text=True, check=True).stdout
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def subcommands(build):
    """(name, description) in the order of `keel --help`."""
    listed = help_of(build).split("Subcommands:")[1]
    return re.findall(r"^  ([\w-]+) +(\S.*)$", listed, re.MULTILINE)


def passes(build):
    """The passes of the supplied plugins, from `keel passes`."""
    listed = subprocess.run([build / "bin/keel", "passes", "--json"], capture_output=True, text=True, check=True).stdout
    lines = ["# List of passes", "", "The passes that come with Keel, in the order of execution. [Passes](../concepts/passes.md) explains phases, "
             "levels and classes; `keel passes` prints this list for your machine.", "", "| pass | phase | level | class | does |",
             "| --- | --- | --- | --- | --- |"]
    described = [p for p in json.loads(listed)["passes"] if p["about"]]  # rules that extend a pass have no text of their own
    lines += [f"| `{p['name']}` | {p['phase']} | {p['level']} | {CLASSES[p['exactness']]} | {p['about']} |" for p in described]
    return "\n".join(lines) + "\n"


def pages(root, build):
    commands = subcommands(build)
    out = {}
    for name, about in commands:
        out[f"reference/cli/{name}.md"] = f"(cli-{name})=\n# keel {name}\n\n{about}.\n\n```text\n{help_of(build, name)}\n```\n"
    lines = ["# The command `keel`", "", "Flags that every subcommand takes, from `keel --help`:", "", "```text",
             help_of(build).split("Subcommands:")[0].rstrip(), "```", "",
             "Inputs and exit codes: [The command line](../../start/cli.md). Passes, devices and JSON: [The command in detail](../command.md).", "", "| subcommand | does |", "| --- | --- |"]
    lines += [f"| [{name}](#cli-{name}) | {about} |" for name, about in commands]
    lines += ["", "```{toctree}", ":hidden:", "", *(name for name, _ in commands), "```", ""]
    out["reference/passes.md"] = passes(build)
    return out | {"reference/cli/index.md": "\n".join(lines)}
