"""The list of queries, and what can be done with each: it is chosen by itself, drawn over an hour, copied, dropped."""

import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Locator, Page, Route, expect

from tests.kit.installation import wait
from tests.kit.page_browser import statement, until
from tests.kit.page_home import AWAY, DEPOT, INSIDE, TODAY, Served, fix

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600), pytest.mark.spec("P10")]

WEST, SOUTH, EAST, NORTH = DEPOT
GATE = (
    f"SELECT * FROM vehicles WHERE class = 'truck' INSIDE ({WEST}, {SOUTH}, {EAST}, {NORTH})"
    " DETECT ENTER, EXIT"
)
MINUS = "\N{MINUS SIGN}"
TOWN = "SELECT * FROM vehicles WHERE object LIKE 'truck_' INSIDE (20, 55, 30, 65)"
MAP = "map=24.9447,60.1706,16.3"
_SECONDS = iter(range(5, 100_000, 5))


@pytest.fixture
def moment() -> Callable[[], datetime]:
    """Times of today, each later than the one before, for all tests of this file."""
    return lambda: TODAY + timedelta(minutes=2, seconds=next(_SECONDS))


@pytest.fixture(autouse=True)
def queries(served: Served) -> Iterator[None]:
    """`gate`, which trucks enter and leave, and `town`, which three are in; none is left at the end."""
    put(served, "gate", GATE)
    put(served, "town", TOWN)
    yield
    for query in served.get("/v1/queries")["queries"]:
        httpx.delete(f"{served.url}/v1/queries/{query['name']}", timeout=60)


def put(served: Served, name: str, text: str) -> None:
    told = httpx.put(f"{served.url}/v1/queries/{name}", content=text, timeout=60)
    told.raise_for_status()
    wait(lambda: is_told(served, name), "the page is told of the query")


def is_told(served: Served, name: str) -> bool:
    """Whether the page's state has a query: pages that ask within a second are told the same."""
    rows = served.get("/page/state")["queries"]
    return any(one["name"] == name for one in rows)


def figures(served: Served, name: str) -> dict:
    """What the page is told of a query."""
    rows = served.get("/page/state")["queries"]
    return next(one for one in rows if one["name"] == name)


def drive(served: Served, moment: Callable[[], datetime]) -> None:
    """A truck enters the gate and leaves, twice, and another one stays; ends when the page is told of it."""
    wait(lambda: figures(served, "gate")["came"] is not None, "somebody looks")
    for truck, place in (
        ("truck1", INSIDE),
        ("truck1", AWAY),
        ("truck1", INSIDE),
        ("truck2", INSIDE),
        ("truck1", AWAY),
    ):
        served.post(fix(truck, moment(), place))
    wait(lambda: figures(served, "gate")["left"] == 2, "changes are counted")


def leave(served: Served, moment: Callable[[], datetime]) -> None:
    served.post(fix("truck1", moment(), AWAY), fix("truck2", moment(), AWAY))
    wait(lambda: figures(served, "gate")["members"] == 0, "all have left")


def open_page(page: Page, served: Served, address: str = "") -> None:
    page.goto(f"{served.url}/#{address}")
    until(page, "() => fairwayPage.app.get().page !== null")


def card_of(page: Page, name: str) -> Locator:
    return page.get_by_role("region", name=f"Query {name}", exact=True)


def row_of(page: Page, name: str) -> Locator:
    rows = page.get_by_role("list", name="Queries").get_by_role("listitem")
    return rows.filter(has=page.locator(".name", has_text=re.compile(f"^{name}$")))


def more(page: Page, name: str, what: str) -> Locator:
    """The card of a query in which the menu is open, and one of its parts."""
    card = card_of(page, name)
    card.locator("summary").click()
    card.get_by_role("button", name=what, exact=True).click()
    return card


def test_the_query_that_changes_most_is_chosen_once_when_the_address_names_none(
    page: Page, served: Served, moment
):
    drive(served, moment)
    open_page(page, served, MAP)
    expect(card_of(page, "gate")).to_be_visible()
    expect(card_of(page, "town")).to_have_count(0)
    expect(card_of(page, "gate").get_by_label("Who is in gate")).to_have_text("truck2")
    until(page, "() => location.hash.includes('query=gate')")
    page.get_by_role("button", name="Let gate go").click()
    until(page, "() => /query=(&|$)/.test(location.hash)")
    page.reload()  # its address says that none is chosen
    # A list that has been told twice is one in which a query would have been chosen.
    until(page, "() => fairwayPage.app.get().page?.streams[0].came_over_s > 0")
    before = page.evaluate("() => fairwayPage.app.get().seen_ms")
    until(page, f"() => fairwayPage.app.get().seen_ms > {before}")
    assert page.evaluate("() => fairwayPage.app.get().chosen.length") == 0
    leave(served, moment)


