"""The dashboard of the sample of `navarch up`, as a reader uses it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from tests.worlds.browser.chromium import PHONE, Browser, Visit, expect, visit
from tests.worlds.browser.sample import WAITS, Sample

pytestmark = pytest.mark.live
PAGES = {
    "overview": ["running", WAITS, "never", "cycle p99", "binds / s", "production/serve"],
    "jobs": [WAITS, "production/serve", "never"],
    f"jobs/{WAITS}": ["Unschedulable", "What would help", "33 pods", "FailedScheduling"],
    "queues": ["production", "research", "Open"],
    "queues/research": ["How its share came about", "the cluster has", WAITS],
    "nodes": ["4 nodes", "Point at a cell"],
    "nodes?view=table": ["node-000", "node-003", "Ready"],
    "nodes/node-000": ["Devices", "GPU 7", WAITS, "nvidia.com/gpu.product"],
    "cycles": ["Duration of cycles", "allocate", "the last cycle of the scheduler"],
    "cycles/last?policy=fifo": ["Jobs that wait", "decided at", "The same snapshot under fifo"],
    "simulations": ["None."],
}

TURN = """hidden => {
    Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
    document.dispatchEvent(new Event("visibilitychange"));
}"""
"""The tab is hidden, or shown again."""


@pytest.fixture
def reader(browser: Browser, up: Sample) -> Iterator[Visit]:
    """On a screen of 1280x800."""
    with visit(browser, up.address) as made:
        yield made


def test_pages_show_what_the_cluster_has(reader: Visit) -> None:
    for route, texts in PAGES.items():
        page = reader.open(route)
        for text in texts:
            expect(page.locator("main")).to_contain_text(text)
        expect(page.locator(".live")).to_have_text(re.compile("live|loaded"))
        assert "Navarch" in page.title()


def test_every_page_fits_a_phone(browser: Browser, up: Sample) -> None:
    with visit(browser, up.address, PHONE) as reader:
        for route in PAGES:
            page = reader.open(route)
            assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth"), route


def test_the_token_leaves_the_address_and_a_reader_without_it_can_log_in(browser: Browser, up: Sample) -> None:
    with visit(browser, up.address) as reader:
        reader.open("overview")
        assert "token" not in reader.page.url
        with browser.new_context() as other:
            page = other.new_page()
            page.goto(f"{reader.origin}/#/jobs")
            expect(page.get_by_role("alert")).to_contain_text("no valid token")
            page.get_by_label("Token").fill("wrong")
            page.get_by_role("button", name="Log in").click()
            expect(page.get_by_role("alert")).to_have_count(2)
            page.get_by_label("Token").fill(up.address.partition("token=")[2])
            page.get_by_role("button", name="Log in").click()
            expect(page.locator("tbody")).to_contain_text(WAITS)


def test_filters_stand_in_the_address_and_survive_a_reload(reader: Visit) -> None:
    page = reader.open("jobs")
    page.get_by_label("Text").fill("moon")
    state = page.get_by_role("group", name="State").get_by_role("button")
    state.filter(has_text="waiting").click()
    page.get_by_role("button", name="Job").click()
    for _ in range(2):
        expect(page.locator("tbody [data-row]")).to_have_count(1)
        expect(page.locator("tbody")).to_contain_text(WAITS)
        assert all(part in page.url for part in ("text=moon", "state=waiting", "sort=id"))
        page.reload()
        reader.loaded()
        expect(page.get_by_label("Text")).to_have_value("moon")
        expect(state.filter(has_text="waiting")).to_have_attribute("aria-pressed", "true")
    page.get_by_role("link", name="Clear").click()
    expect(page.locator("tbody")).to_contain_text("production/serve")
    page.go_back()
    expect(page.get_by_label("Text")).to_have_value("moon")


def test_a_reader_says_once_which_jobs_are_theirs(reader: Visit) -> None:
    page = reader.open("jobs")
    page.get_by_role("button", name="Mine").click()
    page.get_by_role("textbox", name="Namespace", exact=True).last.fill("production")
    page.get_by_role("button", name="Save").click()
    expect(page.locator("tbody")).to_contain_text("production/serve")
    expect(page.locator("tbody")).not_to_contain_text(WAITS)
    reader.open("overview")
    page.get_by_role("link", name="mine", exact=True).click()
    expect(page.locator("tbody")).to_contain_text("production/serve")
    expect(page.locator("tbody")).not_to_contain_text(WAITS)
    page.get_by_role("button", name="Mine (production)").click()
    expect(page.locator("tbody")).to_contain_text(WAITS)


def test_a_hidden_tab_gives_up_its_stream_and_catches_up(reader: Visit, up: Sample) -> None:
    page = reader.open("jobs")
    expect(page.locator(".live")).to_have_text("live")
    with page.expect_event("requestfailed", lambda request: "/api/v1/events" in request.url):
        page.evaluate(TURN, True)
    container = {"name": "main", "image": "example.com/x:1", "resources": {"requests": {"cpu": "1k"}}}
    spec: dict[str, Any] = {"schedulerName": "navarch", "containers": [container]}
    pods = "/api/v1/namespaces/research/pods"
    assert up.api.post(pods, {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "unseen"}, "spec": spec}).code == 201
    page.evaluate(TURN, False)
    expect(page.locator("[data-row]", has_text="research/unseen")).to_have_count(1)
    assert up.api.delete(f"{pods}/unseen").code == 200
    expect(page.locator("[data-row]", has_text="research/unseen")).to_have_count(0)


def test_changes_of_the_cluster_show_without_a_reload(reader: Visit, up: Sample) -> None:
    page = reader.open("jobs?sort=id")
    arrived = page.locator("[data-row]", has_text="default/arrives")
    expect(page.locator("[data-row]", has_text=WAITS)).to_have_count(1)
    container = {"name": "main", "image": "example.com/x:1", "resources": {"requests": {"cpu": "1k"}}}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "arrives"}}
    spec: dict[str, Any] = {"schedulerName": "navarch", "containers": [container]}
    assert up.api.post("/api/v1/namespaces/default/pods", {**pod, "spec": spec}).code == 201
    expect(arrived).to_contain_text("waiting")
    expect(arrived).to_contain_text("never")
    # By its name it comes first, but no row moves before the reader says so.
    expect(arrived).not_to_have_attribute("data-row", "0")
    page.get_by_role("button", name="Sort again").click()
    expect(arrived).to_have_attribute("data-row", "0")
    assert up.api.delete("/api/v1/namespaces/default/pods/arrives").code == 200
    expect(arrived).to_have_count(0)


def test_a_job_is_explained_by_a_click(reader: Visit) -> None:
    page = reader.open("jobs")
    page.get_by_role("link", name=WAITS).click()
    expect(page.locator("main h1")).to_contain_text(WAITS)
    page.get_by_role("button", name="What would help").click()
    # Which number starts it depends on how many pods of the sample still run: it is in the table, or in the list of the others.
    change = re.compile("minMember [0-9]+ instead of 33")
    expect(page.locator("tr", has_text=change).or_(page.locator("details li", has_text=change)).first).to_be_attached()
    expect(page.locator("main")).to_contain_text(re.compile("changes? that do(es)? not start it"))
    expect(page.locator("main")).to_contain_text(re.compile("trials in "))


def test_keys_move_through_the_grid_and_open_a_job(reader: Visit) -> None:
    page = reader.open("jobs?sort=id")
    page.get_by_role("region", name="Jobs").focus()
    page.keyboard.press("End")
    marked = page.locator("[data-row] a:focus")
    expect(marked).to_have_text(re.compile("^research/"))
    page.keyboard.press("Home")
    expect(marked).to_have_text(re.compile("^default/"))
    name = marked.inner_text()
    page.keyboard.press("ArrowDown")
    expect(marked).not_to_have_text(name)
    page.keyboard.press("ArrowUp")
    expect(marked).to_have_text(name)
    page.keyboard.press("Enter")
    expect(page.locator("main h1")).to_contain_text(name)
    expect(page.locator("main h1")).to_be_focused()


def test_the_colours_that_a_reader_chose_stay(reader: Visit) -> None:
    page = reader.open("overview")
    background = "() => getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    page.get_by_role("button", name="Colours: system").click()
    page.get_by_role("button", name="Colours: light").click()
    page.wait_for_function(f"light => ({background})() !== light", arg=light)  # the page applies it after the click
    dark = page.evaluate(background)
    page.reload()
    reader.loaded()
    page.wait_for_function(f"dark => ({background})() === dark", arg=dark)
