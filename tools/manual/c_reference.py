"""The C reference: a page for each header of abi/, read from the header itself.

A header's first comment is the page's introduction. A comment "/* ---- title: text */" opens a section. Any other comment
belongs to the declaration after it, or to the one on its line. Where the build has an abi.json, its
facts about parameters follow the declaration.
"""
import json
import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

_MARK = re.compile(r"\bKEEL_(NULLABLE|HOLES|BORROWED|TAKEN|KEPT) |\s+KEEL_(COUNT|FILLED)\([^)]*\)")  # the table of parameters states the same
_FUNCTION = re.compile(r"\b(keel_\w+)\s*\(")


@dataclass
class Item:
    """A declaration with its comment."""
    code: str
    comment: str
    names: list[str] = field(default_factory=list)  # of functions that it declares


@dataclass
class Section:
    title: str
    text: str
    items: list[Item] = field(default_factory=list)


def functions(text):
    """The names of the functions that a header exports."""
    bare = re.sub(r"/\*.*?\*/|^\s*#.*?(?<!\\)$", "", text, flags=re.DOTALL | re.MULTILINE)
    return [m[1] for part in re.findall(r"KEEL_API\b[^;]*;", bare) if (m := _FUNCTION.search(part))]


def prose(comment):
    """A comment without its frame: the lines of /* ... */ as one text."""
    lines = [re.sub(r"^ ?\* ?", "", line) for line in comment[2:-2].strip("\n").split("\n")]
    return "\n".join(line.rstrip() for line in lines).strip()


def chunks(text):
    """A header cut into comments that begin a line, preprocessor lines and declarations, which keep the comments inside of them."""
    at, depth, begin = 0, 0, 0
    while at < len(text):
        if text.startswith("/*", at):
            end = text.index("*/", at) + 2
            if text[begin:at].strip() == "":
                yield "comment", text[at:end]
                begin = end
            at = end
        elif text[at] == "#" and text[begin:at].strip() == "":
            end = re.compile(r"(?<!\\)\n|\Z").search(text, at).end()
            yield "directive", text[at:end]
            begin = at = end
        else:
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            if text[at] == ";" and depth == 0:
                tail = re.compile(r"[ \t]*/\*.*?\*/", re.DOTALL).match(text, at + 1)
                at = tail.end() if tail else at + 1
                yield "declaration", text[begin:at].strip()
                begin = at
            else:
                at += 1


def is_api(code):
    return re.search(r"KEEL_API\b|^(KEEL_\w+ )?typedef|^(enum|struct)\b", code) is not None


def read(text):
    """The introduction of a header, and its sections."""
    text = re.sub(r'#ifdef __cplusplus\n.*?#endif\n', "", text, flags=re.DOTALL)
    intro, sections, comment = "", [Section("", "")], ""
    for kind, part in chunks(text):
        if kind == "comment":
            words = prose(part)
            if not intro:
                intro = words
            elif words.startswith("----"):
                title, _, rest = words[4:].strip().partition(": ")
                if len(title) > 70 or "\n" in title:
                    title, _, rest = words[4:].strip().partition(" ")
                sections.append(Section(title.rstrip("."), rest))
                comment = ""
            else:
                comment = words
        elif kind == "declaration" and is_api(part):
            names = [m[1] for piece in part.split("KEEL_API")[1:] if (m := _FUNCTION.search(re.sub(r"/\*.*?\*/", "", piece, flags=re.DOTALL)))]
            code = re.sub(r"\n {9}", "\n", part.replace("KEEL_API ", "", 1)) if part.startswith("KEEL_API ") else part
            last = sections[-1].items[-1] if sections[-1].items else None
            if not names and not comment and last and not last.names and "typedef struct" in last.code and "{" not in part + last.code:
                last.code += "\n" + code  # handles, one after the other
            else:
                sections[-1].items.append(Item(code, comment, names[:1]))
            comment = ""
        elif kind == "directive" and part.startswith("#define KEEL_") and not part.startswith(("#define KEEL_API", "#define KEEL_ASSERT")) \
                and not re.match(r"#define KEEL(_\w+)?_H\b", part):
            item = sections[-1].items[-1] if sections[-1].items else None
            if item and item.code.startswith("#define") and not comment:
                item.code += "\n" + part.rstrip()
            else:
                sections[-1].items.append(Item(part.rstrip(), comment))
            comment = ""
    return intro, [s for s in sections if s.items or s.text]


