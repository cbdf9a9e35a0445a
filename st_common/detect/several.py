"""What the files of a folder or of a zip are: the settings of the first one that has records, tried on all others.

`fairway replay FOLDER` judges each of its files by one stream's settings, and so does this.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.detect.head import SECONDS
from st_common.detect.refused import refuse_known
from st_common.detect.report import Detected, detect
from st_common.errors import ConfigError
from st_common.geometry.extent import Box
from st_common.replay.source import NamedFile, files_of, opened
from st_common.replay.zipped import is_zip, shown_name

_BLANK_BYTES = 1 << 12


def detect_any(
    place: str,
    given: StreamSettings | None = None,
    *,
    owner: str | None = None,
    named: Mapping[str, str] = MappingProxyType({}),
    kept: Sequence[str] = (),
    seconds: float = SECONDS,
) -> Detected:
    """What a file, a folder, a zip, or the answer of an address is; see `report.detect`.

    Raises:
        ConfigError: as `detect`; or all files are empty.
        TransientError: the address does not answer, or nothing comes.
    """
    path = Path(place)
    if path.is_dir() or is_zip(path):
        refuse_known(path)
        files = [NamedFile(each, shown_name(str(each))) for each in files_of(path)]
        _refuse_timetable(path, files)
        return detect_each(files, given, owner=owner, named=named, kept=kept)
    return detect(place, given, owner=owner, named=named, kept=kept, seconds=seconds)


def detect_each(
    files: Sequence[NamedFile],
    given: StreamSettings | None = None,
    *,
    owner: str | None = None,
    named: Mapping[str, str] = MappingProxyType({}),
    kept: Sequence[str] = (),
) -> Detected:
    """What some files are that are one replay: the settings of the first one that holds anything, tried on all.

    Returns:
        What was seen in all of them; where one of them would not be replayed, what is wrong with that one.

    Raises:
        ConfigError: one cannot be read, or all are empty.
    """
    filled = [one for one in files if len(files) == 1 or not _is_blank(one.path)]
    if not filled:
        raise ConfigError(f"all {len(files)} files are empty", hint="name another file")
    first, *others = filled
    seen = detect(str(first.path), given, owner=owner, named=named, kept=kept)
    if not others:
        return seen
    stream = given
    if given is None:
        seen = _by_file(seen, first)
        stream = stream_of_table("feed", seen.table, first.path)
    for one in others:
        own = detect(str(one.path), stream)
        if not own.is_readable:
            return replace(own, table=seen.table, place=one.name)
        seen = _together(seen, own)
    note = f"{len(files):,} files, all read by the settings that fit {first.name}"
    return replace(seen, notes=(note, *seen.notes))


def _refuse_timetable(path: Path, files: Sequence[NamedFile]) -> None:
    """GTFS is many tables in a zip, and none of them has fixes."""
    if {"stops.txt", "trips.txt"} <= {one.path.name for one in files}:
        raise ConfigError(
            f"{path} is a timetable (GTFS), which says where stops are and no vehicle",
            hint=f"fairway layer load stops {path} reads its stops; vehicles are in a feed of GTFS-realtime",
        )


def _by_file(seen: Detected, first: NamedFile) -> Detected:
    """What was seen, where records say no object: it is the file that says it, for there are several."""
    columns = seen.table["columns"]
    if not isinstance(columns.get("object"), dict):
        return seen
    table = {**seen.table, "columns": {**columns, "object": {"from": "file name"}}}
    again = detect(str(first.path), stream_of_table("feed", table, first.path))
    note = (
        "no column tells objects apart: each file is one object, called as the file is"
    )
    return replace(again, table=table, notes=(note, *again.notes))


def _is_blank(path: Path) -> bool:
    with opened(path) as file:
        return not file.source.read(_BLANK_BYTES).strip()


def _together(one: Detected, other: Detected) -> Detected:
    reasons = Counter(one.reasons) + Counter(other.reasons)
    times = [each.newest_us for each in (one, other) if each.newest_us is not None]
    return replace(
        one,
        records=one.records + other.records,
        good=one.good + other.good,
        reasons=dict(reasons.most_common()),
        notes=tuple(dict.fromkeys((*one.notes, *other.notes))),
        extent=_around(one.extent, other.extent),
        is_whole=one.is_whole and other.is_whole,
        mend=one.mend or other.mend,
        odd=one.odd or other.odd,
        newest_us=max(times, default=None),
        at_once=one.at_once + other.at_once,
    )


def _around(one: Box | None, other: Box | None) -> Box | None:
    """The extent of two extents."""
    if one is None or other is None:
        return one if other is None else other
    return (
        min(one[0], other[0]),
        min(one[1], other[1]),
        max(one[2], other[2]),
        max(one[3], other[3]),
    )
