"""The grid of the example programs' rows x {C++, C, command, Python}, read from the names of the tests in tests/rows
and tests/python_sdk.

Usage: rows.py           print the grid; exit 1 if a cell has neither a test nor a reason, or both
       rows.py --faults  only faulty cells

x: a test; .: a reason in tests/rows/waiting.txt; ?: neither; !: both, so the reason must be removed.
"""
import re
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"
ROWS = [f"{letter}{n}" for letter, count in (("V", 15), ("Z", 18), ("T", 26), ("K", 11)) for n in range(1, count + 1)]
IDS = r"((?:[VZTK]\d+_?)+)"  # the rows of a test; several rows may make the same claim
NAMES = {  # language: (files, pattern of a test name and body)
    "C++": ("rows/rows*_test.cc", rf"^TEST(?:_P|_F)?\(Rows, {IDS}\w*\) \{{(.*?)(?:^\}}| \}}$)"),
    "C": ("rows/rows*.c", rf"^static void {IDS}\(void\) \{{(.*?)(?:^\}}| \}}$)"),
    "CLI": ("rows/test_rows*.py", rf"^def test_{IDS}\w*\(.*?\):\n(.*?)(?=^\S|\Z)"),
    "Python": ("python_sdk/test_py_rows_*.py", rf"^def test_{IDS}\w*\(.*?\):\n(.*?)(?=^\S|\Z)"),
}


def text_of(files):
    return "\n".join(path.read_text() for path in sorted(TESTS.glob(files)))


def bodies():
    """{language: [(rows, body), ...]}, one entry per test"""
    return {language: [(names.strip("_").split("_"), " ".join(body.split())) for names, body in
                       re.findall(pattern, text_of(files), re.M | re.S)] for language, (files, pattern) in NAMES.items()}


def repeated(found):
    """Tests with the same body under two names."""
    for language, tests in found.items():
        seen = {}
        for rows, body in tests:
            if body in seen:
                yield f"{language}: {'_'.join(seen[body])} and {'_'.join(rows)} have one body: make them one test with both ids"
            seen[body] = rows


def reasons():
    """{(row, language): reason}, and the faults of the list"""
    found, faults = {}, []
    for number, line in enumerate((TESTS / "rows/waiting.txt").read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        match = re.fullmatch(rf"([VZTK]\d+)((?: (?:{'|'.join(map(re.escape, NAMES))}))+): (\S.*)", line)
        if not match or match.group(1) not in ROWS:
            faults.append(f"waiting.txt:{number}: expected ROW LANGUAGES: reason, got: {line}")
            continue
        for language in match.group(2).split():
            found[match.group(1), language] = match.group(3)
    return found, faults


def registered(row):
    """Whether the table of the program has the row."""
    return re.search(rf'\{{"((?:\w+_)?{row}(?:_\w+)?)", \1\}}', text_of(NAMES["C"][0]))


def main():
    found, (why, faults) = bodies(), reasons()
    has = {language: {row for rows, _ in tests for row in rows} for language, tests in found.items()}
    faults += repeated(found)
    faults += [f"{language}: {row} is no row" for language in NAMES for row in has[language] if row not in ROWS]
    faults += [f"C: {row} is not in the table of its program" for row in sorted(has["C"]) if not registered(row)]
    grid, count = [f"{'row':<5}" + "".join(f"{language:>7}" for language in NAMES)], 0
    for row in ROWS:
        cells, notes = "", []
        for language in NAMES:
            test, reason = row in has[language], why.get((row, language))
            mark = "!" if test and reason else "x" if test else "." if reason else "?"
            count += mark == "x"
            cells += f"{mark:>7}"
            if mark == "?":
                faults.append(f"{row} {language}: neither a test nor a reason in tests/rows/waiting.txt")
            if mark == "!":
                faults.append(f"{row} {language}: has a test: remove its reason from tests/rows/waiting.txt")
            if reason and reason not in notes:
                notes.append(reason)
        grid.append(f"{row:<5}{cells}   {'; '.join(notes)}".rstrip())
    if sys.argv[1:] != ["--faults"]:
        print("\n".join(grid))
    print("\n".join(faults + [f"rows: {count} of {len(ROWS) * len(NAMES)} cells have a test, of {sum(map(len, found.values()))} tests, "
                              f"{len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
