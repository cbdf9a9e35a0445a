"""Every form in which streams write times, against Python's own readers and writers."""

import email.utils
from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.decode.instants import instants
from st_common.times import written

pytestmark = pytest.mark.spec("B7")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
US, MS, S = timedelta(microseconds=1), timedelta(milliseconds=1), timedelta(seconds=1)
LAST_US = 7_258_118_400_000_000 - 86_400_000_000
MOMENTS = st.integers(86_400_000_000, LAST_US).map(lambda us: EPOCH + us * US)
MONTHS = (
    "Jan",
    "Feb",
    "Mar",
    "Apr",
    "May",
    "Jun",
    "Jul",
    "Aug",
    "Sep",
    "Oct",
    "Nov",
    "Dec",
)


def read(value: object, unit: str, zone: str | None = None) -> datetime | str:
    found = instants(pa.array([value]), unit, zone)
    if found.missing[0]:
        return "missing"
    return "bad" if found.bad[0] else EPOCH + int(found.values[0]) * US


def at(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def floor(moment: datetime, step: timedelta) -> datetime:
    return moment - (moment - EPOCH) % step


def of_go(moment: datetime) -> str:
    """As `time.Now().String()` prints it, in a zone one hour east."""
    local = moment.astimezone(timezone(timedelta(hours=1)))
    return (
        f"{local:%Y-%m-%d %H:%M:%S}.{local.microsecond:06}789 +0100 CET m=+0.012345678"
    )


def american(moment: datetime) -> str:
    half = "AM" if moment.hour < 12 else "PM"
    return f"{moment.month}/{moment.day}/{moment.year} {moment.hour % 12 or 12}:{moment:%M:%S} {half}"


def of_twitter(moment: datetime) -> str:
    return f"{MONTHS[moment.month - 1]} {moment.day:02} {moment:%H:%M:%S} +0000 {moment.year:04}"


def days(moment: datetime) -> str:
    """As Excel counts, with the ten decimals that it exports."""
    return f"{(moment - datetime(1899, 12, 30, tzinfo=UTC)) / timedelta(days=1):.10f}"


@given(MOMENTS)
@pytest.mark.parametrize(
    ("unit", "write", "step"),
    [
        ("ns", lambda m: str((m - EPOCH) // US * 1000 + 789), US),
        ("ns", lambda m: (m - EPOCH) // US * 1000, US),
        ("us", lambda m: (m - EPOCH) // US, US),
        ("ms", lambda m: f"{(m - EPOCH) // US / 1000:.3f}", US),
        ("s", lambda m: f"{(m - EPOCH) // S}.{m.microsecond:06}", US),
        ("excel", days, MS),
        ("iso", of_go, US),
        ("iso", lambda m: m.isoformat(), US),
        ("iso", lambda m: m.isoformat().replace(".", ","), US),
        ("iso", lambda m: f"{m:%Y%m%dT%H%M%S}Z", S),
        ("iso", lambda m: f"{m:%Y-%m-%d %H:%M:%S} UTC", S),
        ("rfc2822", email.utils.format_datetime, S),
        ("rfc2822", lambda m: email.utils.format_datetime(m, usegmt=True), S),
        (
            "rfc2822",
            lambda m: email.utils.format_datetime(
                m.astimezone(ZoneInfo("Asia/Kolkata"))
            ),
            S,
        ),
        ("%m/%d/%Y %I:%M:%S %p", american, S),
        ("%m/%d/%Y %I:%M:%S %p", lambda m: american(m).replace(" ", "\u202f"), S),
        ("%d.%m.%Y %H:%M:%S", lambda m: f"{m:%d.%m.%Y %H:%M}", timedelta(minutes=1)),
        (
            "%d/%m/%Y %H:%M:%S",
            lambda m: f"{m:%d/%m/%Y %H:%M:%S}.{m.microsecond:06}",
            US,
        ),
        ("%b %d %H:%M:%S %z %Y", of_twitter, S),
    ],
)
def test_an_instant_in_any_form_reads_back_equal(unit, write, step, moment):
    if step == MS:
        moment = floor(moment, MS)
    assert read(write(moment), unit) == floor(moment, step)


@given(
    MOMENTS,
    st.sampled_from(["s", "ms", "us", "ns", "iso", "rfc2822", "%d.%m.%Y %H:%M:%S"]),
    st.sampled_from(["UTC", "+05:30", "-03:00"]),
)
def test_what_a_program_puts_in_a_unit_reads_back_equal(moment, unit, zone):
    whole = floor(moment, S)
    assert read(written(whole, unit, zone), unit, zone) == whole


@given(MOMENTS)
def test_what_a_program_puts_in_days_of_a_zone_reads_back_equal(moment):
    whole = floor(moment, MS)
    assert read(written(whole, "excel", "+05:30"), "excel", "+05:30") == whole


@pytest.mark.parametrize(
    ("unit", "text", "expected"),
    [
        (
            "iso",
            "2025-11-24 08:00:00.123456789 +0100 CET m=+0.01",
            "2025-11-24 07:00:00.123456",
        ),
        ("iso", "2025-11-24 08:00:00 +0530 IST", "2025-11-24 02:30:00"),
        ("iso", "2025-11-24T08:00:00,5+01:00", "2025-11-24 07:00:00.5"),
        ("rfc2822", "Mon, 24 Nov 2025 08:00:00 +0100", "2025-11-24 07:00:00"),
        ("rfc2822", "24 Nov 2025 08:00 EST", "2025-11-24 13:00:00"),
        ("rfc2822", "Mon, 24 Nov 2025 08:00:00 -0800 (PST)", "2025-11-24 16:00:00"),
        ("excel", "45985.3333333333", "2025-11-24 08:00:00"),
        ("excel", "45985", "2025-11-24 00:00:00"),
        ("excel", "45985 0.25", "2025-11-24 06:00:00"),
        ("excel", 45985.5, "2025-11-24 12:00:00"),
        ("ns", "1763971200123456789", "2025-11-24 08:00:00.123456"),
        ("ns", "1.7639712e18", "2025-11-24 08:00:00"),
        ("%d.%m.%Y %H:%M", "24.11.2025 08:00", "2025-11-24 08:00:00"),
        ("%d.%m.%Y %H:%M", "24.11.2025  8:00", "2025-11-24 08:00:00"),
        ("%d/%m/%Y %I:%M %p", "24/11/2025 8:05 p. m.", "2025-11-24 20:05:00"),
        ("%d/%m/%Y %I:%M %p", "24/11/2025 12:05 a.m.", "2025-11-24 00:05:00"),
    ],
)
def test_forms_as_the_world_writes_them(unit, text, expected):
    assert read(text, unit) == at(expected)


@pytest.mark.parametrize(
    ("unit", "text"),
    [
        ("iso", "24.11.2025 08:00"),
        ("iso", "2025-13-24 08:00:00"),
        ("iso", "20251124"),
        ("iso", "2025-11-24 08:00:00 CET"),
        ("rfc2822", "Mon, 31 Feb 2025 08:00:00 +0000"),
        ("rfc2822", "2025-11-24 08:00:00"),
        ("rfc2822", "24 Nov 2025"),
        ("excel", "1"),
        ("excel", "1763971200"),
        ("excel", "-45985.5"),
        ("excel", "2025-11-24"),
        ("excel", "45985,5"),
        ("ns", "-1"),
        ("ns", "1e30"),
        ("ns", "99999999999999999999"),
        ("ns", "x"),
        ("%d.%m.%Y %H:%M:%S", "24.11.2025"),
        ("%m/%d/%Y %I:%M:%S %p", "11/24/2025 13:00:00 PM"),
    ],
)
def test_what_cannot_be_is_a_bad_time(unit, text):
    assert read(text, unit) == "bad"


@given(
    st.lists(
        st.one_of(
            st.none(), st.text(max_size=30), st.from_regex(r"[0-9:./ TZ+APMm-]{0,30}")
        ),
        min_size=1,
    ),
    st.sampled_from(
        ["ns", "excel", "iso", "rfc2822", "%d.%m.%Y %H:%M:%S", "%I:%M %p %d %b %y"]
    ),
    st.sampled_from([None, "Europe/Berlin", "Pacific/Apia", "-11:00"]),
)
def test_no_text_raises_and_each_is_missing_bad_or_an_instant(values, unit, zone):
    found = instants(pa.array(values, pa.string()), unit, zone)
    assert not (found.missing & found.bad).any()
    assert ((found.values >= 0) & (found.values < 7_258_118_400_000_000)).all()
