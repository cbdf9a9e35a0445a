"""Changes folded to visits: against a fold by hand, change by change and day by day."""

from datetime import UTC, datetime, timedelta

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.answers.sql import sql
from st_common.batch.borders import surplus
from st_common.batch.reconcile import Late, differences
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.history.fold import MEMBERS
from st_common.history.visits import fold_visits
from st_common.tables import replace
from tests.kit.effort import tries

CHANGES = load_contract("changes").arrow_schema()
NAMES = ("query", "query_version", "object", "partner")
T0 = datetime(2024, 5, 1, tzinfo=UTC)
DAY, HOUR = timedelta(days=1), timedelta(hours=1)


def change(
    position, hour, sign, cause, *, obj="a", partner=None, value=None, fields=None
):
    at = T0 + hour * HOUR
    return {
        "event_date": at.date(),
        "position": position,
        "seq": 0,
        "event_ts": at,
        "query_version": 1,
        "sign": sign,
        "query": "q",
        "object": obj,
        "partner": partner,
        "cause": cause,
        "value": value,
        "fields": fields,
    }


def table(rows):
    return pa.Table.from_pylist(rows, schema=CHANGES)


def by_hand(rows, since, until, members=()):
    """The visits of an interval: a dictionary of who is in, a loop over changes, a loop over days."""
    present = {
        tuple(m[name] for name in NAMES): [since, "day", [(since, m)]] for m in members
    }
    out = []

    def leave(pair, at, cause):
        came, why, values = present.pop(pair)
        at = max(at, came)
        begins = came.replace(hour=0)
        while begins <= at:
            ends, last = begins + DAY, at.date() == begins.date()
            said = [row for when, row in values if when < ends]
            out.append(
                (
                    *pair,
                    max(came, begins),
                    at if last else ends,
                    why if begins <= came else "day",
                    cause if last else "day",
                    *(last_of(said, name) for name in ("value", "fields")),
                )
            )
            begins = ends
            if cause == "day" and begins == at:
                break

    for row in sorted(rows, key=lambda row: row["position"]):
        pair = tuple(row[name] for name in NAMES)
        if row["sign"] > 0:
            present[pair] = [row["event_ts"], row["cause"], []]
        if row["sign"] >= 0 and pair in present:
            came = present[pair][0]
            present[pair][2].append((max(row["event_ts"], came), row))
        if row["sign"] < 0:
            leave(pair, row["event_ts"], row["cause"])
    for pair in list(present):
        leave(pair, until, "day")
    return sorted(out, key=repr)


def last_of(rows, name):
    return next((row[name] for row in rows[::-1] if row[name] is not None), None)


def shown(visits):
    ends = ("from_ts", "to_ts", "cause_in", "cause_out")
    columns = (*NAMES, *ends, "value", "fields")
    return sorted(
        (tuple(row[name] for name in columns) for row in visits.to_pylist()), key=repr
    )


@st.composite
def histories(draw):
    """Members at T0, and changes of some pairs in order of time, each pair in and out by turns, up to three days on."""
    pairs = [("a", None), ("a", "p"), ("b", None)]
    members = draw(st.sets(st.sampled_from(pairs)))
    inside, rows, hour = set(members), [], 0
    for position in range(draw(st.integers(0, 25))):
        hour += draw(st.sampled_from([0, 1, 5, 13, 24]))
        if hour >= 72:
            break
        pair = draw(st.sampled_from(pairs))
        stays = pair in inside and draw(st.booleans())
        sign = 0 if stays else -1 if pair in inside else 1
        cause = {0: "inside", 1: "enter", -1: "leave"}[sign]
        value = draw(st.sampled_from([None, float(position)]))
        fields = draw(st.sampled_from([None, f'{{"n":{position}}}']))
        given = {"partner": pair[1], "value": value, "fields": fields}
        rows.append(change(position, hour, sign, cause, obj=pair[0], **given))
        inside ^= {pair} if sign else set()
    return members, rows


def as_members(pairs):
    row = {"query": "q", "query_version": 1, "position": 0, "since_ts": T0 - HOUR}
    return [
        row | {"object": o, "partner": p, "value": 0.5, "fields": '{"n":-1}'}
        for o, p in sorted(pairs, key=str)
    ]


@pytest.mark.spec("C6")
@tries(60)
@given(histories(), st.randoms(use_true_random=False))
def test_visits_are_those_of_a_fold_by_hand_in_any_order_of_the_rows(history, random):
    pairs, rows = history
    members = as_members(pairs)
    until = T0 + 3 * DAY
    wanted = by_hand(rows, T0, until, members)
    random.shuffle(rows)
    before = pa.Table.from_pylist(members, schema=MEMBERS)
    visits = fold_visits(table(rows), before, since=T0, until=until)
    assert shown(visits) == wanted
    assert visits.schema == load_contract("visits").arrow_schema()


