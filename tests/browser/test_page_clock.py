"""Times on the page are those of the browser's zone, and say it; a switch to UTC is remembered."""

import re
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.kit.page_browser import at, until
from tests.kit.page_home import DEPOT, INSIDE, TODAY, Served, fix

pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.spec("P10", "X2"),
]
MAP = "map=24.9447,60.1706,16.3&query="  # no query is chosen by itself
NOON = "at=2026-06-19T11:30:00Z"
BERLIN, NEWFOUNDLAND = "Europe/Berlin", "America/St_Johns"
in_berlin = pytest.mark.parametrize("page_in", [BERLIN], indirect=True)


def summary(page: Page):
    return page.locator(".summary")


def at_ms(page: Page, moment: str) -> None:
    until(page, f"() => fairwayPage.app.get().at_ms === Date.parse('{moment}')")


@in_berlin
def test_times_are_of_the_browser_s_zone_until_utc_is_chosen_which_is_remembered(
    page_in: Page, served: Served
):
    page = page_in
    address = f"{served.url}/#{MAP}&{NOON}&object=vehicles/truck2"
    page.goto(address)
    card = page.get_by_role("region", name="Object truck2")
    expect(summary(page)).to_contain_text("2026-06-19 13:30:00 UTC+2")
    expect(card).to_contain_text("As of 2026-06-19 13:30:00 UTC+2")
    expect(card).to_contain_text(re.compile(r"last fix2026-06-19 13:\d\d:\d\d UTC\+2"))
    expect(page.get_by_label(f"The moment, in {BERLIN}")).to_have_value(
        "2026-06-19 13:30:00"
    )
    assert page.url.endswith("at=2026-06-19T11%3A30%3A00Z") or "11%3A30" in page.url
    choice = page.get_by_label("Times in")
    expect(choice.locator("option:checked")).to_have_text(BERLIN)
    choice.select_option("UTC")
    for _ in range(2):
        expect(summary(page)).to_contain_text(
            re.compile(r"2026-06-19 11:30:00 UTC(?!\+)")
        )
        expect(card).to_contain_text(re.compile(r"As of 2026-06-19 11:30:00 UTC(?!\+)"))
        expect(page.get_by_label("The moment, in UTC")).to_have_value(
            "2026-06-19 11:30:00"
        )
        page.goto("about:blank")
        page.goto(address)
    page.get_by_label("Times in").select_option(BERLIN)
    expect(card).to_contain_text("As of 2026-06-19 13:30:00 UTC+2")


@pytest.mark.parametrize(
    ("page_in", "moment", "shown"),
    [
        (BERLIN, "2025-10-26T00:30:00Z", "2025-10-26 02:30:00 UTC+2"),
        (BERLIN, "2025-10-26T01:30:00Z", "2025-10-26 02:30:00 UTC+1"),
        (BERLIN, "2025-03-30T00:59:59Z", "2025-03-30 01:59:59 UTC+1"),
        (BERLIN, "2025-03-30T01:00:00Z", "2025-03-30 03:00:00 UTC+2"),
        (NEWFOUNDLAND, "2026-06-19T01:30:00Z", "2026-06-18 23:00:00 UTC-2:30"),
        ("Asia/Kathmandu", "2026-06-19T20:00:00Z", "2026-06-20 01:45:00 UTC+5:45"),
        ("Europe/London", "2026-01-19T20:00:00Z", "2026-01-19 20:00:00 UTC"),
    ],
    ids=["first", "second", "before", "behind", "half", "quarter", "none"],
    indirect=["page_in"],
)
def test_each_moment_says_how_far_its_clock_is_from_utc(
    page_in: Page, served: Served, moment: str, shown: str
):
    page_in.goto(f"{served.url}/#{MAP}&at={moment}")
    expect(summary(page_in)).to_contain_text(
        re.compile(re.escape(shown) + r"(?![+:\d-])")
    )