def capitalised(words):
    return words[:1].upper() + words[1:]


def escaped(words):
    """Text of a comment as Markdown: nothing in it is markup. Paragraphs stay; indented lines, such as a table of options, stay as they are."""
    out, block, in_list = [], [], False
    for line in [*words.split("\n"), ""]:
        if line.startswith("  ") and not in_list:
            block.append(line)
            continue
        if block:
            out += ["", "```text", textwrap.dedent("\n".join(block)), "```", ""]
            block = []
        in_list = re.match(r"([-+]|\d+\.) ", line) is not None or (in_list and line.startswith("  "))
        out.append(re.sub(r"([\\`*_{}\[\]<>#|~^$])", r"\\\1", re.sub(r"^(\s*)([-+]|\d+\.) ", r"\1\\\2 ", line)))
    return "\n".join(out).strip("\n")


def parameters(facts):
    """A table of the facts in abi.json about the parameters of a function, and its rule for threads."""
    rows = facts.get("params", [])
    columns = [k for k in dict.fromkeys(k for row in rows for k in row) if k not in ("name", "type")
               and any(row.get(k) not in (None, "", False) for row in rows)]
    if not rows or not columns:
        return ""

    def cell(value):
        return "" if value in (None, False) else "yes" if value is True else escaped(str(value))
    lines = ["| parameter | " + " | ".join(columns) + " |", "| --- " * (len(columns) + 1) + "|"]
    lines += [f"| `{row['name']}` | " + " | ".join(cell(row.get(c)) for c in columns) + " |" for row in rows]
    alone = ", ".join(f"`{name}`" for name in facts.get("one_at_a_time", []))
    return "\n".join(lines) + "\n" + (f"\nNo other thread may use {alone} during the call.\n" if alone else "")


def page(name, text, facts):
    intro, sections = read(text)
    out = [f"(header-{name.removesuffix('.h')})=", f"# {name}", "", escaped(capitalised(re.sub(rf"^{re.escape(name)}:\s*", "", intro))), ""]
    level = "###" if any(s.title for s in sections) else "##"
    if level == "###" and not sections[0].title:
        sections[0].title = "Basics"
    for section in sections:
        if section.title:
            out += [f"## {escaped(capitalised(section.title))}", "", escaped(section.text), ""]
        for item in section.items:
            for function in item.names:
                out += [f"(c-{function})=", f"{level} {function}", "", "```{index} single: " + function + "\n```", ""]
            if item.comment:
                out += [escaped(item.comment), ""]
            code = _MARK.sub("", item.code) if item.names and item.names[0] in facts else item.code
            out += ["```c", code, "```", ""]
            out += [parameters(facts.get(function, {})) for function in item.names]
    return "\n".join(out) + "\n"


def load_facts(build):
    """Function name -> its entry of abi.json, or nothing where the build has no such file."""
    path = build / "abi.json"
    return json.loads(path.read_text())["functions"] if path.exists() else {}


def pages(root, build):
    headers = sorted((root / "abi").glob("*.h"))
    order = ["keel.h", "keel_base.h", "keel_handle.h", "keel_context.h", "keel_array.h", "keel_module.h", "keel_session.h"]
    plugin = ["keel_plugin.h", "keel_host.h", "keel_impl.h", "keel_device.h"]
    headers.sort(key=lambda h: (h.name in plugin, (order + plugin).index(h.name) if h.name in order + plugin else len(order), h.name))
    facts = load_facts(build)
    out = {f"reference/c/{h.stem}.md": page(h.name, h.read_text(), facts) for h in headers}
    index = ["# C", "", "The functions and types of the C headers. Programs include `keel.h`; a plugin includes `keel_plugin.h` and links nothing.",
             "", "```{toctree}", ":maxdepth: 2", "", *(h.stem for h in headers), "```", ""]
    return out | {"reference/c/index.md": "\n".join(index)}
