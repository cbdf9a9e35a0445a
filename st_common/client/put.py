"""Rows of a program as records of a stream, and into its log."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, TypeAlias

import pyarrow as pa

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.errors import ConfigError
from st_common.formats.arrow_rows import packed
from st_common.formats.format_settings import named_columns
from st_common.formats.records import columns_read
from st_common.formats.registry import format_of
from st_common.log.appending import append_records, marked
from st_common.log.log import Log
from st_common.log.record_settings import log_for
from st_common.replay.files import wall_clock
from st_common.replay.tally import Tally
from st_common.sources.framing import has_header

Fixes: TypeAlias = pa.Table | Iterable[Mapping[str, Any]]
_ROWS = 20_000  # in one segment
_HEAD_BYTES = 1 << 12
_PLACE = ("x", "y", "place")
_OF_A_FIX = ("object", *_PLACE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """What was put into a log; it is on the disk.

    Attributes:
        records: how many records.
        accepted: how many of them are fixes. One that is too late is known by an engine alone.
        rejected: how many cannot be read; they are in the log as rejects.
        reasons: of each reason how many.
        end: the number behind the last segment of the log: an engine whose position has come there has judged them all.
    """

    records: int
    accepted: int
    rejected: int
    reasons: Mapping[str, int]
    end: int


def put(home: Home, stream: StreamSettings, fixes: Fixes, *, live: bool) -> Put:
    """Appends rows to a stream's log.

    Args:
        home: where the log lies.
        stream: whose log, and how its records are written.
        fixes: rows with the columns that the stream's settings name; a time is what the settings say, or a datetime
            with a zone.
        live: they are told as they happen, so that time goes on after them.

    Raises:
        ConfigError: the stream's format cannot be written, a column is missing or has values of several types, or no
            row of twenty thousand can be read.
        StorageError: the disk is full, or refuses.
    """
    if refusal_of_rows(stream):
        raise ConfigError(
            f"rows cannot be written as {stream.format} of stream {stream.name!r}",
            hint="ndjson, or csv with a header; `fairway replay` takes files of any format",
        )
    log, tally = log_for(home, stream), Tally()
    for rows in tables_of(fixes):
        if len(rows):
            payload = b"".join(payload_of(rows, stream))
            _append(log, stream, payload, live=live, tally=tally)
    return Put(
        records=tally.records,
        accepted=tally.records - tally.reasons.total(),
        rejected=tally.reasons.total(),
        reasons=dict(tally.reasons),
        end=log.end(),
    )


def tables_of(fixes: Fixes) -> Iterator[pa.Table]:
    """Rows as tables of at most twenty thousand.

    Raises:
        ConfigError: the values of a column are of several types, or a time has no zone.
    """
    if isinstance(fixes, pa.Table):
        yield from (
            fixes.slice(start, _ROWS) for start in range(0, len(fixes) or 1, _ROWS)
        )
        return
    rows = iter(fixes)
    while part := list(islice(rows, _ROWS)):
        names = dict.fromkeys(name for row in part for name in row)
        yield pa.table(
            {name: _column(name, [row.get(name) for row in part]) for name in names}
        )


def _column(name: str, values: list[Any]) -> pa.Array:
    try:
        column = pa.array(values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        kinds = dict.fromkeys(
            type(value).__name__ for value in values if value is not None
        )
        raise ConfigError(
            f"the column {name!r} has values of {', '.join(kinds)}",
            hint="give all of one type: numbers, texts, truths or times",
        ) from None
    if pa.types.is_timestamp(column.type) and column.type.tz is None:
        first = next(value for value in values if value is not None)
        raise ConfigError(f"{first!r} has no time zone", hint="tzinfo=datetime.UTC")
    return column


def _append(
    log: Log, stream: StreamSettings, payload: bytes, *, live: bool, tally: Tally
) -> None:
    """Stores some records, and counts them.

    Raises:
        ConfigError: none of them can be read; they are not stored.
    """
    now_us, own = wall_clock(), Tally()
    decoded = decode(payload, stream, arrival_us=now_us)
    own.count(decoded.rejects, decoded.rows, payload[:_HEAD_BYTES])
    if decoded.rows and not len(decoded.fixes):
        raise ConfigError(
            own.message(stream.name, f"{own.records:,} rows"), hint=own.mend(stream)
        )
    with log.locked():
        found = marked(log, stream, payload, arrival_us=now_us, decoded=decoded)
        append_records(
            log,
            stream,
            found.payload,
            arrival_us=now_us,
            live=live,
            is_judged=True,
            decoded=found.decoded,
        )
    tally.count(decoded.rejects, decoded.rows, payload[:_HEAD_BYTES])
    if found.ahead:
        tally.reasons["ahead_of_stream"] += len(found.ahead)


def refusal_of_rows(stream: StreamSettings) -> str:
    """Why a stream takes no rows with names; "" where it does."""
    written_as = format_of(stream.format).written_as
    if written_as is None:
        return f"stream {stream.name!r} takes {stream.format} alone"
    if written_as == "delimited" and not has_header(stream):
        return f"stream {stream.name!r} names no columns (header = false)"
    return ""


def payload_of(rows: pa.Table, stream: StreamSettings) -> tuple[bytes, bytes]:
    """Rows as records of a stream that takes them: what stands in front, and the records.

    Args:
        rows: columns as the stream's settings name them; `VP.veh` may be the field `veh` of a column `VP`.
        stream: whose records they will be.

    Raises:
        ConfigError: a column is missing, or there twice.
    """
    wanted = columns_read(stream)
    while any("." in name and name not in rows.column_names for name in wanted) and any(
        pa.types.is_struct(column.type) for column in rows.columns
    ):
        rows = rows.flatten()
    names = rows.column_names
    optional = _PLACE if stream.columns.gone in names else ()  # who has left has none
    must = {
        name
        for key, name in named_columns(stream)
        if key in _OF_A_FIX and key not in optional
    }
    for name in sorted(must):
        if names.count(name) != 1:
            wrong = "is there twice" if name in names else "is missing"
            hint = f"the columns sent: {', '.join(names)}"
            raise ConfigError(f"the column {name!r} {wrong}", hint=hint)
    return packed(rows.select([name for name in wanted if names.count(name) == 1]))
