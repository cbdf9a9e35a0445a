"""What a file or a feed is, as a stream's settings, and how well it can be read by them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.decode import fixes_schema
from st_common.decode.zones import quarters_ahead
from st_common.detect.attributes import Other, notes_of_others
from st_common.detect.columns import Guess, guessed
from st_common.detect.form import Form, form_of
from st_common.detect.head import SECONDS, Head, is_address, read_head
from st_common.detect.live import is_live
from st_common.detect.order import notes_of_order
from st_common.detect.refused import (
    refuse_known,
    refuse_lines_of_points,
    refuse_lists_of_points,
    refuse_tables_of_json,
)
from st_common.detect.rows import rows_of
from st_common.errors import ConfigError
from st_common.formats.csv_records import headers_told
from st_common.formats.encodings import UTF8
from st_common.formats.registry import format_of
from st_common.formats.stamped import is_stamped_text
from st_common.geometry.extent import Box, extent_of_rows
from st_common.replay.files import wall_clock
from st_common.replay.readable import whole_sample_of
from st_common.replay.sample import Sample, sample_of_bytes
from st_common.replay.source import name_of, on_disk
from st_common.replay.tally import Tally

SHOWN = 5
_NAME = "feed"
_OWN: dict[str, dict[str, Any]] = {
    "gtfs-rt": {"object": "vehicle_id", "event_ts": "timestamp"},
    "ais": {"object": "mmsi", "event_ts": "time"},
    "sbs1": {"object": "hex", "event_ts": "time"},
    "hfp": {"object": ["operator_id", "vehicle_number"], "event_ts": "tst"},
    "gpx": {"object": "trk/name", "event_ts": "time"},
    "opensky": {"object": "icao24", "event_ts": "time_position"},
    "nmea": {"object": "device", "event_ts": "time"},
    "owntracks": {"object": "device_id", "event_ts": "tst"},
    "traccar": {"object": "deviceId", "event_ts": "fixTime"},
    "readsb": {"object": "hex", "event_ts": "time"},
}
"""The object and the time of formats whose columns have names of their own."""
_OTHER_OBJECTS: Mapping[str, Sequence[str]] = {
    "gtfs-rt": ("trip_id", "label", "license_plate"),
    "gpx": ("name",),
    "opensky": ("callsign",),
}
"""What may be the object in these formats where most records have none of the first."""
_PLACES = {"gtfs-rt": ("longitude", "latitude"), "gpx": ("lon", "lat")}
_LONGITUDE = ("longitude", "latitude")
OPTION_OF = {
    "object": "--object",
    "event_ts": "--time",
    "x": "--x",
    "y": "--y",
    "place": "--place",
}
"""The option that names the column of a part of a fix."""
_NOTE_OF_ONE = (
    "no column tells objects apart: all records are taken for one object; --object COLUMN names a column of ids, "
    'and object = { from = "file name" } calls each by its file, where every device has its own'
)
_NOTE_OF_STAMPS = (
    "each line has a stamp in front; time, which the receiver wrote, is taken for the time; "
    'also fits: event_ts = "received", with the time_unit of the stamps'
)
_FEW = 100
"""One in so many fixes of a device may have the time of another one."""
ALL = "all"
"""Stands for all columns that can be attributes; where there are none it is refused."""
IF_ANY = "if any"
"""Stands for all of them too, be there some or none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Detected:
    """What was seen.

    Attributes:
        place: of what, for people.
        table: the keys of the stream's settings.
        fixes: the first fixes, at most `SHOWN`.
        records: how many records were looked at.
        good: how many of these are fixes.
        reasons: how many are rejects, by reason.
        notes: what people should look at.
        extent: the least and greatest x and y of the fixes: minx, miny, maxx, maxy; None without any.
        is_whole: whether these were all records that there are.
        is_timeless: whether a record's time is its arrival, for no column has one.
        mend: what is likely to mend it, where most records are rejects, or their dates odd; "" else.
        odd: what is odd about most dates, so that nothing is proposed; "" else.
        order: what the order of event times means for a replay and for a feed.
        at_once: how many of the fixes have the time of another one.
        newest_us: the largest time of a fix (us UTC); None: there is none.
    """

    place: str
    table: dict[str, Any]
    fixes: pa.Table
    records: int
    good: int
    reasons: dict[str, int]
    notes: tuple[str, ...]
    extent: Box | None
    is_whole: bool
    is_timeless: bool = False
    mend: str = ""
    odd: str = ""
    newest_us: int | None = None
    at_once: int = 0
    order: tuple[str, ...] = ()

    @property
    def is_readable(self) -> bool:
        """Whether it would be replayed: most records about positions are fixes, and most dates not odd."""
        return not self.mend

    @property
    def is_known(self) -> bool:
        """Whether the settings say all: those of a header without records do not say how times are written."""
        own = self.table.get("format") in _OWN
        return self.records > 0 or own


