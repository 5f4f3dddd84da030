"""The documentation holds together: links lead somewhere, the site has every page, every command has a man page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from navarch.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(path for path in (*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("deploy/*.md")))
_LINK = re.compile(r"\[[^\]\n]+\]\(([^)\s]+)\)")
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Headings as code hosts and mkdocs name them."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", _FENCE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE):
        plain = re.sub(r"[^\w\- ]", "", heading.lower())
        found.add(plain.strip().replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target in _LINK.findall(_FENCE.sub("", page.read_text(encoding="utf-8"))):
        if ":" in target:
            continue
        path, _, anchor = target.partition("#")
        there = page if not path else (page.parent / path)
        assert there.exists(), f"{page.name}: {target}"
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), f"{page.name}: {target}"


def test_the_site_has_every_page() -> None:
    text = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    named = set(re.findall(r"^ +- .*?: (\S+\.md)$", text, re.MULTILINE))
    assert yaml.safe_load(text)["docs_dir"] == "docs"
    assert {path.name for path in (ROOT / "docs").glob("*.md")} <= named
    assert named - {path.name for path in (ROOT / "docs").glob("*.md")} == {"index.md", "contributing.md", "changelog.md", "deploy.md"}


def test_every_command_has_a_man_page(tmp_path: Path) -> None:
    done = subprocess.run([sys.executable, ROOT / "docs/tools/man_pages.py", tmp_path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    made = {path.stem for path in tmp_path.iterdir()}
    assert {f"navarch-{name}" for name in COMMANDS} | {"navarch"} <= made
    page = (tmp_path / "navarch-submit.1").read_text(encoding="utf-8")
    assert '.TH "NAVARCH-SUBMIT" "1"' in page and "\\-\\-gang" in page and ".SH EXAMPLES" in page
