"""A simulation: the records that objects report in the form of a stream, when each is due, and where they go."""

import csv
import io
import json
import socket
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from demo.simulation.network import CLASSES, RoadNetwork
from demo.simulation.roads import limits_per_step
from demo.simulation.traffic import Round, Traffic, rounds
from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError, TransientError
from st_common.formats.encodings import encoded
from st_common.formats.registry import format_of
from st_common.geometry.space import GLOBE
from st_common.log.appending import append_records
from st_common.log.control import write_end
from st_common.log.log import Log
from st_common.replay.files import wall_clock
from st_common.times import form_of, written

_SLICE_S = 0.2  # reports of one moment are spread over such slices
_ENDLESS = 1 << 40
_CONNECT_S = 10.0
_DECIMALS, _DEGREE_DECIMALS = 3, 7


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixes:
    """What some objects report at one moment.

    Attributes:
        round: who is where, and who has arrived.
        speed_mps: f64, how fast each is.
        event_us: when, us UTC.
    """

    round: Round
    speed_mps: np.ndarray
    event_us: int


class Writer:
    """Writes fixes as records that the stream reads back.

    Attributes of the stream that are called `class` (a text: car, taxi, bus, truck, cyclist or pedestrian) and
    `speed_mps` are filled, all others are missing.

    Raises:
        ConfigError: the stream's format is none that is written.
    """

    def __init__(self, stream: StreamSettings) -> None:
        written_as = format_of(stream.format).written_as
        if written_as is None:
            raise ConfigError(
                f"stream {stream.name!r} is {stream.format}, and what is simulated is written as csv, tsv or ndjson",
                hint="simulate a stream of one of these formats",
            )
        self._stream = stream
        self._names_of = _plain_columns(stream)
        self._is_json = written_as == "objects"
        self._names = [] if self._is_json else _columns(stream)

    @property
    def header(self) -> bytes:
        """The line in front of records; empty where the stream has none."""
        if self._is_json or not self._stream.header:
            return b""
        text = io.StringIO()
        quote = self._stream.quote or None
        row = csv.writer(
            text,
            delimiter=self._stream.delimiter,
            quotechar=quote,
            quoting=csv.QUOTE_MINIMAL if quote else csv.QUOTE_NONE,
            lineterminator="\n",
        )
        row.writerow(self._names)
        return encoded(text.getvalue(), self._stream.encoding)

    def lines(self, fixes: Fixes) -> bytes:
        """One line for each fix, in the order of objects, without a header."""
        if not len(fixes.round.object):
            return b""
        texts = self._texts(fixes)
        joined = self._json(texts) if self._is_json else self._delimited(texts)
        return b"".join(line + b"\n" for line in joined.cast(pa.binary()).to_pylist())

    def _texts(self, fixes: Fixes) -> Mapping[str, pa.Array]:
        """The values as text, by the names that the stream gives them."""
        columns, one = self._names_of, fixes.round
        decimals = _DEGREE_DECIMALS if self._stream.space is GLOBE else _DECIMALS
        texts = {
            columns.object: _named(one.object),
            columns.x: _decimal(one.x, decimals),
            columns.y: _decimal(one.y, decimals),
        }
        if columns.event_ts is not None:
            stamp = _stamp(fixes.event_us, self._stream)
            texts[columns.event_ts] = pa.array([stamp] * len(one.object))
        if columns.gone is not None:
            said = pa.array(["", self._stream.columns.gone_values[0]])
            texts[columns.gone] = said.take(pa.array(one.gone.astype(np.int64)))
        attributes = self._stream.attributes
        if attributes.get("class") == "string":
            texts["class"] = pa.array(CLASSES).take(pa.array(one.kind))
        if attributes.get("speed_mps") == "double":
            texts["speed_mps"] = _decimal(fixes.speed_mps, 2)
        return texts

    def _delimited(self, texts: Mapping[str, pa.Array]) -> pa.Array:
        count = len(next(iter(texts.values())))
        missing = pa.array([""] * count)
        columns = [texts.get(name, missing) for name in self._names]
        return pc.binary_join_element_wise(*columns, self._stream.delimiter)

    def _json(self, texts: Mapping[str, pa.Array]) -> pa.Array:
        columns = self._names_of
        numbers = {columns.x, columns.y, "speed_mps"}
        if form_of(self._stream.time_unit) is None:
            numbers.add(columns.event_ts or "")
        parts: list[Any] = []
        for name, values in texts.items():
            sign = "" if name in numbers else '"'
            before = f"{', ' if parts else '{'}{json.dumps(name)}: {sign}"
            parts += [before, values, sign]
        return pc.binary_join_element_wise(*parts, "}", "")


