"""Verify on a home whose table of changes is wrong in one row: each fault is found, and of its query alone."""

from datetime import UTC, datetime

import pandas as pd
import pytest

from st_common.checks import verify as verifying
from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.query.area_store import HomeAreas
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.archived import run_through
from tests.kit.feeding import stream_with
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("X1")

T0 = round(datetime(2026, 5, 1, tzinfo=UTC).timestamp())
QUERIES = """
REGISTER QUERY now AS SELECT * FROM ships INSIDE (0, 0, 10, 10);
REGISTER QUERY near AS SELECT * FROM ships KNN (2, 5, 5);
REGISTER QUERY pairs AS SELECT * FROM ships a JOIN ships b ON ST_DWithin(a, b, 3 m);
REGISTER QUERY gate AS SELECT * FROM ships INSIDE (0, 0, 10, 10) DETECT ENTER, EXIT, DWELL 3 s;
REGISTER QUERY tug AS SELECT * FROM ships INSIDE ('M', 'stays', 4 m) DETECT ENTER, EXIT;
REGISTER QUERY high AS SELECT MAX(x) FROM ships WHERE x > 6 FOR 2 s;
REGISTER QUERY many AS SELECT COUNT(*) FROM ships INSIDE (0, 0, 10, 10);
REGISTER QUERY sums AS SELECT SUM(x), MIN(x) FROM ships INSIDE (0, 0, 10, 10);
REGISTER QUERY way AS SELECT * FROM ships [RANGE BY 60 s RATTR TIME];
REGISTER QUERY above AS SELECT * FROM (SELECT SUM(x) FROM ships GROUP BY object) WHERE value > 2;
"""
EVENTS = ("gate", "tug", "high")
"""Each row of these is looked at, also of visits and incidents that are over."""
FIXES = [
    *(("comes", 0, 30), ("stays", 1, 3), ("comes", 4, 4), ("stays", 9, 5)),
    *(("goes", 10, 7), ("goes", 13, 8), ("comes", 14, 6), ("goes", 15, 9)),
    *(("comes", 16, 30), ("goes", 18, 7), ("stays", 19, 5), ("goes", 20, 2)),
    ("stays", 24, 4),
]


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    """A home, its stream, and the changes that were told; nothing of it is changed."""
    home = Home(tmp_path_factory.mktemp("home"))
    stream = stream_with({"kind": "stdin"}, silence_s=60)
    register(home, {"ships": stream}, parse(QUERIES, areas=HomeAreas(home)), owner="a")
    log = bare_log(home.log("ships"))
    for name, second, x in FIXES:
        log.append(f"id,t,x,y\n{name},{T0 + second},{x},5".encode(), arrival_us=0)
    run_through(home, stream)
    return home, stream, verifying.stream_changes(home, "ships").to_pandas()


def test_every_query_holds_before_anything_is_wrong(lived):
    home, stream, told = lived
    found = verify(home, stream)
    assert [one for one in found if not one.holds or not one.checked] == []
    assert {one.query for one in found} == set(told["query"])


def last_of(told, query, sign, cause):
    """The last change of this kind; one of the answer that no later one takes back."""
    own = told[told["query"] == query].sort_values(["position", "seq"])
    if query not in EVENTS:
        signed = own[own["sign"] != 0].fillna({"partner": ""})
        own = own.loc[signed.groupby(["object", "partner"]).tail(1).index]
    own = own[(own["sign"] == sign) & ((own["cause"] == cause) | (cause is None))]
    return own.index[-1]


def without(told, at):
    return told.drop(at)


def shifted(told, at):
    later = told.loc[at, "event_ts"] + pd.Timedelta(seconds=1)
    return told.assign(event_ts=told["event_ts"].where(told.index != at, later))


def of_another(told, at):
    names = sorted({*told["object"]} - {told.loc[at, "object"], "*"})
    return told.assign(object=told["object"].where(told.index != at, names[0]))


def beside_another(told, at):
    return told.assign(partner=told["partner"].where(told.index != at, "nobody"))


def of_another_value(told, at):
    other = told.loc[at, "value"] + 1
    return told.assign(value=told["value"].where(told.index != at, other))


def at_another_row(told, at):
    moved = told["position"].where(told.index != at, told.loc[at, "position"] + 1)
    return told.assign(position=moved)


def for_another_reason(told, at):
    return told.assign(cause=told["cause"].where(told.index != at, "expired"))


def twice(told, at):
    return pd.concat([told, told.loc[[at]]], ignore_index=True)


def of_other_sums(told, at):
    other = '{"sum(x)": 1.0, "min(x)": 1.0}'
    return told.assign(fields=told["fields"].where(told.index != at, other))


@pytest.mark.parametrize(
    ("query", "sign", "cause", "fault"),
    [
        pytest.param("now", 1, None, without, id="an enter event that is not there"),
        pytest.param("now", -1, None, without, id="a leave that was missed"),
        pytest.param("now", 1, None, of_another, id="a wrong member"),
        pytest.param("near", 1, None, without, id="a neighbour that is not there"),
        pytest.param("near", -1, None, without, id="a neighbour that did not leave"),
        pytest.param("near", 1, None, of_another, id="a wrong neighbour"),
        pytest.param("pairs", 1, None, without, id="a pair that is not there"),
        pytest.param("pairs", 1, None, beside_another, id="a wrong partner"),
        pytest.param("gate", 1, None, without, id="a visit that did not begin"),
        pytest.param("gate", -1, None, without, id="a visit that did not end"),
        pytest.param("gate", 0, "dwell", without, id="a dwell that is not there"),
        pytest.param("gate", 0, "dwell", shifted, id="a dwell at another time"),
        pytest.param("gate", 1, None, shifted, id="an enter event at another time"),
        pytest.param("gate", 1, None, at_another_row, id="told at another row"),
        pytest.param("gate", -1, None, of_another_value, id="a visit of other length"),
        pytest.param("gate", -1, None, for_another_reason, id="another cause"),
        pytest.param("gate", 1, None, twice, id="told twice"),
        pytest.param("tug", 1, None, without, id="a visit at the tug not begun"),
        pytest.param("tug", -1, None, shifted, id="a leave at the tug shifted"),
        pytest.param("high", 1, None, without, id="an incident that is not there"),
        pytest.param("high", -1, None, without, id="an incident that did not end"),
        pytest.param("high", 1, None, shifted, id="an incident at another time"),
        pytest.param("many", 1, None, of_another_value, id="a wrong count"),
        pytest.param("many", 1, None, without, id="a count that is not there"),
        pytest.param("sums", 1, None, of_other_sums, id="wrong values of several"),
        pytest.param("way", 1, None, without, id="a fix that is not in the window"),
        pytest.param("way", 1, None, beside_another, id="a fix of another time"),
        pytest.param("above", 1, None, without, id="a row that is not there"),
        pytest.param("above", 1, None, of_another, id="a wrong row"),
    ],
)
def test_a_fault_is_found_in_its_query_alone(
    lived, monkeypatch, query, sign, cause, fault
):
    home, stream, told = lived
    wrong = fault(told, last_of(told, query, sign, cause))

    class Told:
        def to_pandas(self):
            return wrong.copy()

    monkeypatch.setattr(verifying, "stream_changes", lambda *_: Told())
    assert [one.query for one in verify(home, stream) if not one.holds] == [query]
