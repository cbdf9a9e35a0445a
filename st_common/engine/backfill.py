"""What a query would know, had it been registered earlier: found from the log, up to the row that registers it.

    log        fixes   fixes   register q FROM BEGINNING   fixes
    found      q over these ->  seed, kept beside the log
    engine                      takes the seed over, tells who is in (cause `backfilled`), goes on

It runs the step of the engines over the log in its own order, with this query alone. So what the query answers from
its row on is what it would answer, had it always been there; and who replays the log takes the same seed.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.controls.rectangles import Rectangles
from st_common.controls.rows import AboutQuery, Export, Register
from st_common.controls.writing import to_bytes
from st_common.engine.local import layers_of
from st_common.engine.packets import packets_of, step_settings
from st_common.engine.statements import first_segment, us_of
from st_common.engine.topology import frozen, topology_of
from st_common.errors import ConfigError, LogError, QueryError, TransientError
from st_common.history.fold import MEMBERS, fold
from st_common.log.log import Log, Segment
from st_common.log.seeds import keep_seed
from st_common.operators.events.packet import Packet, control_packet
from st_common.operators.runtime.retire import LEAST, retired
from st_common.operators.runtime.seeds import Seed
from st_common.operators.runtime.stages import step
from st_common.operators.state.state import NEVER, State
from st_common.operators.turn.changes import settled
from st_common.query.control import QueryRow
from st_common.query.lookup import layers
from st_common.query.plain import plan_text
from st_common.query.plan import Plan
from st_common.query.registry import fitted
from st_common.query.text import Statement

_MOST_BYTES = 4 << 20
"""So much of a log is followed while it is locked, and nobody can post."""


class BehindError(TransientError):
    """So much of a log is not followed yet that nobody shall wait for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reached:
    """How far a query has been followed: what is known then, who is in, whether it is registered already."""

    state: State
    members: pa.Table
    is_registered: bool


@dataclass(frozen=True)
class Backfill:
    """Finds what queries know of a log that are registered FROM somewhere; see `query.row_writing.Seeding`.

    Args:
        home: where the logs lie.
        streams: the settings of the streams.
    """

    home: Home
    streams: Mapping[str, StreamSettings]
    _reached: dict[object, _Reached] = field(default_factory=dict, repr=False)

    def prepare(self, statements: Sequence[Statement]) -> None:
        """Follows the logs to their ends, so that little is left to do while they are locked.

        Args:
            statements: those of a text, with their names as they are declared.

        Raises:
            ConfigError: a stream never ran.
            QueryError: a query cannot be judged on the fixes.
            LogError: a segment is missing or damaged.
        """
        for one in statements:
            if one.beginning is not None and one.plan is not None:
                row = QueryRow(
                    name=one.name,
                    version=1,
                    op="register",
                    stream=one.plan.stream,
                    position=-1,
                    arrival_us=0,
                    plan=one.plan,
                    beginning=one.beginning,
                    layer_version=_newest_layer(self.home, one.plan),
                )
                self._followed(row, Log(self.home.log(row.stream)).end())

    def __call__(self, row: QueryRow, end: int) -> str:
        """Keeps what a query knows of the log before a segment, and gives the id; the log must be locked.

        Args:
            row: the registration.
            end: the number of the segment that it will stand in.

        Raises:
            ConfigError: the stream never ran.
            QueryError: the query cannot be judged on the fixes.
            LogError: a segment is missing or damaged.
            StorageError: the disk is full, or refuses.
            BehindError: too much has come since it was prepared, or another layer: it is to be prepared again.
        """
        self._require_near(row, end)
        following, reached = self._followed(row, end)
        since = None if row.beginning is None else row.beginning.since
        if not reached.is_registered and since is not None:
            raise QueryError(
                f"stream {row.stream!r} has not come to {since.isoformat()} yet",
                hint="FROM a time that is past, or FROM BEGINNING",
            )
        if not reached.is_registered:  # there is nothing in front of the row
            reached = following.registered(reached)
        settings = step_settings(self._stream(row.stream))
        state = retired(reached.state, settings, least=LEAST)
        seed = Seed(state=replace(state, memo=None), members=reached.members)
        return keep_seed(self.home.log(row.stream), seed.to_bytes())

    def _require_near(self, row: QueryRow, end: int) -> None:
        start = self._until_now(row).state.next_segment
        left = Log(self.home.log(row.stream)).segments(start, end=end)
        if sum(one.size for one in left) > _MOST_BYTES:
            raise BehindError(
                f"stream {row.stream!r} gets more than can be followed meanwhile",
                hint="try again when less comes, or register without FROM",
            )

    def _until_now(self, row: QueryRow) -> _Reached:
        nothing = _Reached(
            state=State(), members=MEMBERS.empty_table(), is_registered=False
        )
        return self._reached.get(_key(row), nothing)

    def _followed(self, row: QueryRow, end: int) -> "tuple[_Following, _Reached]":
        reached = self._until_now(row)
        following = _Following(self.home, self._stream(row.stream), row)
        reached = following.upto(end, reached)
        self._reached[_key(row)] = reached
        return following, reached

    def _stream(self, name: str) -> StreamSettings:
        """The settings with which the stream was begun.

        Raises:
            ConfigError: it never ran.
            StateError: it was begun with other settings.
        """
        topology = topology_of(self.home, name)
        if topology is None:
            raise ConfigError(
                f"stream {name!r} never ran: there is nothing to begin from",
                hint=f"`fairway run {name}` first, or register without FROM",
            )
        stream = self.streams[name]
        return frozen(self.home, stream, engine=topology.engine, shards=topology.shards)


