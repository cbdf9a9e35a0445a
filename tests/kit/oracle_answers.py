"""The answer of a query as a whole, and the changes that lead to it from the answer before."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from st_common.query.frame import Frame
from st_common.query.neighbours import Nearest, Place
from st_common.query.plan import Plan
from st_common.reference.columns import objects
from st_common.reference.shapes import from_shapes
from st_common.reference.window import counting as counting_at
from tests.kit.oracle_expressions import Near, fields_of
from tests.kit.oracle_frames import framed, of_ways, time_of
from tests.kit.oracle_lasting import lasting_rows, lasting_us, remember_rows
from tests.kit.oracle_members import members, metric_of
from tests.kit.oracle_outer import Told, answer_above, chosen_above, told_of
from tests.kit.oracle_readings import Known, Reading
from tests.kit.oracle_rows import Pair, Rules
from tests.kit.oracle_settling import remember_settling, settling_us
from tests.kit.oracle_values import Counted, groups, stays_until
from tests.kit.oracle_world import FIX, Below, Query, World


def answer_of(world: World, query: Query, known: Known, at_us: int) -> dict[Pair, Told]:
    """The answer for what is known, with what a + would say of each member."""
    plan = query.plan
    if plan.outer is not None:
        return answer_above(plan, _counting_rows(world, query, known, at_us))
    if plan.frame is not None:
        return _framed(world, query, plan.frame, known)
    if plan.aggregate is not None:
        rows = counted(world, query, known, at_us)
        return told_of(plan.aggregate, groups(plan.aggregate, rows, world.rules))
    if plan.window is not None:
        pairs = {
            (reading.fix.object, partner)
            for reading, partner in counted(world, query, known, at_us)
        }
        return {
            pair: Told(fields=fields_of(plan, known.last[pair[0]])) for pair in pairs
        }
    return _told_of_members(world, query, known, at_us)


def _told_of_members(
    world: World, query: Query, known: Known, at_us: int
) -> dict[Pair, Told]:
    """What a + would say of each member now."""
    plan = query.plan
    pairs_now = members(plan, known, world.features(query), world.rules)
    until = plan.inside if plan.valid_until else None
    near = _near(plan, pairs_now, known, world.rules)
    return {
        pair: Told(
            value=None
            if until is None
            else stays_until(until, reading, known, at_us, world.rules),
            fields=fields_of(
                plan,
                reading,
                _other_of(plan, pair, known),
                near.get(pair),
                _feature_of(world, query, pair, reading),
            ),
        )
        for pair, reading in pairs_now.items()
    }


def _feature_of(
    world: World, query: Query, pair: Pair, reading: Reading
) -> dict[str, Any] | None:
    """The columns of the feature of a pair, by the names that plans have for them, and how far it is; else None."""
    if not query.plan.gives_pairs or query.plan.pairs is not None:
        return None
    if pair[1] is None:
        names = ("other.size", "other.kind", "pair.distance_m", "pair.border_m")
        return dict.fromkeys(names)
    (feature,) = (one for one in world.features(query) if one.fid == pair[1])
    x, y = (np.array([axis]) for axis in reading.at)
    shape = feature.geometry
    shapes = objects([shape, shape.boundary if shape.area > 0 else shape])
    far, border = from_shapes(
        shapes, x.repeat(2), y.repeat(2), metric_of(world.rules)
    ).tolist()
    named = {f"other.{name}": feature.tags.get(name) for name in ("size", "line")}
    measured = {"pair.distance_m": far, "pair.border_m": border}
    return {**named, "other.kind": feature.kind, **measured}


def _near(
    plan: Plan, members_now: Mapping[Pair, Reading], known: Known, rules: Rules
) -> dict[Pair, Near]:
    """Which of the nearest each member is, and how far away; of equally far ones the first by id."""
    if not isinstance(plan.neighbours, Nearest) or not members_now:
        return {}
    metric, place = metric_of(rules), _place_now(plan.neighbours.place, known)
    fixes = [reading.fix for reading in members_now.values()]
    x, y = np.array([fix.x for fix in fixes]), np.array([fix.y for fix in fixes])
    ranks, far = metric.rank(x, y, *place), metric.distance(x, y, *place)
    ordered = sorted(zip(ranks.tolist(), members_now, far.tolist(), strict=True))
    return {pair: (nth, far_m) for nth, (_, pair, far_m) in enumerate(ordered, 1)}


def _place_now(place: Place, known: Known) -> tuple[float, float]:
    """Where a place is that may go with an object."""
    if place.focal is None:
        return place.x, place.y
    fix = known.last[place.focal].fix
    return fix.x, fix.y


def rows_below(
    world: World, query: Query, known: Known, at_us: int
) -> dict[Pair, Told]:
    """The rows that the outer query of a plan asks about."""
    inner = replace(query, plan=replace(query.plan, outer=None, emit="changes"))
    return answer_of(world, inner, known, at_us)


def rows_chosen(
    world: World, query: Query, known: Known, at_us: int
) -> dict[Pair, Told]:
    """The rows that the outer query of a plan chooses now."""
    return chosen_above(query.plan, rows_below(world, query, known, at_us))


def _counting_rows(
    world: World, query: Query, known: Known, at_us: int
) -> dict[Pair, Told]:
    """The rows that are chosen now, and those that count on."""
    chosen = rows_chosen(world, query, known, at_us)
    if settling_us(query.plan) is not None:
        counting = {pair for pair, row in query.settling.items() if row.counts}
        return {
            pair: told for pair, told in chosen.items() if pair in counting | query.ripe
        }
    return {**lasting_rows(query.lately, query.aged), **chosen}


def tells_values(plan: Plan) -> bool:
    """Whether what a query tells has values, so that one that changed is told: aggregates, and queries about rows."""
    return plan.aggregate is not None or plan.outer is not None


def shown_last(
    query: Query, pair: Pair, known: Known, was: Mapping[Below, Counted]
) -> str | None:
    """The columns beside a - : of a frame's row its own, else of the object's last reading; of groups what was told."""
    if tells_values(query.plan):
        return query.shown[pair]
    reading = known.last[pair[0]] if query.plan.frame is None else was[*pair, 0][0]
    return fields_of(query.plan, reading, _other_of(query.plan, pair, known))


def _other_of(plan: Plan, pair: Pair, known: Known) -> Reading | None:
    """The last reading of the other object of a pair of two objects."""
    return known.last[pair[1]] if plan.pairs is not None and pair[1] else None


def _framed(world: World, query: Query, frame: Frame, known: Known) -> dict[Pair, Told]:
    counts, aggregate = counting(world, query, known), query.plan.aggregate
    rows = framed(query.frames, counts)
    if aggregate is None:
        return {
            row.pair: Told(fields=fields_of(query.plan, row.reading)) for row in rows
        }
    said = of_ways(query.frames, frame, counts)
    if aggregate.function == "avgspd":
        return told_of(aggregate, said["avgspd"])
    counted_rows: list[Counted] = [(row.reading, None) for row in rows]
    values = groups(aggregate, counted_rows, world.rules, said)
    return told_of(aggregate, values)


def counting(world: World, query: Query, known: Known) -> set[str] | None:
    """The objects whose rows count, None: all. The condition is about the rows, all other clauses about the objects."""
    plan = query.plan
    if not any(
        (plan.inside, plan.neighbours, plan.join, plan.compare, plan.transforms)
    ):
        return None
    pairs = members(
        replace(plan, where=None, frame=None), known, world.features(query), world.rules
    )
    return {name for name, _ in pairs}


def below(world: World, query: Query, known: Known, at_us: int) -> dict[Below, Counted]:
    """What is below an aggregate, or would be: rows of a frame, entries of a window, or members."""
    plan = query.plan
    if plan.frame is not None:
        return {
            (*row.pair, 0): (row.reading, None)
            for row in framed(query.frames, counting(world, query, known))
        }
    rows = counted(world, query, known, at_us)
    return {
        (r.fix.object, p, 0 if plan.window is None else r.fix.event_us): (r, p)
        for r, p in rows
    }


def fix_us_of(
    query: Query, pair: Pair, known: Known, at_us: int, *, leaves: bool = True
) -> int:
    """The time of the fix that a change is about: of a row its own, of a value the tick, else the object's last."""
    outer = query.plan.outer
    if outer and outer.aggregate:
        return at_us
    left_us = query.lately[pair].fix_us if leaves and pair in query.lately else None
    if left_us is not None:
        return left_us
    if query.plan.aggregate is not None:
        return at_us
    return (
        time_of(pair[1])
        if query.plan.frame is not None and pair[1]
        else known.last_us[pair[0]]
    )


