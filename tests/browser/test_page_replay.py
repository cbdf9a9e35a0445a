"""The past replayed on the page at a chosen speed: what moves, who is in, and that nothing is shown before it was so.

10:00 - 10:10   ferry   goes east along a street, a fix each half minute; in `middle` from 10:04 on, out of it at 10:07
"""

from collections.abc import Iterator
from datetime import datetime, timedelta

import httpx
import pytest
from playwright.sync_api import Page, Request, expect

from tests.kit.installation import wait
from tests.kit.page_browser import until
from tests.kit.page_home import TODAY, Served, serve_home

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.spec("P10", "B18"),
]
SETTINGS = """
[streams.boats]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "iso"
max_ahead_s = "off"
silence_s = 1800
engine = "local"
latest_flush_s = 1
"""
BEGIN = TODAY + timedelta(hours=10)
STEPS, WEST, EAST, STREET = 20, 24.940, 24.950, 60.17
QUERIES = """
REGISTER QUERY middle AS SELECT * FROM boats INSIDE (24.9438, 60.16, 24.9468, 60.18);
REGISTER QUERY around AS SELECT * FROM boats INSIDE ('M', 'ferry', 500 m)
"""
FERRY = "fairwayPage.place.view.placeOf({ stream: 'boats', name: 'ferry' })"
MOMENT = "fairwayPage.app.get().at_ms"
ASKED = ("/page/past/", "/v1/answers/", "/page/changes/", "/page/shapes/")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_home(tmp_path_factory.mktemp("replay"), SETTINGS) as served:
        lines = [
            f"ferry,{when(30 * step):%Y-%m-%dT%H:%M:%SZ},{WEST + (EAST - WEST) * step / STEPS:.6f},{STREET}\n"
            for step in range(STEPS + 1)
        ]
        wait(lambda: is_registered(served), "queries are registered")
        served.send(("id,t,x,y\n" + "".join(lines)).encode(), "boats")
        wait(lambda: is_archived(served), "the past is known to its end")
        yield served