def _key(row: QueryRow) -> object:
    """What is found once for rows that are alike in it."""
    plan = "" if row.plan is None else plan_text(row.plan)
    return row.stream, plan, row.beginning, row.layer_version


def backfill_of(
    home: Home,
    streams: Mapping[str, StreamSettings],
    statements: Sequence[Statement],
    before: Backfill | None = None,
) -> Backfill | None:
    """What finds what statements know that register FROM somewhere, prepared; None where none does.

    Args:
        home: where the logs lie.
        streams: the settings of the streams.
        statements: those of a text.
        before: what this gave before, which is taken further.

    Raises:
        QueryError: a statement does not fit the streams, or cannot be judged on the fixes.
        ConfigError: a stream never ran.
        LogError: a segment is missing or damaged.
    """
    if all(one.beginning is None for one in statements):
        return None
    backfill = before or Backfill(home, streams)
    known, _ = fitted(home, streams, statements)
    backfill.prepare(known)
    return backfill


@dataclass(frozen=True)
class _Following:
    """Runs one query over a log.

    Args:
        home: where the log lies.
        stream: the settings with which the stream was begun.
        row: the registration, with its beginning.
    """

    home: Home
    stream: StreamSettings
    row: QueryRow

    def upto(self, end: int, reached: _Reached) -> _Reached:
        """What is known in front of a segment.

        Raises:
            LogError: a segment is missing, damaged or purged.
        """
        log = Log(self.home.log(self.stream.name))
        _require_all(log, reached.state.next_segment)
        segments = list(log.segments(reached.state.next_segment, end=end))
        at = len(segments) if reached.is_registered else self._first(segments)
        reached = self._through(log, segments[:at], reached)
        while not reached.is_registered and at < len(segments):
            # One by one: segments that are read together come as one packet.
            reached = self._through(log, segments[at : at + 1], reached)
            at += 1
        return self._through(log, segments[at:], reached)

    def _first(self, segments: Sequence[Segment]) -> int:
        """The place of the first segment in which the query may begin."""
        since_us = self._since_us()
        if since_us is None:
            return 0
        number = first_segment(self.home, self.stream.name, since_us)
        return bisect_left(segments, number, key=lambda one: one.number)

    def _through(
        self, log: Log, segments: Sequence[Segment], reached: _Reached
    ) -> _Reached:
        for (packet,) in packets_of(log, segments, self.stream, shards=1):
            if not reached.is_registered and self._begins_in(packet):
                reached = self.registered(reached)
            reached = self._after(reached, _without_queries(packet))
        return reached

    def registered(self, reached: _Reached) -> _Reached:
        """What is known when the query is registered there; no segment of the log is used up by it."""
        if self.row.plan is None:
            raise ValueError(f"the registration of {self.row.name!r} has no plan")
        registration = Register(
            query=self.row.name,
            version=1,
            plan=self.row.plan.to_json(),
            layer_version=self.row.layer_version,
        )
        number = reached.state.next_segment
        packet = control_packet(number, to_bytes(registration))
        after = self._after(reached, packet)
        state = replace(after.state, next_segment=number)
        return replace(after, state=state, is_registered=True)

    def _begins_in(self, packet: Packet) -> bool:
        """Whether the query is to know what comes in a packet."""
        since_us = self._since_us()
        highest = packet.clock_max.max(initial=NEVER)
        return since_us is None or bool(highest >= since_us)

    def _since_us(self) -> int | None:
        since = None if self.row.beginning is None else self.row.beginning.since
        return None if since is None else us_of(since)

    def _after(self, reached: _Reached, packet: Packet) -> _Reached:
        done = step(
            reached.state,
            [packet],
            step_settings(self.stream),
            layers_of(self.home, self.stream),
        )
        for failure in done.failures:
            raise QueryError(
                f"query {self.row.name!r} cannot be judged on what came before: {failure.why}"
            )
        members = reached.members
        if len(done.changes):
            members = fold(settled([done.changes]), members)
        return replace(reached, state=done.state, members=members)


def _require_all(log: Log, start: int) -> None:
    """Makes sure that no record of a log was purged from a segment on.

    Raises:
        LogError: some were.
    """
    if log.purged_before() > start:
        raise LogError(
            f"the log of stream {log.stream!r} was purged before segment {log.purged_before()}: "
            "what a query would know cannot be found",
            hint="register it without FROM; a SELECT .. BETWEEN asks the positions that are archived",
        )


def _without_queries(packet: Packet) -> Packet:
    """A packet in which other queries are neither registered nor dropped; all other rows keep their places."""
    if not packet.controls:
        return packet
    if isinstance(packet.controls, Rectangles):
        return replace(packet, controls=(Export(),), seeds={})
    rows = tuple(
        Export() if isinstance(row, AboutQuery) else row for row in packet.controls
    )
    return replace(packet, controls=rows, seeds={})


def _newest_layer(home: Home, plan: Plan) -> int | None:
    return None if plan.join is None else layers(home).get(plan.join.layer)
