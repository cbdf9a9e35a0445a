"""What is told again without a change: every further fix (EMIT EVERY), or all that stays (RSTREAM, SPEC W6)."""

from collections.abc import Mapping

from tests.kit.oracle_rows import Pair, Rules
from tests.kit.oracle_values import Counted, groups_of
from tests.kit.oracle_world import Below, Event, Query


def told_again(
    query: Query,
    stayed: set[Pair],
    *,
    events: list[Event],
    moved: set[str],
    was: Mapping[Below, Counted],
    tick: int,
    rules: Rules,
) -> set[Pair]:
    """The pairs that stayed in an answer and are told again at a tick.

    `moved` are the objects whose windows moved, where the query has a frame; `was` is what was below its answer before.
    """
    plan = query.plan
    if (
        plan.outer is not None
    ):  # its answer is another one, which is all that happens to rows
        return stayed if plan.emit == "rstream" else set()
    if tick <= query.first_tick and plan.frame is None:
        events = []  # some of them came before the query
    if plan.emit == "every" or plan.valid_until:
        return _with_fixes(query, stayed, events)
    if plan.emit != "rstream":
        return set()
    changed = was.keys() ^ query.below.keys()
    if plan.frame is not None:
        names = moved | {name for name, *_ in changed}
        return _of_frame(query, stayed, names, was, rules)
    if plan.window is not None and plan.aggregate is not None:
        return (
            stayed
            if changed or any(entry.tick == tick for entry in query.entries)
            else set()
        )
    names = {event.name for event in events}
    # One fix of several in a window that is too old is nothing that happened to a member.
    came_or_left = {row[:2] for row in was} != {row[:2] for row in query.below}
    return (
        stayed
        if came_or_left or any(name in names for name, *_ in query.below)
        else set()
    )


def _with_fixes(query: Query, stayed: set[Pair], events: list[Event]) -> set[Pair]:
    """Those whose object has a fix; also whose other object or focal one has one, where these are told about."""
    plan = query.plan
    names = {event.name for event in events if event.reading is not None}
    shows_near = any('"near.' in text for _, text in plan.columns)
    goes_with = plan.valid_until or shows_near
    anew = goes_with and any(event.name in plan.focals for event in events)
    of_other = any('"other.' in text for _, text in plan.columns)
    return {
        pair
        for pair in stayed
        if anew or pair[0] in names or (of_other and pair[1] in names)
    }


def _of_frame(
    query: Query,
    stayed: set[Pair],
    names: set[str],
    was: Mapping[Below, Counted],
    rules: Rules,
) -> set[Pair]:
    """The rows of those whose result is told anew, or the groups that these rows are in, or were."""
    if query.plan.aggregate is None:
        return {pair for pair in stayed if pair[0] in names}
    rows = {**was, **query.below}
    own = [counted for row, counted in rows.items() if row[0] in names]
    groups = set(groups_of(query.plan.aggregate, own, rules))
    return {pair for pair in stayed if pair[0] in groups}
