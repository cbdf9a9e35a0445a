"""Control rows: queries that come, change and go, and layers that are loaded anew (SPEC X4)."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np

from st_common.errors import LogError
from st_common.operators.agenda import Final
from st_common.operators.changes import SHARD_SCHEMA
from st_common.operators.delta import Delta
from st_common.operators.evaluate import Counters, Outcome, Run, evaluate
from st_common.operators.fixes import NEVER
from st_common.operators.match import LayerOf
from st_common.operators.registered import Registered
from st_common.operators.settings import Settings
from st_common.operators.state import State
from st_common.operators.swap import swap
from st_common.operators.swapping import Swap
from st_common.operators.timeline import Rows
from st_common.query.lengths import in_coordinates
from st_common.query.plan import Plan
from st_common.uncollected import uncollected

Row = tuple[int, dict[str, Any]]  # position and control row


def parts(rows: list[Row]) -> Iterator[list[Row]]:
    """The rows in order, cut into what can be done at once: registrations, and drops, that follow each other."""
    for op, group in groupby(rows, key=lambda row: row[1]["op"]):
        batch = list(group)
        yield from (
            [batch] if op in ("register", "drop", "fail") else [[row] for row in batch]
        )


def control(
    state: State, rows: list[Row], settings: Settings, layer_of: LayerOf
) -> Outcome:
    """The outcome of one of the `parts`.

    Raises:
        LogError: a control row of an unknown kind.
    """
    op = rows[0][1]["op"]
    if op in _SWAPS:
        return swap(
            state,
            _SWAPS[op](state, _in_coordinates(rows, settings)),
            settings,
            layer_of,
        )
    if op in ("clock", "end"):
        return evaluate(
            state, _clock_run(state, *rows[0], settings), settings, layer_of
        )
    if op in (
        "export",
        "reading",
    ):  # a place in the log; what engines and decoders do there is no matter of answers
        nothing = Delta(next_segment=state.next_segment, max_event=state.max_event)
        return Outcome(
            delta=nothing,
            changes=SHARD_SCHEMA.empty_table(),
            counters=Counters(),
            memo=state.memo,
        )
    raise LogError(
        f"a control row asks for {op!r}", hint="the log was written by a newer version"
    )


def _in_coordinates(rows: list[Row], settings: Settings) -> list[Row]:
    """The rows with their plans in the unit of the stream's coordinates; the log has them in metres."""
    if settings.unit_m == 1.0:
        return rows

    def converted(row: dict[str, Any]) -> dict[str, Any]:
        if "plan" not in row:
            return row
        return {
            **row,
            "plan": in_coordinates(
                Plan.from_json(row["plan"]), settings.unit_m
            ).to_json(),
        }

    return [(at, converted(row)) for at, row in rows]


def _clock_run(
    state: State, position: int, row: dict[str, Any], settings: Settings
) -> Run:
    """A run without fixes that moves the clock: to a time, or at the end of a replay past every fix that is held."""
    if row["op"] == "clock":
        highest = int(row["ts"])
    else:
        releases = state.max_event != NEVER and settings.lateness_us > 0
        passed = state.newest_event + settings.lateness_us + 1 if releases else NEVER
        highest = max(state.max_event, passed)
    ints, floats = np.empty(0, np.int64), np.empty(0)
    rows = Rows(
        position=ints,
        object=ints,
        ts=ints,
        x=floats,
        y=floats,
        gone=np.empty(0, np.int8),
        clock_position=np.array([position]),
        clock_max=np.array([highest]),
    )
    final = (
        Final(position=position, ts=state.newest_event)
        if row["op"] == "end" and state.max_event != NEVER
        else None
    )
    return Run(rows=rows, next_segment=state.next_segment, final=final)


def _register(state: State, rows: list[Row]) -> Swap:
    start = len(state.queries)
    with uncollected():
        queries = state.queries + tuple([_registered(state, row) for _, row in rows])
    numbers = np.arange(start, len(queries))
    position = np.zeros(len(queries), np.int64)
    position[numbers] = [at for at, _ in rows]
    return Swap(
        queries=queries,
        layers=state.layers,
        before=numbers[:0],
        after=numbers,
        position=position,
        minus="dropped",
        plus="registered",
        keeps=False,
    )


def _registered(state: State, row: dict[str, Any]) -> Registered:
    plan, version = Plan.from_json(row["plan"]), None
    if (
        plan.join is not None
    ):  # the log's newest version of the layer, else the one that was there at registration
        version = state.layers.get(plan.join.layer, row.get("layer_version"))
    return Registered(
        name=row["query"],
        version=row["version"],
        plan=plan,
        layer_version=version,
        since=state.max_event,
    )


def _live(queries: tuple[Registered, ...]) -> dict[str, int]:
    return {query.name: number for number, query in enumerate(queries) if query.live}


def _drop(state: State, rows: list[Row]) -> Swap:
    return _ended(state, rows, "dropped")


def _fail(state: State, rows: list[Row]) -> Swap:
    """Queries that cannot be judged; one that was replaced since the row was meant for its older version goes on."""
    live = _live(state.queries)
    meant = [
        (at, row)
        for at, row in rows
        if row["query"] in live
        and state.queries[live[row["query"]]].version == row["version"]
    ]
    return _ended(state, meant, "failed")


def _ended(state: State, rows: list[Row], cause: str) -> Swap:
    live, queries = _live(state.queries), list(state.queries)
    gone, position = [], np.zeros(len(queries), np.int64)
    for at, row in rows:
        number = live.pop(row["query"], None)
        if number is not None:
            queries[number] = replace(queries[number], live=False)
            gone.append(number)
            position[number] = at
    return Swap(
        queries=tuple(queries),
        layers=state.layers,
        before=np.array(gone, np.int64),
        after=np.empty(0, np.int64),
        position=position,
        minus=cause,
        plus="registered",
        keeps=False,
    )


def _replace(state: State, rows: list[Row]) -> Swap:
    dropped, added = _drop(state, rows), _register(state, rows)
    queries = dropped.queries + added.queries[len(state.queries) :]
    position = np.full(len(queries), rows[0][0])
    return Swap(
        queries=queries,
        layers=state.layers,
        before=dropped.before,
        after=added.after,
        position=position,
        minus="replaced",
        plus="registered",
        keeps=False,
    )


def _layer(state: State, rows: list[Row]) -> Swap:
    (at, row), queries = rows[0], list(state.queries)
    on_layer = [
        n
        for n, q in enumerate(queries)
        if q.live and q.plan.join is not None and q.plan.join.layer == row["layer"]
    ]
    for number in on_layer:
        queries[number] = replace(queries[number], layer_version=row["version"])
    numbers = np.array(on_layer, np.int64)
    return Swap(
        queries=tuple(queries),
        layers={**state.layers, row["layer"]: row["version"]},
        before=numbers,
        after=numbers,
        position=np.full(len(queries), at),
        minus="layer",
        plus="layer",
        keeps=True,
    )


_SWAPS = {
    "register": _register,
    "drop": _drop,
    "replace": _replace,
    "layer": _layer,
    "fail": _fail,
}
