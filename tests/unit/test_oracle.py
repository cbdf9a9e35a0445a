"""The brute-force oracle against answers found by hand, with pictures, and against itself."""

from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from st_common.query.plan import Box, LayerJoin, Plan
from tests.kit import place_fig1
from tests.kit.effort import tries
from tests.kit.log_writer import write_log
from tests.kit.oracle import (
    Change,
    Control,
    Feature,
    Fix,
    Row,
    Rules,
    agree,
    answer,
    changes,
    distance_m,
    fold,
    judge,
)
from tests.kit.random_plans import KINDS
from tests.kit.strategies import cases, segmentations
from tests.kit.telling import by_both

S = 1_000_000
SQUARE = Box(minx=0, miny=0, maxx=10, maxy=10)


def fix(
    at: int,
    moving: str,
    time_s: float,
    x: float = 5,
    y: float = 5,
    *,
    gone: bool = False,
) -> Fix:
    return Fix(
        position=at, object=moving, event_us=int(time_s * S), x=x, y=y, gone=gone
    )


def register(
    at: int,
    name: str,
    plan: Plan,
    *,
    op: str = "register",
    version: int = 1,
    **more: int,
) -> Control:
    row = {
        "op": op,
        "query": name,
        "version": version,
        "plan": plan.to_json(),
        "text": "",
        "owner": "",
        **more,
    }
    return Control(position=at, row=row)


def box(inside: Box = SQUARE, *, emit: str = "changes") -> Plan:
    return Plan.from_json(
        {
            "stream": "s",
            "inside": inside and vars_of(inside),
            "join": None,
            "emit": emit,
        }
    )


def vars_of(inside: Box) -> dict[str, float]:
    return {
        "minx": inside.minx,
        "miny": inside.miny,
        "maxx": inside.maxx,
        "maxy": inside.maxy,
    }


def brief(rows: list[Change]) -> list[tuple[int, int, str, int, str, float, float]]:
    """Position, seq, object, sign, cause, event time and fix time in seconds."""
    return [
        (c.position, c.seq, c.object, c.sign, c.cause, c.event_us / S, c.fix_us / S)
        for c in rows
    ]


@pytest.mark.spec("P6")
def test_figure_1_of_place() -> None:
    rows = place_fig1.rows()
    t1 = place_fig1.first_of_t1()
    assert {(q, o) for q, o, _ in answer(rows, upto=t1 - 1)} == place_fig1.ANSWER_T0
    assert {(q, o) for q, o, _ in answer(rows)} == place_fig1.ANSWER_T1
    net: dict[tuple[str, str], int] = {}
    for change in by_both(rows):
        if change.position >= t1:
            net[change.query, change.object] = (
                net.get((change.query, change.object), 0) + change.sign
            )
    assert {
        (query, sign, moving) for (query, moving), sign in net.items() if sign
    } == place_fig1.CHANGES


@pytest.mark.spec("G2")
def test_the_four_cases() -> None:
    """One object crosses the square; numbers are fixes.

      10 +-------+
         |   2 3 |        1 outside: nothing     2 newcomer: +
    1    |       |  4     3 stays: nothing       4 leaves: -
       0 +-------+
    """
    track = [
        fix(1, "a", 1, -3),
        fix(2, "a", 2, 4),
        fix(3, "a", 3, 6),
        fix(4, "a", 4, 12),
    ]
    rows: list[Row] = [register(0, "q", box()), *track]
    assert brief(by_both(rows)) == [
        (2, 0, "a", 1, "enter", 2, 2),
        (4, 0, "a", -1, "leave", 4, 4),
    ]
    rows[0] = register(0, "q", box(emit="every"))
    assert [(c.position, c.sign, c.cause) for c in by_both(rows)] == [
        (2, 1, "enter"),
        (3, 0, "inside"),
        (4, -1, "leave"),
    ]


@pytest.mark.parametrize(
    ("x", "y", "inside"),
    [(0, 0, True), (10, 10, True), (10, 0, True), (10.0000001, 5, False)],
)
def test_a_box_is_closed(x: float, y: float, inside: bool) -> None:
    assert bool(by_both([register(0, "q", box()), fix(1, "a", 1, x, y)])) is inside


def test_late_and_double_without_lateness() -> None:
    rows = [
        register(0, "q", box()),
        fix(1, "a", 5),
        fix(2, "a", 5, 50),
        fix(3, "a", 4, 50),
        fix(4, "b", 1),
    ]
    outcome = judge(rows)
    assert (outcome.late, outcome.double, outcome.used) == (1, 1, 2)
    assert [(c.object, c.sign) for c in outcome.changes] == [
        ("a", 1),
        ("b", 1),
    ]  # b is behind the clock, not late