def counted(world: World, query: Query, known: Known, at_us: int) -> list[Counted]:
    """What an aggregate counts: the members of the answer below it, or the entries of the window."""
    window = query.plan.window
    if window is None:
        pairs = members(query.plan, known, world.features(query), world.rules)
        return [(reading, partner) for (_, partner), reading in pairs.items()]
    entries = [entry for entry in query.entries if entry.tick <= at_us]
    fixes = [entry.reading.fix for entry in entries]
    counts = counting_at(
        window,
        at_us,
        event_us=np.array([fix.event_us for fix in fixes], np.int64),
        effect=np.array([entry.position for entry in entries], np.int64),
        ids=objects([fix.object for fix in fixes]),
        partners=objects([entry.partner for entry in entries]),
    )
    return [
        (entry.reading, entry.partner)
        for entry, is_counted in zip(entries, counts, strict=True)
        if is_counted
    ]


def judge_anew(
    world: World,
    query: Query,
    known: Known,
    at_us: int,
    *,
    plus: str,
    minus: Callable[[Pair], str],
    changed: str,
    rank: int = FIX,
) -> set[Pair]:
    """Brings a query's answer to what holds now, by - and +; gives back the pairs that stayed as they were.

    The value of an aggregate that changed is taken back and told anew, both with the cause `changed`. Other values do
    not change by themselves.
    """
    now, was, before = answer_of(world, query, known, at_us), query.answer, query.below
    query.judged, query.below = (known.copy(), at_us), below(world, query, known, at_us)
    stayed = set()
    for pair in was.keys() | now.keys():
        fix_us = fix_us_of(query, pair, known, at_us, leaves=pair not in now)
        if pair in query.ripe and pair in now and not _is_group(query):
            row = query.settling[pair]
            fix_us = row.fix_us if row.told == now[pair] else fix_us
        both = pair in was and pair in now
        if both and _stays(query, pair, now[pair]):
            stayed.add(pair)
            continue
        emit = partial(world.emit, query, pair, event_us=at_us, rank=rank)
        if pair in was:
            cause = changed if both else minus(pair)
            fields = shown_last(query, pair, known, before)
            emit(-1, cause, fix_us=fix_us, value=was[pair], fields=fields)
        if pair in now:
            cause, told = changed if both else plus, now[pair]
            emit(1, cause, fix_us=fix_us, value=told.value, fields=told.fields)
    has_values = tells_values(query.plan)
    query.answer = {
        pair: told.value if has_values else None for pair, told in now.items()
    }
    query.shown = {pair: told.fields for pair, told in now.items()}
    if lasting_us(query.plan) is not None:
        _remember(world, query, known, at_us)
    if settling_us(query.plan) is not None:
        _settle(world, query, known, at_us)
    return stayed


