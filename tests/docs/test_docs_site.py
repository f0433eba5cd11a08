"""The site as it is built: no warning, nothing from the network, every link inside of it leads to a page and a place there."""
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(Path(__file__).resolve().parent))
import pages  # noqa: E402

HTML = ROOT / "build/docs/html"
LOADED = {("script", "src"), ("link", "href"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}


class Page(HTMLParser):
    """Links, anchors, and the URLs that a browser loads by itself."""

    def __init__(self, path):
        super().__init__()
        self.path, self.links, self.anchors, self.loaded = path, [], set(), []
        self.feed(path.read_text())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.anchors |= {values[k] for k in ("id", "name") if values.get(k)}
        if tag == "a" and values.get("href"):
            self.links.append(values["href"])
        self.loaded += [values[a] for t, a in LOADED if t == tag and values.get(a)]


@pytest.fixture(scope="module")
def site():
    done = subprocess.run([str(ROOT / "tools/docs"), str(pages.BUILD)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return {path: Page(path) for path in HTML.rglob("*.html")}


def test_nothing_comes_from_the_network(site):
    outside = re.compile(r"^(https?:)?//")
    assert [(p.path.name, url) for p in site.values() for url in p.loaded if outside.match(url)] == []
    for sheet in HTML.rglob("*.css"):
        assert not re.search(r"(@import|url\()\s*['\"]?(https?:)?//", sheet.read_text()), sheet


def test_links_and_anchors_exist(site):
    dead = []
    for page in site.values():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            name, _, anchor = link.partition("#")
            target = (page.path.parent / unquote(name)).resolve() if name else page.path
            if not target.exists() or (anchor and target in site and unquote(anchor) not in site[target].anchors):
                dead.append((page.path.name, link))
    assert dead == []


def test_every_authored_page_is_in_the_navigation(site):
    menu = {(HTML / unquote(link.partition("#")[0])).resolve() for link in site[HTML / "index.html"].links if not link.startswith("http")}
    for page in (p for p in pages.PAGES if p.is_relative_to(pages.DOCS) and p != pages.DOCS / "index.md"):
        assert (HTML / page.relative_to(pages.DOCS).with_suffix(".html")).resolve() in menu, page


def test_the_spelling_check_finds_a_typo_and_lets_names_be(tmp_path):
    typo = "the"[0::2] + "h"
    (tmp_path / "page.md").write_text(f"A page with {typo} typo, kOwn and keel.arange.\n")
    done = subprocess.run([sys.executable, "-m", "codespell_lib", "--config", str(ROOT / "tools/spelling.cfg"), "page.md"],
                          cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["page.md:1:", typo, "==>", "the"] and done.returncode


def test_the_page_of_checks_lists_checks_of_ci():
    table = (ROOT / "docs/house/checks.md").read_text().split("| name | looks at |")[1].split("\n\n")[0]
    listed = {name for row in table.splitlines()[2:] for name in re.findall(r"`([\w-]+)`", row.split("|")[1])}
    assert "manual" in listed and listed <= set(re.findall(r"\b(?:long_check \S+|check) ([\w-]+) ", (ROOT / ".ci/run").read_text(), re.MULTILINE))
