"""AT TIME ZONE: what clocks of a zone show at the time of a fix, against `zoneinfo`, all year and in the two nights."""

import datetime as dt
import json
from collections import Counter
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fairway
from st_common.answers.completion import Known, completions
from st_common.checks.archived import fixes_of
from st_common.config.home import Home
from st_common.errors import FairwayError
from st_common.geometry.space import PLANE
from st_common.operators.expressions.evaluation import evaluated
from st_common.query import zone_rules
from st_common.query.builder import query
from st_common.query.text import TextError, parse, to_text
from tests.kit.effort import tries

pytestmark = pytest.mark.spec("X2")
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "America/St_Johns",
    "Australia/Lord_Howe",
    "Asia/Kathmandu",
    "Africa/Cairo",
    "Pacific/Apia",
    "UTC",
)
LOCAL = "event_ts AT TIME ZONE 'UTC' AT TIME ZONE '{}'"
FIRST, LAST = (
    dt.datetime(year, 1, 1, tzinfo=dt.UTC).replace(tzinfo=None) for year in (2000, 2026)
)
BACK = dt.datetime(2025, 10, 26, 1, tzinfo=dt.UTC)
"""When clocks in Berlin go back from 3 to 2."""
AHEAD = dt.datetime(2025, 3, 30, 1, tzinfo=dt.UTC)
"""When they go ahead from 2 to 3."""
NIGHTS = st.sampled_from((BACK, AHEAD)).flatmap(
    lambda change: st.integers(-7_200, 7_200).map(
        lambda s: change + dt.timedelta(seconds=s)
    )
)
ALL_YEAR = st.datetimes(FIRST, LAST, timezones=st.just(dt.UTC))


def shown(at, zone):
    """What a clock shows, without a zone."""
    return at.astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def plan_of(text):
    (statement,) = parse(f"REGISTER QUERY q AS {text}")
    return statement.plan


def refusal_of(text):
    with pytest.raises(TextError) as refused:
        parse(f"REGISTER QUERY q AS {text}")
    return str(refused.value)


@tries(60)
@given(st.lists(st.one_of(NIGHTS, ALL_YEAR), min_size=1), st.sampled_from(ZONES))
def test_clocks_show_what_zoneinfo_says_to_the_engine_and_to_verify(moments, zone):
    expressions = [
        LOCAL.format(zone),
        f"CAST({LOCAL.format(zone)} AS TIME)",
        f"EXTRACT(HOUR FROM {LOCAL.format(zone)})",
    ]
    expected = [shown(at, zone) for at in moments]
    naive = [at.replace(tzinfo=None) for at in moments]
    table = pa.table({"event_ts": pa.array(naive, pa.timestamp("us"))})
    local, of_day, hours = (
        column.to_pylist() for column in evaluated(expressions, table)
    )
    assert local == expected
    assert of_day == [one.time() for one in expected]
    assert hours == [one.hour for one in expected]
    frame = pd.DataFrame(
        {
            "object": "a",
            "x": 0.0,
            "y": 0.0,
            "before": -1,
            "ts": [
                int(
                    (at - dt.datetime(1970, 1, 1, tzinfo=dt.UTC))
                    / dt.timedelta(microseconds=1)
                )
                for at in moments
            ],
        }
    )
    of, rows = fixes_of(frame, (), PLANE).of, np.arange(len(frame))
    at, _, hour = (of.values(text, rows).tolist() for text in expressions)
    assert [one.to_pydatetime() for one in at] == expected
    assert hour == [one.hour for one in expected]


def fixes_around(*changes):
    """A fix every 10 minutes from 6 hours before a change on for 12 hours, of an object for each change."""
    return pa.table(
        {
            "id": [f"bus{n}" for n in range(len(changes)) for _ in range(72)],
            "time": pa.array(
                [
                    change + dt.timedelta(minutes=10 * step - 360)
                    for change in changes
                    for step in range(72)
                ],
                pa.timestamp("us", "UTC"),
            ),
            "lon": [
                13.4 + n + i / 1000 for n in range(len(changes)) for i in range(72)
            ],
            "lat": [52.5] * (72 * len(changes)),
        }
    )


def answer_to(text, fixes):
    return pa.table(fairway.evaluate(fixes, text).changes).to_pylist()


SUMMER = dt.datetime(2025, 7, 1, 22, tzinfo=dt.UTC)
WINTER = dt.datetime(2025, 1, 15, 22, tzinfo=dt.UTC)


