"""Numbers and instants out of texts, against Python's own."""

import contextlib
import math
import struct
from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.decode.instants import instants
from st_common.formats.numbers import bools, doubles, longs

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
FIRST, LAST = datetime(1970, 1, 1), datetime(2199, 12, 31, 23, 59, 59, 999_999)  # noqa: DTZ001 - as hypothesis wants
MOMENTS = st.datetimes(FIRST, LAST)
NUMBERS = st.one_of(
    st.floats().map(repr),
    st.integers(-(10**25), 10**25).map(str),
    st.decimals(allow_nan=False).map(str),
    st.text("0123456789.eE+-xXnaif_ ,", max_size=12),
    st.sampled_from(
        [
            "",
            " ",
            "0x10",
            "1e400",
            "1e-400",
            "-0",
            "+1",
            ".5",
            "5.",
            ".",
            "1_0",
            "\u0661",
            "nan",
            "-inf",
            "Infinity",
        ]
    ),
    st.text(max_size=5),
)


def texts(values: list) -> pa.Array:
    return pa.array(values, pa.string())


def micros(moment: datetime) -> int:
    return (moment - EPOCH) // timedelta(microseconds=1)


def one(parsed) -> object:
    """The only value of a result, `missing` or `bad`."""
    return (
        "missing"
        if parsed.missing[0]
        else "bad"
        if parsed.bad[0]
        else parsed.values[0].item()
    )


def python_float(text: str) -> object:
    """What Python's `float` makes of a text, digits in ASCII and without underscores."""
    if not text.strip():
        return "missing"
    try:
        return float(text) if text.isascii() and "_" not in text else "bad"
    except ValueError:
        return "bad"


def same(left: object, right: object) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return struct.pack("d", left) == struct.pack("d", right) or (
            math.isnan(left) and math.isnan(right)
        )
    return left == right


@given(NUMBERS)
def test_a_number_is_what_pythons_float_makes_of_it(text: str):
    found = one(doubles(texts([text])))
    control = (
        any(ord(letter) < 32 or ord(letter) == 127 for letter in text)
        or not text.isascii()
    )
    assert same(found, python_float(text)) or control, (found, python_float(text))


@given(st.lists(st.none() | NUMBERS, max_size=8))
@pytest.mark.parametrize("parse", [doubles, longs, bools])
def test_a_value_does_not_depend_on_its_neighbours(parse, values: list):
    together = parse(texts(values))
    for place, value in enumerate(values):
        alone = parse(texts([value]))
        assert (
            same(together.values[place].item(), alone.values[0].item())
            or alone.bad[0]
            or alone.missing[0]
        )
        assert (together.missing[place], together.bad[place]) == (
            alone.missing[0],
            alone.bad[0],
        )


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-7", -7),
        (" 12 ", 12),
        ("007", 7),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("9223372036854775808", "bad"),
        ("-9223372036854775809", "bad"),
        ("5.0", 5),
        ("1e3", 1000),
        ("5.5", "bad"),
        ("1e300", "bad"),
        ("0x10", "bad"),
        ("ten", "bad"),
        ("", "missing"),
        (None, "missing"),
    ],
)
@pytest.mark.parametrize("beside", [[], ["x"]])
def test_whole_numbers(text: str, value: object, beside: list[str]):
    assert one(longs(texts([text, *beside]))) == value


def test_booleans():
    parsed = bools(texts(["true", "F", " Yes", "0", "", None, "2"]))
    assert parsed.values[:4].tolist() == [True, False, True, False]
    assert parsed.missing.tolist() == [False] * 4 + [True, True, False]
    assert parsed.bad.tolist() == [False] * 6 + [True]


