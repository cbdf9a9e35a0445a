"""A simulation: objects that report, when each of them is due, and where reports go."""

import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from types import TracebackType
from typing import Protocol, Self

import numpy as np

from st_common.capture.appending import append_records
from st_common.capture.control import write_end
from st_common.capture.files import wall_clock
from st_common.capture.log import Log
from st_common.errors import ConfigError, TransientError
from st_common.settings import StreamSettings
from st_common.simulation.records import Fixes, Writer
from st_common.simulation.road_network import RoadNetwork
from st_common.simulation.roads import limits_per_step
from st_common.simulation.traffic import Traffic, rounds

_SLICE_S = 0.2  # reports of one moment are spread over such slices
_ENDLESS = 1 << 40
_CONNECT_S = 10.0


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
