"""Control rows: queries that come, change and go, and layers that are loaded anew (SPEC X4)."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from st_common.errors import LogError
from st_common.operators.changes import CAUSES, Names, change_rows
from st_common.operators.evaluate import Counters, Outcome, Run, Settings, evaluate, last_fixes_hits
from st_common.operators.match import Hits, LayerOf, compile_queries
from st_common.operators.state import NEVER, OBJECT_SHIFT, TARGET_MASK, Delta, Registered, State
from st_common.operators.timeline import Rows
from st_common.query.plan import Plan

_CAUSE = {name: number for number, name in enumerate(CAUSES)}
Row = tuple[int, dict[str, Any]]  # position and control row


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """Queries that stop (`-` with a cause) and queries that are judged anew from all last fixes.

    `before` are the queries whose answer is taken from the state, `after` are looked up in `queries`. What is in both
    answers under one name stays without a change where `keeps` says so (a layer that was loaded anew).
    """

    queries: tuple[Registered, ...]
    layers: dict[str, int]
    before: np.ndarray
    after: np.ndarray
    position: np.ndarray
    minus: str
    plus: str
    keeps: bool


def parts(rows: list[Row]) -> Iterator[list[Row]]:
    """The rows in order, cut into what can be done at once: registrations, and drops, that follow each other."""
    for op, group in groupby(rows, key=lambda row: row[1]["op"]):
        batch = list(group)
        yield from [batch] if op in ("register", "drop") else [[row] for row in batch]


def control(state: State, rows: list[Row], settings: Settings, layer_of: LayerOf) -> Outcome:
    """The outcome of one of the `parts`.

    Raises:
        LogError: a control row of an unknown kind.
    """
    op = rows[0][1]["op"]
    if op in _SWAPS:
        return swap(state, _SWAPS[op](state, rows), settings, layer_of)
    if op in ("clock", "end"):
        return evaluate(state, _clock_run(state, *rows[0], settings), settings, layer_of)
    raise LogError(f"a control row asks for {op!r}", hint="the log was written by a newer version")


def _clock_run(state: State, position: int, row: dict[str, Any], settings: Settings) -> Run:
    """A run without fixes that moves the clock: to a time, or at the end of a replay past every fix that is held."""
    if row["op"] == "clock":
        highest = int(row["ts"])
    else:
        releases = state.max_event != NEVER and settings.lateness_us > 0
        highest = state.max_event + settings.lateness_us + 1 if releases else state.max_event
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
    return Run(rows=rows, next_segment=state.next_segment)


def _register(state: State, rows: list[Row]) -> Swap:
    start = len(state.queries)
    queries = state.queries + tuple(_registered(state, row) for _, row in rows)
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
    if plan.join is not None:  # the log's newest version of the layer, else the one that was there at registration
        version = state.layers.get(plan.join.layer, row.get("layer_version"))
    return Registered(name=row["query"], version=row["version"], plan=plan, layer_version=version)


def _live(queries: tuple[Registered, ...]) -> dict[str, int]:
    return {query.name: number for number, query in enumerate(queries) if query.live}


def _drop(state: State, rows: list[Row]) -> Swap:
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
        minus="dropped",
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
        n for n, q in enumerate(queries) if q.live and q.plan.join is not None and q.plan.join.layer == row["layer"]
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


_SWAPS = {"register": _register, "drop": _drop, "replace": _replace, "layer": _layer}


def swap(state: State, change: Swap, settings: Settings, layer_of: LayerOf) -> Outcome:
    """The outcome of a swap: - for what no longer holds, + for what now does, the answer after it."""
    judged = set(change.after.tolist())
    only = tuple(q if n in judged else replace(q, live=False) for n, q in enumerate(change.queries))
    hits, objects = last_fixes_hits(state, compile_queries(only), layer_of)
    targets = state.targets.with_new(hits.target_query, hits.target_partner)
    after = np.sort((objects << OBJECT_SHIFT) | hits.target)
    is_before = np.isin(state.targets.query, change.before)[state.answer & TARGET_MASK]
    before = state.answer[is_before]
    minus = np.setdiff1d(before, after, assume_unique=True) if change.keeps else before
    plus = np.setdiff1d(after, before, assume_unique=True) if change.keeps else after
    keys = np.concatenate([minus, plus])
    target, who = keys & TARGET_MASK, keys >> OBJECT_SHIFT
    names = Names(
        queries=change.queries,
        targets=targets,
        objects=state.objects,
        partners=state.partners.with_new(hits.partner_hashes, hits.partner_ids),
    )
    counts = [len(minus), len(plus)]
    changes = change_rows(
        names,
        position=change.position[targets.query[target]],
        event_ts=np.full(len(keys), _now(state, settings)),
        fix_ts=state.last_ts[who],
        rank=np.ones(len(keys), np.int8),
        objects=who,
        target=target,
        sign=np.repeat([-1, 1], counts),
        cause=np.repeat([_CAUSE[change.minus], _CAUSE[change.plus]], counts),
    )
    answer = np.sort(np.concatenate([state.answer[~is_before], after]))
    return Outcome(
        delta=_delta(state, change, hits, answer),
        changes=changes,
        counters=Counters(leaves=counts[0], enters=counts[1]),
    )


def _now(state: State, settings: Settings) -> int:
    return NEVER if state.max_event == NEVER else state.max_event - settings.lateness_us


def _delta(state: State, change: Swap, hits: Hits, answer: np.ndarray) -> Delta:
    return Delta(
        next_segment=state.next_segment,
        max_event=state.max_event,
        queries=change.queries,
        layers=change.layers,
        answer=answer,
        replaces_answer=True,
        partner_ids=hits.partner_ids,
        partner_hashes=hits.partner_hashes,
        target_query=hits.target_query,
        target_partner=hits.target_partner,
    )
