"""Sums up JUnit reports: lists failures, lists skipped tests with the reason (grouped by file and reason), and ends
with one line of counts. Expected failures count as skipped. A GoogleTest program is one test of ctest; its tests are
counted from its report in tests/results. If the program crashed, the running test failed.

Usage: count_tests.py report.xml...    exit 1 if a test failed, a report is missing or no test ran
"""
import ast
import re
import sys
import xml.etree.ElementTree as xml
from pathlib import Path


def reason(case):
    """The reason of a skip: pytest puts it into the element, GoogleTest into the output."""
    printed = case.findtext("system-out") or ""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    for at, line in enumerate(lines):
        if re.search(r": Skipped$", line) and at + 1 < len(lines):
            return lines[at + 1]
    element = case.find("skipped")
    text = element.get("message") if element is not None else ""
    if text == "collection skipped":  # of a whole file: the reason is in the text, ('FILE', LINE, 'Skipped: REASON')
        text = ast.literal_eval(element.text)[2].removeprefix("Skipped: ")
    return text or (lines[-1] if lines else "no reason given")


def verdict(case):
    if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
        return "failed"
    if case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
        return "skipped"
    return "passed"


def last_begun(printed):
    """The test that was running when a program ended, from its output."""
    begun = re.findall(r"\[ RUN +\] (\S+)", printed)
    return begun[-1] if begun else "before its first test"


def cases_of(path):
    """(group, name, element) of each test of a report; GoogleTest programs are replaced by their own reports."""
    for case in xml.parse(path).getroot().iter("testcase"):
        group, name = case.get("classname", ""), case.get("name", "")
        report = path.parent / "tests/results" / f"{name}.xml"
        printed = case.findtext("system-out") or ""
        if path.name != "ctest.xml" or "." in name or not (report.exists() or "[==========]" in printed):
            yield group, name, case
            continue
        inner = list(xml.parse(report).getroot().iter("testcase")) if report.exists() else []
        yield from ((name, f"{each.get('classname')}.{each.get('name')}", each) for each in inner)
        if verdict(case) == "failed" and not any(verdict(each) == "failed" for each in inner):
            yield name, f"ended early or wrongly; the last test that began: {last_begun(printed)}", case


def file_of(group):
    """tests.python_sdk.test_a of tests.python_sdk.test_a.TestClass; a GoogleTest program is its own."""
    return re.sub(r"(\.test_\w+)\..*", r"\1", group)


def main():
    counts, skipped = {"passed": 0, "failed": 0, "skipped": 0}, {}
    for path in sys.argv[1:]:
        if not Path(path).exists():
            print(f"failed: {path} was not written")
            counts["failed"] += 1
            continue
        for group, name, case in cases_of(Path(path)):
            result = verdict(case)
            name = name if group in ("", name) else f"{group}::{name}"
            counts[result] += 1
            if result == "failed":
                print(f"failed: {name}")
            elif result == "skipped":
                skipped.setdefault((file_of(group), reason(case)), []).append(name)
    for (_, why), names in skipped.items():
        print(f"skipped: {names[0]}{f' and {len(names) - 1} more' if len(names) > 1 else ''}: {why}")
    print(", ".join(f"{number} {word}" for word, number in counts.items()))
    return 1 if counts["failed"] or not counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main())
