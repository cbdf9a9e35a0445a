"""The kinds of control rows: what stands in a stream's log beside its records, a frozen dataclass for each.

    segment 7 of stream `cars`                                   read as
    {"op":"register","query":"q","version":1,"plan":{..},..}     Register(query="q", version=1, plan={..}, ..)
    {"op": "clock", "ts": 1700000000000000}                      Clock(ts_us=1700000000000000)

The bytes are made by `writing` and read by `reading`, and by nobody else. A row counts from its place in the log on.
Plans stay JSON values here; `st_common.query.control` makes plans of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

PLAN_VERSION = 3
"""Of a plan as JSON, as it is written."""

PLAN_VERSIONS = frozenset({1, 2, PLAN_VERSION})
"""Of plans that are read."""

PLAN_FIELDS = frozenset(
    {
        "v",
        "stream",
        "inside",
        "neighbours",
        "join",
        "pairs",
        "where",
        "window",
        "frame",
        "transforms",
        "compare",
        "fence",
        "incident",
        "aggregate",
        "columns",
        "valid_until",
        "order",
        "emit",
        "outer",
    }
)
"""What a plan as JSON may say in any of these versions."""

QueryOp = Literal["register", "replace", "follow", "drop", "fail"]
"""The names of the kinds that are about a query, as they stand in the log."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutQuery:
    """What rows about a query have in common: its name."""

    op: ClassVar[QueryOp]
    query: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Registration(AboutQuery):
    """What `Register`, `Replace` and `Follow` say: from here on a version of a query is judged by this plan.

    Attributes:
        version: the number of the query's version, from 1 on; it counts on when a name is dropped and registered again.
        plan: what it asks, as JSON values.
        text: the statement as it was written; None where there was none.
        owner: who registered it, None where nobody said so.
        layer_version: of the layer that it joins, the version (of its Delta table) that it begins with, unless the log
            has named a newer one; None without a join.
        areas: the named areas that its text calls; its plan has their regions.
    """

    version: int
    plan: Mapping[str, Any]
    text: str | None = None
    owner: str | None = None
    layer_version: int | None = None
    areas: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Register(Registration):
    """A query of a name that is free begins here. Written by the registry, for a statement or a client.

    Attributes:
        seed: the id of what it knows of the log before this row (`st_common.log.seeds`); None: it begins with the
            last fixes alone.
    """

    op: ClassVar[QueryOp] = "register"
    seed: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Replace(Registration):
    """A query takes the place of the version before it. Written by the registry, for a statement or a client."""

    op: ClassVar[QueryOp] = "replace"


@dataclass(frozen=True, slots=True, kw_only=True)
class Follow(Registration):
    """A region of a query is another one from here on: the same version goes on with this plan.

    Written by the registry, for CREATE OR REPLACE AREA and for layers that were loaded anew. What leaves and comes by
    it has the cause `area` or `layer`.

    Attributes:
        layer: whose new version has another surface of the feature that the region is; None: an area was replaced.
    """

    op: ClassVar[QueryOp] = "follow"
    layer: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop(AboutQuery):
    """The version of a query that is registered here ends. Written by the registry, for a statement or a client."""

    op: ClassVar[QueryOp] = "drop"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail(AboutQuery):
    """A version of a query cannot be judged any more. Written by the engine that found it, through the registry.

    A row about a version that is no longer registered means nothing: it was replaced before the row got its place.

    Attributes:
        version: the version of the query.
        why: for people; None where nobody said so.
    """

    op: ClassVar[QueryOp] = "fail"
    version: int
    why: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerVersion:
    """From here on a layer counts in a version. Written when a layer was loaded.

    Attributes:
        layer: the layer's name.
        version: the version of its Delta table.
    """

    op: ClassVar[str] = "layer"
    layer: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The event time `ts_us` (us UTC) has come, though no fix said so.

    Written by the engine that owns a live stream while its feed is quiet, and by whoever feeds a stream from others.

    Attributes:
        ts_us: the event time that the log has reached; lateness has still to be taken from it.
        delay_us: the delay of the feed by which the engine found it; None when another says the time.
    """

    op: ClassVar[str] = "clock"
    ts_us: int
    delay_us: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """A finite stream ends here: what waits for later fixes is judged. Written when a replay has ended."""

    op: ClassVar[str] = "end"


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Shards give out their states right behind this row. Written by a reshard; it changes no answer."""

    op: ClassVar[str] = "export"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """From here on records are read by these settings (JSON values by name; see `st_common.log.record_settings`).

    Written by whoever captures, or by an engine at its start, when its settings are others than those that hold.
    """

    op: ClassVar[str] = "reading"
    reading: Mapping[str, Any]


ControlRow = (
    Register
    | Replace
    | Follow
    | Drop
    | Fail
    | LayerVersion
    | Clock
    | End
    | Export
    | Reading
)
