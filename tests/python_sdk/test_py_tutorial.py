"""The tutorial does what it says: its programs run and print what stands below them. See tutorial_run.py."""
import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import tutorial_run  # noqa: E402


@pytest.mark.parametrize("chapter", tutorial_run.CHAPTERS, ids=lambda path: path.stem)
def test_chapter(chapter):
    text = chapter.read_text()
    assert tutorial_run.rewritten(text) == text, "run tests/python_sdk/tutorial_run.py --write and read what changed"


def test_chapters_lead_to_each_other():
    names = [chapter.name for chapter in tutorial_run.CHAPTERS]
    assert len(names) == 8 and names[0] == "1_eager.md"
    for name, after in zip(names, names[1:]):
        assert f"]({after})" in (tutorial_run.CHAPTERS[0].parent / name).read_text()


def test_links_and_fences_are_sound():
    for chapter in tutorial_run.CHAPTERS:
        text = chapter.read_text()
        fences = re.findall(r"^```(.*)$", text, re.MULTILINE)
        assert all(opening in ("python", "text", "console") and not closing for opening, closing in zip(fences[::2], fences[1::2]))
        for target in re.findall(r"\]\(([^)#:]+)\)", text):
            assert (chapter.parent / target).exists(), f"{chapter.name} links {target}"


@pytest.mark.parametrize("text, expected", [
    ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "```python\nprint(1)\n```\n\n```text\n1\n```\n"),
    ("a\n```python\nx = 1\n```\n\n```text\n2\n```\nb\n", "a\n```python\nx = 1\n```\nb\n"),
    ("```python\nx = 1\n```\n\n```python\nprint(x)\n```\n", "```python\nx = 1\n```\n\n```python\nprint(x)\n```\n\n```text\n1\n```\n")])
def test_the_runner_sees_what_a_block_prints(text, expected):
    assert tutorial_run.rewritten(text) == expected


def test_the_runner_sees_a_failure():
    with pytest.raises(RuntimeError, match="NameError"):
        tutorial_run.rewritten("```python\nnothing_of_that_name\n```\n")
