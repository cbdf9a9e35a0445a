"""One run of a stream by one process: it owns the lease, says how it goes, and stops when asked to."""

import dataclasses
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from st_common.config.home import Home
from st_common.errors import FairwayError, FencedError, StateError, StorageError
from st_common.operations import lease
from st_common.operations.status import (
    Phase,
    StreamStatus,
    read_status,
    write_exit,
    write_status,
)
from st_common.operations.stop import stop_wanted
from st_common.operations.workers import Meter
from st_common.operators.skeleton.cache_counts import Caches, from_json, summed, to_json
from st_common.storage import make_folder

BEAT_S = 1.0
PULSE_S = 5.0
RESET_FILE = "reset.json"  # there while a reset is under way
_COUNTS = ("fixes", "rejects", "late", "double", "cut", "changes")


def now_us() -> int:
    """The wall clock in microseconds since 1970; engines hand it on, operators never read it."""
    return time.time_ns() // 1000


@dataclass
class Owner:
    """The owner's side of a run: its lease, and what the run has counted so far.

    `beat` tells people the sum of what this run and earlier ones counted, so counters go on over restarts.

    Attributes:
        folder: the folder of the stream or delivery.
        engine: what runs: `local`, `spark`, `reset`, ..
        lease: the lease of this process; each beat renews it.
        before: the status that earlier runs left, None at the first one.
        counts: fixes, rejects, late, double and cut fixes and changes of this run (see `RunSummary`).
        nulled: by attribute, in how many fixes it could not be read.
        filtered_out: by clause of the stream's `where`, how many records it stopped.
        filtered: by reason, how many fixes were filtered (SPEC X11).
        caches: by kind of moving query, what caches cost (SPEC G6).
        is_terminated: the system told the process to end (SIGTERM).
        phase: what it is in the middle of; told with each beat.
        helpers: the processes that work for it beside this one, as `operations.workers.Worker` has them.
    """

    folder: Path
    engine: str
    lease: lease.Lease
    before: StreamStatus | None
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_COUNTS, 0))
    nulled: dict[str, int] = field(default_factory=dict)
    filtered_out: dict[str, int] = field(default_factory=dict)
    filtered: dict[str, int] = field(default_factory=dict)
    caches: Caches = field(default_factory=dict)
    is_terminated: bool = False
    phase: Phase = Phase.WAITING
    helpers: Callable[[], Sequence[Mapping[str, Any]]] = tuple
    _told: StreamStatus | None = None
    _beaten_s: float = 0.0
    _beating: threading.Lock = field(default_factory=threading.Lock)
    _meter: Meter = field(init=False)

    def __post_init__(self) -> None:
        self._meter = Meter("engine", self.folder)

    def stop_wanted(self) -> bool:
        """Whether somebody asked this stream to stop, by the file `stop` in its folder, or the process to end."""
        return self.is_terminated or stop_wanted(self.folder)

    def check(self) -> None:
        """Makes sure that no other process took the stream over; called before each commit (docs/adr/0014).

        Raises:
            FencedError: one did.
        """
        lease.check(self.lease)

    def beat(
        self,
        state: str,
        *,
        position: int,
        end_position: int,
        now_ts: int | None,
        force: bool = False,
    ) -> None:
        """Renews the lease and writes the status that `fairway status` shows, at most once a second.

        Args:
            state: `running`, `idle` or `stopped`.
            position: the position after the last committed row.
            end_position: the position after the last row of the log.
            now_ts: the stream's clock, us UTC; None when it is not known, then that of earlier runs stays.
            force: write it whatever time has passed.

        Raises:
            FencedError: another process owns the stream by now.
        """
        with self._beating:
            if force or time.monotonic() - self._beaten_s >= BEAT_S:
                self._beat(
                    state, position=position, end_position=end_position, now_ts=now_ts
                )

    def pulse(self) -> None:
        """Says that the process lives and what it is in the middle of, when no beat did for some seconds.

        The counts are those of the last beat; before the first one, those that earlier runs left.

        Raises:
            FencedError: as `beat`.
        """
        with self._beating:
            if time.monotonic() - self._beaten_s >= PULSE_S:
                self._tell(self._told or self._starting())

    def _starting(self) -> StreamStatus:
        """What is said before the first beat."""
        before = self.before or StreamStatus(
            state="starting", beat_ts=0, position=0, end_position=0
        )
        return dataclasses.replace(before, state="starting", engine=self.engine)

    def _tell(self, status: StreamStatus) -> None:
        """Renews the lease, and writes a status with the time of now."""
        self.lease = lease.beat(self.lease, now_us=now_us())
        self._told = dataclasses.replace(
            status,
            beat_ts=now_us(),
            epoch=self.lease.epoch,
            pid=self.lease.owner.pid,
            phase=self.phase,
            workers=[self._meter.read().to_json(), *map(dict, self.helpers())],
        )
        write_status(self.folder, self._told)
        self._beaten_s = time.monotonic()

    def _beat(
        self, state: str, *, position: int, end_position: int, now_ts: int | None
    ) -> None:
        earlier = {
            name: getattr(self.before, name) if self.before else 0 for name in _COUNTS
        }
        counts: dict[str, Any] = {
            name: earlier[name] + self.counts[name] for name in _COUNTS
        }
        if now_ts is None and self.before is not None:
            now_ts = self.before.now_ts
        status = StreamStatus(
            state=state,
            beat_ts=0,
            position=position,
            end_position=end_position,
            now_ts=now_ts,
            engine=self.engine,
            **self._tallies(),
            **counts,
        )
        self._tell(status)

    def _tallies(self) -> dict[str, Any]:
        """What is counted by attribute, reason and kind, with what processes before this one counted."""
        before = self.before
        nulled = Counter(before.nulled if before else {})
        stopped = Counter(before.filtered_out if before else {})
        filtered = Counter(before.filtered if before else {})
        caches = from_json(before.caches) if before else {}
        return {
            "nulled": dict(nulled + Counter(self.nulled)),
            "filtered_out": dict(stopped + Counter(self.filtered_out)),
            "filtered": dict(filtered + Counter(self.filtered)),
            "caches": to_json(summed((caches, self.caches))),
        }