@pytest.mark.parametrize(
    "condition",
    [
        "EXTRACT(hour FROM event_ts AT TIME ZONE 'Europe/Berlin') >= 22",
        "HOUR(event_ts AT TIME ZONE 'Europe/Berlin') >= 22",
        "CAST(event_ts AT TIME ZONE 'Europe/Berlin' AS TIME) >= '22:00'",
        "(event_ts AT TIME ZONE 'Europe/Berlin')::TIME >= '22:00:00'",
        "event_ts AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin' >= DATE_TRUNC('day', event_ts "
        "AT TIME ZONE 'Europe/Berlin') AND CAST(event_ts AT TIME ZONE 'Europe/Berlin' AS TIME) >= '22:00'",
    ],
    ids=["extract", "hour", "time", "typed", "both"],
)
def test_after_22_is_after_22_on_the_clock_in_summer_and_in_winter(condition):
    changes = answer_to(
        f"SELECT * FROM data WHERE {condition}", fixes_around(SUMMER, WINTER)
    )
    seen = [
        (one["object"], one["sign"], one["event_ts"].astimezone(dt.UTC).hour)
        for one in changes
    ]
    assert sorted(seen) == [
        ("bus0", -1, 22),
        ("bus0", 1, 20),
        ("bus1", -1, 23),
        ("bus1", 1, 21),
    ]


def test_of_the_hour_that_comes_twice_both_are_in_and_of_the_one_that_is_missing_none():
    text = (
        "SELECT event_ts AT TIME ZONE 'Europe/Berlin' AS here FROM data "
        "WHERE HOUR(event_ts AT TIME ZONE 'Europe/Berlin') = 2 EMIT EVERY"
    )
    changes = answer_to(text, fixes_around(BACK, AHEAD))
    found = Counter(
        json.loads(one["fields"])["here"] for one in changes if one["sign"] >= 0
    )
    assert found == {f"2025-10-26 02:{minute:02}:00": 2 for minute in range(0, 60, 10)}


def test_groups_are_of_the_days_of_a_zone():
    text = (
        "SELECT CAST(event_ts AT TIME ZONE 'Asia/Tokyo' AS DATE) AS day, COUNT(*) AS n FROM data [RANGE 30 days] "
        "GROUP BY CAST(event_ts AT TIME ZONE 'Asia/Tokyo' AS DATE)"
    )
    fixes = fixes_around(dt.datetime(2025, 5, 1, 15, tzinfo=dt.UTC))
    last = {
        one["object"]: json.loads(one["fields"])["n"]
        for one in answer_to(text, fixes)
        if one["sign"] > 0
    }
    expected = Counter(
        str(shown(at, "Asia/Tokyo").date()) for at in fixes["time"].to_pylist()
    )
    assert last == expected


def test_plans_say_that_the_time_is_in_utc_and_both_ways_are_the_same():
    short = plan_of(
        "SELECT * FROM s WHERE HOUR(event_ts AT TIME ZONE 'Europe/Berlin') > 5"
    )
    long = plan_of(
        "SELECT * FROM s WHERE hour(event_ts at time zone 'UTC' at\ntime  zone 'Europe/Berlin') > 5"
    )
    assert short == long
    assert (
        short.where
        == "HOUR(event_ts AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin') > 5"
    )
    assert parse(to_text(short, "q"))[0].plan == short
    built = query("s").where("HOUR(event_ts AT TIME ZONE 'Europe/Berlin') > 5").plan
    assert built == short


def test_statements_that_differ_in_the_zone_alone_are_each_checked():
    texts = [
        f"REGISTER QUERY q{n} AS SELECT * FROM s WHERE HOUR(event_ts AT TIME ZONE '{zone}') > {n}"
        for n, zone in enumerate(
            ("Europe/Berlin", "Asia/Tokyo", "Europe/Berlin", "UTC")
        )
    ]
    plans = [parse(text)[0].plan.where for text in texts]
    assert plans == [
        f"HOUR(event_ts AT TIME ZONE 'UTC' AT TIME ZONE '{zone}') > {n}"
        for n, zone in enumerate(
            ("Europe/Berlin", "Asia/Tokyo", "Europe/Berlin", "UTC")
        )
    ]
    assert "unknown time zone 'Europe/Brlin'" in refusal_of(
        "SELECT * FROM s WHERE HOUR(event_ts AT TIME ZONE 'Europe/Brlin') > 1"
    )


