"""Were the right fixes filtered? What the table `positions` says of each, held against the rules (SPEC X11).

It shares nothing with the stage that filters. If each fix is what the rules say of it beside the last one before it
that the table calls accepted, then, one after the other, all are right.
"""

from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
from pyproj import Geod

from st_common import tables
from st_common.capture.log import Log
from st_common.capture.reading import record_of, with_reading
from st_common.controls.rows import Reading
from st_common.home import Home
from st_common.levels.stored import FILTERED, archived_end, has_filtered
from st_common.position import position_of, row_of, segment_of
from st_common.position_filter import PositionFilter
from st_common.reference.metric import Metric
from st_common.reference.position_filter import Judged, Limits, Moved, judged
from st_common.serving.verify_events import FIX, clock_of, seen_events, stays_of
from st_common.serving.verify_history import marks_of, times_of
from st_common.serving.verify_registered import Controls, controls_of
from st_common.settings import StreamSettings

_GEOD = Geod(ellps="WGS84")


def wrongly_filtered(home: Home, stream: StreamSettings) -> tuple[int, list[str]]:
    """How many fixes were looked at, and those of which the table says something else than the rules, in words.

    Fixes that are so near to a limit that two ways to measure a distance may differ are not among them.
    """
    path, end = home.table("positions", stream.name), archived_end(home, stream.name)
    if not end or not has_filtered(path):
        return 0, []
    log = Log(home.log(stream.name))
    controls = controls_of(log, end)
    spans = _spans(log, stream, controls)
    times = times_of(stream)
    fixes = _fixes(home, stream, spans)
    events = seen_events(fixes, clock_of(fixes, marks_of(controls), times), times)
    events = events.assign(stay=stays_of(events))
    events = events[events["kind"] == FIX].reset_index(drop=True)
    said = _said(events, spans, stream)
    is_other = said.reason != events["said"].to_numpy(object)
    wrong = events.assign(should=said.reason)[is_other & ~said.is_doubtful]
    return len(events), [_in_words(row) for row in wrong.itertuples()]


def _in_words(row: Any) -> str:
    told, should = row.said or "accepted", row.should or "accepted"
    return f"segment {segment_of(row.position)}, row {row_of(row.position)}: {told}, not {should}"


def _spans(
    log: Log, stream: StreamSettings, controls: Controls
) -> list[tuple[int, StreamSettings]]:
    """From which place in the log on which settings filter: as `capture.reading` says it of a whole log."""
    record = record_of(log)
    base = stream
    if record.base is not None:
        base = with_reading(stream, record.base, where="how the log is read")
    rows = [
        (at, with_reading(stream, row.reading, where=log.place(segment_of(at))))
        for at, row in controls
        if isinstance(row, Reading) and segment_of(at) >= record.upto
    ]
    return [(0, base), *rows]


def _fixes(
    home: Home, stream: StreamSettings, spans: list[tuple[int, StreamSettings]]
) -> pd.DataFrame:
    """All archived fixes in log order with what the table says of them, and their accuracy by each span."""
    path = home.table("positions", stream.name)
    stored = tables.read(path)
    columns = {name: stored[name].to_pandas() for name in ("object", "x", "y")}
    fixes = pd.DataFrame(columns).assign(
        ts=stored["event_ts"].cast(pa.int64()).to_numpy(),
        gone=stored["gone"].to_numpy(),
        said=stored[FILTERED].fill_null("").to_pandas(),
        position=position_of(
            stored["segment"].to_numpy(), stored["row"].to_numpy().astype(np.int64)
        ),
    )
    for number, (_, settings) in enumerate(spans):
        fixes[f"accuracy_{number}"] = _accuracy(stored, settings)
    return fixes.sort_values("position", kind="stable").reset_index(drop=True)


def _accuracy(stored: pa.Table, settings: StreamSettings) -> np.ndarray:
    """Metres; 0 where nothing is known, or what is said makes no sense."""
    name = settings.position_filter.accuracy if settings.position_filter else None
    if name is None or name not in stored.column_names:
        return np.zeros(len(stored))
    values = stored[name].cast(pa.float64()).to_numpy() * settings.accuracy_unit_m
    return np.where(values >= 0, values, 0.0)


def _said(
    events: pd.DataFrame,
    spans: list[tuple[int, StreamSettings]],
    stream: StreamSettings,
) -> Judged:
    """What the rules say of each fix, and where a distance is too near to a limit to tell."""
    starts = np.array([at for at, _ in spans])
    span = np.searchsorted(starts, events["position"].to_numpy(), side="right") - 1
    rules = [one.position_filter or PositionFilter() for _, one in spans]
    accuracy = events[[f"accuracy_{n}" for n in range(len(spans))]].to_numpy()
    before, number = _last_accepted(events), np.arange(len(events))
    limits = Limits(
        max_accuracy_m=_limits([one.max_accuracy_m for one in rules])[span],
        max_speed_mps=_limits([one.max_speed_mps for one in rules])[span],
        min_distance_m=_limits([one.min_distance_m for one in rules], 0.0)[span],
        accept_after_s=_limits([one.accept_after_s for one in rules])[span],
        beyond_accuracy=np.array([one.beyond_accuracy for one in rules])[span],
    )
    ts = events["ts"].to_numpy(np.int64)
    moved = Moved(
        own_m=accuracy[number, span],
        has_before=before >= 0,
        metres=_metres(events, before, stream),
        seconds=(ts - ts[before]) / 1e6,
        before_m=accuracy[before, span],
    )
    is_flat = stream.space.is_flat
    return judged(limits, moved, Metric(is_flat=is_flat, doubts=not is_flat))


def _limits(values: list[float | None], off: float = np.inf) -> np.ndarray:
    return np.array([off if value is None else value for value in values])


def _last_accepted(events: pd.DataFrame) -> np.ndarray:
    """The place of the last fix before each in the same stay that the table calls accepted; -1 without one."""
    number, stay = np.arange(len(events)), events["stay"].to_numpy()
    own = np.where(events["said"].to_numpy() == "", number, -1)
    before = np.r_[-1, np.maximum.accumulate(own)[:-1]] if len(own) else own
    return np.where((before >= 0) & (stay[before] == stay), before, -1)


def _metres(
    events: pd.DataFrame, before: np.ndarray, stream: StreamSettings
) -> np.ndarray:
    x, y = events["x"].to_numpy(), events["y"].to_numpy()
    if not stream.space.is_flat:
        return np.asarray(_GEOD.inv(x[before], y[before], x, y)[2])
    moved: np.ndarray = np.hypot(x - x[before], y - y[before]) * stream.unit_m
    return moved
