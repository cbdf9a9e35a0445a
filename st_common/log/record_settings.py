"""By which settings the records of a log are read: they stand in the log, so that every reader uses the same ones.

    log/reading.json                        {"upto": 0, "base": {...}, "anew": 0}
    a control row `Reading`                 from here on by these

A segment is read by the newest such row in front of it; where there is none, by `base`, which whoever captures first
has put there, else the engine that reads first. A reset that reads all anew sets `upto` to the log's end: the rows
before it count no longer. Packets before it, from `anew` on, are decoded from their raw bytes, which are kept for that;
earlier ones, whose raw bytes are gone, stay as they were decoded. `base` null says that nobody has read the log yet:
the next engine will say.
"""

import dataclasses
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from st_common.config.columns import YOUNGER, columns_of_json
from st_common.config.entry_filter import entry_filter_of_json
from st_common.config.home import Home
from st_common.config.position_filter import PositionFilter
from st_common.config.stream import StreamSettings
from st_common.controls.reading import chosen
from st_common.controls.rows import Reading as ReadingRow
from st_common.controls.writing import to_bytes
from st_common.errors import ConfigError, LogError, StateError
from st_common.formats.registry import format_of
from st_common.log.control import control_rows
from st_common.log.log import Log
from st_common.log.segment import NONE, Segment, reading_behind
from st_common.record import opened, sealed

NAMES = (
    "format",
    "columns",
    "time_unit",
    "time_zone",
    "attributes",
    "units",
    "header",
    "encoding",
    "decimal",
    "coordinates",
    "place_order",
    "delimiter",
    "quote",
    "records",
    "nulls",
    "max_ahead_s",
    "where",
    "drop_null_island",
    "cleaning",
    "position_filter",
)
_WHEN_SET = {
    "position_filter": None,
    "records": None,
    "where": None,
    "drop_null_island": None,
    "cleaning": 0,
    "time_zone": None,
    "encoding": "utf-8",
    "decimal": ".",
    "coordinates": "degrees",
    "place_order": None,
}  # younger than many logs: what is off is not said
KEY = "reading.json"
_AT_ONCE = 64  # segments: among the first there are records, as a rule

Reading = Mapping[str, Any]


def reading_of(stream: StreamSettings) -> dict[str, Any]:
    """The settings that decide how a record is read, by name, as JSON values: those in `NAMES`.

    A setting that is younger than many logs is left out while it is off, so that older logs compare as equal.
    """
    values = dataclasses.asdict(stream)
    said = {
        name: values[name]
        for name in NAMES
        if name not in _WHEN_SET or values[name] != _WHEN_SET[name]
    }
    said["columns"] = {
        key: value
        for key, value in values["columns"].items()
        if key not in YOUNGER or value != YOUNGER[key]
    }
    plain: dict[str, Any] = json.loads(json.dumps(said))
    return plain


