"""A first contract for a stream, from what its days were like; people then say what should be."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from math import exp, floor, log, log10
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
from st_common.contracts.stream_model import DataRule
from st_common.contracts.stream_reading import (
    WEEKDAYS,
    read_stream_contract,
    stream_contract_paths,
)
from st_common.errors import ConfigError
from st_common.operations.days import is_closed
from st_common.operations.history import days_of
from st_common.quality.day_data import DayData, columns_of, gather
from st_common.quality.measuring import have_at_most
from st_common.quality.measuring_columns import observe
from st_common.quality.tally import tally
from st_common.quality.usual import bad_days, is_working

DAYS = 28
_FEWEST_DAYS = 8
_MOST_FIXES = 10_000_000  # of all days together, but for the fewest days: they are in memory at once
_MOST_VALUES = 20
_WIDER = 0.1  # of what was seen, on either side
_SLACK = 1.5
_TELLING = 0.5  # a share of which more was seen tells no fault from what is usual
_MOST_DAYS_OFF = 0.25  # of a weekday on which there are data as a rule
_LAGS_S = (300, 900, 1800)  # from a fix to its arrival: the least that holds for most
_OFF = 0.1  # of the objects may have a clock that is off
_COARSE = 4  # decimals of a degree: 11 m
_FEW = 0.3  # of the coordinates may have so few decimals by chance
_FAST = 0.999  # the quantile of implied speeds that is still believed
_HEAD = """\
# Proposed from {days}. What was seen is not what should be: look at each bound.
# docs/data-quality.md says what may stand here.
"""


Bound = tuple[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A rule on a measure.

    Attributes:
        name: of the rule.
        measure: its measure.
        bound: from what was seen on each day to the key and value of a bound; None: it says nothing of such a stream.
        severity: of the rule.
    """

    name: str
    measure: str
    bound: Callable[[Sequence[float]], Bound | None]
    severity: str = "error"


def _at_most(
    least: float, slack: float = _SLACK
) -> Callable[[Sequence[float]], Bound | None]:
    """A largest value: some more than was seen, and never less than `least`."""
    return lambda seen: (
        "mustBeLessOrEqualTo",
        _round(max(least, max(seen, default=0.0) * slack)),
    )


def _at_most_share(least: float) -> Callable[[Sequence[float]], Bound | None]:
    """A largest share; none where so much was seen that it could not be told from a fault."""

    def bound(seen: Sequence[float]) -> Bound | None:
        largest = max(seen, default=0.0)
        if largest > _TELLING:
            return None
        return "mustBeLessOrEqualTo", _round(max(least, largest * _SLACK))

    return bound


def _never_or_rarely(seen: Sequence[float]) -> Bound | None:
    """What was looked for and never seen must not be; else twice as much is allowed, a twentieth at least."""
    largest = max(seen, default=0.01)
    if largest > _TELLING:
        return None
    return "mustBeLessOrEqualTo", _round(max(0.05, largest * 2) if largest else 0.0)


def _before_midnight(seen: Sequence[float]) -> Bound | None:
    """As long before the day's end as was seen, and as long again; None where that may be the whole day."""
    longest_s = max(600.0, max(seen, default=0.0) * 2)
    return ("mustBeLessOrEqualTo", _round(longest_s)) if longest_s < 86_400 else None


def _about_usual(factor: float) -> Callable[[Sequence[float]], Bound | None]:
    """As much as usual, up to a factor either way: by more than days were seen to differ, and never by less."""

    def bound(seen: Sequence[float]) -> Bound | None:
        apart = max((abs(log(each)) for each in seen if each > 0), default=0.0)
        most = exp(max(log(factor), apart * _SLACK))
        return "mustBeBetween", [_round(1 / most), _round(most)]

    return bound


