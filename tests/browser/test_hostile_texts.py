"""Texts of objects stay texts: every string of every answer of the API gets markup in it, and no page makes an element of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.worlds.browser.chromium import Browser, Page, Route, Visit, expect, visit
from tests.worlds.browser.routes import OBJECT_ROUTES

pytestmark = pytest.mark.live
MARKUP = "<img src=x onerror=\"document.title='run'\"><script>document.title='run'</script>&lt;b&gt;\"'>"
FORM = frozenset({"version", "columns", "state", "status", "resource", "resources", "levels", "use", "what", "by"})
"""Fields whose values steer a page and come from the server itself, not from objects."""


def hostile(value: Any, field: str = "") -> Any:
    if field in FORM:
        return value
    if isinstance(value, dict):
        return {key: hostile(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [hostile(each) for each in value]
    return f"{value}{MARKUP}" if isinstance(value, str) and value else value


@pytest.fixture
def reader(browser: Browser, small: str) -> Iterator[Visit]:
    with visit(browser, small) as made:
        yield made


@pytest.fixture
def page(reader: Visit) -> Iterator[Page]:
    """A page whose answers were changed on their way. The stream is cut off, so that nothing honest comes behind."""

    def answer(route: Route) -> None:
        fetched = route.fetch()
        route.fulfill(response=fetched, body=json.dumps(hostile(fetched.json())))

    reader.page.route("**/api/v1/events**", lambda route: route.fulfill(status=204))
    reader.page.route(lambda url: "/api/v1/" in url and "/api/v1/events" not in url, answer)
    yield reader.page


def test_markup_in_any_text_is_shown_as_text(reader: Visit, page: Page) -> None:
    for route in OBJECT_ROUTES:
        reader.open(route)
        if not route.startswith("nodes"):
            expect(page.locator("main")).to_contain_text("onerror=")
        assert page.locator("main img, main script, main b b, main [onerror]").count() == 0
        assert page.title() != "run"


def test_a_link_of_a_hostile_name_leads_to_the_page_of_that_name(reader: Visit, page: Page) -> None:
    reader.open("queues")
    page.locator("main tbody a").first.click()
    expect(page.locator("main h1")).to_contain_text(MARKUP)
    expect(page.get_by_role("alert")).to_contain_text("onerror=")
    assert [error for error in reader.errors if "404" not in error] == []
    reader.errors.clear()  # there is no such queue, and the browser notes it
