"""Which shards follow all objects, and which their own alone: in eras of a stream in tasks that stay (docs/adr/0083).

A shard needs the fixes of others while it judges a query that asks where others are, as KNN does. All other shards get
their own: so what a shard does falls with their number. An era is a part of the log with one answer to that.

    segment             0 ........ 180 ................. 240 .......
                        boxes      REGISTER .. KNN ..    DROP
    follow all objects  nobody     the shard of the KNN  nobody

At a border the states of all shards are stored, made one, and split anew, as a reshard does.

Where the queries of many shards ask who is near an object, shards know guests instead, and these queries are dealt to
them by place (docs/adr/0100).
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_common.config.home import Home
from st_common.engine.cross_shard import NOBODY, Asking, Shards, everybody
from st_common.engine.export import seed_path
from st_common.engine.states import States, load
from st_common.errors import StateError
from st_common.operations.records import read_record, write_record
from st_common.operators.guests.dealing import dealt_by_place
from st_common.operators.runtime.reshape import joined, split
from st_common.operators.state.state import State
from st_common.position import position_of
from st_common.spark.task_settings import TaskSettings, tasks_folder
from st_common.storage import LocalStorage

_FILE = "eras.json"
_KEPT = 2
"""So many of the last eras keep their states: a table that was put back may need those before the newest."""


_FEWEST_SHARDS, _SPARED = 3, 4
"""Guests are known where there are so many shards, and more than a quarter of them need not follow all objects then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """A part of the log.

    Attributes:
        start: its first segment.
        following: the shards that follow all objects.
        by_reach: whether the others know guests: objects that come into the reach of their queries.
    """

    start: int
    following: Shards
    by_reach: bool = False

    @property
    def folder(self) -> str:
        """The name of the folder with its states: the shards that follow all are bits of a hexadecimal number.

        segment 180, shards 0 and 5                             ->   000000000180-21
        the same, and the others know guests                    ->   000000000180-21-r
        """
        bits = sum(1 << shard for shard in self.following)
        return f"{self.start:012d}-{bits:x}{'-r' if self.by_reach else ''}"

    def to_json(self) -> dict[str, Any]:
        """As JSON values; `from_json` gives it back."""
        return {
            "start": self.start,
            "following": sorted(self.following),
            "by_reach": self.by_reach,
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "Era":
        """What `to_json` gave."""
        return Era(
            start=value["start"],
            following=frozenset(value["following"]),
            by_reach=value.get("by_reach", False),
        )


def states_of(home: Home, stream: str, era: Era, shard: int) -> States:
    """The states of a shard in an era."""
    folder = tasks_folder(home, stream) / era.folder / f"{shard:04d}"
    return States(LocalStorage(folder), folder)


def newest_state(states: States, feed: TaskSettings, shard: int, *, upto: int) -> State:
    """The newest state of a shard up to a position; where there is none, what a reshard left it."""
    state = states.newest(upto=upto)
    if state.next_segment == 0 and feed.seed is not None:
        return load(seed_path(Path(feed.seed), shard))
    return state


def era_at(home: Home, feed: TaskSettings, *, upto: int) -> Era:
    """The era that a position is in, without those that began behind it; see `era_of`."""
    return _eras(home, feed, upto)[-1]


def era_of(home: Home, feed: TaskSettings, *, committed: int) -> Era:
    """The era in which a stream goes on; at its first start one begins.

    Where the table was put back to an older version, eras that began behind its end are forgotten: they begin anew.

    Args:
        home: the home folder.
        feed: the stream.
        committed: the last position that the table has.
    """
    eras = _eras(home, feed, committed)
    if eras != _known(home, feed.stream.name):
        _write(home, feed.stream.name, eras)
    return eras[-1]


def _eras(home: Home, feed: TaskSettings, committed: int) -> list[Era]:
    known = _known(home, feed.stream.name)
    kept = [
        era for era in known[1:] if position_of(era.start, 0) - 1 <= committed
    ]  # the first one may begin before anything was told
    eras = [*known[:1], *kept]
    if not eras:
        # A reshard leaves every shard all objects, for it does not know who asks where others are.
        has_all = feed.stream.moving and feed.seed is not None
        following = everybody(feed.shards) if has_all else NOBODY
        eras = [Era(start=feed.start, following=following)]
    return eras


def begin_era(
    home: Home, feed: TaskSettings, before: Era, era: Era, *, needed: int | None = None
) -> Era:
    """Begins an era behind another one, from the states that its shards have stored at that place.

    A crash leaves the one before in force, or this one: what is under way can be done again.

    Args:
        home: the home folder.
        feed: the stream.
        before: the era that ends.
        era: the new one.
        needed: the segment from which on a start may read; the era that it is in keeps its states.

    Raises:
        StateError: a shard has stored no state at that place.
    """
    name = feed.stream.name
    shutil.rmtree(tasks_folder(home, name) / era.folder, ignore_errors=True)
    if era.start > feed.start:  # else no shard has a state yet
        parts = _split(_stored(home, feed, before, era.start), feed, era)
        for shard, state in enumerate(parts):
            states_of(home, name, era, shard).store(state)
    _write(home, name, [*_known(home, name), era], needed)
    return era


def _stored(home: Home, feed: TaskSettings, era: Era, place: int) -> State:
    """What all shards have stored at a place, as one state.

    Raises:
        StateError: not all have.
    """
    name, upto = feed.stream.name, position_of(place, 0) - 1
    stored = [states_of(home, name, era, n) for n in range(feed.shards)]
    states = [one.newest(upto=upto) for one in stored]
    if any(state.next_segment != place for state in states):
        places = sorted({state.next_segment for state in states})
        raise StateError(f"states of stream {name!r} stand at {places}, not {place}")
    return joined(states, following=era.following, guests=era.by_reach)


def _split(whole: State, feed: TaskSettings, era: Era) -> list[State]:
    """What the shards of an era know at its start."""
    shards = feed.shards
    if era.by_reach:
        whole = whole.of_key(feed.stream.id_key)
        whole = dealt_by_place(whole, everybody(shards) - era.following)
    return split(whole, shards=shards, following=era.following, guests=era.by_reach)


def _known(home: Home, stream: str) -> list[Era]:
    record = read_record(_path(home, stream)) or {}
    return [Era.from_json(one) for one in record.get("eras", ())]


def _write(
    home: Home, stream: str, eras: Sequence[Era], needed: int | None = None
) -> None:
    """Puts eras in force, and lets go of the states of those long before."""
    begun = [n for n, era in enumerate(eras) if needed is None or era.start <= needed]
    first = min(begun[-1] if begun else 0, len(eras) - _KEPT)
    kept = [eras[0], *eras[max(first, 1) :]]
    write_record(_path(home, stream), {"eras": [era.to_json() for era in kept]})
    names = {era.folder for era in kept}
    for folder in tasks_folder(home, stream).iterdir():
        if folder.is_dir() and folder.name not in names:
            shutil.rmtree(folder, ignore_errors=True)


def _path(home: Home, stream: str) -> Path:
    return tasks_folder(home, stream) / _FILE


def wider(era: Era, asked: Shards, *, shards: int) -> Shards:
    """Who follows all objects once some shards must: at least twice as many as before, so that borders stay few.

        of 8 shards 2 follows all,      5 must too   ->   2, 5
        of 8 shards 2 and 5 follow all, 7 must too   ->   2, 5, 7, and 0

    Args:
        era: in force.
        asked: shards that must follow all objects, some of them not yet.
        shards: how many there are.
    """
    must = era.following | asked
    others = sorted(everybody(shards) - must)
    lacking = max(2 * len(era.following) - len(must), 0)
    return must | frozenset(others[:lacking])


def knows_guests(era: Era, asking: Asking, *, shards: int) -> bool:
    """Whether shards had better know guests than follow all objects.

    Once they do, they go on until nobody asks who is near: borders stay few.

        of 8 shards 3 judge queries that ask who is near                          yes
        of 8 shards 2 do, or 8 judge queries that ask of anybody                  no

    Args:
        era: in force.
        asking: the shards that judge queries which ask where others are, as their names fall.
        shards: how many there are.
    """
    if era.by_reach:
        return bool(asking.nearby)
    spared = asking.nearby - asking.anywhere
    return shards >= _FEWEST_SHARDS and _SPARED * len(spared) > shards
