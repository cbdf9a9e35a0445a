"""Rejected records go into the log once more after a mend, those that are fixes by the settings of now (SPEC C8).

    rejects     segment 12: 3 records, "bad_time"; segment 13: 1 record, "ragged"
    settings    time_unit was "s" and is "iso"
    the log     .. 12 13 .. 40 | 41: the 3 records, read by the new settings
    they stay   the record of 13, with its reason

The rows of `rejects` stay as they are, for they say what came; notes say which of them the log has again.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.asking import asking
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.errors import ConfigError, LogError
from st_common.formats.records import RAW_LIMIT, Reason
from st_common.log.appending import append_records
from st_common.log.control import has_ended
from st_common.log.log import Log
from st_common.log.record_settings import log_for
from st_common.rejects.mended import (
    PAYLOAD_BYTES,
    Mended,
    are_all_good,
    mended_in,
    named,
)
from st_common.rejects.notes import AGAIN, append_noted, finish_notes, noted
from st_common.replay.files import wall_clock
from st_common.runs import firsts

_COLUMNS = ("segment", "row", "reason", "raw")

_MARKED = """
    SELECT rejected.*, noted.digest IS NOT NULL AS is_again
    FROM rejected LEFT JOIN noted USING (segment, digest, nth)
    ORDER BY segment, "row"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """What became of the rejected records of a stream. They are `before`, `again` and those that `stay`, together.

    Attributes:
        records: how many rejected records there are, of the reasons and the day that were asked for.
        before: those that an earlier replay put into the log again.
        again: those that this one did.
        segments: the segments that have them.
        stay: the others by the reason that they were rejected for.
        beyond: why some that stay could not be judged at all, with how many they are.
    """

    records: int
    before: int
    again: int
    segments: tuple[int, ...] = ()
    stay: dict[str, int] = field(default_factory=dict)
    beyond: dict[str, int] = field(default_factory=dict)


def replay_rejects(
    home: Home,
    stream: StreamSettings,
    *,
    reasons: Sequence[str] = (),
    day: date | None = None,
    clock: Callable[[], int] = wall_clock,
) -> Replayed:
    """Puts rejected records of a stream into its log again that are fixes by its settings, each once.

    It may run beside the stream, and be killed: what a dead replay had put into the log is noted by the next. An end
    mark follows where the log ended with one.

    Args:
        home: the home folder.
        stream: the settings of now, by which the records are read from here on.
        reasons: only records that were rejected for one of these; all, when there is none.
        day: only records that came on this day (UTC); None: all that `rejects` keeps.
        clock: the time that stamps arrivals, us UTC.

    Raises:
        ConfigError: there is no such reason.
        StateError: an attribute has another type than in records before.
        LogError: the log is damaged.
    """
    checked_reasons(reasons)
    log = log_for(home, stream)
    with log.storage.locked(AGAIN):
        finish_notes(log, arrival_us=clock())
        rejected = marked(log, rejects_of(home, stream.name, reasons=reasons, day=day))
        waiting = rejected.filter(pc.invert(rejected["is_again"]))
        judged = _Judged(log, stream)
        is_end, segments = has_ended(log), []
        for one in _joined(judged.mended(waiting), stream, clock):
            number = append_noted(
                log,
                one.payload,
                one.records,
                append=partial(_append, log, stream, clock),
                is_end=is_end,
                arrival_us=clock(),
            )
            segments.append(number)
        after = marked(log, rejected.select([*_COLUMNS]))
    stay = after.filter(pc.invert(after["is_again"]))
    return Replayed(
        records=len(rejected),
        before=len(rejected) - len(waiting),
        again=len(waiting) - len(stay),
        segments=tuple(segments),
        stay=_counted(stay["reason"]),
        beyond=dict(+judged.beyond),
    )