def detect(
    place: str,
    given: StreamSettings | None = None,
    *,
    owner: str | None = None,
    named: Mapping[str, str] = MappingProxyType({}),
    kept: Sequence[str] = (),
    seconds: float = SECONDS,
) -> Detected:
    """What a file, or the answer of an address, is.

    Args:
        place: the file or the address; `-` is standard input.
        given: settings that are tried in place of guessed ones.
        owner: the column of objects; None: it is guessed.
        named: columns of other parts of a fix, by their keys in the settings' `columns`: `event_ts`, `x`, `y`, `place`.
        kept: the columns that become attributes; `all` of them.
        seconds: how long a socket or standard input is read.

    Raises:
        ConfigError: it cannot be read, or is of no format that is known, or has no column of objects or places.
        TransientError: the address does not answer, or nothing comes.
    """
    if not is_live(place) and not is_address(place):
        refuse_known(Path(place))
    head = read_head(place, seconds=seconds)
    if given is not None:
        return _tried(head, _sample(head, given), given, {}, ())
    if head.is_whole and head.data.lstrip().startswith(b"{"):
        refuse_tables_of_json(head.data, place)
    form = form_of(head.data, place)
    probe = _probe(form)
    sample = _sample(head, probe)
    rows = rows_of(sample.payloads, probe, form.names) if form.names else ()
    guess = _guess(replace(form, rows=rows), sample.payloads, place, owner, named)
    told = _table_of(form, guess, owner)
    others = guess.others if guess else _columns_of(form.format, told)
    names = _kept(kept, others, place, form.format)
    table = _with_attributes(told, {n: others[n] for n in names})
    proposed = others if guess else format_of(form.format).offers
    dropped = {n: others[n] for n in proposed if n not in names and n in others}
    stream = stream_of_table(_NAME, table, Path(place))
    notes = (*(guess.notes if guess else ()), *notes_of_others(dropped))
    headers = _headers_again(head, stream)
    notes = (*headers, *_notes_of_text(head, stream), *notes)
    if headers:
        sample = _sample(head, stream)  # cut by what is known of the columns now
    seen = _tried(head, sample, stream, table, notes)
    if guess and _is_owned(table) and seen.at_once * _FEW > seen.good:
        # Several places at one time: these are several objects, and nobody knows whose each is.
        raise _no_column(["object"], form, place)
    if guess is None and owner is None:
        seen = _by_other_columns(seen, head, sample)
    is_local = guess.is_local if guess else format_of(form.format).is_local
    if not is_local:
        return seen
    return replace(seen, notes=(*_behind(seen, head), *seen.notes))


def _headers_again(head: Head, stream: StreamSettings) -> list[str]:
    """What is said of headers in the middle of delimited text."""
    if format_of(stream.format).written_as != "delimited":
        return []
    data = head.data
    if stream.skip_lines:
        data = data.split(b"\n", stream.skip_lines)[-1]
    return headers_told(data, stream, first_line=stream.skip_lines + 1)


