"""The files of the dashboard: vendored ones are what their manifest says, our own are small and write text, never markup."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import TestServer

from navarch.engine.policy import PRESETS
from navarch.web.pages import Pages
from navarch.web.security.token_login import TokenLogin

SOURCES = Path(__file__).resolve().parents[3] / "src" / "navarch"
ASSETS = SOURCES / "web" / "assets"
VENDOR = ASSETS / "vendor"
OWN = sorted(path for path in ASSETS.rglob("*") if path.suffix in (".js", ".css", ".html") and VENDOR not in path.parents)
SCRIPTS = [path for path in OWN if path.suffix == ".js"]


def named(path: Path) -> str:
    return str(path.relative_to(ASSETS))


def test_vendored_files_have_the_hashes_of_their_manifest() -> None:
    entries = json.loads((VENDOR / "manifest.json").read_text(encoding="utf-8"))
    for entry in entries:
        assert hashlib.sha256((SOURCES / entry["file"]).read_bytes()).hexdigest() == entry["sha256"], entry["file"]
        assert entry["version"] and entry["licence"] and entry["source"]
        assert all((SOURCES / name).is_file() for name in entry["licenceFiles"])
    listed = {Path(entry["file"]).name for entry in entries} | {Path(name).name for entry in entries for name in entry["licenceFiles"]}
    assert {path.name for path in VENDOR.iterdir()} <= listed | {"manifest.json"}


@pytest.mark.parametrize("path", OWN, ids=named)
def test_a_file_is_small_and_opens_with_what_it_does(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 300
    assert text.startswith({".js": "//", ".css": "/*", ".html": "<!doctype"}[path.suffix])


@pytest.mark.parametrize("path", OWN, ids=named)
def test_nothing_is_written_as_markup_or_loaded_from_elsewhere(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|https?://", text)
    assert not re.search(r"\sstyle=\"|\son[a-z]+=\"|javascript:", text), "the content security policy blocks these"


@pytest.mark.parametrize("path", SCRIPTS, ids=named)
def test_imports_name_files_that_exist(path: Path) -> None:
    for name in re.findall(r"from \"([^\"]+)\"", path.read_text(encoding="utf-8")):
        assert name.startswith("."), f"{name}: a bare name needs an import map, which the policy blocks"
        assert (path.parent / name).is_file(), name


def test_a_cycle_can_be_compared_with_every_preset() -> None:
    (line,) = re.findall(r"const PRESETS = \[(.*)\];", (ASSETS / "pages" / "cycle.js").read_text(encoding="utf-8"))
    assert sorted(json.loads(f"[{line}]")) == sorted(PRESETS)


def test_every_module_is_loaded_at_once() -> None:
    """A module that is only found by the import of another one costs one more turn to the server before the first paint."""
    preloaded = re.findall(r"modulepreload\" href=\"assets/([^\"]+)\"", (ASSETS / "index.html").read_text(encoding="utf-8"))
    modules = [str(path.relative_to(ASSETS)) for path in SCRIPTS if path.name != "app.js"]
    assert sorted(preloaded) == sorted([*modules, "vendor/htm-preact-standalone.js"])


async def test_the_server_has_every_file_that_the_page_loads() -> None:
    application = web.Application()
    application.router.add_get("/assets/{path:.+}", Pages(TokenLogin("secret")).asset)
    server = TestServer(application)
    await server.start_server()
    loaded = re.findall(r"(?:src|href)=\"([^\"]+)\"", (ASSETS / "index.html").read_text(encoding="utf-8"))
    assert "assets/vendor/uPlot.iife.min.js" in loaded
    async with ClientSession(server.make_url("/")) as session:
        for name in loaded:
            async with session.get(f"/{name}") as answer:
                assert (answer.status, answer.content_type != "text/html") == (200, True), name
    await server.close()
