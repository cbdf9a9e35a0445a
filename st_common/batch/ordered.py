"""Fixes and statements of an interval as packets in the order of event time: a log as it would be without any delay."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.batch.trial import Trial
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.controls.reading import rows_of
from st_common.controls.rows import ControlRow
from st_common.decode.decoded import fixes_schema
from st_common.engine.cross_shard import NOBODY, Shards
from st_common.engine.packets import limits_of
from st_common.engine.statements import Reached, Statement, time_of
from st_common.history.stored import archived_end, fixes
from st_common.log.log import Log
from st_common.log.record_settings import Readings
from st_common.log.seeds import seeds_in
from st_common.operators.events.packet import Packet, control_packet, pack
from st_common.operators.state.limits import Limits
from st_common.tables.handle import newest

ROWS = 500_000  # of a slice of time, about, and of a packet at most
BLOCK = 5_000_000  # fixes that are read at once, about: files of closed days are in order of places, not of times
_DAY_US = 86_400_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """A part of an interval that is read at once.

    Attributes:
        since_us: its beginning.
        until_us: the time to stop before.
        placed: the statements in it, in their order.
        limits: by which fixes are filtered up to the first of them.
    """

    since_us: int
    until_us: int
    placed: tuple[Statement, ...]
    limits: Limits | None


class Dealing(NamedTuple):
    """How many shards get packets, and which of them follow all objects."""

    shards: int
    following: Shards = NOBODY


ONE = Dealing(1)


@dataclass(frozen=True)
class Ordered:
    """Reads the rows of a stream's log in the order of event time.

    Fixes of the same time keep their order in the log. A statement comes behind the fixes that were in front of it, and
    behind all others that are older than these.

    Args:
        home: where the tables lie.
        stream: the settings, with the stream's key of ids.
        log: its log.
        trial: what counts in the place of the log's statements; None: these.
    """

    home: Home
    stream: StreamSettings
    log: Log
    trial: Trial | None = None

    def slices(
        self,
        placed: Sequence[Statement],
        reached: Reached,
        *,
        since_us: int,
        until_us: int,
    ) -> list[Slice]:
        """An interval in slices of time of about `ROWS` fixes, one at least.

        Args:
            placed: the statements of the interval, in their order.
            reached: how far statements were read before it.
            since_us: the beginning of the interval.
            until_us: the time to stop before.
        """
        limits = self._limits_at(reached.segment)
        slices: list[Slice] = []
        for start_us, end_us in self._edges(since_us, until_us):
            here = tuple(
                one
                for one in placed
                if one.at_us < end_us
                and (one.at_us >= start_us or start_us == since_us)
            )
            slices.append(
                Slice(since_us=start_us, until_us=end_us, placed=here, limits=limits)
            )
            if here:
                limits = self._limits_at(here[-1].segment.number + 1)
        return slices

    def packets_of(
        self, block: Sequence[Slice], segment: int, dealing: Dealing = ONE
    ) -> Iterator[list[list[Packet]]]:
        """The packets of slices that follow each other, for `step`. All their fixes are read at once.

        Args:
            block: the slices, one at least.
            segment: the number that the first packet gets; the others count on.
            dealing: which shards there are.

        Yields:
            Of each slice the packets in their order, one for each shard.

        Raises:
            LogError: a control row that this version does not know.
        """
        rows = self._rows(block[0].since_us, block[-1].until_us)
        yield from self.packed(block, rows, segment, dealing)

    def packed(
        self,
        block: Sequence[Slice],
        fixes: pa.Table,
        segment: int,
        dealing: Dealing = ONE,
    ) -> Iterator[list[list[Packet]]]:
        """The packets of slices that follow each other, as `packets_of` gives them, of fixes that somebody else read.

        Args:
            block: the slices, one at least.
            fixes: all of the slices, in any order: `position` (int64), and `columns`.
            segment: the number that the first packet gets; the others count on.
            dealing: which shards there are.

        Yields:
            Of each slice the packets in their order, one for each shard.

        Raises:
            LogError: a control row that this version does not know.
        """
        rows = self._in_order(fixes)
        times = rows["event_ts"].to_numpy()
        for part in block:
            start, end = np.searchsorted(times, [part.since_us, part.until_us])
            here = rows.slice(start, end - start)
            packets = self._of_slice(part, here, segment, dealing)
            segment += len(packets)
            yield packets

    def _of_slice(
        self, part: Slice, rows: pa.Table, segment: int, dealing: Dealing
    ) -> list[list[Packet]]:
        """The packets of a slice, whose fixes are given in their order."""
        packets: list[list[Packet]] = []
        limits = part.limits
        start = 0
        for one, end in zip(part.placed, _places(rows, part.placed), strict=True):
            here = rows.slice(start, end - start)
            packets += self._of_fixes(here, segment + len(packets), limits, dealing)
            if payload := self._payload(one):
                number = segment + len(packets)
                packets.append([self._control(number, payload)] * dealing.shards)
            limits = self._limits_at(one.segment.number + 1)
            start = end
        rest = rows.slice(start)
        return packets + self._of_fixes(rest, segment + len(packets), limits, dealing)

    def _control(self, number: int, payload: bytes) -> Packet:
        """A packet of statements; a trial takes no queries with what they knew, for it was found from the log's."""
        packet = control_packet(number, payload, stream=self.stream.name)
        if self.trial is not None:
            return packet
        return replace(packet, seeds=seeds_in(self.log.folder, packet.controls))

    def rows_of(self, one: Statement) -> Sequence[ControlRow]:
        """The rows of a statement that count.

        Raises:
            LogError: a control row that this version does not know.
        """
        number = one.segment.number
        return rows_of(self._payload(one), stream=self.stream.name, segment=number)

    def _payload(self, one: Statement) -> bytes:
        payload, segment = one.payload(self.log), one.segment.number
        if self.trial is None:
            return payload
        return self.trial.changed(payload, stream=self.stream.name, segment=segment)

    def _of_fixes(
        self, rows: pa.Table, segment: int, limits: Limits | None, dealing: Dealing
    ) -> list[list[Packet]]:
        names = fixes_schema(self.stream).names
        return [
            self._of_part(
                rows.slice(at, ROWS).select(names), segment + number, limits, dealing
            )
            for number, at in enumerate(range(0, len(rows), ROWS))
        ]

    def _of_part(
        self, part: pa.Table, segment: int, limits: Limits | None, dealing: Dealing
    ) -> list[Packet]:
        numbers = pa.array(np.arange(len(part), dtype=np.int32))
        return pack(
            segment,
            part.set_column(part.column_names.index("row"), "row", numbers),
            rows=len(part),
            rejects=0,
            shards=dealing.shards,
            following=dealing.following,
            id_key=self.stream.id_key,
            limits=limits,
        )

    def columns(self) -> tuple[str, ...]:
        """The columns of `positions` that packets are made of, beside the place in the log; none without a table."""
        path = self.home.table("positions", self.stream.name)
        known = tables.dataset(path).schema.names if tables.exists(path) else []
        names = fixes_schema(self.stream).names
        return tuple(n for n in names if n in known and n != "row")

    def _rows(self, since_us: int, until_us: int) -> pa.Table:
        """The fixes of an interval in no order: `position` and `columns`."""
        bounds = [
            ("event_date", ">=", time_of(since_us).date()),
            ("event_date", "<=", time_of(until_us - 1).date()),
            ("event_ts", ">=", time_of(since_us)),
            ("event_ts", "<", time_of(until_us)),
        ]
        name, end = self.stream.name, archived_end(self.home, self.stream.name)
        return fixes(self.home, name, 0, end, self.columns(), *bounds, accepted=False)

    def _in_order(self, read: pa.Table) -> pa.Table:
        """Fixes by time and place in the log: `position`, and the columns of `fixes_schema`; absent ones are null."""
        columns = {
            field.name: read[field.name].cast(field.type)
            if field.name in read.column_names
            else pa.nulls(len(read), field.type)
            for field in fixes_schema(self.stream)
        }
        return _in_order(pa.table({"position": read["position"]} | columns))

    def _edges(self, since_us: int, until_us: int) -> list[tuple[int, int]]:
        """The interval in parts of about `ROWS` fixes, of the same length: files say only how many fixes they have."""
        first, last = time_of(since_us).date(), time_of(until_us - 1).date()
        of_days = count_fixes(self.home, self.stream.name, first, last)
        days_us = ((last - first).days + 1) * _DAY_US
        count = max(-(-of_days * (until_us - since_us) // (days_us * ROWS)), 1)
        edges = np.linspace(since_us, until_us, count + 1).astype(np.int64)
        return list(pairwise(edges.tolist()))

    def _limits_at(self, number: int) -> Limits | None:
        """The limits by which fixes are filtered that stand in a segment, or that come behind the log's end."""
        last = self.log.end() - 1
        if last < 0:
            return limits_of(self.stream)
        return limits_of(self._readings.of(self.log.segment(min(number, last))))

    @cached_property
    def _readings(self) -> Readings:
        return Readings(self.log, self.stream)


def blocks_of(slices: Sequence[Slice], *, at_least: int = 1) -> list[Sequence[Slice]]:
    """Slices in blocks of about `BLOCK` fixes, which are read at once: so many at least, if there are slices."""
    at_most = max(BLOCK // ROWS, 1)  # slices of a block
    count = min(max(-(-len(slices) // at_most), at_least), len(slices))
    edges = np.linspace(0, len(slices), count + 1).astype(np.int64).tolist()
    return [slices[start:end] for start, end in pairwise(edges)]


def _in_order(rows: pa.Table) -> pa.Table:
    """Fixes by time, and those of one time by their place in the log."""
    order = np.argsort(rows["position"].to_numpy())
    # Hardly any is late: so this is almost their order already, which a stable sort makes use of.
    times = rows["event_ts"].to_numpy()[order]
    return rows.take(order[np.argsort(times, kind="stable")]).combine_chunks()


def _places(rows: pa.Table, placed: Sequence[Statement]) -> list[int]:
    """Behind how many of the sorted fixes each statement comes."""
    times, positions = rows["event_ts"].to_numpy(), rows["position"].to_numpy()
    places = []
    for one in placed:
        low, high = np.searchsorted(times, [one.at_us, one.at_us + 1])
        # Of the same time are those that stood in front of it in the log, too.
        places.append(int(low + np.searchsorted(positions[low:high], one.position)))
    return places


def fixes_of_days(home: Home, stream: str) -> dict[date, int]:
    """How many fixes are archived of each day that has any, from what files say of themselves: none is read.

    Args:
        home: where the table of positions lies.
        stream: whose.
    """
    table = newest(home.table("positions", stream))
    if table is None:
        return {}
    files = pa.table(table.get_add_actions(flatten=True))
    rows = files.select(["partition.event_date", "num_records"])
    summed = rows.group_by("partition.event_date").aggregate([("num_records", "sum")])
    return {
        one["partition.event_date"]: one["num_records_sum"] or 0
        for one in summed.to_pylist()
    }


def count_fixes(home: Home, stream: str, first: date | None, last: date) -> int:
    """How many fixes are archived of some days, as `fixes_of_days` knows it.

    Args:
        home: where the table of positions lies.
        stream: whose.
        first: the first day; None: the oldest that there is.
        last: the last day.
    """
    counts = fixes_of_days(home, stream)
    return sum(
        count
        for day, count in counts.items()
        if (first is None or day >= first) and day <= last
    )


def stored_span(home: Home, stream: str) -> tuple[datetime, datetime] | None:
    """The times of the first and the last fix that are archived, from what files say of themselves; None without any.

    Args:
        home: where the table of positions lies.
        stream: whose.
    """
    table = newest(home.table("positions", stream))
    if table is None:
        return None
    files = pa.table(table.get_add_actions(flatten=True))
    if not {"min.event_ts", "max.event_ts"} <= set(files.column_names):
        return None
    first, last = pc.min(files["min.event_ts"]), pc.max(files["max.event_ts"])
    if not first.is_valid or not last.is_valid:
        return None
    return first.as_py(), last.as_py()
