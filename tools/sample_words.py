"""Draws comments and messages of an earlier commit with a fixed seed and prints each next to its present text.

Usage: sample_words.py COMMIT [COMMENTS [MESSAGES]]    default: 200 comments, 50 messages
"""
import random
import re
import subprocess
import sys

from check_words import BINARY_LIKE, ROOT, texts

SEED, LEAST = 23, 8  # words of a drawn text


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True, errors="replace").stdout


def drawn(commit, comments, messages):
    """[(file, line, text)] of that commit."""
    pools = [], []
    for name in git("ls-tree", "-r", "--name-only", commit).splitlines():
        if name.endswith((*BINARY_LIKE, ".md")):
            continue
        for line, text in texts(name, git("show", f"{commit}:{name}")):
            if len(text.split()) >= LEAST:
                is_message = text[0] in "\"'" and not text.startswith('"""')
                pools[is_message].append((name, line, text))
    draw = random.Random(SEED)
    return [sorted(draw.sample(pool, min(n, len(pool)))) for pool, n in zip(pools, (comments, messages))]


def renamed(commit):
    """{old path: new path} of all files that still exist."""
    names = {n: n for n in git("ls-files").splitlines()}
    for line in git("diff", "-M40%", "--name-status", "--diff-filter=R", commit, "HEAD").splitlines():
        _, old, new = line.split("\t")
        names[old] = new
    return names


def present(commit, old, new, first, last):
    """The lines of `new` that took the place of lines first..last of `old`."""
    shift, begin, end = 0, None, None
    for hunk in re.finditer(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@", git("diff", "-U0", f"{commit}:{old}", f"HEAD:{new}"), re.M):
        a, n, b, m = (int(g) if g is not None else 1 for g in hunk.groups())
        if a > last:
            break
        if a + n - (n > 0) >= first:
            begin, end = begin or b, b + m - 1
        shift = b + m - a - n + (n == 0) - (m == 0)
    if begin is None:
        begin, end = first + shift, last + shift
    lines = git("show", f"HEAD:{new}").splitlines()[begin - 1:max(end, begin - 1)]
    return " ".join(" ".join(lines).split())


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    commit, comments, messages = sys.argv[1], *(int(a) for a in (sys.argv[2:] + ["200", "50"][len(sys.argv) - 2:]))
    names = renamed(commit)
    for title, pool in zip(("Comments", "Messages"), drawn(commit, comments, messages)):
        print(f"## {title}\n")
        for name, line, text in pool:
            print(f"- {name}:{line}\n  before: {' '.join(text.split())}")
            new = names.get(name)
            now = present(commit, name, new, line, line + text.count("\n")) if new else "(the file is gone)"
            print("  now: " + ("the same" if " ".join(text.split()) in now else now or "(deleted)"))


if __name__ == "__main__":
    main()
