"""Fixes as records of a stream: CSV, TSV or NDJSON, with the columns and the unit of time that its settings say."""

import csv
import io
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.errors import ConfigError
from st_common.formats.encodings import encoded
from st_common.formats.registry import format_of
from st_common.geometry.space import GLOBE
from st_common.settings import StreamSettings
from st_common.simulation.road_network import CLASSES
from st_common.simulation.traffic import Round
from st_common.times import form_of, written

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