def test_where_nothing_changes_the_query_with_most_members_is_chosen(
    page: Page, served: Served
):
    wait(lambda: figures(served, "town")["members"], "members are counted")
    wait(lambda: not figures(served, "gate")["came"], "nothing changes any more")
    open_page(page, served, MAP)
    expect(card_of(page, "town")).to_be_visible()
    expect(card_of(page, "gate")).to_have_count(0)


def test_an_address_that_names_a_query_chooses_that_one(page: Page, served: Served):
    open_page(page, served, f"{MAP}&query=gate")
    expect(card_of(page, "gate")).to_be_visible()
    until(page, "() => fairwayPage.app.get().page?.streams[0].came_over_s > 0")
    expect(card_of(page, "town")).to_have_count(0)


def test_a_row_says_who_came_and_left_and_draws_the_last_hour(
    page: Page, served: Served, moment
):
    open_page(page, served, f"{MAP}&query=")
    drive(served, moment)
    row = row_of(page, "gate")
    expect(row.locator(".kind")).to_contain_text("geofence")
    expect(row.get_by_label("3 came in")).to_have_text("+3")
    expect(row.get_by_label("2 left in the last")).to_have_text(f"{MINUS}2")
    expect(row.get_by_label("1 in", exact=True)).to_be_visible()
    told = row.locator("title")
    expect(told).to_have_text(re.compile(r"over the last hour: .* in, now 1"))
    counts = served.get("/page/courses")["streams"]["vehicles"]["queries"]["gate"]
    assert len(counts) == 60
    assert counts[-1] == 1
    most = f"to {max(counts)} in, now 1"
    expect(told).to_contain_text(most)
    line = row.locator(".sparkline path").get_attribute("d")
    assert line is not None
    assert line.count("L") == len(counts) - 1
    expect(row_of(page, "town").locator("title")).to_have_text(re.compile("now 3$"))
    leave(served, moment)


def test_queries_are_found_by_what_they_ask_in_the_words_of_the_page(
    page: Page, served: Served
):
    for k in range(8):
        put(served, f"last{k}", f"{TOWN} WINDOW {k + 1} min")
    open_page(page, served, f"{MAP}&query=")
    search = page.get_by_label("Find a query")
    names = page.get_by_role("list", name="Queries").locator(".name")
    search.fill("geofence")
    expect(names).to_have_text(["gate"])
    search.fill("in the last 3 min")
    expect(names).to_have_text(["last2"])
    search.fill("who is inside")
    expect(names).to_have_text(["town"])


def test_a_query_is_dropped_after_a_question_inside_the_page(
    page: Page, served: Served
):
    open_page(page, served, f"{MAP}&query=gate")
    card = more(page, "gate", "Drop")
    asked = card.get_by_role("group", name="Drop gate?")
    expect(asked).to_contain_text("What it told so far stays")
    asked.get_by_role("button", name="Keep it").click()
    expect(asked).to_have_count(0)
    assert figures(served, "gate")["state"] == "registered"
    card.get_by_role("button", name="Drop", exact=True).click()
    asked.get_by_role("button", name="Drop gate").click()
    expect(card).to_have_count(0)
    expect(row_of(page, "gate")).to_have_count(0)
    expect(row_of(page, "town")).to_have_count(1)
    assert [one["name"] for one in served.get("/v1/queries")["queries"]] == ["town"]


def test_a_query_is_copied_under_another_name(page: Page, served: Served):
    before = figures(served, "gate")
    open_page(page, served, f"{MAP}&query=gate")
    more(page, "gate", "Duplicate")
    assert " ".join(statement(page).split()) == GATE
    expect(page.get_by_label("Name")).to_have_value("gate_2")
    page.get_by_role("button", name="Register").click()
    expect(card_of(page, "gate_2")).to_contain_text("gate_2 is registered, version 1.")
    after = figures(served, "gate")
    assert (after["version"], after["state"]) == (before["version"], "registered")