def test_lateness_holds_and_orders() -> None:
    """L = 10 s. Arrival: a5 a3(out) a3(again) b20 -> the clock is 10: a3 then a5 are used there. a9 is late then."""
    rows = [
        register(0, "q", box()),
        fix(1, "a", 5),
        fix(2, "a", 3, 50),
        fix(3, "a", 3, 5),
        fix(4, "b", 20),
        fix(5, "a", 9),
        fix(6, "a", 10),
        Control(position=7, row={"op": "end"}),
    ]
    outcome = judge(rows, rules=Rules(lateness_us=10 * S))
    assert (outcome.late, outcome.double, outcome.used) == (1, 1, 4)
    assert brief(outcome.changes) == [
        (4, 0, "a", 1, "enter", 5, 5),
        (7, 0, "b", 1, "enter", 20, 20),
    ]


def test_a_held_fix_is_used_only_when_the_clock_is_past_it() -> None:
    rows = [
        register(0, "q", box()),
        fix(1, "a", 5),
        fix(2, "b", 15),
    ]  # the clock is 5, not past 5
    assert by_both(rows, rules=Rules(lateness_us=10 * S)) == []
    rows.append(fix(3, "c", 15.000001))
    assert [c.position for c in by_both(rows, rules=Rules(lateness_us=10 * S))] == [3]


def test_gone_empties_and_is_remembered_for_late() -> None:
    rows = [
        register(0, "q", box()),
        fix(1, "a", 1),
        fix(2, "a", 2, gone=True),
        fix(3, "a", 1.5),
        fix(4, "a", 2),
    ]
    outcome = judge([*rows, register(5, "r", box()), fix(6, "a", 3)])
    assert (outcome.late, outcome.double) == (1, 1)
    assert brief(outcome.changes)[:2] == [
        (1, 0, "a", 1, "enter", 1, 1),
        (2, 0, "a", -1, "gone", 2, 2),
    ]
    assert [(c.query, c.position) for c in outcome.changes[2:]] == [
        ("q", 6),
        ("r", 6),
    ]  # gone: nothing to register


@pytest.mark.spec("X2")
def test_silence_ends_a_stay_between_two_fixes() -> None:
    """T = 10 s.  a: 1 .......... 12 (more than T later: -, +)      b: 1 .......... 11 (exactly T later: stays)"""
    rules = Rules(silence_us=10 * S)
    rows = [register(0, "q", box()), fix(1, "a", 1), fix(2, "a", 12)]
    assert brief(by_both(rows, rules=rules)) == [
        (1, 0, "a", 1, "enter", 1, 1),
        (2, 0, "a", -1, "expired", 11, 1),
        (2, 1, "a", 1, "enter", 12, 12),
    ]
    rows[2] = fix(2, "a", 11)
    assert len(by_both(rows, rules=rules)) == 1
    held = [
        *rows,
        Control(position=3, row={"op": "end"}),
    ]  # 11 is due together with the end of the silence
    assert len(by_both(held, rules=Rules(silence_us=10 * S, lateness_us=S))) == 1


def test_silence_by_other_objects_and_clock_rows() -> None:
    rules = Rules(silence_us=10 * S)
    rows = [
        register(0, "q", box()),
        fix(1, "a", 1),
        fix(2, "b", 2, 50),
        Control(position=3, row={"op": "clock", "ts": 11 * S}),  # not past 11
        fix(4, "b", 11.5, 50),
        fix(5, "a", 11.2),  # comes back behind the clock: a new stay
        fix(6, "c", 30),
    ]
    assert brief(by_both(rows, rules=rules)) == [
        (1, 0, "a", 1, "enter", 1, 1),
        (4, 0, "a", -1, "expired", 11, 1),
        (5, 0, "a", 1, "enter", 11.2, 11.2),
        (6, 0, "a", -1, "expired", 21.2, 11.2),
        (6, 1, "c", 1, "enter", 30, 30),
    ]
    assert answer(rows, rules=rules) == {("q", "c", None): None}


def test_a_fix_whose_object_would_be_silent_already_is_late() -> None:
    rows = [
        register(0, "q", box()),
        fix(1, "b", 100, 50),
        fix(2, "a", 89),
        fix(3, "a", 90),
    ]
    rules = Rules(silence_us=10 * S)
    assert brief(by_both(rows, rules=rules)) == [(3, 0, "a", 1, "enter", 90, 90)]
    assert judge(rows, rules=rules).late == 1
    assert brief(by_both(rows)) == [(2, 0, "a", 1, "enter", 89, 89)]


def test_register_replace_drop_count_from_all_last_fixes() -> None:
    half = Box(minx=0, miny=0, maxx=4, maxy=10)
    rows = [
        fix(0, "b", 1, 2),
        fix(1, "a", 2, 6),
        fix(2, "c", 3, 60),
        register(3, "q", box()),
        register(4, "q", box(half), op="replace", version=2),
        Control(position=5, row={"op": "drop", "query": "q"}),
    ]
    assert brief(by_both(rows)) == [
        (3, 0, "a", 1, "registered", 3, 2),
        (3, 1, "b", 1, "registered", 3, 1),
        (4, 0, "a", -1, "replaced", 3, 2),
        (4, 1, "b", -1, "replaced", 3, 1),
        (4, 2, "b", 1, "registered", 3, 1),
        (5, 0, "b", -1, "dropped", 3, 1),
    ]
    assert [c.query_version for c in by_both(rows)] == [1, 1, 1, 1, 2, 2]


