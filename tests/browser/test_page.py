"""The page as people use it: what moves, a question drawn and registered, an object explained, the past, a restart."""

import io
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from importlib import metadata
from pathlib import Path

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect

from tests.kit.page_browser import at, statement, until
from tests.kit.page_home import (
    AWAY,
    DEPOT,
    INSIDE,
    TODAY,
    VEHICLES,
    Served,
    fix,
)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

OBJECTS = VEHICLES + 3  # and three trucks
MAP = "map=24.9447,60.1706,16.3&query="  # no query is chosen by itself
PICTURES = os.environ.get("FAIRWAY_PICTURES")
"""Where pictures for the documentation go, when they are wanted."""


def open_page(page: Page, served: Served, address: str = "query=") -> None:
    """Opens it, and waits until the map shows all objects."""
    page.goto(f"{served.url}/#{address}")
    until(
        page,
        f"() => fairwayPage.place.view?.streams.get('vehicles')?.count >= {OBJECTS}",
    )


def picture(page: Page, name: str) -> None:
    """A picture for the documentation."""
    if PICTURES:
        page.wait_for_timeout(1500)  # tiles and moves come to rest
        drawn = Image.open(io.BytesIO(page.screenshot()))
        drawn.quantize(128).save(Path(PICTURES) / f"page-{name}.png", optimize=True)


def moving_picture(page: Page, name: str, moments: list[str]):
    """The same, of several moments one after the other."""
    if not PICTURES:
        return
    drawn = []
    for moment in moments:
        page.evaluate(f"location.hash = '{MAP}&at={moment}'")
        page.wait_for_timeout(1500)
        shot = Image.open(io.BytesIO(page.screenshot())).convert("RGB")
        drawn.append(shot.resize((1050, 675), Image.Resampling.LANCZOS))
    file = Path(PICTURES) / f"page-{name}.webp"
    drawn[0].save(
        file, save_all=True, append_images=drawn[1:], duration=500, loop=0, quality=60
    )


def draw_depot(page: Page) -> None:
    west, south, east, north = DEPOT
    page.get_by_role("button", name="Rectangle").click()
    page.mouse.click(*at(page, west, south))
    page.mouse.move(*at(page, (west + east) / 2, (south + north) / 2))
    page.mouse.move(*at(page, east, north))
    page.mouse.click(*at(page, east, north))


DRAWN_PARTS = """() => {
    const { map } = fairwayPage.place.view;
    const sources = Object.keys(map.getStyle().sources).filter(one => one.startsWith('td-'));
    return sources.flatMap(one => map.querySourceFeatures(one)).length;
}"""
"""How many corners, lines and areas can be dragged."""


def drop_all(served: Served) -> None:
    import httpx

    for query in served.get("/v1/queries")["queries"]:
        httpx.delete(
            f"{served.url}/v1/queries/{query['name']}", timeout=60
        ).raise_for_status()


@pytest.fixture
def moment() -> Callable[[], "object"]:
    """Times of today, each later than the one before, for all tests of this file."""
    return lambda: TODAY + timedelta(minutes=2, seconds=next(_SECONDS))


_SECONDS = iter(range(5, 100_000, 5))


@pytest.mark.spec("P10", "B18")
def test_the_map_shows_layers_and_all_objects_and_asks_nobody_else(
    page: Page, served: Served, outside: list[str]
):
    tiles: list[int] = []
    page.on(
        "response",
        lambda reply: (
            tiles.append(reply.status) if "/page/tiles/" in reply.url else None
        ),
    )
    open_page(page, served)
    until(page, "() => fairwayPage.place.view.map.areTilesLoaded()")
    assert set(tiles) <= {200, 204}
    assert 200 in tiles
    kinds = "() => fairwayPage.place.view.map.queryRenderedFeatures().map(one => one.properties.kind)"
    drawn = page.evaluate(kinds)
    assert {"road", "building", "park"} <= set(drawn)
    assert outside == []