class _Plain(NamedTuple):
    """The columns of a fix, each of them one."""

    object: str
    event_ts: str | None
    x: str
    y: str
    gone: str | None


def _plain_columns(stream: StreamSettings) -> _Plain:
    """The columns of a stream whose records can be written.

    Raises:
        ConfigError: a part of a fix stands in several columns, or inside of one.
    """
    columns = stream.columns
    known = (columns.object, columns.event_ts or "", columns.x, columns.y)
    is_json = format_of(stream.format).written_as == "objects"
    if (stream.decimal, stream.coordinates) != (".", "degrees"):
        raise _composed(stream)
    for name in known:
        if not isinstance(name, str) or (is_json and "." in name):
            raise _composed(stream)
    return _Plain(
        object=str(columns.object),
        event_ts=None if columns.event_ts is None else str(columns.event_ts),
        x=str(columns.x),
        y=str(columns.y),
        gone=columns.gone,
    )


def _composed(stream: StreamSettings) -> ConfigError:
    return ConfigError(
        f"stream {stream.name!r}: its columns hold a part of a fix together, inside of others, or in another form",
        hint="simulate a stream whose object, event_ts, x and y are columns of their own",
    )


def _columns(stream: StreamSettings) -> list[str]:
    """The names of a line's columns in their order; without a header they are numbers, counted from 1."""
    columns = _plain_columns(stream)
    wanted = (columns.object, columns.event_ts, columns.x, columns.y, columns.gone)
    named = [name for name in wanted if name is not None]
    names = list(dict.fromkeys([*named, *stream.attributes]))
    if stream.header:
        return names
    last = max(int(name) for name in names)
    return [str(number) for number in range(1, last + 1)]


def _named(numbers: np.ndarray) -> pa.Array:
    return pc.binary_join_element_wise("v", pc.cast(pa.array(numbers), pa.string()), "")


def _decimal(values: np.ndarray, decimals: int) -> pa.Array:
    return pa.array(np.char.mod(f"%.{decimals}f", values).tolist(), pa.string())


def _stamp(us: int, stream: StreamSettings) -> str:
    """A time as the stream writes it."""
    seconds, rest = divmod(us, 1_000_000)
    moment = datetime.fromtimestamp(seconds, UTC).replace(microsecond=rest)
    if stream.time_unit == "iso":
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    value = written(moment, stream.time_unit, stream.time_zone)
    return f"{value:.3f}" if stream.time_unit == "s" and rest else str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is simulated.

    Attributes:
        objects: how many there are from the start.
        rate: fixes in a second, of all together; each object reports every `objects / rate` seconds.
        seconds: how long; None: until somebody ends it.
        seed: the same plan on the same roads gives the same fixes.
        arrivals: new objects in a second. With any, objects that arrive are gone; else they set out again.
        start_us: the event time of the first fixes, us UTC.
        paced: whether fixes come when they are due, or as fast as they can be written.
    """

    objects: int
    rate: float
    seconds: float | None
    seed: int
    arrivals: float
    start_us: int
    paced: bool

    @property
    def groups(self) -> int:
        """Objects take turns in so many groups, so that reports come evenly."""
        return max(1, round(self.objects / self.rate / _SLICE_S))

    @property
    def step_s(self) -> float:
        """The seconds between two steps: in each of them one group reports."""
        return self.objects / self.rate / self.groups


@dataclass(frozen=True, slots=True, kw_only=True)
class Simulated:
    """What a simulation wrote: fixes, moments at which some were due, seconds of event time."""

    fixes: int
    moments: int
    seconds: float


class Target(Protocol):
    """Where records go."""

    def write(self, header: bytes, lines: bytes) -> None:
        """Takes the records of one moment; `header` belongs in front of them where they stand alone."""

    def end(self) -> None:
        """There are no more."""


class ToLog:
    """The log of a stream: each moment is a segment.

    Args:
        log: the log.
        stream: how its records are read.
        live: they tell of now; else an end mark follows.
    """

    def __init__(self, log: Log, stream: StreamSettings, *, live: bool) -> None:
        self._log, self._stream, self._live = log, stream, live

    def write(self, header: bytes, lines: bytes) -> None:
        """See `Target.write`."""
        append_records(
            self._log,
            self._stream,
            header + lines,
            arrival_us=wall_clock(),
            live=self._live,
        )

    def end(self) -> None:
        """See `Target.end`."""
        if not self._live:
            write_end(self._log, arrival_us=wall_clock())


class ToSocket:
    """Whoever listens at an address gets lines, the header once; a context that closes the connection.

    Raises:
        TransientError: nobody listens there, or the connection breaks.
    """

    def __init__(self, host: str, port: int) -> None:
        self._place, self._begun = f"{host}:{port}", False
        try:
            self._socket = socket.create_connection((host, port), timeout=_CONNECT_S)
        except OSError as error:
            raise self._broken(error) from None

    def write(self, header: bytes, lines: bytes) -> None:
        """See `Target.write`."""
        try:
            self._socket.sendall(lines if self._begun else header + lines)
        except OSError as error:
            raise self._broken(error) from None
        self._begun = True

    def end(self) -> None:
        """See `Target.end`."""

    def __enter__(self) -> Self:
        """The connection."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Closes it."""
        self._socket.close()

    def _broken(self, error: OSError) -> TransientError:
        return TransientError(
            f"{self._place} takes no fixes: {error.strerror or error}",
            hint="somebody must listen there, as `fairway capture` of a tcp source does",
        )


