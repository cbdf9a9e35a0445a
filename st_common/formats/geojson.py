"""GeoJSON (RFC 7946): a FeatureCollection, a sequence of features (RFC 8142), or one a line; also Overland's lists.

Points are fixes; with `shape = "geometry"` every geometry is an element.
"""

import io
from types import MappingProxyType
from typing import TYPE_CHECKING

from st_common.formats.format import Format
from st_common.formats.format_settings import FormatSettings, Source

if TYPE_CHECKING:
    from collections.abc import Iterator

    from st_common.formats.chunk import Chunk
    from st_common.formats.records import Records

_LEAST_CHUNK = 1 << 18  # bytes
_MEMBERS = (
    "features",
    "locations",
)  # the second one is what Overland, a logger for phones, sends
_HEAD = 1 << 16  # bytes in which the list of a document is named
_PLACE = MappingProxyType(
    {"x": "geometry.coordinates[0]", "y": "geometry.coordinates[1]"}
)
_OWN = ("geometry.", "properties.")
_SHAPE = "geometry"
_TYPE = ""  # no column of settings is called so


class GeoJson(Format):
    """Features; `id` is their own, other columns are properties: `speed`, by path `owner.name`.

    `properties.id` is the property of that name, `geometry.coordinates[2]` the height.
    """

    takes = frozenset({"skip_lines", "time_unit", "time_zone", "encoding", "decimal"})
    columns = _PLACE

    def chunks(
        self, source: Source, stream: FormatSettings, *, size: int
    ) -> "Iterator[Chunk]":
        """Chunks of features, each on a line; of at most `size` bytes, raised to 256 KiB where it is less."""
        from st_common.formats.ndjson_chunks import chunks_of_lines

        return chunks_of_lines(_lines(source, max(size, _LEAST_CHUNK)))

    def records(self, payload: bytes, stream: FormatSettings) -> "Records":
        """The features of a payload; what is no JSON object is a fault.

        So is another geometry than a point, unless shapes are wanted.
        """
        from st_common.formats.ndjson_records import read_lines
        from st_common.formats.records import columns_read

        paths = {name: _path(name) for name in columns_read(stream)}
        lines = _lines(io.BytesIO(payload), len(payload) + 1)
        kind = {} if stream.columns.shape is not None else {_TYPE: "geometry.type"}
        records = read_lines(b"".join(lines), {**paths, **kind})
        return records if stream.columns.shape is not None else _points(records)

    def whole_bytes(self, payload: bytes) -> int:
        """All of a document or a sequence, whose last feature shows by itself that it is cut; else whole lines."""
        return super().whole_bytes(payload) if _has_lines(payload) else len(payload)

    def shared_head(self, payload: bytes, stream: FormatSettings) -> bytes | None:
        """No header where a feature stands on each line; else a payload must be read by itself."""
        return b"" if _has_lines(payload) else None

    def joined_records(
        self, payload: bytes, stream: FormatSettings
    ) -> "Records | None":
        """The records of lines."""
        return self.records(payload, stream)

    def wrong_in(self, stream: FormatSettings) -> tuple[str, str] | None:
        """Coordinates from elsewhere than the geometry."""
        columns = stream.columns
        of_points = (columns.x, columns.y) == (_PLACE["x"], _PLACE["y"])
        if of_points or columns.shape == _SHAPE:
            return None
        wrong = "columns: the place of a feature is its geometry"
        return wrong, f'leave out x, y and place, or shape = "{_SHAPE}"'

    def mend(self, reason: str, head: bytes, stream: FormatSettings) -> str | None:
        """Where ids stand, and what else lines of JSON may be."""
        if reason == "missing_object":
            return (
                'columns.object is "id", the feature\'s own, or the name of a property'
            )
        if reason == "no_point":
            return f'fixes are points; shape = "{_SHAPE}" in columns takes lines and areas too'
        return None


def _lines(source: Source, size: int) -> "Iterator[bytes]":
    """Features as lines."""
    from st_common.formats.chunk import Begun
    from st_common.formats.member_lines import list_of, member_lines

    begun = Begun(source, size=_HEAD)
    mine = (name for name in _MEMBERS if list_of(begun.head, name) is not None)
    return member_lines(begun, next(mine, _MEMBERS[0]), size=size)


def _has_lines(payload: bytes) -> bool:
    """Whether each line is a record, as far as the bytes show at a glance."""
    named = any(f'"{name}"'.encode() in payload for name in _MEMBERS)
    is_document = b"\x1e" in payload or named
    return not is_document and payload.lstrip()[:1] == b"{"


def _path(column: str) -> str:
    is_own = column in ("id", _SHAPE) or column.startswith(_OWN)
    return column if is_own else f"properties.{column}"


def _points(records: "Records") -> "Records":
    """The records with a fault for each whose geometry is another one than a point; no geometry at all is none."""
    from dataclasses import replace

    import numpy as np
    import pyarrow as pa
    import pyarrow.compute as pc

    from st_common.formats.numbers import mask
    from st_common.formats.records import Reason

    fields = dict(records.fields)
    types = fields.pop(_TYPE)
    other = mask(pc.not_equal(types, "Point"))
    if not other.any():
        return replace(records, fields=fields)
    fault = records.fault.copy()
    fault[np.flatnonzero(fault == Reason.NONE)[other]] = Reason.NO_POINT
    kept = pa.array(~other)
    points = {name: values.filter(kept) for name, values in fields.items()}
    return replace(records, fault=fault, fields=points)
