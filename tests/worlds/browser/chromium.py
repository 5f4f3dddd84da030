"""A reader of the dashboard: Chromium, a page in it, and what must never happen on that page.

The browser is the system's. Playwright's own download is not used, so a machine without Chromium skips these tests.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

import pytest

try:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request, Route, expect, sync_playwright
except ImportError:  # the suite skips then
    pytest.skip("playwright is not installed", allow_module_level=True)

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE = 60_000
"""Milliseconds to wait for a condition; a busy machine is slow, not wrong."""
WIDE = (1280, 800)
PHONE = (390, 844)


@contextlib.contextmanager
def chromium() -> Iterator[Browser]:
    if PROGRAM is None:
        pytest.skip("there is no Chromium on this machine; on Debian: apt install chromium")
    expect.set_options(timeout=PATIENCE)
    with sync_playwright() as playwright:
        # Without its own sandbox: Chromium refuses to run as root with it, as in containers.
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=arguments, timeout=PATIENCE)
        yield browser
        browser.close()


@dataclass
class Visit:
    """One reader with cookies and choices of their own. `address` is the printed one, with the token."""

    page: Page
    address: str
    is_known: bool = False
    """Whether the printed address was opened, so that the browser has the cookie."""
    errors: list[str] = field(default_factory=list)
    """What the console reported as an error, and what was thrown."""
    foreign: list[str] = field(default_factory=list)
    """Requests to other origins."""

    @property
    def origin(self) -> str:
        parts = urlsplit(self.address)
        return f"{parts.scheme}://{parts.netloc}"

    def open(self, route: str) -> Page:
        """A page by its address after the #. Waits until its data is there."""
        self.page.goto(f"{self.origin}/#/{route}" if self.is_known else f"{self.address}#/{route}")
        self.is_known = True
        self.loaded()
        return self.page

    def loaded(self) -> None:
        expect(self.page.locator("main h1")).to_be_visible()
        expect(self.page.locator("main .empty[role=status]")).to_have_count(0)

    def hear(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def see(self, request: Request) -> None:
        if not request.url.startswith(f"{self.origin}/"):
            self.foreign.append(request.url)

    def clean(self) -> None:
        assert self.errors == []
        assert self.foreign == []


@contextlib.contextmanager
def visit(browser: Browser, address: str, size: tuple[int, int] = WIDE, **options: Any) -> Iterator[Visit]:
    """A reader. When the visit ends without failure, no page has reported an error or asked another origin."""
    with browser.new_context(viewport={"width": size[0], "height": size[1]}, **options) as context:
        context.set_default_timeout(PATIENCE)
        made = Visit(context.new_page(), address)
        made.page.on("console", made.hear)
        made.page.on("pageerror", lambda error: made.errors.append(str(error)))
        made.page.on("request", made.see)
        try:
            yield made
        finally:
            made.page.unroute_all(behavior="wait")  # a page must not close while a test changes one of its answers
        made.clean()


__all__ = ["PHONE", "WIDE", "Browser", "Page", "Route", "Visit", "chromium", "expect", "visit"]
