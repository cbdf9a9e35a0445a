"""What SHOW, EXPLAIN and a SELECT alone ask for, as it is at their place in a text."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from st_common.query.area_store import NamedArea
from st_common.query.control import QueryRow
from st_common.query.past import Past
from st_common.query.plan import Plan

if TYPE_CHECKING:
    from st_common.config.stream import StreamSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownQueries:
    """SHOW QUERIES: the live queries, by name; those of the same text have position -1."""

    rows: tuple[QueryRow, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownAreas:
    """SHOW AREAS: the named areas, by name."""

    areas: tuple[NamedArea, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownStreams:
    """SHOW STREAMS: the streams that the settings describe, in their order."""

    streams: "tuple[StreamSettings, ...]"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownTables:
    """SHOW TABLES: the tables and layers, by name."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """EXPLAIN: a plan, and the name of its query (empty for a SELECT without one); `analyze`: with actual counts."""

    name: str
    plan: Plan
    analyze: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A SELECT that stands alone: a plan, and the past that it asks about; None: what is known last."""

    plan: Plan
    past: Past | None


ToShow = ShownQueries | ShownAreas | ShownStreams | ShownTables | Explained | Asked
