"""What control rows do: time moves on, queries come, go and fail, layers have new versions."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from st_common.query.plan import Plan
from st_common.reference.fence import Machine
from tests.kit.oracle_answers import fix_us_of, judge_anew, shown_last
from tests.kit.oracle_fences import (
    begin_query,
    end_query,
    goes_on,
    reload,
    take_over,
)
from tests.kit.oracle_fixes import see, settle
from tests.kit.oracle_incidents import end_all, reload_incidents
from tests.kit.oracle_rows import NEVER, Pair
from tests.kit.oracle_ticks import judge_ticks
from tests.kit.oracle_world import Query, World


def control(world: World, row: Mapping[str, Any]) -> None:
    """Carries out a control row.

    Raises:
        ValueError: there is no such operation.
    """
    match row["op"]:
        case "clock":
            see(world, row["ts"])
            settle(world, [])
            judge_ticks(world)
        case "end":
            if world.rules.lateness_us > 0 and world.seen > NEVER:
                world.clock = max(world.clock, world.seen + 1)
            settle(world, [])
            judge_ticks(world, at_end=True)
        case "register" | "replace":
            _register(world, row)
        case "follow":
            _follow(world, row)
        case "drop" | "fail":
            _end(world, row)
        case "layer":
            _reload(world, row["layer"], row["version"])
        case op:
            raise ValueError(f"{op!r} is no control row")


def time_of(world: World) -> int:
    """The clock; before anything was seen the beginning of time."""
    return world.clock if world.clock > NEVER else 0


def _register(world: World, row: Mapping[str, Any]) -> None:
    """A replaced query gives - for its members in its old version, then + for those of the new one."""
    name, plan, version = row["query"], Plan.from_json(row["plan"]), None
    if plan.join is not None:
        version = (
            world.layer_rows[plan.join.layer]
            if plan.join.layer in world.layer_rows
            else row["layer_version"]
        )
    before, machines = world.queries.pop(name, None), dict[Pair, Machine]()
    if before is not None:
        if goes_on(before, plan, version):
            machines = {pair: replace(one) for pair, one in before.machines.items()}
        _empty(world, before, "replaced")
    world.registered += 1
    query = Query(
        number=world.registered,
        name=name,
        version=row["version"],
        plan=plan,
        layer_version=version,
        first_tick=world.tick_of(world.clock),
    )
    world.queries[name] = query
    if before is not None and goes_on(before, plan, version):
        take_over(world, query, machines, time_of(world))
    else:
        _judge_now(world, query, "registered")


def _judge_now(world: World, query: Query, cause: str) -> None:
    """A query is judged at once on the last readings; one that is judged fix by fix is that at every row.

    Before anything was seen nothing can be said with a time: also a count of nothing waits for the first tick.
    """
    if query.plan.fence is not None:
        begin_query(world, query, time_of(world))
        return
    if query.plan.incident is not None:
        return  # no fix from before the query counts
    if query.plan.by_ticks and world.clock == NEVER:
        return
    judge_anew(
        world,
        query,
        world.known,
        time_of(world),
        plus=cause,
        minus=lambda _: cause,
        changed=cause,
    )
    if not query.plan.by_ticks:
        query.judged = None


def _end(world: World, row: Mapping[str, Any]) -> None:
    """A query is dropped, or this version of it fails; one that failed may be dropped afterwards."""
    query = world.queries.get(row["query"])
    if query is not None and row.get("version", query.version) == query.version:
        _empty(
            world,
            world.queries.pop(query.name),
            "dropped" if row["op"] == "drop" else "failed",
        )


def _empty(world: World, query: Query, cause: str) -> None:
    now = time_of(world)
    if query.plan.fence is not None:
        end_query(world, query, cause, now)
    if query.plan.incident is not None:
        end_all(world, query, cause, now)
    for pair, value in query.answer.items():
        fix_us = fix_us_of(query, pair, world.known, now)
        fields = shown_last(query, pair, world.known, query.below)
        world.emit(
            query,
            pair,
            -1,
            cause,
            event_us=now,
            fix_us=fix_us,
            value=value,
            fields=fields,
        )


def _reload(world: World, layer: str, version: int) -> None:
    """Query by query: - for pairs that the new version ends, + for those that it brings, both under that version."""
    world.layer_rows[layer] = version
    for query in world.queries.values():
        if query.plan.join is not None and query.plan.join.layer == layer:
            query.layer_version = version
            _judge_again(world, query, "layer")


def _follow(world: World, row: Mapping[str, Any]) -> None:
    """The region of a version of a query is another one; a row about another version means nothing."""
    query = world.queries.get(row["query"])
    if query is not None and row["version"] == query.version:
        query.plan = Plan.from_json(row["plan"])
        _judge_again(world, query, "layer" if "layer" in row else "area")


def _judge_again(world: World, query: Query, cause: str) -> None:
    """- for those who are no longer in the answer, + for those who are now; what is in a window stays there."""
    if query.plan.fence is not None:
        reload(world, query, cause, time_of(world))
    elif query.plan.incident is not None:
        reload_incidents(world, query, cause, time_of(world))
    elif query.plan.window is None:
        _judge_now(world, query, cause)
