"""What a checker of accessibility finds on the page: nothing serious, in all of its states, sizes and themes."""

from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.installation import ROOT
from tests.kit.page_browser import TIMEOUT_MS, until
from tests.kit.page_home import DEPOT, YESTERDAY, Served, fix, serve_home, stays

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.spec("P10")]

AXE = ROOT / "web" / "node_modules" / "axe-core" / "axe.min.js"
SETTINGS = """
[streams.vehicles]
format = "csv"
columns = { object = "object_id", event_ts = "event_ts", x = "x", y = "y" }
time_unit = "iso"
attributes = { class = "string", speed_mps = "double" }
max_ahead_s = "off"
engine = "local"
latest_flush_s = 1
"""
SIZES = {"desktop": (1280, 800), "phone": (390, 844)}
MAP = "map=24.9447,60.1706,16.3&query="  # no query is chosen by itself
LATER = YESTERDAY.replace(hour=12)
PAST = f"{YESTERDAY:%Y-%m-%d}T10:30:00Z"
FOUND = """async () => {
    const { violations } = await axe.run(document, { resultTypes: ['violations'] });
    return violations
        .filter(one => one.impact === 'serious' || one.impact === 'critical')
        .flatMap(one => one.nodes.map(node => `${one.id}: ${node.target.join(' ')}: ${node.failureSummary}`));
}"""
"""What breaks a rule so that somebody cannot use it, or only with trouble."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A home with three trucks, two queries, and one that does not run."""
    with serve_home(tmp_path_factory.mktemp("axe"), SETTINGS) as served:
        served.post(*stays("truck1", 10, 40), fix("truck2", LATER, DEPOT[:2]))
        box = ", ".join(map(str, DEPOT))
        for name, text in {
            "depot": f"SELECT * FROM vehicles INSIDE ({box}) DETECT ENTER, EXIT",
            "classes": f"SELECT class, COUNT(*) FROM vehicles INSIDE ({box}) GROUP BY class",
        }.items():
            address = f"{served.url}/v1/queries/{name}"
            httpx.put(address, content=text, timeout=300).raise_for_status()
        yield served


@pytest.fixture(params=[(size, theme) for size in SIZES for theme in ("light", "dark")])
def window(browser: Browser, request: pytest.FixtureRequest) -> Iterator[Page]:
    """A window of a size and a theme, in a zone with a name."""
    size, theme = request.param
    width, height = SIZES[size]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        has_touch=size == "phone",
        is_mobile=size == "phone",
        color_scheme=theme,
        locale="en-GB",
        timezone_id="Europe/Berlin",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    yield page
    context.close()


def first_view(page: Page) -> None:
    expect(page.get_by_role("list", name="Queries")).to_contain_text("depot")


def a_query_chosen(page: Page) -> None:
    for name in ("depot", "classes"):
        page.get_by_role("list", name="Queries").get_by_text(name).click()
    expect(page.get_by_role("region", name="Query depot")).to_contain_text("truck2")
    expect(page.get_by_role("region", name="Query classes")).to_contain_text("truck")


def ask_with_a_drawing(page: Page) -> None:
    page.get_by_role("tab", name="Ask").click()
    page.get_by_role("button", name="Circle").click()
    page.get_by_role("button", name="Put it in the middle of the map").click()
    page.get_by_label("What it would have told").select_option("day")
    expect(page.get_by_test_id("told")).to_contain_text("truck1")


def ask_with_words_that_may_follow(page: Page) -> None:
    page.get_by_role("tab", name="Ask").click()
    page.get_by_label("The statement").fill("SELECT * FROM vehicles INS")
    words = page.get_by_role("listbox", name="Words that may follow")
    expect(words.get_by_role("option").first).to_contain_text("INSIDE")


def server_tab(page: Page) -> None:
    page.get_by_role("tab", name="Server").click()
    expect(page.get_by_role("region", name="Stream vehicles")).to_contain_text("lag")


def object_panel(page: Page) -> None:
    page.get_by_label("Find an object").fill("truck1")
    page.keyboard.press("Enter")
    card = page.get_by_role("region", name="Object truck1")
    expect(card).to_contain_text("last fix")


def past_mode(page: Page) -> None:
    page.evaluate(f"location.hash = '{MAP}&query=depot&at={PAST}'")
    expect(page.locator(".pasttag")).to_be_visible()
    said = "2026-06-19 12:30:00 UTC+2"  # before the query was registered: nobody
    expect(page.get_by_role("region", name="Query depot")).to_contain_text(said)


STATES: list[Callable[[Page], None]] = [
    first_view,
    a_query_chosen,
    ask_with_a_drawing,
    ask_with_words_that_may_follow,
    server_tab,
    object_panel,
    past_mode,
]


def test_nothing_serious_is_found_in_any_state(window: Page, served: Served):
    found: dict[str, list[str]] = {}
    for state in STATES:
        window.goto("about:blank")
        window.goto(f"{served.url}/#{MAP}")
        until(
            window, "() => fairwayPage.place.view?.streams.get('vehicles')?.count === 2"
        )
        state(window)
        window.evaluate(Path(AXE).read_text())
        found[state.__name__] = window.evaluate(FOUND)
    assert found == {state.__name__: [] for state in STATES}