def check(plan: Plan) -> None:
    """Nothing, when a plan can be carried out.

    Raises:
        ConfigError: a number is out of its range, or there is no end where there must be one.
    """
    numbers = {"objects": plan.objects, "rate": plan.rate}
    numbers |= {} if plan.seconds is None else {"seconds": plan.seconds}
    for name, number in numbers.items():
        if not number > 0:
            raise ConfigError(f"--{name} {number:g}", hint="above 0")
    if plan.arrivals < 0:
        raise ConfigError(f"--arrivals {plan.arrivals:g}", hint="0 or more")
    if plan.seconds is None and not plan.paced:
        raise ConfigError("--fast has no end", hint="add --seconds N")


def simulate(
    network: RoadNetwork,
    stream: StreamSettings,
    plan: Plan,
    target: Target,
    *,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    progress: Callable[[str, int], None] = lambda _doing, _count: None,
) -> Simulated:
    """Writes the fixes of objects on a network, each when it is due; Ctrl-C ends it in order.

    Args:
        network: the roads.
        stream: whose records are written.
        plan: who, how many and how long.
        target: where they go.
        clock: seconds; tests bring their own.
        sleep: waits so many seconds; tests bring their own.
        progress: told what is done, and how many fixes were written.

    Raises:
        ConfigError: a number of the plan is out of its range, or the format is none that is written.
    """
    check(plan)
    writer, begun_s = Writer(stream), clock()
    header, fixes, moments = writer.header, 0, 0
    try:
        for due_s, moment in _moments(network, stream, plan):
            if plan.paced and (wait_s := begun_s + due_s - clock()) > 0:
                sleep(wait_s)
            target.write(header, writer.lines(moment))
            fixes, moments = fixes + len(moment.round.object), moments + 1
            progress("travelling", fixes)
    except KeyboardInterrupt:
        pass
    target.end()
    return Simulated(fixes=fixes, moments=moments, seconds=moments * plan.step_s)


def _moments(
    network: RoadNetwork, stream: StreamSettings, plan: Plan
) -> Iterator[tuple[float, Fixes]]:
    """Who reports what at each step, and how many seconds after the begin that is due."""
    limits = limits_per_step(plan.step_s, unit_m=stream.unit_m)
    steps = _ENDLESS if plan.seconds is None else round(plan.seconds / plan.step_s)
    traffic = Traffic(
        at_start=plan.objects,
        per_unit=plan.arrivals * plan.step_s,
        units=max(steps - 1, 0),
        stays=plan.arrivals == 0,
        spread=True,
    )
    for one in rounds(network, traffic, seed=plan.seed, limits=limits):
        turn = (one.object % plan.groups == one.unit % plan.groups) | one.gone
        reporting = one.only(np.flatnonzero(turn))
        units_per_step = limits.between(
            reporting.kind, network.road_class[reporting.road]
        )
        due_s = one.unit * plan.step_s
        yield (
            due_s,
            Fixes(
                round=reporting,
                speed_mps=units_per_step * stream.unit_m / plan.step_s,
                event_us=plan.start_us + round(due_s * 1e6),
            ),
        )