@given(
    st.lists(MOMENTS, max_size=6),
    st.sampled_from([("s", 10**6), ("ms", 10**3), ("us", 1)]),
    st.booleans(),
)
def test_numbers_of_seconds_with_and_without_fractions(
    moments: list[datetime], unit: tuple[str, int], fractions: bool
):
    name, factor = unit
    exact = [micros(moment.replace(tzinfo=UTC)) for moment in moments]
    written = [
        f"{us // factor}.{us % factor:0{len(str(factor)) - 1}d}"
        if factor > 1
        else str(us)
        for us in exact
    ]
    if not fractions:
        exact, written = (
            [us // factor * factor for us in exact],
            [str(us // factor) for us in exact],
        )
    parsed = instants(texts(written), name)
    assert parsed.values.tolist() == exact
    assert not (parsed.bad | parsed.missing).any()


@given(
    st.lists(MOMENTS, max_size=6),
    st.sampled_from("T t"),
    st.sampled_from(["seconds", "milliseconds", "microseconds", "minutes"]),
    st.sampled_from(["", "Z", "+00:00", "+05:30", "-0930", "+02"]),
)
def test_iso_times_are_what_python_reads(
    moments: list[datetime], between: str, precision: str, zone: str
):
    written = [
        moment.isoformat(sep=between, timespec=precision) + zone for moment in moments
    ]
    offset = {"+05:30": 330, "-0930": -570, "+02": 120}.get(zone, 0)
    expected = []
    for moment in moments:
        cut = {
            "seconds": 10**6,
            "milliseconds": 1000,
            "microseconds": 1,
            "minutes": 60 * 10**6,
        }[precision]
        expected.append(
            micros(moment.replace(tzinfo=UTC)) // cut * cut - offset * 60_000_000
        )
    parsed = instants(texts(written), "iso")
    known = [(us if 0 <= us < 7_258_118_400_000_000 else "bad") for us in expected]
    assert [
        "bad" if bad else us
        for us, bad in zip(parsed.values.tolist(), parsed.bad, strict=True)
    ] == known


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2024-02-29T12:00:00Z", datetime(2024, 2, 29, 12, tzinfo=UTC)),
        ("2018-10-09", datetime(2018, 10, 9, tzinfo=UTC)),
        (
            " 2018-10-09T04:32:52.549043+0000 ",
            datetime(2018, 10, 9, 4, 32, 52, 549043, tzinfo=UTC),
        ),
        (
            "2018-10-09T04:32:52.123456789Z",
            datetime(2018, 10, 9, 4, 32, 52, 123456, tzinfo=UTC),
        ),
        (
            "2018-10-09T04:32:52.1234567890123Z",
            datetime(2018, 10, 9, 4, 32, 52, 123456, tzinfo=UTC),
        ),
        ("2018-10-09 04:32:52,5", datetime(2018, 10, 9, 4, 32, 52, 500000, tzinfo=UTC)),
        ("2018-10-09 04:32:52 +0130", datetime(2018, 10, 9, 3, 2, 52, tzinfo=UTC)),
        ("2023-02-29T12:00:00Z", "bad"),
        ("2018-13-01T00:00:00Z", "bad"),
        ("2018-00-01T00:00:00Z", "bad"),
        ("2018-01-00T00:00:00Z", "bad"),
        ("2018-01-01T24:00:00Z", "bad"),
        ("2018-01-01T00:60:00Z", "bad"),
        ("2018-01-01T00:00:60Z", "bad"),
        ("2018-01-01T00:00:00.Z", "bad"),
        ("2018-01-01X00:00:00Z", "bad"),
        ("2018-01-01T00:00:0\u0661Z", "bad"),
        ("2018-1-1", "bad"),
        ("1969-12-31T23:59:59Z", "bad"),
        ("9999-12-31T23:59:59Z", "bad"),
        ("now", "bad"),
        ("", "missing"),
        (None, "missing"),
    ],
)
@pytest.mark.parametrize("beside", [[], ["2018-10-09T04:32:52Z", "x"]])
def test_single_iso_times(text: str, expected: object, beside: list[str]):
    assert one(instants(texts([text, *beside]), "iso")) == (
        micros(expected) if isinstance(expected, datetime) else expected
    )


@pytest.mark.parametrize("ending", ["T23:59:59.123456789Z", " 00:00:00", ""])
def test_the_days_of_iso_times_are_those_of_the_calendar(ending: str):
    years = (1969, 1970, 1999, 2000, 2023, 2024, 2100, 2199, 2200)
    days = [
        f"{year}-{month:02d}-{day:02d}"
        for year in years
        for month in range(14)
        for day in range(33)
    ]
    parsed = instants(texts([day + ending for day in days]), "iso")
    for text, us, bad in zip(days, parsed.values.tolist(), parsed.bad, strict=True):
        expected = None
        with contextlib.suppress(ValueError):
            read = datetime.fromisoformat((text + ending).replace("789Z", "Z"))
            expected = micros(read.replace(tzinfo=UTC))
        in_range = expected is not None and 0 <= expected < 7_258_118_400_000_000
        assert (None if bad else us) == (expected if in_range else None), text


@given(
    st.lists(
        st.builds(
            "".join,
            st.tuples(
                st.sampled_from(["2018-10-09", "2024-02-29", "2023-02-29", "1970-1-1"]),
                st.sampled_from(["T", "t", " ", ""]),
                st.sampled_from(["04:32:52", "0432", "043252", "24:00:00", "04", ""]),
                st.sampled_from([".5", ",5", ".123456789", ".1234567890", ".", ""]),
                st.sampled_from(["Z", "z", " +02", "+0200", "+02:60", "+99:99", ""]),
            ),
        ),
        max_size=8,
    )
)
def test_an_iso_time_does_not_depend_on_its_neighbours(values: list[str]):
    together = instants(texts(values), "iso")
    for place, value in enumerate(values):
        alone = instants(texts([value]), "iso")
        assert together.bad[place] == alone.bad[0]
        assert together.values[place] == alone.values[0]


FORMATS = [
    "%d/%m/%Y %H:%M:%S",
    "%Y%m%d%H%M%S",
    "%F %T",
    "%F %R",
    "%y-%j %H",
    "%d %b %Y %I:%M:%S %p",
    "%A, %B %d, %Y %H:%M:%S.%f",
    "%Y-%m-%dT%H:%M:%S%z",
    "%a %b %d %H:%M:%S %Y UTC",
    "%d.%m.%Y %% %H Uhr",
]


@given(
    st.lists(MOMENTS.filter(lambda m: m.year < 2069), max_size=5),
    st.sampled_from(FORMATS),
    st.sampled_from([0, 60, -90]),
)
def test_strptime_formats_are_what_python_reads(
    moments: list[datetime], time_format: str, offset: int
):
    zone = timezone(timedelta(minutes=offset))
    written = [moment.replace(tzinfo=zone).strftime(time_format) for moment in moments]
    long = (
        time_format.replace("%F", "%Y-%m-%d")
        .replace("%T", "%H:%M:%S")
        .replace("%R", "%H:%M")
    )
    read = [datetime.strptime(text, long) for text in written]  # noqa: DTZ007 - some formats have a zone, some not
    expected = [
        micros(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
        for moment in read
    ]
    parsed = instants(texts(written), time_format)
    known = [(us if us >= 0 else "bad") for us in expected]
    assert [
        "bad" if bad else us
        for us, bad in zip(parsed.values.tolist(), parsed.bad, strict=True)
    ] == known


@given(st.text("0123456789/: ", max_size=20))
def test_what_python_cannot_read_is_bad(text: str):
    found = one(instants(texts([text]), "%d/%m/%Y %H:%M:%S"))
    expected: object = "bad" if text.strip() else "missing"
    with contextlib.suppress(ValueError):
        moment = micros(
            datetime.strptime(f"{text.strip()}+0000", "%d/%m/%Y %H:%M:%S%z")
        )
        expected = moment if 0 <= moment < 7_258_118_400_000_000 else "bad"
    assert found == expected


def test_a_fraction_and_missing_zeros_are_fine_in_a_format():
    parsed = instants(
        texts(["1/4/2026 3:04:05.25", "01/04/2026 03:04:05"]), "%d/%m/%Y %H:%M:%S"
    )
    assert np.diff(parsed.values).tolist() == [-250_000]


def test_a_directive_given_twice_counts_once():
    parsed = instants(texts(["2026-01-02 02"]), "%Y-%m-%d %d")
    assert parsed.values.tolist() == [micros(datetime(2026, 1, 2, tzinfo=UTC))]
