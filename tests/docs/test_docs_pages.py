"""The programs of the manual's pages run and print the output in the page. See pages.py."""
import re
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parents[1] / "tools/manual")]
import links  # noqa: E402
import pages  # noqa: E402

IDS = [p.relative_to(pages.ROOT).with_suffix("").as_posix() for p in pages.PAGES]


@pytest.fixture(scope="module")
def prefix(tmp_path_factory):
    return pages.install(tmp_path_factory.mktemp("prefix") / "installed")


@pytest.mark.parametrize("page", pages.PAGES, ids=IDS)
def test_page(page, request):
    text = page.read_text()
    installed = request.getfixturevalue("prefix") if pages.needs_install(text) else None
    assert pages.rewritten(text, installed) == text, "run tests/docs/pages.py --write and review the difference"


@pytest.mark.parametrize("page", pages.PAGES, ids=IDS)
def test_links_lead_somewhere_in_the_repository(page):
    for target, path in links.targets(page):
        generated = path.is_relative_to(pages.DOCS / "reference")
        assert path.exists() or generated, f"{page.name} links {target}"


def test_chapters_of_the_tutorial_lead_to_each_other():
    chapters = sorted((pages.DOCS / "tutorial").glob("*.md"))
    assert len(chapters) == 8 and chapters[0].name == "1_eager.md"
    for chapter, after in zip(chapters, chapters[1:]):
        assert f"]({after.name})" in chapter.read_text()


@pytest.mark.parametrize("text, expected", [
    ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "```python\nprint(1)\n```\n\n```text\n1\n```\n"),
    ("a\n```python\nx = 1\n```\n\n```text\n2\n```\nb\n", "a\n```python\nx = 1\n```\nb\n"),
    ("```python\nx = 1\n```\n\n```python\nprint(x)\n```\n", "```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\n1\n```\n"),
    ("As `a.txt`:\n\n```text\nhello\n```\n\n```console\n$ cat a.txt\nbye\n```\n",
     "As `a.txt`:\n\n```text\nhello\n```\n\n```console\n$ cat a.txt\nhello\n```\n"),
    ("```console\n$ echo a; echo b\na\n...\n$ exit 3 | cat\n```\n", "```console\n$ echo a; echo b\na\n...\n$ exit 3 | cat\n```\n")])
def test_the_runner_sees_what_a_block_prints(text, expected):
    assert pages.rewritten(text) == expected


def test_the_runner_sees_a_failure():
    with pytest.raises(RuntimeError, match="NameError"):
        pages.rewritten("```python\nnothing_of_that_name\n```\n")
    assert "not found" in pages.rewritten("```console\n$ keel_of_no_name\n```\n")


def test_fences_are_closed():
    for page in pages.PAGES:
        fences = re.findall(r"^```(.*)$", page.read_text(), re.MULTILINE)
        assert len(fences) % 2 == 0 and all(fences[::2]) and not any(fences[1::2]), page
