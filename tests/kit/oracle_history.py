"""The rows of a law's log as a history of `st_common.checks`: what happened, and what expressions and layers say.

What a fix does to its object, and what SQL means, is found in Python, row by row; when things take effect and which
queries there are, the history says.
"""

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from st_common.checks.history import (
    EXPIRED,
    FIX,
    Clock,
    Controls,
    Events,
    Happened,
    History,
    Recorded,
    Times,
    clock_of,
    events_of,
    happened_to,
)
from st_common.controls.reading import rows_of
from st_common.geometry.space import GLOBE, PLANE
from st_common.reference.columns import Features, Fixes, objects
from st_common.reference.metric import Ints, Metric, Objects
from st_common.reference.position_filter import Limits, Moved, judged
from tests.kit.oracle_expressions import (
    text_of,
    value_beside,
    value_of,
    value_of_pair,
    value_of_row,
)
from tests.kit.oracle_rows import (
    Feature,
    Filter,
    Fix,
    Layers,
    Reading,
    Row,
    Rules,
    metres,
    reading_of,
)

Said = tuple[str, float]
"""Why a fix is filtered, and what was too much or too little."""


@dataclass(frozen=True, slots=True)
class Meanings:
    """What expressions say of readings, by `oracle_expressions`; see `Expressions`."""

    readings: Sequence[Reading]

    def values(self, text: str, rows: Ints, partners: Objects | None = None) -> Objects:
        """See `Expressions.values`."""
        others = [None] * len(rows) if partners is None else partners.tolist()
        pairs = zip(rows.tolist(), others, strict=True)
        return objects([value_of(text, self.readings[r], p) for r, p in pairs])

    def texts(self, text: str, rows: Ints, partners: Objects | None = None) -> Objects:
        """See `Expressions.texts`."""
        values = self.values(text, rows, partners)
        return objects([None if one is None else text_of(one) for one in values])

    def of_pairs(self, text: str, rows: Ints, others: Ints) -> Objects:
        """See `Expressions.of_pairs`."""
        pairs = zip(rows.tolist(), others.tolist(), strict=True)
        known = self.readings
        return objects(
            [
                value_of_pair(text, known[a], known[b] if b >= 0 else None)
                for a, b in pairs
            ]
        )

    def of_features(
        self, text: str, rows: Ints, columns: Mapping[str, Objects]
    ) -> Objects:
        """See `Expressions.of_features`."""
        return objects(
            [
                value_beside(
                    text,
                    self.readings[row],
                    {name: values[at] for name, values in columns.items()},
                )
                for at, row in enumerate(rows.tolist())
            ]
        )

    def of_groups(self, text: str, shown: Sequence[Mapping[str, object]]) -> Objects:
        """See `Expressions.of_groups`."""
        return objects([value_of_row(text, row) for row in shown])

    def attributes(self, name: str, rows: Ints) -> Objects:
        """See `Expressions.attributes`."""
        own = (self.readings[row].fix.attributes.get(name) for row in rows)
        return objects([None if one is None else text_of(one) for one in own])


@dataclass(frozen=True, slots=True)
class Written:
    """Who brings the history of a law: see `Source`."""

    layers: Layers
    unit_m: float = 1.0

    def features(self, layer: str, version: int) -> Features:
        """See `Source.features`."""
        features: Sequence[Feature] = self.layers[layer, version]
        return Features(
            fids=objects([one.fid for one in features]),
            kinds=objects([one.kind for one in features]),
            tags=[one.tags for one in features],
            shapes=objects([one.geometry for one in features]),
        )

    def of_rows(
        self, texts: Sequence[str], rows: Sequence[Mapping[str, Any]]
    ) -> Mapping[str, Sequence[Any]]:
        """See `Source.of_rows`."""
        return {text: [value_of_row(text, row) for row in rows] for text in texts}


