"""What a stream came to, in figures: collected from the tables of a home, without a JVM."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.answers.answers import fold
from st_common.answers.changes import stream_changes
from st_common.answers.latency import latency_s
from st_common.answers.sql import sql
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.operations.status import StreamStatus, read_status
from st_common.query.control import QueryRow
from st_common.query.lookup import layers, queries


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFacts:
    """A query and its answer, in figures.

    Attributes:
        name: its name.
        text: the statement as it was written; "" without one.
        objects: how many objects are in its answer.
        pairs: how many pairs of object and partner; of windows: fixes.
        plus: changes with sign +.
        minus: changes with sign -.
        again: changes with sign 0.
        values: of an aggregate, pairs of a group and its value, by group.
    """

    name: str
    text: str
    objects: int
    pairs: int
    plus: int
    minus: int
    again: int
    values: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerFacts:
    """A layer: its version, its features by kind."""

    name: str
    version: int
    kinds: dict[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionFacts:
    """The regions of a stream's group, in figures.

    Attributes:
        group: its name.
        version: the newest version of its regions.
        strategy: how they were cut.
        rows: per region, by its id, how many rows it held when it was made.
        std_deviation: of these numbers, from their mean.
    """

    group: str
    version: int
    strategy: str
    rows: tuple[int, ...]
    std_deviation: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFacts:
    """What the last check of a rule found; `passed` over all its days."""

    table: str
    rule: str
    severity: str
    passed: bool
    expected: str
    details: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that a table about a stream shows. `latency_s` is (median, 95th percentile), or None."""

    stream: str
    engine: str
    fixes: int
    objects: int
    first: datetime | None
    last: datetime | None
    rejects: dict[str, int]
    late: int
    double: int
    cut: int
    changes: int
    queries: tuple[QueryFacts, ...]
    layers: tuple[LayerFacts, ...]
    regions: RegionFacts | None
    latency_s: tuple[float, float] | None
    rules: tuple[RuleFacts, ...]


def _quantiles(waits_s: Sequence[float] | np.ndarray) -> tuple[float, float] | None:
    """The median and the 95th percentile; None without any."""
    if not len(waits_s):
        return None
    return float(np.quantile(waits_s, 0.5)), float(np.quantile(waits_s, 0.95))


def collect(home: Home, stream: StreamSettings) -> Report:
    """The facts of a stream as its tables have them now; what no job has written yet is empty or zero.

    Args:
        home: where the tables lie.
        stream: the settings of the stream.
    """
    status = read_status(home.stream(stream.name)) or _never()
    changes = stream_changes(home, stream.name)
    answer = fold(changes)
    asked = queries(home, [stream.name])
    regions = _region_rows(home, stream.group)
    seen = _seen(home, stream.name)
    waits = latency_s(home, stream.name)
    return Report(
        stream=stream.name,
        engine=status.engine or stream.engine,
        fixes=seen.fixes,
        objects=seen.objects,
        first=seen.first,
        last=seen.last,
        rejects=_rejects(home, stream.name),
        late=status.late,
        double=status.double,
        cut=status.cut,
        changes=len(changes),
        queries=tuple(_query_facts(row, changes, answer) for row in asked),
        layers=tuple(
            _layer_facts(home, name, version) for name, version in layers(home).items()
        ),
        regions=_region_facts(regions),
        latency_s=_quantiles(waits),
        rules=_rules(home),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    fixes: int = 0
    objects: int = 0
    first: datetime | None = None
    last: datetime | None = None


def _never() -> StreamStatus:
    return StreamStatus(state="never run", beat_ts=0, position=0, end_position=0)


def _seen(home: Home, stream: str) -> _Seen:
    if not tables.exists(home.table("positions", stream)):
        return _Seen()
    view = _view("positions", stream)
    text = f"SELECT count(*) fixes, count(DISTINCT object) objects, min(event_ts) first, max(event_ts) last FROM {view}"
    return _Seen(**sql(home, text).to_pylist()[0])


def _rejects(home: Home, stream: str) -> dict[str, int]:
    """How many by reason, most frequent first."""
    if not tables.exists(home.table("rejects")):
        return {}
    rows = tables.read(
        home.table("rejects"), columns=["reason"], filters=[("stream", "=", stream)]
    )
    return dict(Counter(rows["reason"].to_pylist()).most_common())


def _query_facts(row: QueryRow, changes: pa.Table, answer: pa.Table) -> QueryFacts:
    mine = answer.filter(pc.equal(answer["query"], row.name))
    signs = Counter(
        changes.filter(pc.equal(changes["query"], row.name))["sign"].to_pylist()
    )
    is_aggregate = row.plan is not None and row.plan.aggregate is not None
    values = zip(mine["object"].to_pylist(), mine["value"].to_pylist(), strict=True)
    return QueryFacts(
        name=row.name,
        text=row.text or "",
        objects=len(mine["object"].unique()),
        pairs=len(mine),
        plus=signs[1],
        minus=signs[-1],
        again=signs[0],
        values=tuple(
            sorted((group, value) for group, value in values if value is not None)
        )
        if is_aggregate
        else (),
    )


def _layer_facts(home: Home, name: str, version: int) -> LayerFacts:
    kinds = tables.read(
        home.table("layers", name), version=version, columns=["kind", "home"]
    )
    counts = Counter(kinds.filter(kinds["home"])["kind"].to_pylist())
    return LayerFacts(name=name, version=version, kinds=dict(counts.most_common()))


def _region_rows(home: Home, group: str) -> pa.Table | None:
    """The rows of the group's newest version, by region; None when it was never partitioned."""
    if not tables.exists(home.table("regions")):
        return None
    rows = tables.read(home.table("regions"), filters=[("group", "=", group)])
    return (
        rows.filter(pc.equal(rows["version"], pc.max(rows["version"]))).sort_by(
            "region_id"
        )
        if len(rows)
        else None
    )


def _region_facts(rows: pa.Table | None) -> RegionFacts | None:
    if rows is None:
        return None
    first = rows.slice(0, 1).to_pylist()[0]
    return RegionFacts(
        group=first["group"],
        version=first["version"],
        strategy=first["strategy"],
        rows=tuple(rows["rows"].to_pylist()),
        std_deviation=first["std_deviation"],
    )


def _rules(home: Home) -> tuple[RuleFacts, ...]:
    """Every rule once, as its newest check of each day found it; failed ones first."""
    text = """
        WITH newest AS (
            SELECT * FROM quality
            QUALIFY row_number() OVER (PARTITION BY "table", rule, date ORDER BY checked_ts DESC) = 1)
        SELECT "table", rule, min(severity) severity, bool_and(passed) passed, min(expected) expected,
               arg_min(details, passed) details
        FROM newest GROUP BY ALL ORDER BY passed, "table", rule"""
    return tuple(RuleFacts(**row) for row in sql(home, text).to_pylist())


def _view(table: str, part: str) -> str:
    """The name of a view of `sql`; names of streams are checked, so nothing else can stand in it."""
    return f"{table}_{part.replace('-', '_')}"