@in_berlin
def test_what_is_written_is_read_by_the_clock_that_is_shown(
    page_in: Page, served: Served
):
    page_in.goto(f"{served.url}/#{MAP}&{NOON}")
    field = page_in.get_by_label(f"The moment, in {BERLIN}")
    for text, moment, value in (
        ("2026-06-19 14:00:00", "2026-06-19T12:00:00Z", "2026-06-19 14:00:00"),
        ("2026-01-19 14:00", "2026-01-19T13:00:00Z", "2026-01-19 14:00:00"),
        ("2026-06-18", "2026-06-17T22:00:00Z", "2026-06-18 00:00:00"),
        ("2026-06-19 12:00:00Z", "2026-06-19T12:00:00Z", "2026-06-19 14:00:00"),
        ("2026-06-19T12:30:00-01:00", "2026-06-19T13:30:00Z", "2026-06-19 15:30:00"),
        ("2025-10-26 02:30:00", "2025-10-26T00:30:00Z", "2025-10-26 02:30:00"),
        ("2025-03-30 02:30:00", "2025-03-30T01:30:00Z", "2025-03-30 03:30:00"),
    ):
        field.fill(text)
        field.press("Enter")
        at_ms(page_in, moment)
        expect(field).to_have_value(value)
    field.fill("tomorrow")
    field.press("Enter")
    expect(field).to_have_value("2025-03-30 03:30:00")
    page_in.get_by_label("Times in").select_option("UTC")
    field = page_in.get_by_label("The moment, in UTC")
    field.fill("2026-06-19 14:00:00")
    field.press("Enter")
    at_ms(page_in, "2026-06-19T14:00:00Z")


@in_berlin
def test_what_is_being_written_stays_while_the_server_answers(
    page_in: Page, served: Served
):
    page_in.goto(f"{served.url}/#{MAP}&{NOON}")
    field = page_in.get_by_label(f"The moment, in {BERLIN}")
    field.fill("2026-06-19 14:0")
    seen = page_in.evaluate("() => fairwayPage.app.get().seen_ms ?? 0")
    until(page_in, f"() => fairwayPage.app.get().seen_ms > {seen} + 2500")
    expect(field).to_have_value("2026-06-19 14:0")
    field.press("End")
    field.press_sequentially("5:00")
    field.press("Enter")
    at_ms(page_in, "2026-06-19T12:05:00Z")
    field.fill("2026-06-19 15:00:00")
    page_in.get_by_label("Moment", exact=True).focus()
    at_ms(page_in, "2026-06-19T13:00:00Z")


@in_berlin
def test_changes_visits_and_reasons_are_told_by_the_same_clock(
    page_in: Page, served: Served
):
    west, south, east, north = DEPOT
    text = f"SELECT * FROM vehicles INSIDE ({west}, {south}, {east}, {north})"
    httpx.put(
        f"{served.url}/v1/queries/yard", content=text, timeout=60
    ).raise_for_status()
    address = f"{served.url}/#{MAP}&query=yard&object=vehicles/truck1"
    page_in.goto(address)
    card = page_in.get_by_role("region", name="Query yard")
    members = card.get_by_label("Who is in yard")
    expect(members).to_contain_text("v0")
    came = TODAY + timedelta(minutes=3)
    served.post(fix("truck1", came, INSIDE, 1.5))
    local = f"{came + timedelta(hours=2):%H:%M:%S}"
    changes = card.get_by_label("Newest changes")
    expect(changes).to_contain_text(local)
    expect(changes.get_by_text(local).first).to_have_attribute(
        "title", f"2026-06-20 {local} UTC+2"
    )
    known = page_in.get_by_role("region", name="Object truck1")
    expect(known.get_by_label("Answers that it is in")).to_contain_text(
        f"since 2026-06-20 {local} UTC+2"
    )
    expect(known.get_by_label("Its last visits")).to_contain_text(
        f"2026-06-20 {local} UTC+2"
    )
    known.get_by_role("button", name="Why is truck1 in yard?").click()
    expect(known.locator(".why")).to_contain_text(f"2026-06-20 {local} UTC+2")
    page_in.get_by_label("Times in").select_option("UTC")
    in_utc = re.compile(rf"2026-06-20 {came:%H:%M:%S} UTC(?!\+)")
    expect(known.locator(".why")).to_contain_text(in_utc)
    expect(changes).to_contain_text(f"{came:%H:%M:%S}")
    httpx.delete(f"{served.url}/v1/queries/yard", timeout=60).raise_for_status()


