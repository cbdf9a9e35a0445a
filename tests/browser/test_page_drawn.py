"""The page as people use it, in a small home: corridors, polygons, versions, play, planes, fingers, objects that go.

10:00 - 10:10   ferry   goes east along a street, a fix each half minute
                north   stands 170 m to the north of it
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise

import httpx
import pytest
from playwright.sync_api import Page, expect

from tests.kit.installation import wait
from tests.kit.page_browser import at, statement, until
from tests.kit.page_home import TODAY, Served, serve_home

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.spec("P10", "B18"),
]

SETTINGS = """
[streams.vehicles]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y", gone = "gone" }
time_unit = "iso"
max_ahead_s = "off"
silence_s = 1800
engine = "local"
latest_flush_s = 1

[streams.never]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "iso"
engine = "local"

[streams.cars]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
time_unit = "iso"
max_ahead_s = "off"
engine = "local"
group = "plan"
"""
MAP = "map=24.945,60.171,15.5&query="  # no query is chosen by itself
BEGIN = TODAY + timedelta(hours=10)
STEPS = 20
STREET, NORTH = 60.17, (24.9475, 60.1715)
WEST, EAST = 24.940, 24.950


def line(name: str, when: datetime, x: float, y: float, gone: str = "") -> str:
    return f"{name},{when:%Y-%m-%dT%H:%M:%SZ},{x},{y},{gone}\n"


def post(served: Served, *lines: str, stream: str = "vehicles") -> None:
    served.send(("id,t,x,y,gone\n" + "".join(lines)).encode(), stream)


def ferry_at(step: int) -> tuple[datetime, float]:
    """When the ferry is where: its time, and its longitude."""
    when = BEGIN + timedelta(seconds=30 * step)
    return when, round(WEST + (EAST - WEST) * step / STEPS, 6)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serve_home(tmp_path_factory.mktemp("drawn"), SETTINGS) as served:
        moves = [ferry_at(step) for step in range(STEPS + 1)]
        post(
            served,
            *(line("ferry", when, lon, STREET) for when, lon in moves),
            *(line("north", when, *NORTH) for when, _ in moves),
        )
        corners = ((0, 0), (0, 100), (100, 0), (100, 100), (50, 50))
        cars = [line(f"car{k}", BEGIN, *one) for k, one in enumerate(corners)]
        post(served, *cars, stream="cars")
        wait(lambda: is_known(served), "questions can be asked about all fixes")
        yield served


def is_known(served: Served) -> bool:
    untils = {
        one["name"]: one["answers_until"]
        for one in served.get("/page/state")["streams"]
    }
    last = {"vehicles": ferry_at(STEPS)[0], "cars": BEGIN}
    return all(
        untils[name] is not None
        and datetime.fromisoformat(untils[name]) >= when - timedelta(milliseconds=1)
        for name, when in last.items()
    )


@pytest.fixture(autouse=True)
def no_query_stays(served: Served) -> Iterator[None]:
    yield
    for query in served.get("/v1/queries")["queries"]:
        address = f"{served.url}/v1/queries/{query['name']}"
        httpx.delete(address, timeout=60).raise_for_status()


def open_page(page: Page, served: Served, address: str = MAP) -> None:
    page.goto(f"{served.url}/#{address}")
    until(page, "() => fairwayPage.place.view?.streams.get('vehicles')?.count >= 2")
    until(page, "() => fairwayPage.place.view.streams.get('cars')?.count === 5")


def ask_about(page: Page, stream: str) -> None:
    page.get_by_role("tab", name="Ask").click()
    page.get_by_role("combobox", name="Objects of").select_option(stream)


def draw(
    page: Page, tool: str, *places: tuple[float, float], stream: str = "vehicles"
) -> None:
    """Draws with a tool, by a click at each place."""
    ask_about(page, stream)
    page.get_by_role("button", name=tool, exact=True).click()
    for place in places:
        page.mouse.move(*at(page, *place), steps=3)
        page.mouse.click(*at(page, *place))


def ask_for(page: Page, kind: str) -> None:
    page.get_by_role("combobox", name="What to ask", exact=True).select_option(kind)


def places_of(text: str) -> list[list[float]]:
    """The places of a geometry in a statement."""
    inner = re.search(r"\(+([\d. ,-]+)\)+'", text)
    assert inner, text
    return [[float(one) for one in place.split()] for place in inner[1].split(",")]


def near(places: list[tuple[float, float]]) -> list[object]:
    return [
        pytest.approx(one, abs=5e-5) for one in places
    ]  # a pixel of the map is 2e-5


def test_a_corridor_is_drawn_and_tells_who_went_along_it(page: Page, served: Served):
    open_page(page, served)
    way = [(24.942, STREET), (24.945, STREET), (24.948, STREET)]
    draw(page, "Corridor", *way, way[-1])
    page.get_by_label("On either side of the line").fill("40")
    text = re.compile(r"INSIDE CORRIDOR \('LINESTRING\(.*\)', 40 m\)")
    expect(page.get_by_label("The statement")).to_have_value(text)
    assert places_of(statement(page)) == near(way)
    told = page.get_by_test_id("told")
    expect(told).to_contain_text(re.compile(r"1 visit of 1 .* by ferry"))


def test_a_polygon_is_drawn_and_who_is_in_its_box_alone_is_not_in(
    page: Page, served: Served
):
    open_page(page, served)
    corners = [(24.941, 60.1695), (24.949, 60.1695), (24.941, 60.1725)]
    draw(page, "Polygon", *corners, corners[0])
    text = re.compile(r"INSIDE 'POLYGON\(\(.*\)\)'")
    expect(page.get_by_label("The statement")).to_have_value(text)
    ring = places_of(statement(page))
    assert ring[0] == ring[-1]
    assert sorted(ring[1:]) == near(sorted(corners))
    told = page.get_by_test_id("told")
    expect(told).to_contain_text(re.compile(r"1 visit of 1 .* by ferry"))


def test_a_stream_without_a_past_is_named_and_the_others_are_shown(
    page: Page, served: Served
):
    when, lon = ferry_at(STEPS // 2)
    open_page(page, served, f"{MAP}&at={when:%Y-%m-%dT%H:%M:%SZ}")
    ferry = "() => fairwayPage.place.view.placeOf({stream: 'vehicles', name: 'ferry'})"
    until(page, f"() => Math.abs(({ferry})()?.[0] - {lon}) < 1e-6")
    said = page.get_by_text("Not on the map at this moment")
    expect(said).to_contain_text("never")
    expect(said).not_to_contain_text("vehicles")
    page.get_by_role("button", name="Now").click()
    expect(said).to_have_count(0)


def test_a_day_without_fixes_says_so_and_leads_to_the_newest_day(
    page: Page, served: Served
):
    open_page(page, served)
    draw(page, "Rectangle", (WEST, STREET - 0.001), (EAST, STREET + 0.001))
    page.get_by_label("What it would have told").select_option("before")
    expect(page.get_by_text("vehicles has no fix from 2026-06-19")).to_be_visible()
    page.get_by_role("button", name="ask about 2026-06-20").click()
    expect(page.get_by_test_id("told")).to_contain_text("ferry")


def test_the_coordinates_under_the_pointer_are_told_and_copied(
    page: Page, served: Served
):
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_page(page, served)
    told = page.get_by_title("Copy it")
    page.mouse.move(*at(page, 24.9475, 60.1715))
    expect(told).to_contain_text("lon, lat 24.947")
    assert numbers_in(told.inner_text()) == pytest.approx([24.9475, 60.1715], abs=5e-5)
    page.keyboard.press("c")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert numbers_in(copied) == pytest.approx([24.9475, 60.1715], abs=5e-5)
    # Over the list of tabs nobody points at the map: its middle is told, and a click copies it.
    page.get_by_role("tab", name="Queries").hover()
    expect(told).to_contain_text("middle")
    assert numbers_in(told.inner_text()) == pytest.approx([24.945, 60.171], abs=5e-5)
    # In a plane they are its own: car4 stands at 50, 50.
    place = "({ stream: 'cars', name: 'car4' })"
    middle = page.evaluate(f"() => fairwayPage.place.view.placeOf{place}")
    page.evaluate("at => fairwayPage.place.view.map.jumpTo({ center: at })", middle)
    expect(told).to_contain_text("x, y")
    assert numbers_in(told.inner_text()) == pytest.approx([50, 50], abs=0.01)
    told.click()
    expect(told).to_contain_text("copied")


def numbers_in(text: str) -> list[float]:
    return [float(one) for one in re.findall(r"-?\d+\.?\d*", text)]


def test_slow_streams_and_old_replays_are_told_in_units_that_people_count_in(
    page: Page, served: Served
):
    open_page(page, served)
    expect(page.locator(".summary")).to_contain_text("newest fix of 2026-06-20 10:10:00 UTC")  # fmt: skip
    told = """async rate => {
        const { app } = fairwayPage, { page } = app.get(), [first] = page.streams;
        app.set({ page: { ...page, streams: [{ ...first, fixes_per_s: rate }] } });
        await new Promise(requestAnimationFrame);
        await new Promise(requestAnimationFrame);
        return document.querySelector('.summary').innerText;
    }"""
    # What the server says meanwhile takes the place of what was put there: then once more.
    for rate, words in {
        0.0985: "fixes 6 a minute",
        0.001: "fixes 4 an hour",
        14.2: "fixes 14 a second",
        0: "no fixes now",
    }.items():
        shown = [page.evaluate(told, rate) for _ in range(3)]
        assert any(words in one for one in shown), shown


def test_a_move_that_news_cut_short_is_drawn_at_its_end(page: Page, served: Served):
    """Where frames are slow, news comes before the last one: the object must not stay between two places."""
    open_page(page, served)
    drawn = """() => {
        const objects = fairwayPage.place.view.streams.get('vehicles');
        const news = (index, lon) => ({
            isWhole: false, names: {from: 0, names: []}, index: Uint32Array.from(index),
            lon: Float64Array.from(lon), lat: Float64Array.from(lon, () => 60.17),
            event_s: Float64Array.from(lon, () => 1),
            heading: new Float32Array(lon.length), speed: new Float32Array(lon.length),
        });
        const now = performance.now();
        objects.move(now + 1e9);
        objects.take(news([0], [24.95]), now, 1000);
        objects.take(news([], []), now, 1000);
        return [objects.move(now), objects.move(now)];
    }"""
    assert page.evaluate(drawn) == [True, False]


def test_the_past_plays_from_where_the_slider_stands_until_now(
    page: Page, served: Served
):
    open_page(page, served)
    page.get_by_label("How far back").select_option(label="10 min")
    slider = page.get_by_label("Moment", exact=True)
    slider.fill("120")
    until(page, f"() => {FERRY}?.[0] > 24.9449 && {FERRY}[0] < 24.9451")
    begun_ms = page.evaluate("() => fairwayPage.app.get().at_ms")
    assert begun_ms == (BEGIN + timedelta(minutes=5)).timestamp() * 1000
    page.get_by_role("button", name="Play the past").click()
    until(page, f"() => fairwayPage.app.get().at_ms > {begun_ms}")
    until(page, f"() => {FERRY}[0] > 24.9454")
    page.get_by_role("button", name="Pause").click()
    slider.fill("238")
    page.get_by_role("button", name="Play the past").click()
    until(page, "() => fairwayPage.app.get().at_ms === null")
    expect(page.get_by_role("button", name="Play the past")).to_be_visible()
    until(page, f"() => Math.abs({FERRY}[0] - {EAST}) < 1e-6")


def test_the_card_of_an_object_has_the_values_of_the_moment(page: Page, served: Served):
    for step, clock in ((5, "10:02:30"), (9, "10:04:30")):
        when, lon = ferry_at(step)
        address = f"{MAP}&object=vehicles/ferry&at={when:%Y-%m-%dT%H:%M:%SZ}"
        open_page(page, served, address)
        card = page.get_by_role("region", name="Object ferry")
        expect(card).to_contain_text(f"As of 2026-06-20 {clock} UTC")
        expect(card).to_contain_text(f"last fix2026-06-20 {clock} UTC")
        expect(card).to_contain_text(f"{lon}")
        page.goto("about:blank")
    open_page(page, served, f"{MAP}&object=vehicles/ferry")
    expect(card).to_contain_text(f"{EAST}")
    expect(card).not_to_contain_text("As of")


def test_the_line_of_time_is_as_long_as_the_moment_needs(page: Page, served: Served):
    long_ago = BEGIN - timedelta(hours=2)
    page.goto(f"{served.url}/#{MAP}&at={long_ago:%Y-%m-%dT%H:%M:%SZ}")
    span = page.get_by_label("How far back")
    slider = page.get_by_label("Moment", exact=True)
    chosen = span.locator("option:checked")
    expect(chosen).to_have_text("6 h")
    end = BEGIN + timedelta(minutes=10)
    share = 1 - (end - long_ago) / timedelta(hours=6)
    assert float(slider.input_value()) == pytest.approx(240 * share, abs=1)
    older = BEGIN - timedelta(days=9)
    page.get_by_label("The moment, in UTC").fill(f"{older:%Y-%m-%d %H:%M:%S}")
    page.keyboard.press("Enter")
    expect(chosen).to_have_text("10 days")
    assert 0 < float(slider.input_value()) < 240
    span.select_option(label="10 min")
    until(page, f"() => fairwayPage.app.get().at_ms === {BEGIN.timestamp() * 1000}")
    expect(chosen).to_have_text("10 min")
    assert slider.input_value() == "0"


FERRY = "fairwayPage.place.view.placeOf({ stream: 'vehicles', name: 'ferry' })"


def test_two_versions_of_a_query_stand_side_by_side_and_one_replaces_the_other(
    page: Page, served: Served
):
    zone = "SELECT * FROM vehicles INSIDE (24.942, 60.1695, 24.944, 60.1705)"
    address = f"{served.url}/v1/queries/zone"
    httpx.put(address, content=zone, timeout=60).raise_for_status()
    open_page(page, served, f"{MAP}&query=zone")
    card = page.get_by_role("region", name="Query zone")
    card.get_by_role("button", name="Try another version").click()
    # To its north: the ferry comes in as before, and north was there from the beginning on.
    larger = zone.replace("24.944, 60.1705", "24.948, 60.1720")
    page.get_by_label("The statement").fill(larger)
    both = page.get_by_role("table").filter(has_text="this version")
    expect(both).to_contain_text(
        "0 visits begin only as registered, 1 only in this version"
    )
    counts = [
        both.get_by_role("row").nth(k).get_by_role("cell").all_inner_texts()[:2]
        for k in (1, 2)
    ]
    assert counts == [["1", "1"], ["2", "2"]]
    page.get_by_label("The statement").press("Escape")  # no more words
    page.get_by_role("button", name="Replace").click()
    expect(page.get_by_text("zone is registered, version 2.")).to_be_visible()
    assert "24.948" in served.get("/v1/queries/zone")["text"]


def test_words_that_may_follow_cover_no_button(page: Page, served: Served):
    open_page(page, served)
    ask_about(page, "vehicles")
    page.get_by_label("Name").fill("quick")
    text = "SELECT * FROM vehicles INSIDE (24.94, 60.169, 24.95, 60.171) "
    page.get_by_label("The statement").fill(text)
    words = page.get_by_role("listbox", name="Words that may follow")
    expect(words).to_be_visible()
    register = page.get_by_role("button", name="Register")
    expect(register).to_be_enabled()
    low, high = words.bounding_box(), register.bounding_box()
    assert low is not None
    assert high is not None
    assert low["y"] + low["height"] <= high["y"]
    # The words close by this click, and the button moves up: it is hit all the same.
    page.mouse.move(high["x"] + high["width"] / 2, high["y"] + high["height"] / 2)
    page.mouse.down()
    page.wait_for_timeout(400)
    page.mouse.up()
    expect(page.get_by_text("quick is registered, version 1.")).to_be_visible()


def test_a_plane_is_drawn_in_its_own_coordinates(page: Page, served: Served):
    open_page(page, served)
    place = "({ stream: 'cars', name: 'car4' })"
    middle = page.evaluate(f"() => fairwayPage.place.view.placeOf{place}")
    page.evaluate(
        """() => {
            const one = fairwayPage.app.get().page.streams.find(one => one.name === 'cars');
            fairwayPage.place.view.fit(one.extent, 22);
        }"""
    )
    corner = page.evaluate(
        "() => fairwayPage.place.view.placeOf({ stream: 'cars', name: 'car0' })"
    )
    reach = [(a - b) / 2 for a, b in zip(middle, corner, strict=True)]
    low, high = ([m + k * r for m, r in zip(middle, reach, strict=True)] for k in (-1, 1))  # fmt: skip
    draw(page, "Rectangle", tuple(low), tuple(high), stream="cars")
    ask_for(page, "range")
    expect(page.get_by_label("The statement")).to_have_value(re.compile("INSIDE"))
    drawn = re.search(r"INSIDE \((.*)\)", statement(page))
    assert drawn, statement(page)
    sides = [float(one) for one in drawn[1].split(",")]
    assert sides == pytest.approx([25, 25, 75, 75], abs=1)
    page.get_by_label("Name").fill("middle")
    page.get_by_role("button", name="Register").click()
    members = page.get_by_label("Who is in middle")
    expect(members).to_contain_text("car4")
    post(served, line("car0", BEGIN + timedelta(seconds=1), 30, 70), stream="cars")
    expect(members).to_contain_text("car0")
    post(served, line("car0", BEGIN + timedelta(seconds=2), 0, 0), stream="cars")
    expect(members).not_to_contain_text("car0")


def test_on_a_phone_a_region_is_drawn_by_fingers_and_registered(
    phone: Page, served: Served
):
    open_page(phone, served)
    ask_about(phone, "vehicles")
    phone.get_by_role("button", name="Rectangle").tap()
    low, high = (24.9440, 60.1705), (24.9460, 60.1715)
    for place in (low, high):
        phone.touchscreen.tap(*at(phone, *place))
    expect(phone.get_by_label("The statement")).to_have_value(re.compile("INSIDE"))
    drawn = re.search(r"INSIDE \((.*?)\)", statement(phone))
    assert drawn, statement(phone)
    sides = [float(one) for one in drawn[1].split(",")]
    assert sides == pytest.approx([*low, *high], abs=5e-5)
    phone.get_by_label("Name").fill("by_finger")
    phone.get_by_role("button", name="Register").tap()
    expect(phone.get_by_text("by_finger is registered, version 1.")).to_be_visible()


def test_an_object_that_is_gone_leaves_the_map_and_one_that_comes_back_is_on_it(
    page: Page, served: Served
):
    open_page(page, served)
    when = ferry_at(STEPS)[0]
    place = "fairwayPage.place.view.placeOf({ stream: 'vehicles', name: 'guest' })"
    post(served, line("guest", when, 24.945, 60.172))
    until(page, f"() => {place} !== null")
    drawn = colours(page)
    post(served, line("guest", when + timedelta(seconds=1), 24.945, 60.172, "true"))
    until(page, f"() => {place} === null")
    assert colours(page) < drawn
    post(served, line("guest", when + timedelta(seconds=2), 24.946, 60.172))
    until(page, f"() => Math.abs({place}?.[0] - 24.946) < 1e-6")
    post(served, line("guest", when + timedelta(seconds=3), 24.947, 60.172))
    until(page, f"() => Math.abs({place}?.[0] - 24.947) < 1e-6")


def colours(page: Page) -> int:
    """How many colours are in the window where the guest stands: one, when nothing is drawn there."""
    import io

    from PIL import Image

    page.wait_for_timeout(1500)  # what moves comes to rest
    x, y = at(page, 24.945, 60.172)
    clip = {"x": x - 6, "y": y - 6, "width": 12, "height": 12}
    drawn = Image.open(io.BytesIO(page.screenshot(clip=clip))).convert("RGB")
    return len(drawn.getcolors() or ())


SLOW_FRAMES = """() => {
    const { view } = fairwayPage.place;
    const draw = view.overlay.setProps.bind(view.overlay);
    window.frames_ms = [];
    view.overlay.setProps = (layers) => {
        const began = performance.now();
        while (performance.now() - began < 150);
        draw(layers);
        window.frames_ms.push([began, performance.now()]);
    };
    setInterval(() => view.draw(), 10);
}"""


def test_after_a_slow_frame_there_is_time_for_what_the_server_sends(
    page: Page, served: Served
):
    open_page(page, served)
    page.evaluate(SLOW_FRAMES)
    until(page, "() => window.frames_ms.length >= 5")
    frames_ms = page.evaluate("window.frames_ms")
    pauses_ms = [after[0] - before[1] for before, after in pairwise(frames_ms)]
    assert min(pauses_ms) >= 3 * 150


WATCH_TOLD = """() => {
    window.seen = [];
    fairwayPage.asking.subscribe(() => {
        const { state, told } = fairwayPage.asking.get();
        window.seen.push([state, told === null]);
    });
}"""


def test_what_it_would_have_told_follows_the_newest_fix_and_nothing_flickers(
    page: Page, served: Served
):
    open_page(page, served)
    draw(page, "Rectangle", (24.9451, STREET - 0.0005), (EAST, STREET + 0.0005))
    told = page.get_by_test_id("told")
    expect(told).to_contain_text(re.compile(r"1 visit of 1 .* by ferry"))
    stays = page.get_by_label("The longest stays, the longest first")
    stays.get_by_role("button", name="ferry").click()
    page.evaluate(WATCH_TOLD)
    when = ferry_at(STEPS)[0] + timedelta(minutes=1)
    # One more comes in, and one elsewhere lets the clock go on.
    post(
        served,
        line("comer", when, 24.946, STREET),
        line("north", when + timedelta(seconds=60), *NORTH),
    )
    expect(told).to_contain_text("2 visits of 2")
    chosen = stays.get_by_role("button", name="ferry")
    expect(chosen).to_have_attribute("aria-pressed", "true")
    seen = page.evaluate("() => window.seen")
    assert len(seen) >= 1
    assert [one for one in seen if one != ["told", False]] == []


@pytest.mark.parametrize("tool", ["Rectangle", "Circle"])
def test_what_is_dragged_reaches_from_where_it_was_pressed_to_where_it_was_let_go(
    page: Page, served: Served, tool: str
):
    """However few moves the browser tells in between: of a quick hand there is one."""
    open_page(page, served)
    ask_about(page, "vehicles")
    page.get_by_role("button", name=tool, exact=True).click()
    pressed, let_go = (24.942, STREET - 0.001), (24.948, STREET + 0.001)
    page.mouse.move(*at(page, *pressed))
    page.mouse.down()
    page.mouse.move(*at(page, *let_go))
    page.mouse.up()
    expect(page.get_by_label("The statement")).to_have_value(re.compile("INSIDE"))
    first, second, third, *fourth = numbers_in(statement(page).partition("INSIDE")[2])
    if tool == "Rectangle":
        assert (first, second) == pytest.approx(pressed, abs=5e-5)
        assert (third, fourth[0]) == pytest.approx(let_go, abs=5e-5)
    else:
        assert (first, second) == pytest.approx(pressed, abs=5e-5)
        assert third == pytest.approx(401, abs=5)  # metres, by the haversine


def test_a_clause_that_is_half_typed_is_no_question(page: Page, served: Served):
    open_page(page, served)
    ask_about(page, "vehicles")
    page.get_by_label("Name", exact=True).fill("half")
    text = page.get_by_label("The statement")
    text.press_sequentially("SELECT * FROM vehicles INS")
    expect(page.get_by_role("alert")).to_contain_text("did you mean INSIDE?")
    words = page.get_by_label("Words that may follow").get_by_role("option")
    expect(words).to_have_text(["INSIDE"])
    expect(page.get_by_role("button", name="Register")).to_be_disabled()
    expect(page.get_by_test_id("told")).to_have_count(0)
    expect(page.get_by_role("button", name="Back to what is drawn")).to_have_count(0)


def test_a_stay_in_one_place_is_marked_and_a_name_may_have_blanks(
    page: Page, served: Served
):
    open_page(page, served)
    lon, lat = NORTH
    draw(page, "Rectangle", (lon - 0.001, lat - 0.0004), (lon + 0.001, lat + 0.0004))
    told = page.get_by_test_id("told")
    expect(told).to_contain_text(re.compile(r"1 visit of 1 object .* by north"))
    page.get_by_label("The longest stays").get_by_role("button", name="north").click()
    halo = """() => fairwayPage.place.view.map.queryRenderedFeatures(undefined, { layers: ['ways-halo'] })
        .map(one => one.geometry.coordinates)"""
    until(page, f"() => ({halo})().length === 1")
    assert page.evaluate(halo)[0] == pytest.approx(NORTH, abs=5e-4)
    name = page.get_by_label("Name", exact=True)
    name.press_sequentially("to the north")
    expect(name).to_have_value("to the north")