def when(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def is_registered(served: Served) -> bool:
    """Whether they are: a machine that is busy may need more than one try to start the process that does it."""
    address = f"{served.url}/v1/queries"
    return httpx.post(address, content=QUERIES, timeout=300).is_success


def is_archived(served: Served) -> bool:
    (stream,) = served.get("/page/state")["streams"]
    known = stream["answers_until"]
    return known is not None and datetime.fromisoformat(known) >= when(599)


def open_at(page: Page, served: Served, seconds: float, more: str = "") -> None:
    """Opens it as of a moment, with a query chosen."""
    at = f"{when(seconds):%Y-%m-%dT%H:%M:%SZ}"
    page.goto("about:blank")
    page.goto(f"{served.url}/#query=middle{more}&at={at}&map=24.945,{STREET},15.5")
    until(page, f"() => {FERRY} !== null")


def steps_over(page: Page, moments: int) -> list[float]:
    """Where the ferry is drawn in each frame while the page shows so many moments, in steps of its way."""
    lons = page.evaluate(
        f"""() => new Promise(done => {{
            const lons = [], moments = new Set();
            const look = () => {{
                lons.push({FERRY}[0]);
                moments.add({MOMENT});
                if (moments.size < {moments}) requestAnimationFrame(look);
                else done(lons);
            }};
            look();
        }})"""
    )
    return [(lon - WEST) / (EAST - WEST) * STEPS for lon in lons]


def is_past(address: str) -> bool:
    """Whether it asks about a moment of the past; what is now is asked for side by side."""
    return "at=" in address or "to=" in address


def test_the_past_is_replayed_at_a_chosen_speed_with_one_request_at_a_time(
    page: Page, served: Served
):
    under_way: set[Request] = set()
    most = 0

    def begins(request: Request) -> None:
        nonlocal most
        if any(one in request.url for one in ASKED) and is_past(request.url):
            under_way.add(request)
            most = max(most, len(under_way))

    def ends(request: Request) -> None:
        under_way.discard(request)

    page.on("request", begins)
    page.on("requestfinished", ends)
    page.on("requestfailed", ends)
    page.emulate_media(reduced_motion="no-preference")
    open_at(page, served, 180)
    expect(page.get_by_text("Nobody was in at")).to_be_visible()
    expect(page.get_by_text("in the hour before")).to_contain_text("+0")
    while under_way:
        page.wait_for_timeout(50)
    most = 0
    speed = page.get_by_label("Speed of the replay")
    assert speed.locator("option").all_inner_texts() == [
        "1\N{MULTIPLICATION SIGN}",
        "10\N{MULTIPLICATION SIGN}",
        "60\N{MULTIPLICATION SIGN}",
        "600\N{MULTIPLICATION SIGN}",
    ]
    speed.select_option(label="10\N{MULTIPLICATION SIGN}")
    page.get_by_role("button", name="Play the past").click()
    until(page, f"() => {MOMENT} > {when(200).timestamp() * 1000}")
    # Between two moments, a second apart, objects glide.
    seen = steps_over(page, 12)
    assert seen == sorted(seen)
    assert any(abs(one - round(one)) > 0.01 for one in seen), "between two fixes"
    page.emulate_media(reduced_motion="reduce")  # who wants that sees them jump
    steps_over(page, 3)
    jumps = steps_over(page, 4)
    assert [one for one in jumps if abs(one - round(one)) > 0.01] == []
    speed.select_option(label="60\N{MULTIPLICATION SIGN}")
    until(page, "() => fairwayPage.app.get().chosen[0].members.length === 1")
    told = page.get_by_role("list", name="Newest changes")
    expect(told).to_contain_text("ferry")
    page.get_by_role("button", name="Pause").click()
    stopped = page.evaluate(MOMENT)
    assert when(240).timestamp() * 1000 <= stopped < when(600).timestamp() * 1000
    speed.select_option(label="600\N{MULTIPLICATION SIGN}")
    page.get_by_role("button", name="Play the past").click()
    until(page, f"() => {MOMENT} === null")
    expect(page.get_by_role("button", name="Play the past")).to_be_visible()
    until(page, f"() => Math.abs({FERRY}[0] - {EAST}) < 1e-6")
    assert most == 1


@pytest.mark.parametrize(
    ("seconds", "entered", "left", "visits"),
    [(180, 0, 0, "No visit is known yet"), (300, 1, 0, "still in"), (560, 1, 1, "3 min")],
)  # fmt: skip
def test_of_a_moment_of_the_past_only_what_was_known_then_is_shown(
    page: Page, served: Served, seconds: int, entered: int, left: int, visits: str
):
    open_at(page, served, seconds, "&query=around&object=boats/ferry")
    card = page.get_by_role("region", name="Query middle")
    minus = "\N{MINUS SIGN}"
    expect(card).to_contain_text(f"{entered - left} in")
    expect(card).to_contain_text(f"+{entered} {minus}{left} in the hour before")
    expect(card.locator(".change")).to_have_count(entered + left)
    expect(card.get_by_role("img")).to_have_count(0)  # the course of now
    expect(page.get_by_role("region", name="Object ferry")).to_contain_text(visits)
    # A region that goes with an object is where that was.
    lon = WEST + (EAST - WEST) * (seconds // 30) / STEPS
    around = """() => fairwayPage.app.get().chosen.find(one => one.name === 'around')
        ?.shapes?.features[0]?.properties.follows_at?.[0]"""
    until(page, f"() => Math.abs(({around})() - {lon}) < 1e-6")


def test_on_a_phone_the_speed_can_be_chosen_and_nothing_is_cut_off(
    phone: Page, served: Served
):
    open_at(phone, served, 180)
    speed = phone.get_by_label("Speed of the replay")
    expect(speed).to_be_visible()
    box, wide = speed.bounding_box(), phone.evaluate("innerWidth")
    assert box is not None
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= wide
    assert phone.evaluate("document.documentElement.scrollWidth") <= wide
    now = phone.get_by_role("button", name="Now", exact=True).bounding_box()
    assert now is not None
    assert now["x"] + now["width"] <= wide