@in_berlin
def test_days_that_are_asked_about_begin_at_midnight_there(
    page_in: Page, served: Served
):
    asked: list[str] = []
    page_in.on(
        "request",
        lambda one: (
            asked.append(one.post_data or "") if "/page/ask" in one.url else None
        ),
    )
    page_in.goto(f"{served.url}/#{MAP}&tab=ask")
    until(page_in, "() => fairwayPage.place.view?.streams.get('vehicles')?.count > 0")
    west, south, east, north = DEPOT
    page_in.get_by_role("button", name="Rectangle").click()
    page_in.mouse.click(*at(page_in, west, south))
    page_in.mouse.move(*at(page_in, (west + east) / 2, (south + north) / 2))
    page_in.mouse.move(*at(page_in, east, north))
    page_in.mouse.click(*at(page_in, east, north))
    days = page_in.get_by_label("What it would have told")
    days.select_option("before")
    expect(days).to_contain_text("on 2026-06-19")
    expect(page_in.get_by_test_id("told")).to_be_visible()
    local = "BETWEEN '2026-06-18T22:00:00Z' AND '2026-06-19T22:00:00Z'"
    assert local in asked[-1]
    expect(page_in.locator(".ticks")).to_contain_text("UTC+2")
    stay = page_in.get_by_label("The longest stays, the longest first").get_by_role(
        "button"
    )
    expect(stay.first).to_have_attribute("title", re.compile(r"from .* UTC\+2 to "))
    page_in.get_by_label("Times in").select_option("UTC")
    expect(page_in.locator(".ticks")).to_contain_text(re.compile(r"UTC(?!\+)"))
    until(page_in, "() => fairwayPage.asking.get().state === 'told'")
    in_utc = "BETWEEN '2026-06-19T00:00:00Z' AND '2026-06-20T00:00:00Z'"
    wait_for(page_in, lambda: in_utc in asked[-1])


def wait_for(page: Page, holds: Callable[[], bool]) -> None:
    for _ in range(200):
        if holds():
            return
        page.wait_for_timeout(300)
    raise AssertionError("it never held")


def test_where_the_browser_is_in_utc_there_is_nothing_to_choose(
    page: Page, served: Served
):
    page.goto(f"{served.url}/#{MAP}&{NOON}")
    expect(summary(page)).to_contain_text("2026-06-19 11:30:00 UTC")
    expect(page.get_by_label("Times in")).to_have_count(0)


@pytest.mark.parametrize("phone_in", [NEWFOUNDLAND], indirect=True)
def test_on_a_phone_the_choice_is_there_and_nothing_is_cut_off(
    phone_in: Page, served: Served
):
    phone_in.goto(f"{served.url}/#{MAP}&{NOON}")
    expect(summary(phone_in)).to_contain_text("2026-06-19 09:00:00 UTC-2:30")
    phone_in.get_by_label("Times in").select_option("UTC")
    expect(summary(phone_in)).to_contain_text("2026-06-19 11:30:00 UTC")
    assert phone_in.evaluate("() => document.documentElement.scrollWidth") <= 390


def test_a_report_shows_the_zone_of_whoever_opens_it(
    browser: Browser, served: Served, tmp_path: Path
):
    file = tmp_path / "day.html"
    command = [sys.executable, "-m", "st_common.cli", "--home", served.folder / "home"]
    subprocess.run(
        [
            *map(str, command),
            "streams",
            "report",
            str(file),
            "--from",
            "2026-06-20T00:00:00Z",
        ],
        capture_output=True,
        timeout=500,
        check=True,
    )
    context = browser.new_context(timezone_id=NEWFOUNDLAND)
    page = context.new_page()
    page.goto(file.as_uri())
    expect(summary(page)).to_contain_text("from 2026-06-19 21:30:00 to 2026-06-")
    expect(summary(page)).to_contain_text("UTC-2:30")
    page.get_by_label("Times in").select_option("UTC")
    expect(summary(page)).to_contain_text("from 2026-06-20 00:00:00 to 2026-06-20")
    page.reload()
    expect(summary(page)).to_contain_text("from 2026-06-20 00:00:00 to 2026-06-20")
    context.close()