@pytest.mark.parametrize(
    ("expression", "message", "hint"),
    [
        (
            "event_ts AT TIME ZONE 'Europe/Brlin'",
            "unknown time zone 'Europe/Brlin'",
            "did you mean 'Europe/Berlin'?",
        ),
        (
            "event_ts AT TIME ZONE 'europe/berlin'",
            "unknown time zone",
            "did you mean 'Europe/Berlin'?",
        ),
        (
            "event_ts AT TIME ZONE 'Berlin'",
            "unknown time zone",
            "did you mean 'Europe/Berlin'?",
        ),
        ("event_ts AT TIME ZONE ''", "unknown time zone ''", "such as 'Europe/Berlin'"),
        (
            "event_ts AT TIME ZONE 'localtime'",
            "unknown time zone",
            "such as 'Europe/Berlin'",
        ),
        ("event_ts AT TIME ZONE '+01:00'", "is a difference to UTC", "'Etc/GMT-1'"),
        (
            "event_ts AT TIME ZONE zone",
            "expected the name of a time zone in single quotes",
            "",
        ),
        (
            'event_ts AT TIME ZONE "Europe/Berlin"',
            "expected the name of a time zone in single quotes",
            "",
        ),
        (
            "(event_ts AT TIME ZONE 'Asia/Tokyo') AT TIME ZONE 'UTC'",
            "show already",
            "once",
        ),
        (
            "DATE_TRUNC('day', event_ts AT TIME ZONE 'UTC') AT TIME ZONE 'Asia/Tokyo'",
            "show already",
            "once",
        ),
        ("event_ts AT TIME 'UTC'", "expected", "did you mean AT TIME ZONE?"),
        ("event_ts + INTERVAL '1' HOUR", "expected", "there are no intervals"),
    ],
    ids=str,
)
def test_what_is_no_zone_or_no_time_in_utc_is_refused_with_the_way_out(
    expression, message, hint
):
    said = refusal_of(f"SELECT * FROM s WHERE HOUR({expression}) > 1")
    assert message in said
    assert hint in said


@pytest.mark.parametrize(
    ("condition", "message", "hint"),
    [
        (
            "event_ts AT TIME ZONE 'Asia/Tokyo' > '2025-01-01T00:00Z'",
            "says its zone",
            "compare it with event_ts",
        ),
        (
            "event_ts AT TIME ZONE 'Asia/Tokyo' > '2025-01-01 00:00:00+09'",
            "says its zone",
            "compare it",
        ),
        (
            "event_ts AT TIME ZONE 'Asia/Tokyo' > event_ts",
            "event_ts is in UTC",
            "on both sides, or on none",
        ),
        (
            "event_ts AT TIME ZONE 'Asia/Tokyo' > '22:00'",
            "'22:00' is a time of day",
            "AS TIME) >= '22:00'",
        ),
        ("event_ts > '22:00'", "'22:00' is a time of day", "AS TIME) >= '22:00'"),
        (
            "event_ts BETWEEN '22:00' AND '2025-01-01'",
            "'22:00' is a time of day",
            "AS TIME)",
        ),
        (
            "HOUR(object AT TIME ZONE 'Asia/Tokyo') = 2",
            "not a value of type VARCHAR",
            "AS TIMESTAMP)",
        ),
        (
            "HOUR(x AT TIME ZONE 'Asia/Tokyo') = 2",
            "not a value of type DOUBLE",
            "AS TIMESTAMP)",
        ),
        (
            "CAST(event_ts AS DATE) AT TIME ZONE 'UTC' > '2025-01-01'",
            "not a value of type DATE",
            "AS TIMESTAMP)",
        ),
        (
            "event_ts + 1 h > '2025-01-01'",
            "nothing can be added to a time",
            "EPOCH(event_ts)",
        ),
        (
            "event_ts AT TIME ZONE 'UTC' - 5 > '2025-01-01'",
            "nothing can be added to a time",
            "EPOCH",
        ),
    ],
    ids=str,
)
def test_times_of_different_clocks_are_not_compared_in_silence(
    condition, message, hint
):
    with pytest.raises(FairwayError) as refused:
        answer_to(f"SELECT * FROM data WHERE {condition}", fixes_around(SUMMER))
    assert message in str(refused.value)
    assert hint in str(refused.value)


def test_a_time_in_utc_is_still_compared_with_a_text_that_says_its_zone():
    text = "SELECT * FROM data WHERE event_ts >= '2025-07-02T00:00+02:00' AND event_ts < '2025-07-02T00:10+02:00'"
    changes = answer_to(text, fixes_around(SUMMER))
    assert [
        (one["sign"], one["event_ts"].astimezone(dt.UTC).minute) for one in changes
    ] == [(1, 0), (-1, 10)]


def test_the_words_are_offered_behind_a_time(tmp_path):
    text = "SELECT * FROM s WHERE event_ts A"
    _, options = completions(Known(Home(tmp_path), {}), text, len(text))
    assert "AT TIME ZONE" in [one.text for one in options]


def test_a_zone_whose_rules_this_machine_and_the_database_tell_apart_is_told(
    monkeypatch,
):
    """Clocks of the machine are taken for those of another zone, as where a country changed its rules."""
    monkeypatch.setattr(zone_rules, "zone_of", lambda _: ZoneInfo("Europe/London"))
    zone_rules._differ_from.cache_clear()
    try:
        said = zone_rules.other_rules("Europe/Berlin")
    finally:
        monkeypatch.undo()
        zone_rules._differ_from.cache_clear()
    assert said is not None
    assert "different rules for 'Europe/Berlin' from 2000-01-01 on" in said[0]
    assert zone_rules.other_rules("Europe/Berlin") is None