@pytest.mark.spec("P10", "B18", "X3")
def test_a_fence_is_drawn_tried_on_yesterday_registered_and_tells_who_comes(
    page: Page, served: Served, moment
):
    open_page(page, served, MAP)
    page.get_by_role("tab", name="Ask").click()
    draw_depot(page)
    page.get_by_label("Dwell (0: none)").fill("10")
    page.get_by_label("What it would have told").select_option("before")
    told = page.get_by_test_id("told")
    expect(told).to_contain_text("longest 1 h 30 min by truck2")
    expect(told).to_contain_text("2 stayed 10 min or longer")
    days = page.get_by_label("What it would have told")
    expect(days).to_contain_text("on 2026-06-19")
    drawn = re.search(
        r"INSIDE \((.*)\) DETECT ENTER, EXIT, DWELL 10 min\n  WITH \(hysteresis = 20 m\)$",
        statement(page),
    )
    assert drawn
    assert [float(one) for one in drawn[1].split(",")] == pytest.approx(
        DEPOT, abs=2e-5
    )  # a pixel of the map
    longest = page.get_by_label("The longest stays, the longest first").get_by_role(
        "button"
    )
    expect(longest.first).to_contain_text("truck2")
    expect(longest.nth(1)).to_contain_text("truck1")
    longest.first.click()
    until(
        page,
        "() => fairwayPage.place.view.map.getSource('ways')._data.geojson?.features.length !== 0",
    )
    picture(page, "ask")
    page.get_by_label("Name").fill("depot")
    assert page.evaluate(DRAWN_PARTS) > 0
    page.evaluate("() => fairwayPage.place.view.map.jumpTo({ center: [24.9, 60.2] })")
    page.get_by_role("button", name="Register").click()
    card = page.get_by_role("region", name="Query depot")
    expect(card).to_contain_text("depot is registered, version 1.")
    until(
        page, f"() => fairwayPage.place.view.map.getBounds().contains({list(INSIDE)})"
    )
    until(page, f"() => ({DRAWN_PARTS})() === 0")  # no corner can be dragged any more
    expect(card.get_by_label("Who is in depot")).not_to_contain_text("truck3")
    served.post(fix("truck3", moment(), INSIDE))
    came = card.get_by_label("Newest changes")
    expect(came).to_contain_text("truck3")
    expect(card.get_by_label("Who is in depot")).to_contain_text("truck3")
    served.post(fix("truck3", moment(), AWAY))
    expect(came.get_by_label("left")).to_have_count(1)
    expect(came).to_contain_text("was in for 5 s")
    drop_all(served)


@pytest.mark.spec("P10", "B18")
def test_places_of_the_day_that_is_asked_about_lie_below_the_drawing(
    page: Page, served: Served
):
    open_page(page, served, MAP)
    page.get_by_role("tab", name="Ask").click()
    period = page.get_by_label("What it would have told")
    period.select_option("before")
    said = page.get_by_text(re.compile(r"3,000 of \d,\d+ places of that day"))
    expect(said).to_be_visible()
    ghosts = "() => fairwayPage.place.view.map.queryRenderedFeatures({layers: ['ghosts-point']})"
    until(page, f"() => ({ghosts})().length > 0")
    x, y = at(page, *INSIDE)
    box = page.locator("#map canvas.maplibregl-canvas").bounding_box()
    assert box is not None
    there = "([x, y]) => fairwayPage.place.view.map.queryRenderedFeatures([x, y], {layers: ['ghosts-point']}).length"
    assert page.evaluate(there, [x - box["x"], y - box["y"]]) > 0
    picture(page, "ghosts")
    period.select_option("hour")
    expect(said).to_have_count(0)
    until(page, f"() => ({ghosts})().length === 0")
    period.select_option("before")
    expect(said).to_be_visible()
    page.get_by_role("tab", name="Queries").click()
    until(page, f"() => ({ghosts})().length === 0")


@pytest.mark.spec("P10")
def test_an_object_tells_what_is_known_of_it_and_why_it_is_in(
    page: Page, served: Served, moment
):
    import httpx

    west, south, east, north = DEPOT
    text = f"SELECT * FROM vehicles INSIDE ({west}, {south}, {east}, {north})"
    httpx.put(
        f"{served.url}/v1/queries/yard", content=text, timeout=60
    ).raise_for_status()
    served.post(fix("truck1", moment(), INSIDE, 1.5))
    open_page(page, served, f"{MAP}&query=yard")
    members = page.get_by_label("Who is in yard")
    expect(members).to_contain_text("truck1")
    until(
        page,
        "() => Math.abs(fairwayPage.place.view.placeOf({stream: 'vehicles', name: 'truck1'})[0] - 24.9447) < 1e-6",
    )
    page.mouse.click(*at(page, *INSIDE))
    card = page.get_by_role("region", name="Object truck1")
    expect(card).to_contain_text("class")
    expect(card).to_contain_text("truck")
    card.get_by_role("button", name="Why is truck1 in yard?").click()
    expect(card).to_contain_text("truck1 came into the answer")
    expect(card.get_by_label("Its last visits")).to_contain_text("yard")
    picture(page, "live")
    assert "object=vehicles%2Ftruck1" in page.url
    drop_all(served)


