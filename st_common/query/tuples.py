"""What a filter of users is given, and what clients get of changes: an element of a stream, and a feature."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Element:
    """An element of the stream: a fix of an object, or of an aggregate the group.

    Attributes:
        object: the object's id, or the group's text.
        event_ts: the fix's event time, or the change's when no fix made it (UTC).
        x: longitude or east of the object then; of a group the value `x`, where the query has such. None of partners,
            and where nothing is known.
        y: likewise.
        fields: the columns that the query selects, by name.
    """

    object: str
    event_ts: datetime | None = None
    x: float | None = None
    y: float | None = None
    fields: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Feature:
    """A feature of a layer.

    Attributes:
        fid: its id.
        layer: the layer's name.
        kind: its kind; None for who did not ask for `tags` at registration.
        tags: its tags by name; None likewise.
        geometry: its geometry (Shapely), in the coordinates of the layer; what a filter is given has it, else None.
    """

    fid: str
    layer: str
    kind: str | None = None
    tags: Mapping[str, str] | None = None
    geometry: Any = None