@contextmanager
def owned(home: Home, stream: str, *, engine: str) -> Iterator[Owner]:
    """Takes the stream's lease for the body of a `with`, and records how it ended: exit code and message.

    Args:
        home: the home folder.
        stream: the name of the stream.
        engine: who runs it, for people; `reset` alone may go on where a reset was cut off.

    Raises:
        FencedError: another living process owns the stream.
        StateError: a reset of the stream was cut off.
    """
    folder = home.stream(stream)
    with owned_folder(folder, engine=engine) as owner:
        if engine != "reset" and (folder / RESET_FILE).exists():
            raise StateError(
                f"a reset of stream {stream!r} was cut off",
                hint=f"`fairway streams reset {stream}` again",
            )
        yield owner


@contextmanager
def owned_folder(folder: Path, *, engine: str) -> Iterator[Owner]:
    """Takes the lease of a folder, that of a stream or a delivery, for the body of a `with`; records how it ended.

    Args:
        folder: made when it is absent.
        engine: who runs it, for people.

    Raises:
        FencedError: another living process owns it.
    """
    make_folder(folder)
    owner = Owner(
        folder=folder,
        engine=engine,
        lease=lease.take(folder, now_us=now_us()),
        before=read_status(folder),
    )
    try:
        with _listening(owner):
            yield owner
    except BaseException as error:
        code = error.exit_code if isinstance(error, FairwayError) else 1
        write_exit(folder, code=code, message=str(error) or type(error).__name__)
        raise
    else:
        write_exit(folder, code=0, message="")
    finally:
        lease.release(owner.lease)


@contextmanager
def _listening(owner: Owner) -> Iterator[None]:
    """SIGTERM, by which service managers and containers end a process, asks the owner to stop; a second one ends it."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Python delivers signals to the main thread alone
        return

    def stop(number: int, _frame: object) -> None:
        owner.is_terminated = True
        signal.signal(number, signal.SIG_DFL)

    # Arrow's readers would take the signal for themselves: a read is cancelled then, and nobody is asked to stop.
    pa.enable_signal_handlers(False)  # noqa: FBT003 - its only argument
    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


@contextmanager
def pulsing(owner: Owner) -> Iterator[None]:
    """Lets a thread say that the owner lives while the body starts up, or is in a batch that takes long.

        the body     start-up ..... | a batch of 40 s ......... | batches of 0.1 s
        says                        beat                        beat beat beat
        the thread   pulse   pulse       pulse   pulse   pulse

    A process that hangs as a whole says nothing. One that was taken over says nothing more, and the body finds out by
    its next `check`.

    Args:
        owner: of the stream; it is in its start-up until the body says otherwise.
    """
    owner.phase = Phase.START_UP
    ended = threading.Event()
    thread = threading.Thread(
        target=_pulse, args=(owner, ended), name="pulse", daemon=True
    )
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _pulse(owner: Owner, ended: threading.Event) -> None:
    with suppress(FencedError):
        while not ended.wait(BEAT_S):
            with suppress(StorageError, OSError):  # the body meets a full disk itself
                owner.pulse()