def _by_other_columns(seen: Detected, head: Head, sample: Sample) -> Detected:
    """What was seen of a format with names of its own, by other columns where most records lack the usual ones.

    A time that most lack is the arrival; of several columns of objects the first is taken that most have.
    """
    usual = seen.table["columns"]
    half = seen.records / 2
    if seen.reasons.get("missing_time", 0) > half:
        columns = {key: one for key, one in usual.items() if key != "event_ts"}
        note = f"most records have no {usual['event_ts']}: their arrival is their time"
        seen = _tried_with(columns, note, seen, head, sample)
        usual = seen.table["columns"]
    others = _OTHER_OBJECTS.get(seen.table["format"], ())
    nobody = seen.reasons.get("missing_object", 0)
    if seen.table["format"] == "gpx" and not seen.good:
        nobody += seen.reasons.get("no_position", 0)  # waypoints alone
    for other in others if nobody > half else ():
        note = (
            f"most records have no {usual['object']}: {other} is taken for the object"
        )
        tried = _tried_with({**usual, "object": other}, note, seen, head, sample)
        if tried.good and tried.is_readable:
            return tried
    if nobody > half:
        owned = {**usual, "object": _one_object(head.place)}
        tried = _tried_with(owned, _NOTE_OF_ONE, seen, head, sample)
        if tried.good and tried.is_readable and tried.at_once * _FEW <= tried.good:
            return tried
    if seen.table["format"] != "gtfs-rt" or not seen.good:
        return seen
    note = f"{usual['object']} is taken for the object; also fits: --object {others[0]}"
    return replace(seen, notes=(note, *seen.notes))


def _tried_with(
    columns: Mapping[str, Any], note: str, seen: Detected, head: Head, sample: Sample
) -> Detected:
    table = {**seen.table, "columns": dict(columns)}
    stream = stream_of_table(_NAME, table, Path(head.place))
    return _tried(head, sample, stream, table, (note, *seen.notes))


def _behind(seen: Detected, head: Head) -> list[str]:
    """That the newest times are behind their arrival by hours, as local times west of Greenwich are."""
    arrived_us = wall_clock()
    if head.path is not None:
        arrived_us = on_disk(head.path).stat().st_mtime_ns // 1000
    hours = None
    if seen.newest_us is not None:
        hours = quarters_ahead(np.array([seen.newest_us - arrived_us], np.int64))
    if hours is None or hours > 0:
        return []
    return [
        f"the newest fix is {-hours:g} h older than its arrival, as local times are: "
        'also fits: time_zone = "America/New_York" or another'
    ]


def _notes_of_text(head: Head, stream: StreamSettings) -> list[str]:
    """Of a text in which encoding it is, and that its lines have stamps which nobody is going to look at."""
    notes = []
    if stream.encoding != UTF8:
        notes.append(
            f"the text is no UTF-8: it is read as {stream.encoding}; "
            "encoding names another one, such as cp1250, cp1251 or shift_jis, where names look wrong"
        )
    if format_of(stream.format).is_local and is_stamped_text(head.data):
        notes.append(_NOTE_OF_STAMPS)
    return notes


def _columns_of(format_name: str, table: Mapping[str, Any]) -> dict[str, Other]:
    """The attributes of a format whose columns have names of their own: those of its columns that are no part of a fix.

    Args:
        format_name: of the format.
        table: settings that say what the parts of a fix are.
    """
    form = format_of(format_name)
    used = {*form.columns.values()}
    for column in table["columns"].values():
        used |= {column} if isinstance(column, str) else {*column}
    columns = {**form.offers, **form.known}
    return {
        name: Other(name, of_type)
        for name, of_type in columns.items()
        if name not in used
    }


def _probe(form: Form) -> StreamSettings:
    """Settings by which the records can be told, before anybody knows their columns."""
    settings = {**format_of(form.format).defaults, **form.settings}
    anything = Columns(object="1", x="2", y="3")
    return StreamSettings(name=_NAME, format=form.format, columns=anything, **settings)


def _sample(head: Head, stream: StreamSettings) -> Sample:
    """What is looked at: of a file what `fairway replay` looks at, else what came."""
    if head.path is not None:
        return whole_sample_of(head.path, stream, head.place)
    return sample_of_bytes(head.data, stream, is_whole=head.is_whole)


