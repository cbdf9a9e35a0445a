"""A first contract for a stream, from what its days were like; people then say what should be."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import yaml

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts.kinds import ATTRIBUTE_KINDS, KINDS
from st_common.contracts.measures import MEASURES
from st_common.contracts.stream_reading import (
    read_stream_contract,
    stream_contract_paths,
)
from st_common.errors import ConfigError
from st_common.operations.days import is_closed
from st_common.operations.history import days_of
from st_common.quality.day_data import DayData, columns_of, gather
from st_common.quality.measuring import MEASURED, Observed
from st_common.quality.tally import tally

DAYS = 8
_MOST_VALUES = 20
_WIDER = 0.1  # of what was seen, on either side
_SLACK = 1.5
_FAST = 0.999  # the quantile of implied speeds that is still believed
_HEAD = """\
# Proposed from {days}. What was seen is not what should be: look at each bound.
# docs/data-quality.md says what may stand here.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A rule on a stream as a whole.

    Attributes:
        name: of the rule.
        measure: its measure.
        bound: from the largest value that was seen to the key and value of a bound.
        severity: of the rule.
    """

    name: str
    measure: str
    bound: Callable[[float], tuple[str, Any]]
    severity: str = "error"


def _at_most(least: float, slack: float = _SLACK) -> Callable[[float], tuple[str, Any]]:
    """A largest value: some more than was seen, and never less than `least`."""
    return lambda seen: ("mustBeLessOrEqualTo", _round(max(least, seen * slack)))


def _as_usual(_: float) -> tuple[str, Any]:
    return "mustBeBetween", [0.5, 2]


_RULES = (
    Proposed(name="volume", measure="fixes_to_usual", bound=_as_usual),
    Proposed(name="objects", measure="objects_to_usual", bound=_as_usual),
    Proposed(
        name="usual_objects", measure="missing_objects_share", bound=_at_most(0.05)
    ),
    Proposed(name="hours", measure="empty_hours", bound=_at_most(0, 1.0)),
    Proposed(name="gap", measure="longest_gap_to_usual", bound=_at_most(3)),
    Proposed(
        name="silence",
        measure="objects_with_gap_share",
        bound=_at_most(0.05),
        severity="warning",
    ),
    Proposed(name="fresh", measure="freshness_s", bound=_at_most(600)),
    Proposed(name="readable", measure="rejects_share", bound=_at_most(0.01)),
    Proposed(name="in_time", measure="late_share", bound=_at_most(0.01)),
    Proposed(name="once", measure="double_share", bound=_at_most(0.01)),
    Proposed(name="ways", measure="jumps_share", bound=_at_most(0.01)),
    Proposed(name="one_place", measure="jumping_objects_share", bound=_at_most(0.01)),
    Proposed(name="clocks", measure="clock_off_objects_share", bound=_at_most(0.01)),
)


def propose(home: Home, stream: StreamSettings, *, replace: bool) -> Path:
    """Writes a first contract of a stream into the home, from its newest eight closed days that have data.

    While none is closed those that are open count. Bounds are what was seen and somewhat more. Clocks are left out
    where most are off, as of a replay.

    Args:
        home: where the tables lie, and `data_contracts/streams/NAME.odcs.yaml` will.
        stream: the settings of the stream.
        replace: also when there is one.

    Returns:
        The file.

    Raises:
        ConfigError: the stream has no positions, or the file is there.
    """
    path = stream_contract_paths(stream.name, home.root)[0]
    if path.exists() and not replace:
        raise ConfigError(f"{path} is there", hint="--replace writes it anew")
    stored = days_of(home.table("positions", stream.name))
    if not stored:
        raise ConfigError(
            f"stream {stream.name!r} has no positions to look at", hint="run it first"
        )
    # Of an open day only a part is there: it would widen every bound.
    closed = [day for day in stored if is_closed(home, stream.name, day)]
    days = (closed or stored)[-DAYS:]
    seen = [_gathered(home, stream, day) for day in days]
    text = yaml.safe_dump(_document(stream, seen), sort_keys=False, allow_unicode=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    said = f"{len(days)} days from {days[0]} to {days[-1]}"
    path.write_text(_HEAD.format(days=said) + text, encoding="utf-8")
    read_stream_contract(path, stream.name)
    return path


def _gathered(home: Home, stream: StreamSettings, day: date) -> DayData:
    """A day with every attribute that the stream declares."""
    path = home.table("positions", stream.name)
    fixes = tables.read(
        path,
        columns=columns_of(path, stream.attributes),
        filters=[("event_date", "=", day)],
    )
    return gather(home, stream, day, tally(home, stream, day), fixes)


def _document(stream: StreamSettings, seen: Sequence[DayData]) -> dict[str, Any]:
    types = {"x": "double", "y": "double"} | {
        name: ATTRIBUTE_KINDS[kind] for name, kind in stream.attributes.items()
    }
    document: dict[str, Any] = {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": f"stream-{stream.name}",
        "name": stream.name,
        "version": "1.0.0",
        "status": "draft",
        "description": {"purpose": f"What stream {stream.name} promises of each day."},
    }
    if stream.running:
        daily = {"property": "frequency", "value": 1, "unit": "d"}
        document["slaProperties"] = [daily]
    table = {
        "name": stream.name,
        "properties": [
            _property(stream, seen, name, kind) for name, kind in types.items()
        ],
        "quality": _measures(stream, seen),
    }
    return document | {"schema": [table]}


def _property(
    stream: StreamSettings, seen: Sequence[DayData], name: str, kind: str
) -> dict[str, Any]:
    logical = KINDS[kind].logical
    column: dict[str, Any] = {
        "name": name,
        "logicalType": logical,
        "physicalType": kind,
    }
    if name in stream.units:
        unit = {"property": "unit", "value": stream.units[name]}
        column["customProperties"] = [unit]
    parts = [day.fixes[name] for day in seen if name in day.fixes.column_names]
    if not parts:
        return column
    values = pa.chunked_array([chunk for part in parts for chunk in part.chunks])
    if logical in {"number", "integer"}:
        column |= _range(values)
    quality = [] if name in {"x", "y"} else [_nulls(name, parts)]
    if logical == "string":
        quality += _known_values(name, values)
    return column | ({"quality": quality} if quality else {})


def _range(values: pa.ChunkedArray) -> dict[str, Any]:
    numbers = values.drop_null().to_numpy().astype(float)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return {}
    low, high = float(numbers.min()), float(numbers.max())
    margin = (high - low) * _WIDER
    # What was never below zero, as a speed or a height, is not expected to be.
    least = max(low - margin, 0.0) if low >= 0 else low - margin
    bounds = {"minimum": _round(least), "maximum": _round(high + margin)}
    return {"logicalTypeOptions": bounds}


def _nulls(name: str, parts: Sequence[pa.ChunkedArray]) -> dict[str, Any]:
    share = max(part.null_count / max(len(part), 1) for part in parts)
    percent = min(100.0, _round(max(1.0, share * 100 * _SLACK)))
    return {
        "name": f"{name}_is_there",
        "metric": "nullValues",
        "unit": "percent",
        "mustBeLessOrEqualTo": percent,
        "severity": "warning",
    }


def _known_values(name: str, values: pa.ChunkedArray) -> list[dict[str, Any]]:
    distinct = sorted(pc.unique(values.drop_null()).to_pylist())
    if not 0 < len(distinct) <= _MOST_VALUES:
        return []
    return [
        {
            "name": f"{name}_is_known",
            "metric": "invalidValues",
            "arguments": {"validValues": distinct},
            "mustBe": 0,
            "severity": "error",
        }
    ]


def _measures(stream: StreamSettings, seen: Sequence[DayData]) -> list[dict[str, Any]]:
    speed_mps = stream.max_speed_mps or _fastest_mps(seen)
    rules = []
    for proposed in _RULES:
        arguments = {"max_speed_mps": speed_mps} if "jump" in proposed.measure else {}
        values = [_observed(proposed.measure, day, arguments).value for day in seen]
        largest = max((value for value in values if value is not None), default=0.0)
        if proposed.measure == "clock_off_objects_share" and largest > 0.5:
            continue
        key, value = proposed.bound(largest)
        rules.append(
            {
                "name": proposed.name,
                "type": "custom",
                "engine": "fairway",
                "implementation": {"measure": proposed.measure, **arguments},
                key: value,
                "severity": proposed.severity,
            }
        )
    return rules


def _observed(measure: str, day: DayData, arguments: dict[str, float]) -> Observed:
    return MEASURED[measure](day, {**MEASURES[measure].arguments, **arguments})


def _fastest_mps(seen: Sequence[DayData]) -> float:
    speeds = np.concatenate([day.implied_speeds_mps for day in seen])
    speeds = speeds[np.isfinite(speeds)]
    fastest = float(np.quantile(speeds, _FAST)) if len(speeds) else 0.0
    return max(1.0, _round(fastest * _SLACK))


def _round(value: float) -> float:
    """To four digits, which is enough for a bound that people will look at."""
    return float(f"{value:.4g}")