@pytest.mark.spec("P10")
def test_the_past_is_shown_by_the_slider_and_by_an_address(page: Page, served: Served):
    page.goto(f"{served.url}/#{MAP}&at=2026-06-19T11:30:00Z")
    place = "() => fairwayPage.place.view.placeOf({stream: 'vehicles', name: 'truck2'})"
    until(page, f"() => Math.abs(({place})()?.[0] - {INSIDE[0]}) < 1e-6")
    expect(page.get_by_text("2026-06-19 11:30:00 UTC")).to_be_visible()
    picture(page, "past")
    page.get_by_label("How far back").select_option(label="24 h")
    page.get_by_label("Moment", exact=True).fill("0")
    until(
        page, "() => fairwayPage.app.get().at_ms < Date.parse('2026-06-19T10:00:00Z')"
    )
    page.get_by_role("button", name="Now").click()
    until(page, "() => fairwayPage.app.get().at_ms === null")
    assert "at=" not in page.url
    seconds = range(0, 60, 4)
    moments = [
        f"{TODAY + timedelta(seconds=one):%Y-%m-%dT%H:%M:%SZ}" for one in seconds
    ]
    moving_picture(page, "moving", moments)


@pytest.mark.spec("P10", "S8")
def test_no_change_is_missed_while_the_server_is_away(
    page: Page, served: Served, moment
):
    import httpx

    text = "SELECT * FROM vehicles WHERE class = 'truck' INSIDE (24.9432, 60.1700, 24.9462, 60.1712)"
    httpx.put(
        f"{served.url}/v1/queries/gate", content=text, timeout=60
    ).raise_for_status()
    open_page(page, served, f"{MAP}&query=gate")
    card = page.get_by_role("region", name="Query gate")
    served.post(fix("truck2", moment(), INSIDE))
    changes = card.get_by_label("Newest changes").get_by_role("listitem")
    expect(changes.filter(has_text="truck2")).to_have_count(1)
    served.stop()
    expect(page.get_by_text("Disconnected")).to_be_visible()
    served.start()
    served.post(fix("truck2", moment(), AWAY), fix("truck3", moment(), INSIDE))
    expect(page.get_by_text("Disconnected")).to_be_hidden()
    expect(changes.filter(has_text="truck2")).to_have_count(2)
    expect(changes.filter(has_text="truck3")).to_have_count(1)
    drop_all(served)


@pytest.mark.spec("P10")
def test_a_question_is_asked_and_registered_by_keys_alone(page: Page, served: Served):
    open_page(page, served, MAP)
    press_until(page, "tab", "Queries")
    page.keyboard.press("ArrowRight")
    press_until(page, "button", "Circle")
    page.keyboard.press("Enter")
    press_until(page, "button", "Put it in the middle of the map")
    page.keyboard.press("Enter")
    expect(page.get_by_label("The statement")).to_have_value(
        re.compile(r"INSIDE CIRCLE \(24\.944\d+, 60\.170\d+, \d+ m\)")
    )
    press_until(page, "textbox", "Name")
    page.keyboard.type("by_keys")
    page.keyboard.press("Enter")
    expect(page.get_by_text("by_keys is registered, version 1.")).to_be_visible()
    drop_all(served)


def press_until(page: Page, role: str, name: str) -> None:
    """Presses Tab until the part of this role and name has the focus."""
    wanted = page.get_by_role(role, name=name, exact=True)
    for _ in range(120):
        if wanted.evaluate("one => one === document.activeElement"):
            return
        page.keyboard.press("Tab")
    raise AssertionError(f"Tab does not come to {role} {name}")


@pytest.mark.spec("P10")
def test_what_is_wrong_with_a_statement_is_said_in_its_place_and_words_are_offered(
    page: Page, served: Served
):
    open_page(page, served, MAP)
    page.get_by_role("tab", name="Ask").click()
    editor = page.get_by_label("The statement")
    editor.fill("SELECT * FROM vehicle")
    expect(
        page.get_by_role("alert").filter(has_text="unknown stream 'vehicle'")
    ).to_be_visible()
    expect(page.get_by_role("button", name="Register")).to_be_disabled()
    editor.fill("SELECT * FROM vehicles INS")
    words = page.get_by_role("listbox", name="Words that may follow")
    expect(words.get_by_role("option").first).to_contain_text("INSIDE")
    page.keyboard.press("Enter")
    assert statement(page).startswith("SELECT * FROM vehicles INSIDE")


