"""Counts forms of English that STYLE.md replaces, in comments, docstrings, Markdown and messages, per area of the tree.

Usage: check_words.py              exit 1 where an area has more than its limit
       check_words.py --list AREA  each occurrence: file:line: form: the text around it
"""
import argparse
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Occurrences per 1,000 words that an area may have. The goal is 3 everywhere: a form that is right in its place counts, too. Higher limits are
# of areas that have not been reworded yet; they only fall.
LIMITS = {"abi": 1, "cli": 1, "docs": 1, "kernel": 1, "plugins": 1, "sdk": 1, "tests": 2, "tools": 2, ".": 3}
FORMS = {
    "a clause in place of a noun": r"\b[Ww]hat (?!to\b|happened|does|do\b)\w+",
    "a pronoun in place of a noun": r"\b([Tt]hose (that|which|who|of|with)|[Oo]ne (that|of which|whose)|[Nn]obody|[Ss]omebody|[Ww]hoever|[Ww]hatever)\b",
    "a person where none acts": r"\b[Ww]ho(m)?\b(?! is this)",
    "a machine that speaks": r"\b(tells?|told|asks?|asked|(is|are|was|were) said)\b",
    "of which, to which": r"\b(of|to|by|for|in|from|with) which\b",
    "an archaic word": r"\b(anew|likewise|thereof|therein|thereby|whereby|wherein|mend(s|ed|ing)?|beside)\b",
    "a metaphor of place": r"\b(stands?|lies?|lay) (in|on|at|before|behind|for|there|by|between|side)\b",
    "'s way": r"\w's way\b",
}
PATTERN = re.compile("|".join(f"(?P<f{i}>{form})" for i, form in enumerate(FORMS.values())))
C_LIKE = (".h", ".hpp", ".c", ".cc", ".inc", ".cu", ".fbs")
HASHED = (".py", ".pyi", ".cmake", ".ops", ".rules", ".sh")
BINARY_LIKE = (".txt", ".svg", ".json", ".cases", ".map")
C_TEXT = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.S)
HASH_TEXT = re.compile(r"(?:(?<=\s)|^)#[^\n]*|\"\"\".*?\"\"\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'", re.S | re.M)


def tracked():
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, check=True, capture_output=True,
                           text=True).stdout.split("\n")
    return sorted(n for n in names if n and (ROOT / n).is_file() and not n.endswith(BINARY_LIKE) and n != "STYLE.md"
                  and not n.endswith("check_words.py"))


def texts(name, code=None):
    """(line, text) of each comment and of each string that reads like a message; a Markdown file by line."""
    path = ROOT / name
    code = path.read_text(errors="replace") if code is None else code
    if path.suffix == ".md":
        in_code = False
        for number, line in enumerate(code.splitlines(), 1):
            in_code ^= line.startswith("```")
            if not in_code:
                yield number, re.sub(r"`[^`]*`", "``", line)
        return
    pattern = C_TEXT if path.suffix in C_LIKE else HASH_TEXT if path.suffix in HASHED or path.name == "CMakeLists.txt" else None
    if pattern is None:
        return
    for match in pattern.finditer(code):
        text = match.group(0)
        if text[0] in "\"'" and not text.startswith('"""') and text.count(" ") < 2:
            continue
        yield code.count("\n", 0, match.start()) + 1, text


def area(name):
    folder = name.split("/")[0]
    return folder if folder in LIMITS else "."


def faults(name):
    for line, text in texts(name):
        for match in PATTERN.finditer(text):
            form = list(FORMS)[int(match.lastgroup[1:])]
            around = " ".join(text[max(0, match.start() - 40):match.end() + 30].split())
            yield line + text.count("\n", 0, match.start()), form, around


def counts():
    words, found = dict.fromkeys(LIMITS, 0), dict.fromkeys(LIMITS, 0)
    for name in tracked():
        words[area(name)] += sum(len(re.findall(r"[A-Za-z]{2,}", text)) for _, text in texts(name))
        found[area(name)] += sum(1 for _ in faults(name))
    return words, found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--list", metavar="AREA")
    args = parser.parse_args()
    if args.list:
        for name in tracked():
            if name.startswith(args.list) or (args.list == "." and area(name) == "."):
                for line, form, around in faults(name):
                    print(f"{name}:{line}: {form}: {around}")
        return 0
    words, found = counts()
    failed = 0
    for folder, limit in LIMITS.items():
        rate = 1000 * found[folder] / max(words[folder], 1)
        failed += rate > limit
        print(f"{folder:8} {words[folder]:6} words, {found[folder]:5} forms, {rate:5.1f} per 1,000, at most {limit}"
              + (" TOO MANY" if rate > limit else ""))
    print(f"words: {sum(words.values())} words, {sum(found.values())} forms, {failed} areas over their limit")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
