"""Times as JavaScript, spreadsheets of old Macs and people with letters of zones write them: read, or asked about."""

from datetime import UTC, datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.decode.instants import instants
from st_common.detect.report import detect

pytestmark = pytest.mark.spec("B6", "B7", "X15")

BERLIN = ZoneInfo("Europe/Berlin")
FIRST, LAST = datetime(1990, 1, 1), datetime(2100, 1, 1)  # noqa: DTZ001 - hypothesis wants them so
EPOCH = datetime(1904, 1, 1)  # noqa: DTZ001 - as a spreadsheet has it, without a zone
TIMES = st.datetimes(FIRST, LAST).map(lambda at: at.replace(microsecond=0))


def read(texts: list[str], unit: str, zone: str | None = None):
    found = instants(pa.array(texts, pa.string()), unit, zone)
    good = ~(found.bad | found.missing)
    return [int(us) if ok else None for us, ok in zip(found.values, good, strict=True)]


def us_of(at: datetime) -> int:
    return int(at.timestamp()) * 1_000_000


def check(tmp_path: Path, texts: list[str]):
    path = tmp_path / "fixes.csv"
    rows = [f'v{n % 2};"{text}";60.1;24.{n}5' for n, text in enumerate(texts)]
    path.write_text("\n".join(["id;time;lat;lon", *rows]) + "\n")
    return detect(str(path))


@given(st.lists(TIMES, min_size=1, max_size=8))
def test_what_javascript_prints_is_read(times):
    local = [at.replace(tzinfo=UTC).astimezone(BERLIN) for at in times]
    names = {
        "CET": "Central European Standard Time",
        "CEST": "Central European Summer Time",
    }
    texts = [f"{at:%a %b %d %Y %H:%M:%S GMT%z} ({names[at.tzname()]})" for at in local]
    assert read(texts, "rfc2822") == [us_of(at) for at in local]


@given(st.lists(TIMES, min_size=1, max_size=8))
def test_days_that_count_from_1904_are_four_years_and_a_day_later(times):
    days = [(at - EPOCH).total_seconds() / 86_400 for at in times]
    found = read([repr(day) for day in days], "excel1904")
    wanted = [us_of(at.replace(tzinfo=UTC)) for at in times]
    assert np.abs(np.array(found) - np.array(wanted)).max() <= 1000


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("2025-11-24 08:00:00 CET", "iso"),
        ("2025-11-24T08:00:00.0 CET", "iso"),
        ("24.11.2025 08:00 CET", "%d.%m.%Y %H:%M"),
        ("11/24/2025 08:00:00 AM (CET)", "%m/%d/%Y %I:%M:%S %p"),
    ],
)
def test_letters_are_read_where_the_zone_of_the_stream_has_them(text: str, unit: str):
    eight = us_of(datetime(2025, 11, 24, 8, tzinfo=BERLIN))
    assert read([text], unit, "Europe/Berlin") == [eight]
    assert read([text], unit) == [None]
    assert read([text], unit, "America/New_York") == [None]


def test_summer_and_winter_have_letters_of_their_own():
    texts = [
        "2025-07-01 12:00:00 CEST",
        "2025-12-01 12:00:00 CET",
        "2025-12-01 12:00:00 PST",
        "2025-12-01 12:00:00",
    ]
    winter = us_of(datetime(2025, 12, 1, 11, tzinfo=UTC))
    summer = us_of(datetime(2025, 7, 1, 10, tzinfo=UTC))
    assert read(texts, "iso", "Europe/Berlin") == [summer, winter, None, winter]


def test_check_reads_what_javascript_prints(tmp_path):
    texts = [
        f"Mon Nov 24 2025 08:00:0{n} GMT+0100 (Central European Standard Time)"
        for n in range(5)
    ]
    seen = check(tmp_path, texts)
    assert (seen.good, seen.table["time_unit"]) == (5, "rfc2822")
    assert seen.fixes["event_ts"][0].as_py() == us_of(
        datetime(2025, 11, 24, 7, tzinfo=UTC)
    )
    assert "no zone" not in " ".join(seen.notes)


@pytest.mark.parametrize("letters", ["CET", "PST", "IST"])
def test_check_asks_where_letters_of_a_zone_stand_and_guesses_nothing(
    tmp_path, letters
):
    seen = check(tmp_path, [f"2025-11-24 08:00:0{n} {letters}" for n in range(5)])
    assert (seen.good, seen.is_readable, "time_zone" in seen.table) == (0, False, False)
    assert (
        f"times of time end in {letters}, letters that several zones have"
        in " ".join(seen.notes)
    )


def test_check_tells_that_days_may_count_from_1904(tmp_path):
    days = [44_523 + n / 1000 for n in range(6)]
    seen = check(tmp_path, [str(day) for day in days])
    assert seen.table["time_unit"] == "excel"
    assert (
        'also fits: time_unit = "excel1904", then they begin at 2025-11-24'
        in " ".join(seen.notes)
    )