@dataclass(frozen=True, slots=True, kw_only=True)
class Past:
    """A history of rows, with the reading of each event, its control rows, and how many fixes do not count.

    `rows_of` are the events of each object, by their rows. `filtered` are the rows of the log of the fixes that were
    filtered, each with the reason and what was too much.
    """

    history: History
    readings: Sequence[Reading]
    controls: Controls
    filtered: Mapping[int, Said]
    late: int
    double: int
    used: int
    rows_of: Mapping[str, Ints]


def past_of(rows: Iterable[Row], layers: Layers, rules: Rules) -> Past:
    """What the rows of a log, in its order, bring about."""
    rows = list(rows)
    fixes = [row for row in rows if isinstance(row, Fix)]
    controls = [
        (row.position, _typed(row.row)) for row in rows if not isinstance(row, Fix)
    ]
    times = _times_of(rules)
    recorded = _recorded(fixes)
    clock = clock_of(recorded.position, recorded.ts, controls, times)
    found = happened_to(recorded, clock, times)
    filtered = _filtered(found, fixes, rules)
    is_out = np.array([fix.position in filtered for fix in fixes], bool)
    events = events_of(replace(recorded, filtered=is_out), clock, times)
    readings = _readings(events, fixes, rules)
    late, double = _unused(fixes, clock, rules)
    return Past(
        history=History(
            events=events,
            fixes=fixes_of(readings, rules),
            clock=clock,
            times=times,
            source=Written(layers),
        ),
        readings=readings,
        controls=controls,
        filtered=filtered,
        late=late,
        double=double,
        used=int((events.kind != EXPIRED).sum()),
        rows_of=_rows_of(readings),
    )


def fixes_of(readings: Sequence[Reading], rules: Rules) -> Fixes:
    """Readings as the reference reads them; the oracle has no doubts about distances."""
    return Fixes(
        ids=objects([one.fix.object for one in readings]),
        x=np.array([one.fix.x for one in readings], float),
        y=np.array([one.fix.y for one in readings], float),
        metric=Metric(is_flat=not rules.geographic),
        of=Meanings(readings),
        rows=np.arange(len(readings)),
    )


def _typed(row: Mapping[str, Any]) -> Any:
    (typed,) = rows_of(json.dumps(dict(row)).encode(), stream="", segment=0)
    return typed


def _times_of(rules: Rules) -> Times:
    return Times(
        lateness_us=rules.lateness_us,
        silence_us=rules.silence_us,
        tick_us=rules.tick_us,
        space=GLOBE if rules.geographic else PLANE,
        window_rows=rules.window_rows,
    )


def _recorded(fixes: Sequence[Fix]) -> Recorded:
    number = {name: n for n, name in enumerate(dict.fromkeys(f.object for f in fixes))}
    return Recorded(
        position=np.array([fix.position for fix in fixes], np.int64),
        ts=np.array([fix.event_us for fix in fixes], np.int64),
        ids=objects([fix.object for fix in fixes]),
        code=np.array([number[fix.object] for fix in fixes], np.int64),
        x=np.array([fix.x for fix in fixes], float),
        y=np.array([fix.y for fix in fixes], float),
        gone=np.array([fix.gone for fix in fixes], bool),
        filtered=np.zeros(len(fixes), bool),
    )


def _filtered(found: Happened, fixes: Sequence[Fix], rules: Rules) -> dict[int, Said]:
    """The fixes that are not believed, or say nothing new, beside the last one before in the same stay."""
    out: dict[int, Said] = {}
    if not rules.filters:
        return out
    last: dict[str, Fix] = {}
    for source, kind in zip(found.source.tolist(), found.kind.tolist(), strict=True):
        fix = fixes[source]
        said = filtered(fix, last.get(fix.object), rules) if kind == FIX else None
        if said is not None:
            out[fix.position] = said
        elif kind == FIX:
            last[fix.object] = fix
        else:
            last.pop(fix.object, None)
    return out


