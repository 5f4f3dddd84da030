"""What the site has beside docs/: README as its first page, CONTRIBUTING, CHANGELOG and deploy/README; and links that fit.

Links between these files follow the repository, so that they work on a code host. Here they are changed to the pages of the site. A
link to a file that is no page (an example, a source) keeps its text and loses its target.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).resolve().parents[2]
PAGES = {
    "README.md": "index.md",
    "CONTRIBUTING.md": "contributing.md",
    "CHANGELOG.md": "changelog.md",
    "deploy/README.md": "deploy.md",
}
"""Files outside of docs/ -> their pages."""
SHOWN = (".md", ".png", ".svg")
_LINK = re.compile(r"\[([^\]\n]+)\]\(([^)\s]+)\)")


def on_files(files: Any, config: Any) -> Any:
    for source, name in PAGES.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text(encoding="utf-8")))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    sources = {name: source for source, name in PAGES.items()}
    own = sources.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    return linked(markdown, own)


def linked(markdown: str, source: str) -> str:
    """The text of a file of the repository with links to pages of the site."""

    def changed(match: re.Match[str]) -> str:
        text, target = match.groups()
        if ":" in target or target.startswith("#"):
            return match.group(0)
        path, _, anchor = target.partition("#")
        wanted = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        if wanted == "deploy":
            wanted = "deploy/README.md"
        found = PAGES.get(wanted) or (wanted.removeprefix("docs/") if wanted.startswith("docs/") and wanted.endswith(SHOWN) else "")
        return f"[{text}]({found}{'#' + anchor if anchor else ''})" if found else text

    return _LINK.sub(changed, markdown)