@pytest.mark.spec("P10", "B18")
def test_a_join_with_a_layer_is_asked_once_as_of_now(page: Page, served: Served):
    open_page(page, served, MAP)
    page.get_by_role("tab", name="Ask").click()
    for name, value in {
        "What to ask": "join",
        "Layer": "places",
        "Kind of features": "park",
    }.items():
        page.get_by_role("combobox", name=name, exact=True).select_option(value)
    page.get_by_label("What it would have told").select_option("now")
    told = page.get_by_test_id("told")
    expect(told).to_contain_text("in at 2026-06-20 00:02")
    asked = "ON ST_DWithin(vehicles, places, 20 m) WHERE places.kind = 'park'"
    assert asked in statement(page)


@pytest.mark.spec("P10", "B18")
def test_the_server_side_counts_streams_queries_and_rejects(page: Page, served: Served):
    import httpx

    both = {
        "some": "SELECT * FROM vehicles INSIDE (24.93, 60.16, 24.96, 60.18)",
        "few": "SELECT * FROM vehicles KNN (3, 24.9447, 60.1706)",
    }
    for name, text in both.items():
        httpx.put(
            f"{served.url}/v1/queries/{name}", content=text, timeout=60
        ).raise_for_status()
    open_page(page, served, "tab=server")
    stream = page.get_by_role("region", name="Stream vehicles")
    expect(stream).to_contain_text(f"{OBJECTS}")
    expect(stream).to_contain_text("Rejected:")
    expect(stream).to_contain_text(re.compile(r"lag of the map\s*\d+ s"))
    workers = page.get_by_role("list", name="Workers of vehicles")
    version = re.escape(metadata.version("fairway-streams"))
    expect(workers).to_contain_text(re.compile(rf"engine \d+ on .*{version}"))
    taken = re.compile(r"CPU \d+ % .* memory \d.* disk \d.* free of \d")
    expect(workers).to_contain_text(taken)
    kinds = page.get_by_role("table", name="Queries by kind")
    expect(kinds).to_contain_text("nearest")
    expect(kinds).to_contain_text("who is inside")
    picture(page, "server")
    page.get_by_label("Show streets on the map").uncheck()
    until(page, "() => !fairwayPage.place.view.map.getSource('layer:streets')")
    drop_all(served)


@pytest.mark.spec("P10")
def test_what_a_query_costs_is_counted(page: Page, served: Served):
    import httpx

    text = "SELECT * FROM vehicles INSIDE (24.93, 60.16, 24.96, 60.18)"
    put = httpx.put(f"{served.url}/v1/queries/centre", content=text, timeout=60)
    put.raise_for_status()
    open_page(page, served, "tab=queries&query=centre")
    page.get_by_role("button", name="What it costs").click()
    costs = page.get_by_role("status", name="What centre costs")
    expect(costs).to_contain_text("inside box", timeout=120_000)
    expect(costs).to_contain_text("actual")
    drop_all(served)


@pytest.mark.spec("P10")
def test_on_a_phone_nothing_is_cut_off_and_dark_is_dark(phone: Page, served: Served):
    phone.emulate_media(color_scheme="dark")
    open_page(phone, served)
    for tab in ("Queries", "Ask", "Server"):
        phone.get_by_role("tab", name=tab).tap()
        assert phone.evaluate("() => document.documentElement.scrollWidth") <= 390
        hangs_over = "() => { const one = document.getElementById('panel'); return one.scrollWidth - one.clientWidth; }"
        assert phone.evaluate(hangs_over) <= 0
    assert phone.evaluate("() => document.documentElement.dataset.theme") == "dark"
    phone.get_by_role("tab", name="Ask").tap()
    picture(phone, "phone")


@pytest.mark.spec("P10", "C9")
def test_an_address_leads_to_a_layer_and_to_the_regions_of_the_index(
    page: Page, served: Served
):
    (layer, *_) = served.get("/page/state")["layers"]
    open_page(page, served, f"tab=server&regions=1&layer={layer['name']}")
    until(page, "() => fairwayPage.place.view.map.getZoom() > 5")
    west, south, east, north = page.evaluate(
        "() => fairwayPage.place.view.map.getBounds().toArray().flat()"
    )
    assert west <= layer["extent"][0] < layer["extent"][2] <= east
    assert south <= layer["extent"][1] < layer["extent"][3] <= north
    expect(page.get_by_label("Show regions of the index")).to_be_checked()