def filtered(fix: Fix, last: Fix | None, rules: Rules) -> Said | None:
    """Why a fix is filtered beside the last accepted one of its stay (SPEC X11); None when it is accepted."""
    begun = [one for start, one in rules.filters if start <= fix.position]
    by = begun[-1] if begun else Filter()
    metric = Metric(is_flat=not rules.geographic)
    said = judged(_limits(by), _moved(fix, last, by, rules), metric)
    return (said.reason[0], float(said.value[0])) if said.reason[0] else None


def _limits(by: Filter) -> Limits:
    """Of one fix; what is off is inf, or 0."""
    after_us = by.accept_after_us
    return Limits(
        max_accuracy_m=_one(by.max_accuracy_m, math.inf),
        max_speed_mps=_one(by.max_speed_mps, math.inf),
        min_distance_m=_one(by.min_distance_m, 0.0),
        accept_after_s=_one(None if after_us is None else after_us / 1e6, math.inf),
        beyond_accuracy=np.array([by.beyond_accuracy]),
    )


def _moved(fix: Fix, last: Fix | None, by: Filter, rules: Rules) -> Moved:
    before = fix if last is None else last
    ends = (before.x, before.y), (fix.x, fix.y)
    return Moved(
        own_m=_one(_accuracy_m(fix, by), 0.0),
        has_before=np.array([last is not None]),
        metres=_one(metres(*ends, geographic=rules.geographic), 0.0),
        seconds=_one((fix.event_us - before.event_us) / 1e6, 0.0),
        before_m=_one(_accuracy_m(before, by), 0.0),
    )


def _one(value: float | None, off: float) -> np.ndarray:
    return np.array([off if value is None else value])


def _accuracy_m(fix: Fix, by: Filter) -> float:
    """How good a fix is; 0 where it does not say so, or says nonsense."""
    value = None if by.accuracy is None else fix.attributes.get(by.accuracy)
    return value if value is not None and value >= 0 else 0.0


def _readings(events: Events, fixes: Sequence[Fix], rules: Rules) -> list[Reading]:
    """The reading of each event: of one that ended an object its last place, at its last time, without speed."""
    readings: list[Reading] = []
    last: dict[str, Fix] = {}
    columns = events.source.tolist(), events.kind.tolist(), events.before.tolist()
    for source, kind, before in zip(*columns, strict=True):
        fix = fixes[source]
        if kind == FIX:
            last[fix.object] = fix
            earlier = readings[before] if before >= 0 else None
            readings.append(reading_of(fix, earlier, rules))
        else:
            place = last.get(fix.object, fix)
            readings.append(Reading(fix=replace(place, event_us=fix.event_us)))
    return readings


def _rows_of(readings: Sequence[Reading]) -> dict[str, Ints]:
    rows: dict[str, list[int]] = {}
    for row, reading in enumerate(readings):
        rows.setdefault(reading.fix.object, []).append(row)
    return {name: np.array(own, np.int64) for name, own in rows.items()}


def _unused(fixes: Sequence[Fix], clock: Clock, rules: Rules) -> tuple[int, int]:
    """How many fixes are late, and how many double."""
    before = clock.just_before(np.array([fix.position for fix in fixes], np.int64))
    found: Counter[str] = Counter()
    seen: dict[str, set[int]] = {}
    for fix, clock_us in zip(fixes, before.tolist(), strict=True):
        times = seen.setdefault(fix.object, set())
        kept_us = rules.silence_us or 0
        if rules.lateness_us:
            is_late = fix.event_us < clock_us
        else:
            is_silent = rules.silence_us is not None and (
                fix.event_us + kept_us < clock_us
            )
            is_late = is_silent or fix.event_us < max(times, default=fix.event_us)
        if is_late:
            found["late"] += 1
        elif fix.event_us in times:
            found["double"] += 1
        else:
            times.add(fix.event_us)
    return found["late"], found["double"]
