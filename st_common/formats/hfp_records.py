"""The lines of HFP: the time, the topic and the JSON of each."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.formats.format_settings import FormatSettings
from st_common.formats.hfp_columns import OF_PAYLOAD, OF_TOPIC
from st_common.formats.ndjson_records import read_lines
from st_common.formats.numbers import mask
from st_common.formats.records import RAW_LIMIT, Reason, Records, columns_read
from st_common.formats.spans import lines

# Topics have blanks, so a payload begins where the first brace with a quote stands.
_LINE = r'^(?:(?P<received>[0-9]\S*) )?(?:(?P<topic>/.*?) )?(?P<payload>\{\s*".*)$'
_PATTERNS = {
    "headsign": ".*?",  # it may have slashes
    "start_time": "(?:[0-9]{1,2}:[0-9]{2})?",
    "geohash": ".*",  # it has slashes
}
_FIRST_OF_JOURNEY = OF_TOPIC.index("route_id")
_POSITION = r'^\{\s*"VP"'


def read_hfp(payload: bytes, stream: FormatSettings) -> Records:
    """The lines of a payload; see `hfp`."""
    every = lines(np.frombuffer(payload, np.uint8))
    said = pc.extract_regex(every.texts(), _LINE)
    fault = np.where(mask(said.is_valid()), Reason.NONE, Reason.UNREADABLE)
    said = said.filter(said.is_valid())
    wanted = columns_read(stream)
    inside = read_lines(_lines_of(pc.struct_field(said, "payload")), _paths(wanted))
    fault[fault == Reason.NONE] = inside.fault
    of_line = said.filter(pa.array(inside.fault == Reason.NONE))
    is_position = pc.match_substring_regex(
        pc.struct_field(of_line, "payload"), _POSITION
    )
    fault[fault == Reason.NONE] = np.where(
        mask(is_position), Reason.NONE, Reason.NO_POSITION
    )
    fields = {**inside.fields, **_beside(of_line, wanted)}
    return Records(
        fault=fault.astype(np.int8),
        fields={name: values.filter(is_position) for name, values in fields.items()},
        raw=lambda rows: every.select(rows).texts(RAW_LIMIT),
    )


def _lines_of(payloads: pa.Array) -> bytes:
    if not len(payloads):
        return b""
    joined = pc.binary_join_element_wise(payloads, b"\n", b"")
    _, _, data = joined.buffers()
    joined_bytes: bytes = data.to_pybytes()
    return joined_bytes


def _paths(wanted: tuple[str, ...]) -> Mapping[str, str]:
    """Where the columns of the payload stand."""
    return {name: f"VP.{name}" for name in wanted if name in OF_PAYLOAD}


def _beside(said: pa.StructArray, wanted: tuple[str, ...]) -> Mapping[str, pa.Array]:
    """The columns of the line and of the topic, null where they are absent."""
    topic = pc.struct_field(said, "topic")
    parts = {"received": pc.struct_field(said, "received"), **_parts(topic)}
    return {name: _texts(values) for name, values in parts.items() if name in wanted}


def _parts(topic: pa.Array) -> dict[str, pa.Array]:
    """The parts of topics of either version."""
    first = pc.extract_regex(topic, _topic(1))
    parts = {name: pc.struct_field(first, name) for name in _names(1)}
    if not pc.any(pc.starts_with(topic, "/hfp/v2/")).as_py():
        return {**parts, "event_type": pa.nulls(len(topic), pa.binary())}
    second = pc.extract_regex(topic, _topic(2))
    of_second = {name: pc.struct_field(second, name) for name in OF_TOPIC}
    return of_second | {n: pc.coalesce(parts[n], of_second[n]) for n in parts}


def _names(version: int) -> tuple[str, ...]:
    return tuple(name for name in OF_TOPIC if version > 1 or name != "event_type")


def _topic(version: int) -> str:
    """A pattern with a group for each part of a topic.

    version 1    /hfp/v1/journey/ongoing/bus/0018/00640/1057/1/Munkkiniemi/07:32/1471139/3/60;25/20/38/71
    version 2    /hfp/v2/journey/ongoing/vp/bus/0018/00640/..
    """
    groups = {
        name: f"(?P<{name}>{_PATTERNS.get(name, '[^/]*')})" for name in _names(version)
    }
    always = [groups[n] for n in OF_TOPIC[:_FIRST_OF_JOURNEY] if n in groups]
    more = [groups[name] for name in OF_TOPIC[_FIRST_OF_JOURNEY:]]
    return f"^/hfp/v{version}/{'/'.join(always)}(?:/{'/'.join(more)})?/?$"


def _texts(values: pa.Array) -> pa.Array:
    """Values as texts; null for nothing, and for what is no UTF-8."""
    try:
        texts = values.cast(pa.string())
    except pa.ArrowInvalid:
        known = [value.decode("utf-8", "replace") for value in values.to_pylist()]
        texts = pa.array(known, pa.string())
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
