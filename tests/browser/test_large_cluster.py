"""The dashboard of 5,000 nodes: the map, the grid of very many rows, and what it says where no scheduler can be asked."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from tests.worlds.browser.chromium import Browser, Page, Visit, expect, visit
from tests.worlds.browser.served_cluster import Size, served_cluster

pytestmark = pytest.mark.live
SIZE = Size(nodes=5_000, running=2_000, waiting=500)
JOBS = SIZE.running + SIZE.waiting
COLOURS = """canvas => {
    const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const found = new Set();
    for (let i = 0; i < data.length; i += 4) if (data[i + 3] === 255) found.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
    return [...found].sort();
}"""
"""The opaque colours of a canvas."""
OTHER_COLOURS = f"""seen => {{
    const canvas = document.querySelector(".map canvas");
    const found = canvas && canvas.height ? ({COLOURS})(canvas) : [];
    return found.length >= 2 && !seen.includes(found.join()) && found.join();
}}"""
"""The colours of the map, once it is drawn in others than those seen: it is drawn a moment after the choice."""


@pytest.fixture(scope="module")
def address(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served_cluster(tmp_path_factory.mktemp("large"), SIZE) as started:
        yield started


@pytest.fixture
def reader(browser: Browser, address: str) -> Iterator[Visit]:
    with visit(browser, address) as made:
        yield made


def in_grid(page: Page) -> int:
    """Rows that exist in the document."""
    return page.locator("tbody [data-row]").count()


def test_the_overview_says_what_is_known_and_what_is_not(reader: Visit) -> None:
    page = reader.open("overview")
    main = page.locator("main")
    expect(main).to_contain_text("5,000 nodes")
    expect(main.locator(".resource", has_text="GPU")).to_contain_text("30 %")
    expect(main.locator(".resource", has_text="GPU")).to_contain_text("12,000 of 40,000 used")
    expect(main.locator(".figure", has_text="waiting").locator("b")).to_have_text(str(SIZE.waiting))
    expect(main.get_by_role("region", name="Waiting jobs").locator("tbody tr")).to_have_count(8)
    expect(main.get_by_text("Not available").first).to_be_visible()


def test_the_grid_holds_few_rows_and_reaches_all(reader: Visit) -> None:
    page = reader.open("jobs?sort=id")
    grid = page.get_by_role("region", name="Jobs")
    expect(grid.locator("table")).to_have_attribute("aria-rowcount", str(JOBS + 1))
    assert 10 < in_grid(page) < 80
    grid.focus()
    page.keyboard.press("End")
    expect(page.locator("[data-row] a:focus")).to_have_text(f"vision/train-{JOBS - 2:04d}")
    assert in_grid(page) < 80
    page.get_by_label("Text").fill("train-24")
    expect(grid.locator("table")).to_have_attribute("aria-rowcount", "101")
    states = page.get_by_role("group", name="State")
    expect(states.get_by_role("button", name="waiting")).to_have_text("waiting 100")
    states.get_by_role("button", name="running").click()
    expect(page.locator("main")).to_contain_text("No job matches")
    page.get_by_role("link", name="Show all jobs").click()
    expect(grid.locator("table")).to_have_attribute("aria-rowcount", str(JOBS + 1))


def test_rows_keep_their_places_while_the_reader_scrolls(reader: Visit) -> None:
    page = reader.open("jobs?sort=id")
    page.get_by_role("region", name="Jobs").evaluate("box => box.scrollTo(0, 28 * 1000)")
    expect(page.locator("[data-row='1000']")).to_contain_text("speech/train-2001")


def test_the_map_tells_a_node_to_the_pointer_and_to_keys(reader: Visit) -> None:
    page = reader.open("nodes?colour=use")
    map_ = page.get_by_role("application")
    expect(map_.locator("canvas")).to_be_visible()
    told = page.locator(".map-told")
    page.locator(".map canvas").hover(position={"x": 4, "y": 22})
    expect(told).to_contain_text("of 8 GPU used")
    map_.focus()
    page.keyboard.press("ArrowRight")
    expect(told).to_contain_text("gpu-")
    name = told.inner_text().split(":")[0]
    page.keyboard.press("Enter")
    expect(page.locator("main h1")).to_contain_text(name)


def test_the_map_is_coloured_as_the_reader_chooses(reader: Visit) -> None:
    page = reader.open("nodes?level=none")
    seen: list[str] = []
    for colour in ("use", "fragmentation", "queue", "job"):
        page.get_by_role("combobox", name="Colour").select_option(colour)
        expect(page.get_by_role("application")).to_have_attribute("aria-label", re.compile(f"by {colour}"))
        expect(page).to_have_url(re.compile(f"colour={colour}"))
        seen.append(page.wait_for_function(OTHER_COLOURS, arg=seen).json_value())


def test_the_table_of_nodes_has_what_the_map_shows(reader: Visit) -> None:
    page = reader.open("nodes?view=table&sort=-used&text=gpu-00")
    expect(page.get_by_role("region", name="Nodes").locator("table")).to_have_attribute("aria-rowcount", "101")
    expect(page.locator("[data-row='0']")).to_contain_text("gpu-00")
