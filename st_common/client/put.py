"""Fixes from a program into a stream's log, as records of the stream's format."""

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, TypeAlias

import pyarrow as pa

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.errors import ConfigError
from st_common.formats.encodings import encoded
from st_common.formats.format_settings import named_columns
from st_common.formats.registry import format_of
from st_common.formats.said_before import NOTHING, put_in_front
from st_common.log.appending import append_records, marked
from st_common.log.log import Log
from st_common.log.record_settings import log_for
from st_common.replay.files import wall_clock
from st_common.replay.tally import Tally
from st_common.times import written

Fixes: TypeAlias = pa.Table | Iterable[Mapping[str, Any]]
_ROWS = 20_000  # in one segment
_HEAD_BYTES = 1 << 12
_OF_A_FIX = ("object", "event_ts", "x", "y", "place")


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
        fixes: rows with the columns that the stream's settings name, the same in each; a time is what the settings
            say, or a datetime with a zone.
        live: they are told as they happen, so that time goes on after them.

    Raises:
        ConfigError: the stream's format cannot be written, a row lacks a column or has another one than the first, or
            no row of twenty thousand can be read.
        StorageError: the disk is full, or refuses.
    """
    log, tally = log_for(home, stream), Tally()
    rows = iter(fixes.to_pylist() if isinstance(fixes, pa.Table) else fixes)
    while part := list(islice(rows, _ROWS)):
        payload = put_in_front(_payload(part, stream, first=tally.records), NOTHING)
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


def _payload(
    rows: list[Mapping[str, Any]], stream: StreamSettings, *, first: int
) -> bytes:
    wanted = [name for key, name in named_columns(stream) if key in _OF_A_FIX]
    for number, row in enumerate(rows, first + 1):
        lacking = [name for name in wanted if not _has(row, name)]
        if lacking and stream.columns.gone not in row:  # who has left needs no place
            raise ConfigError(
                f"row {number} has no {', '.join(lacking)}",
                hint=f"the settings of stream {stream.name!r} name {', '.join(wanted)}",
            )
    plain = ({name: _plain(v, stream) for name, v in row.items()} for row in rows)
    written_as = format_of(stream.format).written_as
    if written_as == "objects":
        return "".join(f"{json.dumps(row)}\n" for row in plain).encode()
    if written_as == "delimited" and stream.header:
        return _delimited(list(rows[0]), plain, stream, first=first)
    raise ConfigError(
        f"rows cannot be written as {stream.format} of stream {stream.name!r}",
        hint="ndjson, or csv with a header; `fairway replay` takes files of any format",
    )


def _has(row: Mapping[str, Any], name: str) -> bool:
    """Whether a row has a column, or the object that the column is in: `VP` of `VP.veh`."""
    return name in row or name.partition(".")[0] in row


def _delimited(
    names: list[str],
    rows: Iterator[dict[str, Any]],
    stream: StreamSettings,
    *,
    first: int,
) -> bytes:
    text = io.StringIO()
    quoting = (
        {"quotechar": stream.quote} if stream.quote else {"quoting": csv.QUOTE_NONE}
    )
    writer = csv.DictWriter(
        text,
        names,
        delimiter=stream.delimiter,
        lineterminator="\n",
        **quoting,
    )
    writer.writeheader()
    for number, row in enumerate(rows, first + 1):
        try:
            writer.writerow(row)
        except (ValueError, csv.Error) as error:
            raise ConfigError(
                f"row {number} cannot be written: {error}",
                hint=f"the first row has {', '.join(names)}",
            ) from None
    try:
        return encoded(text.getvalue(), stream.encoding)
    except ValueError as error:
        raise ConfigError(
            f"a text has no form in the stream's encoding: {error}",
            hint='encoding = "utf-8" takes all texts',
        ) from None


def _plain(value: Any, stream: StreamSettings) -> Any:
    """A value as records have it; a time as the stream's settings say."""
    if not isinstance(value, datetime):
        return value
    if value.tzinfo is None:
        raise ConfigError(f"{value!r} has no time zone", hint="tzinfo=datetime.UTC")
    return written(value, stream.time_unit, stream.time_zone)