def with_reading(
    stream: StreamSettings, reading: Reading, *, where: str
) -> StreamSettings:
    """The settings of a stream, with those that decide how records are read replaced.

    Args:
        stream: the settings.
        reading: as `reading_of` gives it; what an older one does not say is the default.
        where: what says it, for people; errors name it.

    Raises:
        LogError: it says what this version does not know, or is of a wrong form.
    """
    unknown = sorted(set(reading) - set(NAMES))
    if unknown:
        said = ", ".join(f"{name} = {reading[name]!r}" for name in unknown)
        raise LogError(
            f"{where}: records are to be read by {said}, which is unknown",
            hint="a newer version of Fairway wrote it: go on with that version",
        )
    try:
        values = {**_DEFAULTS, **reading, "format": reading["format"]}
        format_of(values["format"])
        values["columns"] = columns_of_json(reading["columns"])
        values["nulls"] = tuple(values["nulls"])
        where_ = values["where"]
        values["where"] = None if where_ is None else entry_filter_of_json(where_)
        judged_by = values["position_filter"]
        if judged_by is not None:
            values["position_filter"] = PositionFilter(**judged_by)
    except ConfigError as error:
        raise LogError(
            f"{where}: {error.message}",
            hint="go on with the version of Fairway, and the packages, that wrote it",
        ) from None
    except (KeyError, TypeError, ValueError) as error:
        raise LogError(
            f"{where}: it says in a wrong form how records are read: {error}",
            hint="restore the log",
        ) from None
    return replace(stream, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The content of `log/reading.json`.

    Attributes:
        base: how records are read in front of the first row that says so; None: nobody has read the log yet.
        upto: rows before this segment do not count any more, because a reset read all anew.
        anew: packets from this segment up to `upto` are decoded from their raw bytes.
        tag: names this very content, for `Storage.replace`; None when there is no such object.
    """

    base: Reading | None = None
    upto: int = 0
    anew: int = 0
    tag: str | None = None

    def number_for(self, reading_before: int) -> int:
        """The row that counts, of all readings before some place; -1 for the base.

            upto 10:   reading_before -1, 5, 10, 12   ->   -1, -1, 10, 12

        Args:
            reading_before: the newest segment with such a row in front of the place, -1 for none.
        """
        return reading_before if reading_before >= self.upto else NONE


def record_of(log: Log) -> Record:
    """How the first records of a log are read; an empty record when nobody has said so.

    Raises:
        LogError: what says so was damaged.
    """
    stored = log.storage.tagged(KEY)
    if stored is None:
        return Record()
    try:
        value = opened(stored[0])
        return Record(
            base=value["base"],
            upto=int(value["upto"]),
            anew=int(value.get("anew", 0)),
            tag=stored[1],
        )
    except (ValueError, KeyError, TypeError):
        raise LogError(
            f"{KEY} of the log cannot be read",
            hint="it says how records are read; restore it",
        ) from None


class Readings:
    """Finds the settings by which each segment of a log is read, and remembers them (docs/adr/0022).

        segment           0      1      2     3    4       R a control row `reading`, . records
                          .      .      R     .    .
        reading before   -1     -1     -1     2    2
        read by          base   base          R    R

    Args:
        log: the log; its record of readings is read once, here.
        stream: has what does not change, and how records are read where nobody has said so.

    Raises:
        LogError: the record of readings is damaged.
    """

    def __init__(self, log: Log, stream: StreamSettings) -> None:
        self._log, self._stream, self._record = log, stream, record_of(log)
        self._made: dict[int, StreamSettings] = {}

    def of(self, segment: Segment) -> StreamSettings:
        """The settings in force at a segment; those that the stream has now, where nobody has said any.

        Raises:
            LogError: the row that says them is damaged, or of a newer version.
        """
        number = self._record.number_for(segment.reading_before)
        if number not in self._made:
            standing = _standing(self._log, self._record, number)
            self._made[number] = (
                self._stream
                if standing is None
                else with_reading(self._stream, standing, where=self._place(number))
            )
        return self._made[number]

    def _place(self, number: int) -> str:
        what = KEY if number == NONE else f"segment {number}, row 1"
        return f"stream {self._log.stream}: {what}"

    def was_reset(self, segment: Segment) -> bool:
        """Whether a segment was captured before the last reset, perhaps by other settings than it is read by now."""
        return segment.number < self._record.upto

    def is_anew(self, segment: Segment) -> bool:
        """Whether a packet has to be decoded from its raw bytes again, because of a reset."""
        return self._record.anew <= segment.number < self._record.upto


def log_for(home: Home, stream: StreamSettings) -> Log:
    """The log of a stream, opened for appending records that are read by its settings. Opening touches nothing.

    Args:
        home: where the log lies.
        stream: the settings. Each append makes sure that they are those in force, even when another process has changed
            them in between, and may raise what `settle` raises.
    """
    log = Log(home.log(stream.name))
    log.settle_by(partial(settle, log, stream))
    return log


def settle(
    log: Log, stream: StreamSettings, *, begun: StreamSettings | None = None
) -> int | None:
    """Makes sure that what is appended next is read as the settings say; writes a control row `reading` if need be.

    What this `log` appends later is settled again, under its lock, each time.

    Args:
        log: the log of the stream.
        stream: the settings.
        begun: by which settings an engine reads records that nobody has said a reading of; None for a capture, which
            says it of an empty log alone.

    Returns:
        The segment of the new row; None when the settings were in force already.

    Raises:
        StateError: an attribute has another type than before; no table could hold both.
        LogError: the log is damaged.
    """
    wanted = reading_of(stream)
    log.settle_by(partial(settle, log, stream))
    with log.locked():
        record = record_of(log)
        if record.base is None and (begun is not None or not _has_records(log)):
            record = replace(record, base=reading_of(begun or stream))
            put(log, record)
        end = log.end()
        last = log.segment(end - 1) if end else None
        newest = reading_behind(last)
        if _standing(log, record, record.number_for(newest)) == wanted:
            return None
        _check_types(stream, _all(log, record, newest))
        return log.append(
            to_bytes(ReadingRow(reading=wanted)),
            arrival_us=last.arrival_us if last else 0,
            reading=True,
        ).number


def put(log: Log, record: Record) -> None:
    """Replaces the record of how the first records of a log are read.

    Args:
        log: the log.
        record: its `tag` names the content that it replaces.

    Raises:
        ConflictError: another process did so in between.
    """
    said = {"upto": record.upto, "base": record.base, "anew": record.anew}
    log.storage.replace(KEY, sealed(said), tag=record.tag)


def begin_anew(log: Log) -> int:
    """Marks all of a log to be read anew, by the settings of the engine that reads it next.

    Packets are decoded from their raw bytes then, from the first one on behind which no raw bytes are missing; those
    before keep what was decoded at capture.

    Returns:
        How many packets stay as they were decoded.
    """
    with log.locked():
        packets = [one for one in log.segments(log.first()) if one.packet]
        bare = [
            place for place, segment in enumerate(packets) if not log.has_raw(segment)
        ]
        kept = bare[-1] + 1 if bare else 0
        anew = packets[kept - 1].number + 1 if kept else 0
        put(log, replace(record_of(log), base=None, upto=log.end(), anew=anew))
    return kept


def _has_records(log: Log) -> bool:
    start = log.first()
    if log.purged_before():
        return True
    while segments := log.segments(start, max_segments=_AT_ONCE):
        if any(not one.control for one in segments):
            return True
        start += len(segments)
    return False


def _standing(log: Log, record: Record, number: int) -> Reading | None:
    """What the row of this number says; of one that is passed over the row before it, of none the base."""
    while number != NONE:
        segment = log.segment(number)
        if not segment.skipped:
            return _said(log, segment)
        number = record.number_for(segment.reading_before)
    return record.base


def _said(log: Log, segment: Segment) -> Reading:
    said = [row.reading for _, row in chosen(control_rows(log, segment), ReadingRow)]
    if len(said) != 1:
        raise LogError(
            f"{log.place(segment.number)} does not say how records are read",
            hint="restore it from a copy",
        )
    return said[0]


def _all(log: Log, record: Record, number: int) -> Iterator[Reading]:
    """All readings that count in a log, the newest first."""
    while (number := record.number_for(number)) != NONE:
        segment = log.segment(number)
        if not segment.skipped:
            yield _said(log, segment)
        number = segment.reading_before
    if record.base is not None:
        yield record.base


def _check_types(stream: StreamSettings, readings: Iterator[Reading]) -> None:
    for reading in readings:
        known = {
            name.casefold(): (name, kind)
            for name, kind in reading.get("attributes", {}).items()
        }
        for name, kind in stream.attributes.items():
            before = known.get(name.casefold(), (name, kind))
            if before != (name, kind):
                raise StateError(
                    f"stream {stream.name!r} was begun with the attribute {before[0]} = {before[1]!r}, "
                    f"now it is {name} = {kind!r}",
                    hint=f"set it back, or `fairway streams reset {stream.name}` begins the stream anew from its log",
                )


_DEFAULTS: dict[str, Any] = {
    field.name: {} if field.default is dataclasses.MISSING else field.default
    for field in dataclasses.fields(StreamSettings)
    if field.name in NAMES and field.name not in ("format", "columns")
}