@pytest.mark.spec("P10")
def test_text_has_contrast_in_both_themes(page: Page, served: Served):
    open_page(page, served, "tab=server")
    for theme in ("dark", "light"):
        page.get_by_role("button", name=f"Show it {theme}").click()
        worst = page.evaluate(CONTRAST)
        assert worst["ratio"] >= 4.5, worst


CONTRAST = """() => {
    const parse = text => (text.match(/[\\d.]+/g) ?? []).map(Number);
    const light = ([r, g, b]) => [r, g, b]
        .map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    const ground = one => {
        for (let at = one; at; at = at.parentElement) {
            const colour = parse(getComputedStyle(at).backgroundColor);
            if (colour.length === 3 || colour[3] === 1) return colour;
        }
        return [255, 255, 255];
    };
    let worst = { ratio: 21 };
    for (const one of document.querySelectorAll('.page *')) {
        const text = [...one.childNodes].filter(node => node.nodeType === 3).map(node => node.data.trim()).join('');
        const isOther = one.closest('.maplibregl-map, .hush, .skip, select') || one.disabled || !one.checkVisibility();
        if (text === '' || isOther) continue;
        const [a, b] = [light(parse(getComputedStyle(one).color)), light(ground(one))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < worst.ratio) worst = { ratio, text, name: one.className };
    }
    return worst;
}"""


@pytest.mark.spec("P10", "S11")
def test_a_report_is_the_same_page_as_one_file_that_asks_nobody(
    browser: Browser, served: Served, tmp_path: Path
):
    west, south, east, north = DEPOT
    text = f"SELECT * FROM vehicles INSIDE ({west}, {south}, {east}, {north})"
    import httpx

    address = f"{served.url}/v1/queries/for_report"
    httpx.put(address, content=text, timeout=60).raise_for_status()
    text = f"SELECT class, COUNT(*) FROM vehicles INSIDE ({west}, {south}, {east}, {north}) GROUP BY class"
    address = f"{served.url}/v1/queries/groups_for_report"
    httpx.put(address, content=text, timeout=60).raise_for_status()
    file = write_report(served, tmp_path / "day.html")
    context = browser.new_context(viewport={"width": 1400, "height": 900})
    page = context.new_page()
    asked: list[str] = []
    broken: list[str] = []
    page.on("request", lambda one: asked.append(one.url))
    page.on("pageerror", lambda error: broken.append(str(error)))
    page.goto(file.as_uri())
    until(
        page,
        f"() => fairwayPage.place.view?.streams.get('vehicles')?.count >= {OBJECTS}",
    )
    expect(page.get_by_text("report of")).to_be_visible()
    expect(page.get_by_role("tab", name="Ask")).to_have_count(0)
    legend = page.get_by_label("Legend")
    expect(legend).not_to_contain_text("came in")
    expect(legend).to_contain_text("Natural Earth, © OpenStreetMap contributors")
    until(page, "() => fairwayPage.place.view.map.getLayer('world:land') !== undefined")
    page.get_by_text("groups_for_report").first.click()
    expect(page.get_by_text("no objects: nobody is marked")).to_be_visible()
    page.get_by_label("Let groups_for_report go").click()
    page.get_by_text("for_report").first.click()
    expect(legend).to_contain_text("came in")
    until(page, "() => fairwayPage.app.get().chosen[0]?.shapes?.features.length === 1")
    until(page, "() => fairwayPage.place.view.map.areTilesLoaded()")
    until(page, "() => fairwayPage.app.get().chosen[0].series[0].length > 1")
    times_s = page.evaluate("() => fairwayPage.app.get().chosen[0].series[0]")
    begin_s = TODAY.timestamp()
    assert times_s[0] == begin_s, "the stream's time, not that of the wall"
    page.get_by_role("slider", name="Moment").fill("100")
    until(page, "() => fairwayPage.app.get().at_ms !== null")
    expect(page.locator(".pasttag")).to_be_visible()
    context.close()
    assert broken == []
    assert [url for url in asked if url.startswith(("http", "ws"))] == []


def write_report(served: Served, file: Path) -> Path:
    """Writes a report of the home as the command does."""
    command = [sys.executable, "-m", "st_common.cli", "--home", served.folder / "home"]
    done = subprocess.run(
        [
            *map(str, command),
            "streams",
            "report",
            str(file),
            "--from",
            "2026-06-20T00:00:00Z",
        ],
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "UTC" in done.stdout
    return file