_RULES = (
    Proposed(name="volume", measure="fixes_to_usual", bound=_about_usual(2)),
    Proposed(name="objects", measure="objects_to_usual", bound=_about_usual(2)),
    Proposed(
        name="usual_objects",
        measure="missing_objects_share",
        bound=_at_most_share(0.05),
    ),
    Proposed(
        name="known_objects", measure="new_objects_share", bound=_at_most_share(0.1)
    ),
    Proposed(
        name="own_tracks", measure="twin_objects_share", bound=_at_most_share(0.05)
    ),
    Proposed(name="hours", measure="empty_hours", bound=_at_most(0, 1.0)),
    Proposed(name="movement", measure="still_hours", bound=_at_most(1)),
    Proposed(
        name="frozen_objects", measure="frozen_objects_share", bound=_never_or_rarely
    ),
    Proposed(name="gap", measure="longest_gap_to_usual", bound=_at_most(3)),
    Proposed(
        name="silence",
        measure="objects_with_gap_share",
        bound=_at_most_share(0.05),
        severity="warning",
    ),
    Proposed(name="fresh", measure="freshness_s", bound=_before_midnight),
    Proposed(name="readable", measure="rejects_share", bound=_at_most(0.01)),
    Proposed(name="in_time", measure="late_share", bound=_at_most(0.01)),
    Proposed(name="once", measure="double_share", bound=_at_most(0.01)),
    Proposed(name="ways", measure="jumps_share", bound=_at_most(0.01)),
    Proposed(name="one_place", measure="jumping_objects_share", bound=_at_most(0.01)),
    Proposed(name="decimals", measure="rounded_share", bound=_at_most_share(0.05)),
    Proposed(name="clocks", measure="clock_off_objects_share", bound=_at_most(0.01)),
)
_OF_ATTRIBUTES = (
    Proposed(name="level", measure="level_to_usual", bound=_about_usual(1.5)),
    Proposed(name="spread", measure="spread_to_usual", bound=_about_usual(1.5)),
)


