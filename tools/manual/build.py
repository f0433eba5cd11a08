"""Builds the manual as HTML: tools/docs runs this.

The sources are assembled in build/docs/tree, which has the shape of the repository: docs/ is copied there, the reference
is generated next to it, and the other folders are links, so that a page may link a source file. Sphinx then writes
build/docs/html, every page again, because each contains the navigation. Every warning is an error: a dead link, a page
that no table of contents lists, a bad code block.
"""
import os
import shutil
import subprocess
import sys
from pathlib import Path

import c_reference
import cli_reference
import links
import ops_reference
import python_reference

ROOT = Path(__file__).resolve().parents[2]
OUT = ROOT / "build/docs"
GENERATORS = (ops_reference, c_reference, python_reference, cli_reference)


def write_if_changed(path, text):
    """Leaves the time of an unchanged page alone: Sphinx then does not read the page again."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def authored_pages():
    pages = {}
    for path in sorted((ROOT / "docs").rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            name = path.relative_to(ROOT / "docs").as_posix()
            pages[name] = links.for_site(path, ROOT) if path.suffix == ".md" else path.read_bytes()
    pages["notes/README.md"] += "\n```{toctree}\n:hidden:\n:glob:\n\n*\n```\n"
    pages["reference/file_format.md"] = links.for_site(ROOT / "abi/FILE.md", ROOT)
    return pages


def assemble(build):
    """Fills build/docs/tree, and removes pages whose source is gone."""
    tree = OUT / "tree"
    pages = authored_pages()
    for generator in GENERATORS:
        pages |= generator.pages(ROOT, build)
    for name, text in pages.items():
        if isinstance(text, str):
            write_if_changed(tree / "docs" / name, text)
        else:
            (tree / "docs" / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / "docs" / name).write_bytes(text)
    for path in (tree / "docs").rglob("*"):
        if path.is_file() and path.relative_to(tree / "docs").as_posix() not in pages:
            path.unlink()
    for folder in ROOT.iterdir():
        link = tree / folder.name
        if folder.is_dir() and folder.name not in ("build", "docs") and not folder.name.startswith(".") and not link.exists():
            link.symlink_to(os.path.relpath(folder, tree))
    return tree / "docs"


def remove_stale(source, html):
    """Removes Sphinx's files of pages that no longer exist."""
    shutil.rmtree(html / "_sources", ignore_errors=True)
    for page in html.rglob("*.html"):
        name = page.relative_to(html)
        if name.as_posix() not in ("search.html", "genindex.html") and not (source / name).with_suffix(".md").exists():
            page.unlink()


def main():
    build = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release").resolve()
    source = assemble(build)
    html = OUT / "html"
    status = subprocess.run([sys.executable, "-m", "sphinx", "-b", "html", "-a", "-E", "-q", "-W", "--keep-going", "-j", "2",
                             "-d", str(OUT / "doctrees"), str(source), str(html)], check=False).returncode
    if status == 0:
        remove_stale(source, html)
        print(f"manual: {len(list(html.rglob('*.html')))} pages in {html.relative_to(ROOT)}")
    return status


if __name__ == "__main__":
    sys.exit(main())
