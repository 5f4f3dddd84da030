"""axe-core finds nothing serious on any page, in light and in dark colours, on a screen and on a phone."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest
from tests.worlds.browser.chromium import PHONE, WIDE, Browser, Page, visit
from tests.worlds.browser.routes import ROUTES

pytestmark = pytest.mark.live
VENDOR = Path(__file__).parent / "vendor"


def test_axe_is_the_version_of_its_manifest() -> None:
    (entry,) = json.loads((VENDOR / "manifest.json").read_text(encoding="utf-8"))
    assert hashlib.sha256((VENDOR / entry["file"]).read_bytes()).hexdigest() == entry["sha256"]
    assert all((VENDOR / name).is_file() for name in entry["licenceFiles"])


def serious(page: Page) -> list[str]:
    found: dict[str, Any] = page.evaluate("() => axe.run(document, {resultTypes: ['violations']})")
    return [
        f"{page.url} {each['impact']} {each['id']}: {[node['target'] for node in each['nodes'][:3]]}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize(("size", "scheme"), [(WIDE, "dark"), (PHONE, "light")], ids=["wide-dark", "phone-light"])
def test_no_page_has_a_serious_finding(browser: Browser, small: str, size: tuple[int, int], scheme: str) -> None:
    with visit(browser, small, size, color_scheme=scheme) as reader:
        reader.open(ROUTES[0]).evaluate((VENDOR / "axe.min.js").read_text(encoding="utf-8"))
        findings = [finding for route in ROUTES for finding in serious(reader.open(route))]
    assert findings == []
