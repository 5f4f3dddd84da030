"""A page says when what it shows is no longer current: the dashboard does not answer, or the cluster does not."""

from __future__ import annotations

import json

import pytest
from tests.worlds.browser.chromium import Browser, expect, visit

pytestmark = pytest.mark.live


def test_a_cluster_that_does_not_answer_is_told_above_the_page(browser: Browser, small: str) -> None:
    gone = {"apiServer": {"answers": False, "reason": "connect: refused <b>x</b>", "lastAnswer": 1789000000.0}, "ready": True}
    with visit(browser, small) as reader:
        reader.page.route("**/api/v1/status", lambda route: route.fulfill(body=json.dumps(gone), content_type="application/json"))
        page = reader.open("jobs")
        band = page.get_by_role("alert")
        expect(band).to_contain_text("cannot reach the cluster's API server")
        expect(band).to_contain_text("connect: refused <b>x</b>")
        expect(page.locator(".live")).to_have_text("not current")
        expect(page.locator("[data-row]").first).to_be_visible()  # what was known stays
        page.unroute("**/api/v1/status")
        expect(band).to_have_count(0)


def test_a_dashboard_that_does_not_answer_is_told_above_the_page(browser: Browser, small: str) -> None:
    with visit(browser, small) as reader:
        page = reader.open("queues")
        expect(page.get_by_role("alert")).to_have_count(0)
        page.route("**/api/v1/status", lambda route: route.abort())
        expect(page.get_by_role("alert")).to_contain_text("The dashboard does not answer")
        page.unroute("**/api/v1/status")
        expect(page.get_by_role("alert")).to_have_count(0)
        reader.errors.clear()  # the browser notes each request that failed


def test_the_key_slash_leads_to_the_search_field(browser: Browser, small: str) -> None:
    with visit(browser, small) as reader:
        for route in ("jobs", "nodes"):
            page = reader.open(route)
            page.keyboard.press("/")
            expect(page.get_by_label("Text")).to_be_focused()
            expect(page.get_by_label("Text")).to_have_value("")
            page.keyboard.type("a/b")
            expect(page.get_by_label("Text")).to_have_value("a/b")


def test_a_name_that_does_not_exist_leads_to_one_that_is_spelt_alike(browser: Browser, small: str) -> None:
    with visit(browser, small) as reader:
        page = reader.page
        page.goto(f"{reader.address}#/queues/vison")
        expect(page.get_by_role("alert")).to_contain_text("there is no queue 'vison'")
        page.get_by_role("link", name="vision", exact=True).click()
        expect(page.locator("main")).to_contain_text("How its share came about")
        reader.errors = [error for error in reader.errors if "404" not in error]  # the browser notes the refusal