@pytest.mark.spec("C6")
def test_the_same_changes_in_another_order_give_the_same_table():
    rows = [
        change(n, hour, sign, cause, obj=obj)
        for n, (hour, sign, cause, obj) in enumerate(
            [(1, 1, "enter", "a"), (2, 1, "enter", "b"), (30, -1, "leave", "a")]
        )
    ]
    forth = fold_visits(table(rows), since=T0, until=T0 + 2 * DAY)
    back = fold_visits(table(rows[::-1]), since=T0, until=T0 + 2 * DAY)
    assert len(forth) == 4
    assert forth.equals(back)


def test_who_leaves_before_it_came_has_a_visit_without_length():
    rows = [change(1, 5, 1, "registered"), change(2, 4, -1, "leave")]
    (visit,) = fold_visits(table(rows), since=T0, until=T0 + DAY).to_pylist()
    assert visit["from_ts"] == visit["to_ts"] == T0 + 5 * HOUR


@pytest.mark.spec("C6", "C7")
def test_days_that_have_visits_are_read_from_them_and_others_from_changes(tmp_path):
    home = Home(tmp_path)
    rows = [change(1, 5, 1, "enter"), change(2, 30, -1, "leave")]
    stored = home.table("changes", "taxis")
    replace(stored, table(rows), load_contract("changes"))
    again = fold_visits(table(rows), since=T0, until=T0 + 2 * DAY, run="again")
    second = again.filter(pa.compute.equal(again["event_date"], (T0 + DAY).date()))
    replace(home.table("visits", "taxis"), second, load_contract("visits"))
    asked = "SELECT event_date, run FROM visits ORDER BY event_date"
    assert [tuple(row.values()) for row in sql(home, asked).to_pylist()] == [
        (T0.date(), "told"),
        ((T0 + DAY).date(), "again"),
    ]


@pytest.mark.spec("C6")
@pytest.mark.parametrize(
    ("told", "batch", "differs"),
    [
        (5.0, 5.0, False),
        (5.0, 5.0 + 1e-12, False),
        (5.0, 5.1, True),
        (float("inf"), float("inf"), False),
        (float("inf"), 5.0, True),
        (float("-inf"), float("inf"), True),
        (float("nan"), float("nan"), False),
        (float("nan"), 5.0, True),
        (None, None, False),
        (None, 5.0, True),
    ],
)
def test_values_differ_when_they_are_not_the_same_to_a_billionth(told, batch, differs):
    visits = lambda value: fold_visits(
        table([change(1, 5, 1, "enter", value=value)]), since=T0, until=T0 + DAY
    )
    late = Late(count=0, objects=pa.array([], pa.string()))
    rows = differences(visits(told), visits(batch), late, is_late=False, run="r")
    assert len(rows) == 2 * differs


@pytest.mark.spec("C6")
@pytest.mark.parametrize(
    ("told", "batch", "differs"),
    [
        ('{"n":1.5,"m":null}', '{"n":1.5,"m":null}', False),
        ('{"n":1.5,"m":"a"}', '{"n":1.500000000001,"m":"a"}', False),
        ('{"n \\"q\\"":1.5}', '{"n \\"q\\"":1.500000000001}', False),
        ('{"n":Infinity}', '{"n":Infinity}', False),
        ('{"n":1.5}', '{"n":1.6}', True),
        ('{"n":1.5}', '{"n":Infinity}', True),
        ('{"n":1.5}', '{"n":null}', True),
        ('{"n":1.5}', '{"m":1.5}', True),
        ('{"n":1.5,"m":"a"}', '{"n":1.5,"m":"b"}', True),
        ('{"n":10000000001}', '{"n":10000000002}', True),
        ('{"n":"10000000001"}', '{"n":"10000000002"}', True),
        (None, '{"n":1.5}', True),
        (None, None, False),
    ],
)
def test_fields_differ_when_a_number_with_a_fraction_does_by_a_billionth_or_all_else(
    told, batch, differs
):
    visits = lambda fields: fold_visits(
        table([change(1, 5, 1, "enter", fields=fields)]), since=T0, until=T0 + DAY
    )
    late = Late(count=0, objects=pa.array([], pa.string()))
    rows = differences(visits(told), visits(batch), late, is_late=False, run="r")
    assert set(rows["fields"].to_pylist()) == ({told, batch} if differs else set())


@pytest.mark.spec("C6")
def test_old_borders_go_but_the_first_of_each_month_and_the_one_just_kept():
    days = [T0.date() + n * DAY for n in range(100)]
    gone = surplus(days, kept=days[45])
    assert set(days[-40:]).isdisjoint(gone)
    kept = [day for day in days[:-40] if day not in gone]
    assert kept == [days[0], days[31], days[45]]
    assert surplus(days[:40], kept=days[0]) == []