def test_order_within_a_fix_is_minus_plus_same_then_registration_then_partner() -> None:
    right = Box(minx=10, miny=0, maxx=20, maxy=10)
    rows = [
        register(0, "z", box(emit="every")),
        register(1, "y", box(right)),
        register(2, "x", box(Box(minx=0, miny=0, maxx=9, maxy=9))),
        fix(3, "a", 1, 5),
        fix(4, "a", 2, 10),
    ]
    found = [(c.query, c.sign, c.seq) for c in by_both(rows)]
    assert found == [("z", 1, 0), ("x", 1, 1), ("x", -1, 0), ("y", 1, 1), ("z", 0, 2)]


def parks(*offsets: float) -> list[Feature]:
    return [
        Feature(f"w{n}", "park", shapely.box(at, 0, at + 4, 4))
        for n, at in enumerate(offsets)
    ]


@pytest.mark.spec("X4")
def test_a_layer_row_gives_back_and_brings_pairs() -> None:
    """Version 1: w0 [0,4] w1 [3,7].   Version 2: w0 [100,104], w1 [3,7], w2 [3,7].   The object stands at 3.5."""
    layers = {("parks", 1): parks(0, 3), ("parks", 2): parks(100, 3, 3)}
    plan = Plan(
        stream="s",
        join=LayerJoin(layer="parks", predicate="intersects", kinds=("park",)),
    )
    rows = [
        register(0, "q", plan, layer_version=1),
        fix(1, "a", 1, 3.5, 4),
        Control(position=2, row={"op": "layer", "layer": "parks", "version": 2}),
        register(3, "r", plan, layer_version=1),  # the newest layer row decides
    ]
    found = [
        (c.position, c.query, c.partner, c.sign, c.cause, c.layer_version)
        for c in by_both(rows, layers=layers)
    ]
    assert found == [
        (1, "q", "w0", 1, "enter", 1),
        (1, "q", "w1", 1, "enter", 1),
        (2, "q", "w0", -1, "layer", 2),
        (2, "q", "w2", 1, "layer", 2),
        (3, "r", "w1", 1, "registered", 2),
        (3, "r", "w2", 1, "registered", 2),
    ]


def test_within_a_distance_is_closed_and_in_metres() -> None:
    layers = {
        ("stops", 1): [
            Feature("n1", "stop", shapely.Point(0, 0)),
            Feature("n2", "other", shapely.Point(0, 0)),
        ]
    }
    join = LayerJoin(layer="stops", predicate="dwithin", distance_m=5, kinds=("stop",))
    rows = [
        register(0, "q", Plan(stream="s", join=join), layer_version=1),
        fix(1, "a", 1, 3, 4),
        fix(2, "b", 1, 3, 4.1),
    ]
    assert [(c.object, c.partner) for c in by_both(rows, layers=layers)] == [
        ("a", "n1")
    ]
    degree = distance_m(shapely.Point(25, 60), 25, 61, geographic=True)
    assert degree == pytest.approx(111_412, rel=0.005)  # a degree of latitude there
    assert distance_m(shapely.Point(26, 60), 25, 60, geographic=True) == pytest.approx(
        55_800, rel=0.005
    )


@pytest.mark.parametrize("kind", KINDS)
@tries(15)
@given(data=st.data(), upto=st.integers(0, 40))
def test_folded_changes_are_the_answer_after_any_row(
    kind: str, data: st.DataObject, upto: int
) -> None:
    case = data.draw(cases(kind=kind))
    found = changes(case.rows, layers=case.layers, rules=case.rules)
    folded = fold(change for change in found if change.position <= upto)
    assert agree(
        folded, answer(case.rows, upto=upto, layers=case.layers, rules=case.rules)
    )
    assert agree(fold(found), answer(case.rows, layers=case.layers, rules=case.rules))


def test_fold_refuses_what_cannot_be() -> None:
    enter = changes([register(0, "q", box()), fix(1, "a", 1)])
    with pytest.raises(AssertionError):
        fold([*enter, *enter])


@tries(25)
@given(st.data())
def test_a_log_of_rows_keeps_their_order_however_it_is_cut(data: st.DataObject) -> None:
    rows = data.draw(cases(rows=25)).rows
    cuts = data.draw(segmentations(len(rows))).cuts
    with TemporaryDirectory() as folder:
        written = write_log(Path(folder), rows, cuts)
        ends = written.log.end()
    assert [written.order[row.position] for row in written.rows] == list(
        range(len(rows))
    )
    assert sorted(written.order) == [row.position for row in written.rows]
    assert ends >= 1 + len(cuts)