def _settle(world: World, query: Query, known: Known, at_us: int) -> None:
    """Takes on the rows that FOR above them has seen; those that are not chosen begin anew."""
    chosen = rows_chosen(world, query, known, at_us)
    plain = replace(query, plan=replace(query.plan, outer=None, emit="changes"))
    fixes_us = {pair: fix_us_of(plain, pair, known, at_us) for pair in chosen}
    counting = {pair for pair, row in query.settling.items() if row.counts}
    counting |= query.ripe
    remember_settling(query.settling, chosen, fixes_us, at_us, counting)
    query.ripe = set()


def _is_group(query: Query) -> bool:
    outer = query.plan.outer
    return outer is not None and outer.aggregate is not None


def _remember(world: World, query: Query, known: Known, at_us: int) -> None:
    """Takes on the rows that a window above them has seen, and forgets those that are too old."""
    chosen = rows_chosen(world, query, known, at_us)
    fixes_us = {pair: fix_us_of(query, pair, known, at_us) for pair in query.lately}
    remember_rows(query.lately, chosen, fixes_us, at_us, query.aged)
    query.aged = set()


def _stays(query: Query, pair: Pair, told: Told) -> bool:
    """Whether a pair that is in the answer before and after says the same."""
    if not tells_values(query.plan):
        return True
    same_fields = query.shown[pair] == told.fields
    return query.answer[pair] == told.value and same_fields
