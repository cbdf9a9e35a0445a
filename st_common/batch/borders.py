"""What a batch run knows where two days meet, kept so that the next day need not begin with the stream's first.

It follows from fixes and statements, so it is a cache: one that is damaged, was made with other settings, or before
late fixes came, is passed over.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date

import pyarrow as pa

from st_common.batch.ordered import fixes_of_days
from st_common.batch.processed import FOLDER, fixes_before
from st_common.batch.trial import Trial
from st_common.config.home import Home
from st_common.engine.statements import Reached
from st_common.engine.states import from_bytes, to_bytes
from st_common.errors import MissingError, StateError
from st_common.history.visits import MEMBERS
from st_common.operations.records import read_record
from st_common.operators.state.state import State
from st_common.record import opened, sealed
from st_common.storage import LocalStorage

_MOST = 40  # of the newest days; of each month before them the first that is there
_HEAD, _STATE, _MEMBERS = ".json", ".state", ".arrow"


@dataclass(frozen=True, slots=True, kw_only=True)
class Border:
    """What a batch run knows when a day begins.

    Attributes:
        day: the day; all before it was seen.
        state: of the step.
        members: who is in, as rows of `visits.MEMBERS`.
        reached: how far statements were read.
        fixes: how many fixes there were before the day.
        late: how many of them came later than the lateness.
    """

    day: date
    state: State
    members: pa.Table
    reached: Reached
    fixes: int
    late: int


class Borders:
    """The borders of one stream that are kept, one for each day at most.

        streams/S/batch/2024-05-02.state     the state of the step
                        2024-05-02.arrow     who is in
                        2024-05-02.json      the rest, and the checksums of both; written last

    Args:
        home: the home folder.
        stream: the name of the stream.
        settings: what else decides answers, as text: a border counts for the same alone.
        trial: whose borders lie in a folder of their own; None: those of the stream itself.
    """

    def __init__(
        self, home: Home, stream: str, settings: str, trial: Trial | None = None
    ) -> None:
        self._home, self._stream, self._settings = home, stream, settings
        self._layers = {} if trial is None else trial.layers(home)
        self._folder = home.stream(stream) / FOLDER / (trial.name if trial else "")
        self._storage = LocalStorage(self._folder)

    def newest(self, upto: date) -> Border | None:
        """The newest border that a run may begin at; None when there is none.

        Fixes that came late into the days before make one stale: there are more than it has seen.

        Args:
            upto: the last day that it may be of.
        """
        days = [day for day in reversed(self._days()) if day <= upto]
        counts = fixes_of_days(self._home, self._stream) if days else {}
        usable = (self._read(day, counts) for day in days)
        return next((border for border in usable if border is not None), None)

    def keep(self, border: Border) -> None:
        """Keeps a border; of many old ones some go (see `surplus`).

        Raises:
            StorageError: the disk is full, or refuses.
        """
        state, members = to_bytes(border.state), _to_bytes(border.members)
        head = {
            "settings": self._settings,
            "segment": border.reached.segment,
            "clock_us": border.reached.clock_us,
            "fixes": border.fixes,
            "late": border.late,
            "sums": [_sum(state), _sum(members)],
            "layers": self._layers,
        }
        self._storage.put(f"{border.day}{_STATE}", state)
        self._storage.put(f"{border.day}{_MEMBERS}", members)
        self._storage.put(f"{border.day}{_HEAD}", sealed(head))
        for day in surplus(self._days(), border.day):
            for suffix in (_HEAD, _STATE, _MEMBERS):
                self._storage.delete(f"{day}{suffix}")

    def _days(self) -> list[date]:
        names = self._storage.names("")  # beside them the record of processed days
        heads = (name for name in names if name[0].isdigit() and name.endswith(_HEAD))
        return sorted(date.fromisoformat(name.removesuffix(_HEAD)) for name in heads)

    def _read(self, day: date, counts: Mapping[date, int]) -> Border | None:
        fixes = fixes_before(self._home, self._stream, day, counts)
        try:
            head = opened(self._storage.read(f"{day}{_HEAD}"))
            if head["settings"] != self._settings or head["fixes"] != fixes:
                return None
            state = self._storage.read(f"{day}{_STATE}")
            members = self._storage.read(f"{day}{_MEMBERS}")
        except (MissingError, ValueError):
            return None
        if head["sums"] != [_sum(state), _sum(members)]:
            return None
        try:
            read = from_bytes(state, f"{self._folder / str(day)}{_STATE}")
        except StateError:  # of an older format
            return None
        inside = pa.ipc.open_stream(members).read_all()
        if inside.schema != MEMBERS:  # kept before members had all of these columns
            return None
        reached = Reached(segment=head["segment"], clock_us=head["clock_us"])
        return Border(
            day=day,
            state=read,
            members=inside,
            reached=reached,
            fixes=fixes,
            late=head["late"],
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """What a border that is kept needs to go on from.

    Attributes:
        trial: whose it is; "" of the stream itself.
        segment: it goes on with the statements of the log from there.
        layers: the versions of layers that the trial says, beside those of the log; None: an older version of
            Fairway did not note them.
    """

    trial: str
    segment: int
    layers: Mapping[str, int] | None


def kept_borders(home: Home, stream: str) -> Iterator[Kept]:
    """All borders of a stream and its trials; one that cannot be read needs all of the log.

    Args:
        home: the home folder.
        stream: the name of the stream.
    """
    folder = home.stream(stream) / FOLDER
    for path in sorted(folder.rglob(f"[0-9]*{_HEAD}")):
        trial = "" if path.parent == folder else path.parent.name
        head = read_record(path) or {}
        layers = head.get("layers", None if trial else {})
        yield Kept(trial=trial, segment=int(head.get("segment", 0)), layers=layers)


def surplus(days: Sequence[date], kept: date) -> list[date]:
    """The days whose borders go: old ones that are neither the first of their month nor the one that was just kept.

        40 newest: all    before them: 2024-01-01, 2024-02-01, ..    a backfill that is at 2024-02-17: that day, too

    Args:
        days: those that have one, rising.
        kept: the day of the border that was just kept.
    """
    months: set[tuple[int, int]] = set()
    gone: list[date] = []
    for day in days[:-_MOST]:
        month = (day.year, day.month)
        if month in months and day != kept:
            gone.append(day)
        months.add(month)
    return gone


def _to_bytes(members: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, MEMBERS) as writer:
        writer.write_table(members.select(MEMBERS.names).cast(MEMBERS))
    data: bytes = sink.getvalue().to_pybytes()
    return data


def _sum(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
