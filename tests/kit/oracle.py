"""The right answer: dicts and loops over the rows of a log, and `st_common.reference` for what operators mean.

Slow on purpose and sharing nothing with the engines: no step, no kernel, no decoder. What an operator means is what
`fairway verify` asks too; here is when: which fixes are there, and at what time an answer is judged. It is
docs/how-it-works.md word by word; where that leaves a choice, the docstrings of these modules make it:

    oracle_rows         what is read, what is said
    oracle_readings     what is known of objects              oracle_expressions    SQL and what it means
    oracle_members      readings for the reference            oracle_values         aggregates, valid until
    oracle_world        clock, objects, queries               oracle_answers        answers as a whole
    oracle_ticks        what is judged at ticks               oracle_frames         windows along a way
    oracle_streams      what is told again                    oracle_filters        which fixes are filtered
    oracle_fixes        what a fix does                       oracle_controls       what control rows do
    oracle_fences       when visits begin and end             oracle_moving_fences  the same, at ticks
    oracle              the rows, one by one
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from tests.kit.oracle_answers import answer_of
from tests.kit.oracle_controls import control, time_of
from tests.kit.oracle_fences import inside
from tests.kit.oracle_fixes import arrive
from tests.kit.oracle_incidents import open_incidents
from tests.kit.oracle_readings import distance_m
from tests.kit.oracle_rows import (
    Change,
    Control,
    Feature,
    Filter,
    Fix,
    Layers,
    Outcome,
    Row,
    Rules,
)
from tests.kit.oracle_ticks import judge_ticks
from tests.kit.oracle_world import World

__all__ = [
    "Change",
    "Control",
    "Feature",
    "Filter",
    "Fix",
    "Layers",
    "Outcome",
    "Row",
    "Rules",
    "agree",
    "answer",
    "changes",
    "distance_m",
    "fold",
    "judge",
]

Answer = dict[tuple[str, str, str | None], float | None]
"""(query, object, partner) that hold; with the value of an aggregate's group, None for all others."""


def judge(
    rows: Iterable[Row], *, layers: Layers | None = None, rules: Rules | None = None
) -> Outcome:
    """The changes of the rows, which are in log order, and the counts of late, double and used fixes.

    `seq` counts the changes of one position from 0, in the order of event time, kind (expiry, fix, tick), object, sign
    (all -, all +, all 0), registration of the query, partner; ids in the order of their text, no partner first. A
    query that is replaced counts as registered anew.

    Raises:
        KeyError: a query joins a layer and nobody named a version of it, or `layers` does not hold that version; an
            expression is not in `oracle_expressions`.
    """
    world = _after(rows, layers or {}, rules or Rules())
    return Outcome(
        changes=world.changes,
        filtered=world.filtered,
        late=world.late,
        double=world.double,
        used=world.used,
    )


def changes(
    rows: Iterable[Row], *, layers: Layers | None = None, rules: Rules | None = None
) -> list[Change]:
    """The changes alone of `judge`."""
    return judge(rows, layers=layers, rules=rules).changes


def answer(
    rows: Iterable[Row],
    *,
    upto: int | None = None,
    layers: Layers | None = None,
    rules: Rules | None = None,
) -> Answer:
    """What holds after the rows up to position `upto`, both included (None: after all rows).

    Found anew from the last readings of all living objects, not by folding changes, so that the two check each other.
    A query at ticks holds what it held at the last one that was due, or when it was registered; nothing before that
    was judged, which is when the stream has a time.
    """
    world = _after(
        (row for row in rows if upto is None or row.position <= upto),
        layers or {},
        rules or Rules(),
    )
    held: Answer = {}
    for query in world.queries.values():
        if query.plan.fence is not None:
            held |= {(query.name, *pair): None for pair in inside(query)}
            continue
        if query.plan.incident is not None:
            held |= {(query.name, *pair): None for pair in open_incidents(query)}
            continue
        if query.plan.by_ticks and query.judged is None:
            continue
        known, at_us = (
            (world.known, time_of(world)) if query.judged is None else query.judged
        )
        now = answer_of(world, query, known, at_us)
        is_value = query.plan.aggregate is not None
        held |= {
            (query.name, *pair): told.value if is_value else None
            for pair, told in now.items()
        }
    return held


def fold(rows: Iterable[Change]) -> Answer:
    """The answers that changes add up to, by (position, seq), each with the value of its last +.

    Raises:
        AssertionError: a + for a member, a - or 0 for what is none, or a - that takes back another value than was told:
            no order of changes may do that.
    """
    answer: Answer = {}
    rows = sorted(rows, key=lambda row: (row.position, row.seq))
    signed = {(row.query, row.query_version) for row in rows if row.sign}
    for change in rows:
        key = (change.query, change.object, change.partner)
        version = change.query, change.query_version
        if change.sign == 0 and (version not in signed or change.cause in _EVENTS):
            continue
        if (key in answer) != (change.sign <= 0):
            raise AssertionError(f"{change} does not follow from what is before it")
        if change.sign > 0:
            # How long an incident has lasted goes on: what ends it tells another value.
            answer[key] = None if change.cause == "started" else change.value
        elif change.sign < 0 and _differs(answer.pop(key), change.value):
            raise AssertionError(f"{change} takes back what was not told")
    return answer


def _differs(told: float | None, taken_back: float | None) -> bool:
    """Whether a value is taken back that was not told; of a visit the + has none."""
    return None not in (told, taken_back) and told != taken_back


_EVENTS = ("outside", "cross", "dwell")  # of fences: they say nothing of an answer


def agree(folded: Answer, held: Answer) -> bool:
    """Whether a fold says what an `answer` says; values count where they are those of aggregates."""
    return folded.keys() == held.keys() and all(
        folded[key] == value for key, value in held.items() if value is not None
    )


def _after(rows: Iterable[Row], layers: Layers, rules: Rules) -> World:
    world = World(rules=rules, layers=layers)
    for row in rows:
        world.position, world.before = row.position, world.clock
        if isinstance(row, Fix):
            arrive(world, row)
            judge_ticks(world)
        else:
            control(world, row.row)
        world.changes += [
            replace(change, seq=seq)
            for seq, (_, change) in enumerate(sorted(world.here, key=_first))
        ]
        world.here = []
    return world


def _first(pair: tuple[tuple[Any, ...], Change]) -> tuple[Any, ...]:
    return pair[0]