def _guess(
    form: Form,
    payloads: Sequence[bytes],
    place: str,
    owner: str | None,
    named: Mapping[str, str],
) -> Guess | None:
    """The columns of a format whose columns have any names; None for others.

    Args:
        form: its names, and some records.
        payloads: the records as they stand.
        place: of what, for people.
        owner: the column of objects; None: it is guessed.
        named: columns of other parts of a fix.

    Raises:
        ConfigError: a part of a fix is in no column that can be told.
    """
    known_names = form.names or ((owner,) if owner else ())
    for column in filter(None, (owner, *named.values())):
        if column not in known_names:
            names = ", ".join(form.names[:20]) or f"the columns of {form.format}"
            raise ConfigError(
                f"{place} has no column {column!r}", hint=f"it has {names}"
            )
    if not form.names:
        return None
    known = format_of(form.format).columns
    guess = guessed(
        form.names,
        form.rows,
        owner=owner,
        named=named,
        has_places={"x", "y"} <= known.keys(),
    )
    missing = guess.missing
    if {"x", "y"} & set(missing):
        refuse_lines_of_points(form.names, form.rows, place)
        known_yet = {**guess.columns, "time_unit": guess.time_unit}
        refuse_lists_of_points(payloads, known_yet, place)
    has_texts = any(one.type == "string" for one in guess.others.values())
    is_timed = guess.columns.get("event_ts") is not None
    if list(missing) == ["object"] and is_timed and not has_texts:
        owned = {**guess.columns, "object": _one_object(place)}
        return replace(guess, columns=owned, notes=(_NOTE_OF_ONE, *guess.notes))
    if missing:
        raise _no_column(missing, form, place)
    return guess


def _no_column(missing: Sequence[str], form: Form, place: str) -> ConfigError:
    options = ", ".join(OPTION_OF[key] for key in missing)
    hint = f"it has {', '.join(form.names[:20])}: {options} COLUMN names it"
    if "object" in missing:
        hint += '; where all records are of one device, columns.object = { value = "ID" } does'
    return ConfigError(f"{place}: no column looks like {', '.join(missing)}", hint=hint)


def _one_object(place: str) -> dict[str, str]:
    """The object of records that say none: that of a file is called as it is."""
    is_file = not (is_live(place) or is_address(place) or place == "-")
    return {"value": name_of(Path(place)) if is_file else "device"}


def _kept(
    kept: Sequence[str], others: Mapping[str, Other], place: str, format_name: str
) -> list[str]:
    """The names of the attributes that are kept, each of which may be given by its column.

    Raises:
        ConfigError: a column is not there, is a part of a fix, or has no name for an attribute.
    """
    if list(kept) == [IF_ANY] or (list(kept) == [ALL] and others):
        return list(others)
    called = {one.column: name for name, one in others.items()}
    names = [called.get(name, name) for name in kept]
    unknown = [name for name in names if name not in others]
    if unknown:
        what = "no column" if unknown == [ALL] else f"no column {unknown[0]!r}"
        by_hand = f"docs/formats.md has the columns of {format_name}, to be named in its settings: attributes"
        raise ConfigError(
            f"{place} has {what} for an attribute", hint=", ".join(others) or by_hand
        )
    return names


def _with_attributes(
    table: dict[str, Any], kept: Mapping[str, Other]
) -> dict[str, Any]:
    """The settings with attributes; where one is called otherwise than its column, `columns` says so."""
    if not kept:
        return table
    called = {name: one.column for name, one in kept.items() if name != one.column}
    types = {name: one.type for name, one in kept.items()}
    return {**table, "columns": {**table["columns"], **called}, "attributes": types}