class _Judged:
    """Judges rejected records again, segment by segment, and counts those that cannot be."""

    def __init__(self, log: Log, stream: StreamSettings) -> None:
        self._log, self._stream = log, stream
        self.beyond: Counter[str] = Counter()

    def mended(self, waiting: pa.Table) -> Iterator[Mended]:
        """The records that are good now, of one segment after the other."""
        is_cut = pc.greater_equal(pc.binary_length(waiting["raw"]), RAW_LIMIT)
        self.beyond["they have more than 4 KiB"] += pc.sum(is_cut).as_py() or 0
        waiting = waiting.filter(pc.invert(is_cut))
        starts = firsts(waiting["segment"].to_numpy()).tolist()
        for start, end in pairwise([*starts, len(waiting)]):
            yield from self._of_segment(waiting.slice(start, end - start))

    def _of_segment(self, wanted: pa.Table) -> Iterator[Mended]:
        try:
            segment = self._log.segment(wanted["segment"][0].as_py())
            yield from mended_in(self._log, segment, wanted, self._stream)
        except LogError:
            gone = "the bytes of their segment are gone or damaged (raw_days)"
            self.beyond[gone] += len(wanted)


def rejects_of(
    home: Home,
    stream: str,
    *,
    columns: Sequence[str] = _COLUMNS,
    reasons: Sequence[str] = (),
    day: date | None = None,
) -> pa.Table:
    """The rejected records of a stream, in no order; none where there is no table yet.

    Args:
        home: where the table lies.
        stream: the stream.
        columns: which columns; segment, row, reason and raw, when nothing is said.
        reasons: only these; all, when there is none.
        day: only those that came on this day (UTC).
    """
    path = home.table("rejects")
    if not tables.exists(path):
        none = load_contract("rejects").empty_table()
        return none.select(list(columns))
    bounds: list[tuple[str, str, object]] = [("stream", "=", stream)]
    bounds += [("reason", "in", list(reasons))] if reasons else []
    bounds += [("ingest_date", "=", day)] if day else []
    stored = tables.schema(path)
    names = [name for name in columns if stored is None or name in stored.names]
    rows = tables.read(path, columns=names, filters=bounds)
    for name in set(columns) - set(names):  # younger than the table
        kind = load_contract("rejects").arrow_schema().field(name).type
        rows = rows.append_column(name, pa.nulls(len(rows), kind))
    return rows.select(list(columns))


def marked(log: Log, rejected: pa.Table) -> pa.Table:
    """Rejected records in their order, named (see `named`), with a column `is_again`: the log has them once more."""
    with asking() as connection:
        connection.register("rejected", named(rejected))
        connection.register("noted", noted(log))
        return connection.sql(_MARKED).to_arrow_table()


def checked_reasons(reasons: Sequence[str]) -> None:
    """Makes sure that records can be rejected for these reasons.

    Raises:
        ConfigError: there is no such reason.
    """
    known = [reason.name.lower() for reason in Reason if reason]
    for reason in reasons:
        if reason not in known:
            raise ConfigError(
                f"records are not rejected for {reason!r}",
                hint=f"the reasons are {', '.join(known)}",
            )


def _joined(
    mended: Iterator[Mended], stream: StreamSettings, clock: Callable[[], int]
) -> Iterator[Mended]:
    """Records of several segments that stand between the same header and footer together, in as few as hold them."""
    run: list[Mended] = []
    for one in mended:
        is_alike = run and (one.header, one.footer) == (run[0].header, run[0].footer)
        size = sum(len(each.body) for each in run) + len(one.body)
        if run and not (is_alike and size <= PAYLOAD_BYTES):
            yield from _together(run, stream, clock)
            run = []
        run.append(one)
    if run:
        yield from _together(run, stream, clock)


def _together(
    run: list[Mended], stream: StreamSettings, clock: Callable[[], int]
) -> Iterator[Mended]:
    """Some records as one, where each of them is as good among the others; else apart, those that are good alone."""
    whole = replace(
        run[0],
        body=b"".join(one.body for one in run),
        records=tuple(record for one in run for record in one.records),
    )
    for one in [whole] if are_all_good(whole, stream, arrival_us=clock()) else run:
        if are_all_good(one, stream, arrival_us=clock()):
            yield one


def _append(
    log: Log, stream: StreamSettings, clock: Callable[[], int], payload: bytes
) -> None:
    append_records(log, stream, payload, arrival_us=clock(), live=False)


def _counted(reasons: pa.ChunkedArray) -> dict[str, int]:
    counts = reasons.value_counts().to_pylist()
    counts.sort(key=lambda each: (-each["counts"], each["values"]))
    return {each["values"]: each["counts"] for each in counts}