def propose(home: Home, stream: StreamSettings, *, replace: bool) -> Path:
    """Writes a first contract of a stream into the home, from its newest four weeks of closed days that have data.

    While none is closed those that are open count; days that broke a rule do not. Bounds are what was seen and somewhat
    more. Where so much was seen that a fault could not be told from it, as wrong clocks of a replay, there is no rule.

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
    closed = [day for day in stored if is_closed(home, stream.name, day)] or stored
    bad = bad_days(home, stream.name)
    seen = _newest(home, stream, [day for day in closed if day not in bad] or closed)
    days = [each.day for each in seen]
    document = _document(stream, seen, _weekdays(closed))
    text = yaml.safe_dump(document, sort_keys=False, allow_unicode=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    said = f"{len(days)} days from {days[0]} to {days[-1]}"
    path.write_text(_HEAD.format(days=said) + text, encoding="utf-8")
    read_stream_contract(path, stream.name)
    return path


def _newest(home: Home, stream: StreamSettings, days: Sequence[date]) -> list[DayData]:
    """The newest days, oldest first: four weeks, or fewer where their fixes are too many."""
    seen: list[DayData] = []
    for day in reversed(days[-DAYS:]):
        seen.append(_gathered(home, stream, day))
        fixes = sum(each.shape.fixes for each in seen)
        if len(seen) >= _FEWEST_DAYS and fixes > _MOST_FIXES:
            break
    return seen[::-1]


def _gathered(home: Home, stream: StreamSettings, day: date) -> DayData:
    """A day with every attribute that the stream declares."""
    path = home.table("positions", stream.name)
    fixes = tables.read(
        path,
        columns=columns_of(path, stream.attributes),
        filters=[("event_date", "=", day)],
    )
    return gather(home, stream, day, tally(home, stream, day), fixes)


def _weekdays(days: Sequence[date]) -> list[str]:
    """The weekdays that have data as a rule, between the first day and the last; in the first week some are supposed.

    Args:
        days: those that have data, ascending, at least one.
    """
    first, last = days[0], days[-1]
    passed = Counter(
        (first + timedelta(days=each)).weekday()
        for each in range((last - first).days + 1)
    )
    there = Counter(day.weekday() for day in days)
    promised = {
        weekday
        for weekday in passed
        if there[weekday] >= (1 - _MOST_DAYS_OFF) * passed[weekday]
    }
    if any(map(is_working, promised)):
        promised |= {each for each in range(7) if is_working(each)} - set(passed)
    return [WEEKDAYS[each] for each in sorted(promised)]


def _document(
    stream: StreamSettings, seen: Sequence[DayData], weekdays: Sequence[str]
) -> dict[str, Any]:
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
    if weekdays:
        daily = {"property": "frequency", "value": 1, "unit": "d"}
        if len(weekdays) < len(WEEKDAYS):
            daily |= {"scheduler": "weekdays", "schedule": " ".join(weekdays)}
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
    is_attribute = name not in {"x", "y"}
    quality = [_nulls(name, parts)] if is_attribute else []
    if logical == "string":
        quality += _known_values(name, values)
    if logical == "number" and is_attribute and _is_measured(stream, name, values):
        quality += _levels(name, seen)
    return column | ({"quality": quality} if quality else {})


def _range(values: pa.ChunkedArray) -> dict[str, Any]:
    numbers = values.drop_null().to_numpy().astype(float)
    numbers = numbers[np.isfinite(numbers)]
    if not len(numbers):
        return {}
    low, high = float(numbers.min()), float(numbers.max())
    if low == high:
        return {"logicalTypeOptions": {"minimum": low, "maximum": high}}
    margin = (high - low) * _WIDER
    # What was never below zero, as a speed or a height, is not expected to be.
    least = max(low - margin, 0.0) if low >= 0 else low - margin
    digits = 3 - floor(log10(high - low))  # of large numbers that differ little, too
    bounds = {"minimum": round(least, digits), "maximum": round(high + margin, digits)}
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


def _levels(name: str, seen: Sequence[DayData]) -> list[dict[str, Any]]:
    """Rules on how high an attribute is and how widely it spreads; of what may be negative a mean has no ratio."""
    own = [level for day in seen if (level := day.level(name))]
    if not own or not all(each.spread for each in own):
        return []
    rules = []
    for proposed in _OF_ATTRIBUTES:
        if proposed.name == "level" and any(each.low < 0 for each in own):
            continue
        rule = DataRule(name=proposed.name, measure=proposed.measure, column=name)
        rules += _rule(proposed, f"{name}_{proposed.name}", seen, rule, {})
    return rules


def _is_measured(stream: StreamSettings, name: str, values: pa.ChunkedArray) -> bool:
    """Whether an attribute is a quantity: it has a unit or fractions. Other numbers are ids, codes or counts."""
    return name in stream.units or bool(
        pc.any(pc.not_equal(values, pc.round(values))).as_py()
    )


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
    speed = {"max_speed_mps": stream.max_speed_mps or _fastest_mps(seen)}
    given: dict[str, Mapping[str, float] | None] = {
        "jumps_share": speed,
        "jumping_objects_share": speed,
        "rounded_share": _decimals(stream, seen),
        "clock_off_objects_share": _lag(seen),
    }
    rules = []
    for proposed in _RULES:
        arguments = given.get(proposed.measure, {})
        if arguments is not None:
            rule = _data_rule(proposed.measure, arguments)
            rules += _rule(proposed, proposed.name, seen, rule, arguments)
    return rules


def _data_rule(measure: str, arguments: Mapping[str, float]) -> DataRule:
    every = {**MEASURES[measure].arguments, **arguments}
    return DataRule(name=measure, measure=measure, arguments=every)


def _lag(seen: Sequence[DayData]) -> Mapping[str, float] | None:
    """How late fixes may arrive where they come in batches; None where most clocks are off, as of a replay."""
    for at_most_s in _LAGS_S:
        rule = _data_rule("clock_off_objects_share", {"at_most_s": at_most_s})
        values = [observe(day, rule).value for day in seen]
        if max((value for value in values if value is not None), default=0.0) <= _OFF:
            return {"at_most_s": at_most_s} if at_most_s > _LAGS_S[0] else {}
    return None


def _rule(
    proposed: Proposed,
    name: str,
    seen: Sequence[DayData],
    rule: DataRule,
    arguments: Mapping[str, float],
) -> list[dict[str, Any]]:
    """A rule as the file has it, with a bound from what its measure was on each day; none where it says nothing."""
    values = [observe(day, rule).value for day in seen]
    bound = proposed.bound([value for value in values if value is not None])
    if bound is None:
        return []
    key, value = bound
    return [
        {
            "name": name,
            "type": "custom",
            "engine": "fairway",
            "implementation": {"measure": proposed.measure, **arguments},
            key: value,
            "severity": proposed.severity,
        }
    ]


def _decimals(
    stream: StreamSettings, seen: Sequence[DayData]
) -> Mapping[str, float] | None:
    """The most decimals that few coordinates get by with, no finer than some metres; None where all may have few."""
    places = [
        np.concatenate([day.fixes[name].to_numpy() for day in seen])
        for name in ("x", "y")
    ]
    is_placed = np.isfinite(places[0]) & np.isfinite(places[1])
    placed = [place[is_placed] for place in places]
    if not len(placed[0]):
        return None
    for decimals in range(_COARSE if stream.is_in_degrees else 0, -1, -1):
        if have_at_most(placed, decimals).mean() <= _FEW:
            return {"decimals": decimals}
    return None


def _fastest_mps(seen: Sequence[DayData]) -> float:
    speeds = np.concatenate([day.implied_speeds_mps for day in seen])
    speeds = speeds[np.isfinite(speeds)]
    fastest = float(np.quantile(speeds, _FAST)) if len(speeds) else 0.0
    return max(1.0, _round(fastest * _SLACK))


def _round(value: float) -> float:
    """To four digits, which is enough for a bound that people will look at."""
    return float(f"{value:.4g}")