def _table_of(form: Form, guess: Guess | None, owner: str | None) -> dict[str, Any]:
    """The keys of the settings; of a format with names of its own somebody may have named the object's."""
    table: dict[str, Any] = {"format": form.format, **form.settings}
    if guess is None:
        known = format_of(form.format).columns
        x, y = _PLACES.get(form.format, _LONGITUDE)
        places = {} if {"x", "y"} <= known.keys() else {"x": x, "y": y}
        if form.format not in _OWN:
            raise ConfigError(
                f"it is {form.format} with 0 records, so that nothing shows its columns",
                hint="check it again when it has some; docs/file-formats.md shows settings for it",
            )
        named = {"object": owner} if owner else {}
        return {**table, "columns": {**_OWN[form.format], **places, **named}}
    own = format_of(form.format).columns
    table["columns"] = {k: v for k, v in guess.columns.items() if k not in own}
    if guess.crs != "EPSG:4326" and "crs" not in table:
        table["crs"] = guess.crs
    if guess.time_unit is not None:
        table["time_unit"] = guess.time_unit
    return table | dict(guess.settings)


def _is_owned(table: Mapping[str, Any]) -> bool:
    """Whether the settings say whose the records are, which do not say it themselves."""
    return isinstance(table["columns"].get("object"), dict)


def _tried(
    head: Head,
    sample: Sample,
    stream: StreamSettings,
    table: dict[str, Any],
    notes: tuple[str, ...],
) -> Detected:
    """What becomes of a sample by some settings."""
    tally = Tally()
    tally.add_sample(sample, stream, arrival_us=wall_clock())
    fixes = pa.concat_tables([fixes_schema(stream).empty_table(), *tally.fixes])
    if tally.twice:
        clocks = f"{tally.twice:,} times came twice, for clocks were put back: they are taken for the first of both"
        notes = (*notes, clocks)
    if tally.never:
        clocks = f"{tally.never:,} times never came, for clocks were put forward: is time_zone that of the clocks?"
        notes = (*notes, clocks)
    mend, odd = tally.mend(stream) if tally.is_mostly_rejected else "", ""
    dates = tally.odd_dates(stream)
    if dates is not None and dates.is_question and not mend:
        mend, odd = dates.mend, dates.said
    elif dates is not None:
        notes = (*notes, dates.said)
    return Detected(
        place=head.place,
        table=table,
        fixes=fixes.slice(0, SHOWN),
        records=tally.records,
        good=tally.good,
        reasons=dict(tally.reasons.most_common()),
        notes=notes,
        extent=extent_of_rows(fixes) if len(fixes) else None,
        is_whole=sample.is_whole,
        is_timeless=stream.columns.event_ts is None,
        mend=mend,
        odd=odd,
        newest_us=pc.max(fixes["event_ts"]).as_py(),
        at_once=len(fixes) - pc.count_distinct(fixes["event_ts"]).as_py(),
        order=tuple(notes_of_order(fixes, stream, is_file=head.path is not None)),
    )


def to_toml(name: str, table: dict[str, Any]) -> str:
    """The settings of a stream as they stand in `conf/streams.toml`."""
    lines = [f"[streams.{name}]"]
    lines += [f"{key} = {_toml(value)}" for key, value in table.items()]
    return "\n".join(lines) + "\n"


def source_to_toml(name: str, place: str) -> str:
    """The source that asks an address, or reads a socket, as it stands below its stream; "" for a file.

    An address with a query has none: keys of feeds stand there, and no secret stands in a file.

    Args:
        name: of the stream.
        place: the file or the address.
    """
    kind, _, where = place.removesuffix("/").partition("://")
    keys = {
        "tcp": f'kind = "tcp"\nconnect = {_toml(where)}\n',
        "udp": f'kind = "udp"\nlisten = {_toml(where)}\n',
    }
    if is_address(place) and "?" not in place:
        keys[kind] = f'kind = "http"\nurl = {_toml(place)}\n'
    return f"\n[streams.{name}.sources.feed]\n{keys[kind]}" if kind in keys else ""


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        inner = ", ".join(f"{key} = {_toml(one)}" for key, one in value.items())
        return f"{{ {inner} }}"
    text = str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\t", "\\t")
    return f'"{text}"'