def test_a_query_gets_another_name_and_history_stays_with_the_old_one(
    page: Page, served: Served, moment
):
    drive(served, moment)
    open_page(page, served, f"{MAP}&query=gate")
    card = more(page, "gate", "Rename")
    expect(card).to_contain_text("History stays with gate")
    card.get_by_label("New name").fill("town")
    card.get_by_role("button", name="Register under this name").click()
    expect(card.get_by_role("alert")).to_contain_text("town")
    card.get_by_label("New name").fill("door")
    card.get_by_role("button", name="Register under this name").click()
    asked = card.get_by_role("group", name="Drop gate?")
    expect(asked).to_contain_text("stay in the tables under the old name")
    assert figures(served, "gate")["state"] == "registered"
    asked.get_by_role("button", name="Drop gate").click()
    expect(card_of(page, "door").get_by_label("Who is in door")).to_have_text("truck2")
    expect(card_of(page, "gate")).to_have_count(0)
    names = {one["name"] for one in served.get("/v1/queries")["queries"]}
    assert names == {"door", "town"}
    visits = served.get("/page/visits", stream="vehicles", query="gate")["rows"]
    assert {one["object"] for one in visits} >= {"truck1", "truck2"}
    served.post(fix("truck1", moment(), AWAY), fix("truck2", moment(), AWAY))


def test_who_is_in_and_what_changed_are_kept_as_files(
    page: Page, served: Served, moment
):
    drive(served, moment)
    open_page(page, served, f"{MAP}&query=gate")
    card = more(page, "gate", "Export")

    def kept(button: str) -> str:
        with page.expect_download() as download:
            card.get_by_role("button", name=button).click()
        return Path(download.value.path()).read_text()

    header, row, *rest = kept("Who is in now as CSV").splitlines()
    assert header == "object,partner,since_ts,value,x,y,fields"
    assert row.startswith("truck2,")
    assert f"{INSIDE[0]},{INSIDE[1]}" in row
    assert rest == []
    (feature,) = json.loads(kept("Who is in now as GeoJSON"))["features"]
    assert feature["geometry"]["coordinates"] == pytest.approx(list(INSIDE))
    assert feature["properties"]["object"] == "truck2"

    def is_stored() -> bool:
        changes = kept("The last 1,000 changes that are stored as CSV").splitlines()
        newest = [line.split(",")[1:3] for line in changes[1:4]]
        return newest == [["-1", "truck1"], ["1", "truck2"], ["1", "truck1"]]

    wait(is_stored, "changes are in the table")
    expect(card.get_by_role("status")).to_contain_text("gate-changes.csv")
    leave(served, moment)


def test_changes_are_notified_in_groups_and_not_after_the_card_is_closed(
    page: Page, served: Served, moment
):
    page.add_init_script("""
        globalThis.told = [];
        globalThis.Notification = class {
            static async requestPermission() { return 'granted'; }
            constructor(title, { body }) { told.push(`${title} | ${body}`); }
        };""")
    open_page(page, served, f"{MAP}&query=gate")
    until(page, "() => fairwayPage.app.get().chosen[0]?.isAnswered")
    card = more(page, "gate", "Notify me …")
    expect(card).to_contain_text('to = "webhook"')
    card.get_by_role("button", name="Notify me", exact=True).click()
    expect(card.locator("summary")).to_contain_text("notifying")
    served.post(fix("truck1", moment(), INSIDE))
    until(page, "() => told.length === 1")
    served.post(fix("truck2", moment(), INSIDE), fix("truck3", moment(), INSIDE))
    until(page, "() => told.length === 2")
    assert page.evaluate("() => told") == [
        "gate | gate: truck1 came in",
        "gate | gate: truck2, truck3 came in",
    ]
    page.get_by_role("button", name="Let gate go").click()
    until(page, "() => fairwayPage.app.get().chosen.length === 0")
    served.post(fix("truck3", moment(), AWAY))
    leave(served, moment)
    assert page.evaluate("() => told.length") == 2


def test_the_head_names_a_stream_that_is_behind(page: Page, served: Served):
    def behind(route: Route) -> None:
        state = route.fetch().json()
        state["streams"][0] |= {"lag_segments": 12, "lag_s": 40.0}
        state["streams"][0] |= {"late": 7, "fixes": 100, "warnings": ["late"]}
        route.fulfill(json=state)

    page.route("**/page/state", behind)
    open_page(page, served, MAP)
    told = page.get_by_role("button", name="vehicles is 40 s behind (12 segments)")
    expect(told).to_have_text("vehicles is 40 s behind (12 segments) and 1 more")
    expect(told).to_have_attribute("title", re.compile("7 of 100 fixes came too late"))
    told.click()
    expect(page.get_by_role("region", name="Stream vehicles")).to_be_visible()
    page.unroute_all(behavior="wait")
