"""The attributes of fixes by their places in the log: from the archive, and from the log what is not there yet."""

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.decode.decoded import fixes_schema
from st_common.history.stored import archived_end, fixes, parts
from st_common.log.log import Log
from st_common.log.reader import Piece, pieces
from st_common.log.segment import Segment
from st_common.position import position_of, segment_of
from st_common.query.fix_columns import BUILTINS

_BATCH_BYTES, _BATCH_SEGMENTS = 4 << 20, 1024  # of the log, decoded together


def with_values(home: Home, stream: StreamSettings, rows: pa.Table) -> pa.Table:
    """Some fixes with the attributes that the stream declares; null where a record had none.

    Args:
        home: where the archive and the log lie.
        stream: the stream.
        rows: n fixes; `position` is where each stands in the log.

    Returns:
        The n rows in their order, with a column for each attribute.

    Raises:
        LogError: a segment that is not archived yet is missing or damaged.
    """
    wanted, schema = pa.array(rows["position"].to_numpy()), _attributes(stream)
    parts_of = [*_archived(home, stream, wanted), *_logged(home, stream, wanted)]
    empty = pa.schema([("position", pa.int64()), *schema]).empty_table()
    known = pa.concat_tables([empty, *parts_of])
    places = pc.index_in(wanted, value_set=pa.array(known["position"].to_numpy()))
    values = known.drop_columns("position").take(places)
    for name in schema.names:
        rows = rows.append_column(name, values[name])
    return rows


def _archived(
    home: Home, stream: StreamSettings, wanted: pa.Array
) -> Iterator[pa.Table]:
    path = home.table("positions", stream.name)
    if not len(wanted) or not tables.exists(path):
        return
    stored = tables.dataset(path).schema.names
    columns = tuple(name for name in _attributes(stream).names if name in stored)
    for low, high in parts(
        path, pc.min(wanted).as_py(), archived_end(home, stream.name)
    ):
        part = fixes(home, stream.name, low, high, columns, accepted=False)
        yield _fitted(part, wanted, stream)


def _logged(home: Home, stream: StreamSettings, wanted: pa.Array) -> Iterator[pa.Table]:
    """Of the segments behind the archive those fixes that are wanted."""
    log, number = Log(home.log(stream.name)), _first_unarchived(home, stream)
    last = segment_of(pc.max(wanted).as_py()) if len(wanted) else -1
    while number <= last and (segments := _some(log, number, last)):
        for piece in pieces(log, segments, stream):
            if piece.part is not None:
                yield _fitted(_of_piece(piece), wanted, stream)
        number = segments[-1].number + 1


def _first_unarchived(home: Home, stream: StreamSettings) -> int:
    return int(segment_of(archived_end(home, stream.name)))


def _some(log: Log, number: int, last: int) -> list[Segment]:
    return log.segments(
        number, end=last + 1, max_bytes=_BATCH_BYTES, max_segments=_BATCH_SEGMENTS
    )


def _of_piece(piece: Piece) -> pa.Table:
    """The fixes of a piece with all their columns, and `position`."""
    assert piece.part is not None  # noqa: S101 - whoever asks has looked
    rows = piece.part.decoded.fixes
    segment = piece.segments[0].number + piece.part.fix_at.astype(np.int64)
    row = rows["row"].to_numpy().astype(np.int64)
    return rows.append_column("position", pa.array(position_of(segment, row)))


def _fitted(rows: pa.Table, wanted: pa.Array, stream: StreamSettings) -> pa.Table:
    """Those rows that are wanted: `position`, and the attributes in their types, null where the rows have none."""
    rows = rows.filter(pc.is_in(rows["position"], value_set=wanted))
    columns = {"position": rows["position"]}
    for field in _attributes(stream):
        known = field.name in rows.column_names
        columns[field.name] = (
            rows[field.name].cast(field.type)
            if known
            else pa.nulls(len(rows), field.type)
        )
    return pa.table(columns)


def _attributes(stream: StreamSettings) -> pa.Schema:
    """The attributes, without those that are called as a part of every fix: that one is meant by the name."""
    schema = fixes_schema(stream)
    own = [name for name in stream.attributes if name.lower() not in BUILTINS]
    return pa.schema([schema.field(name) for name in own])
