"""Which shards follow all objects, and which their own alone: in eras of a stream in tasks that stay (docs/adr/0083).

A shard needs the fixes of others while it judges a query that asks where others are, as KNN does. All other shards get
their own: so what a shard does falls with their number. An era is a part of the log with one answer to that.

    segment             0 ........ 180 ................. 240 .......
                        boxes      REGISTER .. KNN ..    DROP
    follow all objects  nobody     the shard of the KNN  nobody

At a border the states of all shards are stored, made one, and split anew, as a reshard does.
"""

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from st_common.engine.others import NOBODY, Shards, everybody
from st_common.engine.states import States
from st_common.errors import StateError
from st_common.home import Home
from st_common.operators.runtime.reshape import joined, split
from st_common.ops.records import read_record, write_record
from st_common.position import position_of
from st_common.spark.modes import folder_of
from st_common.spark.source import Feed
from st_common.storage import LocalStorage

_FILE = "eras.json"
_KEPT = 2
"""So many of the last eras keep their states: a table that was put back may need those before the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Era:
    """A part of the log.

    Attributes:
        start: its first segment.
        following: the shards that follow all objects.
    """

    start: int
    following: Shards

    @property
    def folder(self) -> str:
        """The name of the folder with its states: the shards that follow all are bits of a hexadecimal number.

        segment 180, shards 0 and 5   ->   000000000180-21
        """
        bits = sum(1 << shard for shard in self.following)
        return f"{self.start:012d}-{bits:x}"

    def to_json(self) -> dict[str, Any]:
        """As JSON values; `from_json` gives it back."""
        return {"start": self.start, "following": sorted(self.following)}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "Era":
        """What `to_json` gave."""
        return Era(start=value["start"], following=frozenset(value["following"]))


def states_of(home: Home, stream: str, era: Era, shard: int) -> States:
    """The states of a shard in an era."""
    folder = folder_of(home, stream) / era.folder / f"{shard:04d}"
    return States(LocalStorage(folder), folder)


def era_of(home: Home, feed: Feed, *, committed: int) -> Era:
    """The era in which a stream goes on; at its first start one begins.

    Where the table was put back to an older version, eras that began behind its end are forgotten: they begin anew.

    Args:
        home: the home folder.
        feed: the stream.
        committed: the last position that the table has.
    """
    known = _known(home, feed.stream.name)
    kept = [
        era for era in known[1:] if position_of(era.start, 0) - 1 <= committed
    ]  # the first one may begin before anything was told
    eras = [*known[:1], *kept]
    if not eras:
        # What a reshard left is split as micro-batches need it.
        has_all = feed.stream.moving and feed.seed is not None
        following = everybody(len(feed.keys)) if has_all else NOBODY
        eras = [Era(start=feed.start, following=following)]
    if eras != known:
        _write(home, feed.stream.name, eras)
    return eras[-1]


def begin_era(
    home: Home, feed: Feed, before: Era, *, start: int, following: Shards
) -> Era:
    """Begins an era behind another one, from the states that its shards have stored at that place.

    A crash leaves the one before in force, or this one: what is under way can be done again.

    Args:
        home: the home folder.
        feed: the stream.
        before: the era that ends.
        start: the first segment of the new one.
        following: the shards that follow all objects in it.

    Raises:
        StateError: a shard has stored no state at that place.
    """
    era, name = Era(start=start, following=following), feed.stream.name
    shards = len(feed.keys)
    shutil.rmtree(folder_of(home, name) / era.folder, ignore_errors=True)
    if start > feed.start:  # else no shard has a state yet
        upto = position_of(start, 0) - 1
        stored = [states_of(home, name, before, n) for n in range(shards)]
        states = [one.newest(upto=upto) for one in stored]
        if any(state.next_segment != start for state in states):
            places = sorted({state.next_segment for state in states})
            raise StateError(
                f"states of stream {name!r} stand at {places}, not {start}"
            )
        whole = joined(states, following=before.following)
        parts = split(whole, shards=shards, following=following)
        for shard, state in enumerate(parts):
            states_of(home, name, era, shard).store(state)
    _write(home, name, [*_known(home, name), era])
    return era


def _known(home: Home, stream: str) -> list[Era]:
    record = read_record(_path(home, stream)) or {}
    return [Era.from_json(one) for one in record.get("eras", ())]


def _write(home: Home, stream: str, eras: Sequence[Era]) -> None:
    """Puts eras in force, and lets go of the states of those long before."""
    kept = [eras[0], *eras[1:][-_KEPT:]]
    write_record(_path(home, stream), {"eras": [era.to_json() for era in kept]})
    names = {era.folder for era in kept}
    for folder in folder_of(home, stream).iterdir():
        if folder.is_dir() and folder.name not in names:
            shutil.rmtree(folder, ignore_errors=True)


def _path(home: Home, stream: str) -> Path:
    return folder_of(home, stream) / _FILE


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
