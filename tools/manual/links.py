"""Links between pages and the repository. A page in docs/ links other pages and any file of the repository by its relative
path, as a viewer of the repository does; the site has no page for a README or a folder outside of docs/."""
import re
from pathlib import Path

_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\n]*)\]\((?P<target>[^)#:\s]+)(?P<anchor>#[^)\s]*)?\)")
_FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)


def targets(path):
    """(target, resolved path) of each relative link of a Markdown file, without code blocks."""
    text = _FENCE.sub("", path.read_text())
    return [(m["target"], (path.parent / m["target"]).resolve()) for m in _LINK.finditer(text)]


def for_site(path, root):
    """The text of a page, with links to READMEs and folders outside of docs/ as plain paths."""
    def replace(found):
        target = (path.parent / found["target"]).resolve()
        if not target.is_relative_to(root) or target.is_relative_to(root / "docs"):
            return found[0]
        if not target.exists():
            raise SystemExit(f"manual: {path.relative_to(root)} links {found['target']}, which does not exist")
        name = target.relative_to(root).as_posix()
        if target.is_dir() or target.suffix == ".md":
            return f"`{name}`" if found["text"].strip("`") in (name, found["target"]) else f"{found['text']} (`{name}`)"
        return found[0]
    return _LINK.sub(replace, path.read_text())
