"""The page under a finger: shapes by taps and by drags, and what a small window shows first.

10:00   ferry   stands in the middle of the map
"""

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.installation import wait
from tests.kit.page_browser import TIMEOUT_MS, at, statement, until
from tests.kit.page_home import TODAY, Served, serve_home

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.spec("P10")]

SETTINGS = """
[streams.vehicles]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "iso"
max_ahead_s = "off"
engine = "local"
latest_flush_s = 1
"""
MAP = "map=24.945,60.171,15.5&query="  # no query is chosen by itself
WHEN = TODAY + timedelta(hours=10)
WIDTH, HEIGHT = 390, 844
LOW, HIGH = (24.9440, 60.1705), (24.9460, 60.1715)
REACH_M = 157.0
"""From one to the other, by the haversine."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_home(tmp_path_factory.mktemp("touch"), SETTINGS) as served:
        served.send(
            f"id,t,x,y\nferry,{WHEN:%Y-%m-%dT%H:%M:%SZ},24.945,60.171\n".encode()
        )
        wait(
            lambda: (
                served.get("/page/state")["streams"][0]["answers_until"] is not None
            ),
            "questions can be asked about the fix",
        )
        yield served


@pytest.fixture
def phone(browser: Browser, served: Served) -> Iterator[Page]:
    """The page on a phone whose pointer is a finger, opened; it has told no error of its own at the end."""
    context = browser.new_context(
        viewport={"width": WIDTH, "height": HEIGHT},
        has_touch=True,
        is_mobile=True,
        locale="en-GB",
        timezone_id="Europe/Berlin",
    )
    page = context.new_page()
    page.set_default_timeout(TIMEOUT_MS)
    broken: list[str] = []
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.goto(f"{served.url}/#{MAP}")
    until(page, "() => fairwayPage.place.view?.streams.get('vehicles')?.count === 1")
    yield page
    context.close()
    assert broken == []


def take(page: Page, tool: str) -> None:
    page.get_by_role("tab", name="Ask").tap()
    page.get_by_role("button", name=tool, exact=True).tap()


def drag(page: Page, start: tuple[float, float], end: tuple[float, float]) -> None:
    """Drags a finger from one place of the map to another."""
    finger = page.context.new_cdp_session(page)
    (x, y), (to_x, to_y) = at(page, *start), at(page, *end)
    moves = [(x + (to_x - x) * k / 8, y + (to_y - y) * k / 8) for k in range(9)]
    for k, (left, top) in enumerate(moves):
        points = [{"x": left, "y": top}]
        kind = "touchStart" if k == 0 else "touchMove"
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})
    finger.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})


def numbers_after_inside(page: Page) -> list[float]:
    inside = statement(page).partition("INSIDE")[2]
    return [float(one) for one in re.findall(r"-?\d+\.?\d*", inside)]


def check(page: Page, tool: str) -> None:
    """The statement has the shape from LOW to HIGH, and the drawing is over."""
    until(page, "() => !fairwayPage.asking.get().isDrawing")
    expect(page.get_by_label("The statement")).to_have_value(re.compile("INSIDE"))
    first, second, third, *rest = numbers_after_inside(page)
    assert (first, second) == pytest.approx(LOW, abs=5e-5)
    if tool == "Circle":
        assert third == pytest.approx(REACH_M, abs=6)
    else:
        assert (third, rest[0]) == pytest.approx(HIGH, abs=5e-5)


@pytest.mark.parametrize("tool", ["Circle", "Rectangle"])
def test_two_taps_draw_a_shape(phone: Page, tool: str):
    take(phone, tool)
    phone.touchscreen.tap(*at(phone, *LOW))
    until(phone, "() => fairwayPage.asking.get().isDrawing")
    assert phone.evaluate("() => fairwayPage.asking.get().shape") is None
    phone.touchscreen.tap(*at(phone, *HIGH))
    check(phone, tool)


@pytest.mark.parametrize("tool", ["Circle", "Rectangle"])
def test_a_drag_draws_a_shape_and_the_map_stays(phone: Page, tool: str):
    take(phone, tool)
    centre = "() => fairwayPage.place.view.map.getCenter().toArray()"
    before = phone.evaluate(centre)
    drag(phone, LOW, HIGH)
    check(phone, tool)
    assert phone.evaluate(centre) == pytest.approx(before, abs=1e-7)


@pytest.mark.parametrize("tool", ["Circle", "Rectangle"])
def test_two_taps_at_one_place_are_no_shape_and_the_tool_stays(phone: Page, tool: str):
    take(phone, tool)
    for _ in range(2):
        phone.touchscreen.tap(*at(phone, *LOW))
        phone.wait_for_timeout(400)  # no double tap, which zooms
    assert phone.evaluate("() => fairwayPage.asking.get().shape") is None
    for place in (LOW, HIGH):
        phone.touchscreen.tap(*at(phone, *place))
    check(phone, tool)


def box(page: Page, parts: str) -> dict[str, float]:
    found = page.locator(parts).bounding_box()
    assert found is not None, parts
    return {**found, "end": found["y"] + found["height"]}


def test_the_map_comes_first_and_the_legend_last(phone: Page):
    header, view, tabs = (box(phone, one) for one in (".top", ".view", ".tabs"))
    assert header["y"] == 0
    assert header["height"] <= 56  # one line
    assert view["y"] == header["end"]
    assert view["height"] >= 0.55 * HEIGHT
    assert tabs["y"] >= view["end"]
    phone.get_by_role("tab", name="Server").tap()
    expect(phone.get_by_role("region", name="Stream vehicles")).to_contain_text("lag")
    phone.get_by_label("Legend").scroll_into_view_if_needed()
    legend = box(phone, ".legend")
    assert legend["y"] >= box(phone, ".panel")["end"]
    assert legend["end"] == pytest.approx(HEIGHT, abs=1)
    assert box(phone, ".view")["height"] == view["height"], "the map stays in sight"
    assert box(phone, ".tabs")["y"] == pytest.approx(view["end"], abs=1)
    assert phone.evaluate("() => document.documentElement.scrollWidth") <= WIDTH


def test_what_is_known_of_an_object_leaves_the_map_in_sight(phone: Page):
    phone.get_by_label("Find an object").fill("ferry")
    phone.keyboard.press("Enter")
    card = phone.get_by_role("region", name="Object ferry")
    expect(card).to_contain_text("last fix")
    card.get_by_role("button", name="Show").tap()
    view, shown = box(phone, ".view"), box(phone, ".object")
    assert shown["height"] <= 0.4 * view["height"] + 1
    assert shown["end"] < view["y"] + view["height"] / 2, "the object is in the middle"
    card.get_by_role("button", name="Close").tap()
    expect(card).to_have_count(0)
