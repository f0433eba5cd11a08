"""Draws comments and messages of an earlier commit with a fixed seed and prints each next to its present text.

Usage: sample_words.py [--width N] COMMIT [COMMENTS [MESSAGES]]    default: 200 comments, 50 messages, texts of any length

One line each: file:line | text then | text now. The present text is the comment (or the message) at the same place or at the same line of code.
"""
import argparse
import functools
import io
import random
import re
import subprocess
import sys
import tarfile

from check_words import BINARY_LIKE, ROOT, texts

SEED, LEAST = 23, 8  # words of a drawn text
ALIKE = 0.4          # share of common words of a text that has moved to another file


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True).stdout


def tree(commit):
    """{file: its text} of that commit."""
    with tarfile.open(fileobj=io.BytesIO(git("archive", commit))) as tar:
        return {m.name: tar.extractfile(m).read().decode(errors="replace") for m in tar if m.isfile()}


def is_message(text):
    return text[:1] in ("'", '"') and not text.startswith('"""')


def drawn(files, comments, messages):
    """[(file, line, text)] of those files."""
    pools = [], []
    for name in sorted(n for n in files if not n.endswith((*BINARY_LIKE, ".md"))):
        for line, text in texts(name, files[name]):
            if len(text.split()) >= LEAST:
                pools[is_message(text)].append((name, line, text))
    draw = random.Random(SEED)
    return [sorted(draw.sample(pool, min(n, len(pool)))) for pool, n in zip(pools, (comments, messages))]


def renamed(commit):
    """{old path: new path} of the renamed files."""
    lines = git("diff", "-M40%", "--name-status", "--diff-filter=R", commit, "HEAD").decode().splitlines()
    return dict(line.split("\t")[1:] for line in lines)


def hunk(commit, old, new, first, last):
    """The lines of `new` that took the place of lines first..last of `old`: (begin, end), end before begin where there are none."""
    shift, begin, end = 0, None, None
    diff = git("diff", "-U0", f"{commit}:{old}", f"HEAD:{new}").decode(errors="replace")
    for match in re.finditer(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", diff, re.M):
        a, n, b, m = (int(g) if g is not None else 1 for g in match.groups())
        if a > last:
            break
        if a + n - (n > 0) >= first:
            begin, end = begin or b, b + m - 1
        shift = b + m - a - n + (n == 0) - (m == 0)
    return (begin, end) if begin is not None else (first + shift, last + shift)


@functools.cache
def cached_texts(name, code):
    return list(texts(name, code))


@functools.cache
def words(text):
    return set(re.findall(r"\w{3,}", text.lower()))


def likeness(a, b):
    a, b = words(a), words(b)
    return len(a & b) / max(1, len(a | b))


def code_at(code, line, text):
    """The code that a comment is about: the code left of it, else the next line of code."""
    lines = code.splitlines()[line - 1:]
    left = lines[0].split(text.splitlines()[0])[0].strip() if lines else ""
    return left or next((s for s in map(str.strip, lines[text.count("\n") + 1:]) if s and not s.startswith(("//", "#"))), "")


def joined(found, at, code):
    """The text of found[at] with the comment lines that continue it."""
    line, text = found[at]
    lines = code.splitlines()
    for next_line, more in found[at + 1:]:
        line += 1
        if next_line != line or not lines[line - 1].strip() == more:
            break
        text += more.lstrip("/#")
    return " ".join(text.split())


def in_file(commit, before, now, item, new):
    """(score, text) of the text of file `new` that took the place of item = (file, line, text)."""
    old, line, text = item
    found = [(at, t) for at, t in cached_texts(new, now[new]) if is_message(t) == is_message(text)]
    begin, end = hunk(commit, old, new, line, line + text.count("\n"))
    then = code_at(before[old], line, text)
    best = 0, 0
    for i, (at, t) in enumerate(found):
        code = code_at(now[new], at, t)
        same_place = len(then) > 8 and then == code
        is_near = begin <= at <= end < begin + 20
        if t.split() == text.split():
            return 2, "the same"
        alike = likeness(text, t)
        if alike >= 0.15 or same_place or is_near:
            best = max(best, (alike + same_place + 0.2 * is_near + likeness(then, code) / 5, -i))
    return best[0], joined(found, -best[1], now[new]) if best[0] else ""


def present(commit, before, now, names, item):
    """The present text of item = (file, line, text)."""
    new = names.get(item[0], item[0])
    here = in_file(commit, before, now, item, new) if new in now else (0, "")
    if here[0] >= 2 * ALIKE:
        return here[1]
    base = item[0].split("/")[-1]
    elsewhere = ((likeness(item[2], t) + 0.1 * name.endswith("/" + base), t) for name in now if not name.endswith((*BINARY_LIKE, ".md"))
                 for _, t in cached_texts(name, now[name]) if is_message(t) == is_message(item[2]))
    there = max(elsewhere, default=(0, ""))
    return there[1] if there[0] > max(here[0], ALIKE) else here[1] or "(deleted)"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--width", type=int, default=10**6)
    parser.add_argument("commit")
    parser.add_argument("comments", nargs="?", type=int, default=200)
    parser.add_argument("messages", nargs="?", type=int, default=50)
    args = parser.parse_args()
    before, now, names = tree(args.commit), tree("HEAD"), renamed(args.commit)

    def clipped(text):
        text = " ".join(text.split()).replace("|", "/")
        return text if len(text) <= args.width else text[:args.width - 1].rstrip() + "…"

    for title, pool in zip(("Comments", "Messages"), drawn(before, args.comments, args.messages)):
        print(f"## {title}\n")
        for item in pool:
            print(f"{item[0]}:{item[1]} | {clipped(item[2])} | {clipped(present(args.commit, before, now, names, item))}")
        print()


if __name__ == "__main__":
    sys.exit(main())
