"""Rows of a test as a real log: CSV segments and control segments, cut where the test wants them cut."""

import csv
import io
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from st_common.config.columns import Columns
from st_common.config.position_filter import PositionFilter
from st_common.config.stream import StreamSettings
from st_common.controls.rows import End
from st_common.controls.writing import to_bytes
from st_common.log.log import Log
from st_common.position import position_of
from st_common.storage import Storage
from tests.kit.oracle import Control, Fix, Row, Rules
from tests.kit.oracle_rows import ATTRIBUTES, text_of
from tests.kit.strategies import Case
from tests.kit.user_filters import DECLARED

HEADER = ("object", "t", "x", "y", "gone", *ATTRIBUTES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """A log and its rows with the positions that they got there.

    `order` gives the place of a position in the order of the rows, which no cutting changes: changes over differently
    cut logs are equal when they are equal with `order[position]` in the place of `position`.
    """

    log: Log
    rows: tuple[Row, ...]
    order: dict[int, int]


def bare_log(folder: Path, *, storage: Storage | None = None) -> Log:
    """A log to which records are appended of which nobody says how they are read: whoever reads them first does."""
    log = Log(folder, storage=storage)
    log.settle_by(lambda: None)
    return log


def write_log(
    folder: Path,
    rows: Sequence[Row],
    cuts: Collection[int] = (),
    *,
    arrival_us: int = 0,
    live: bool = False,
) -> Written:
    """A log in `folder` that holds the rows; a segment ends at every cut, and wherever fixes and control rows meet.

    A cut is the place of the first row of a segment. Every segment has the same arrival; `live` says
    that fixes are told as they happen.
    """
    log = bare_log(folder)
    placed: list[Row] = []
    order: dict[int, int] = {}
    for part in _parts(rows, frozenset(cuts)):
        control = isinstance(part[0], Control)
        segment = log.append(
            _payload(part),
            arrival_us=arrival_us,
            control=control,
            live=live and not control,
        )
        for number, row in enumerate(part):
            position = position_of(segment.number, number)
            order[position] = len(placed)
            placed.append(replace(row, position=position))
    return Written(log=log, rows=tuple(placed), order=order)


def settings_of(
    name: str, rules: Rules, *, shards: int = 2, margin: float = 0.0
) -> StreamSettings:
    """The settings of a stream whose log `write_log` wrote; replays may be ahead of their arrival.

    `margin` is the width of the caches of moving queries; there are none where objects are never silent.
    """
    silence_s = None if rules.silence_us is None else rules.silence_us / 1e6
    return StreamSettings(
        name=name,
        format="csv",
        columns=Columns(object="object", event_ts="t", x="x", y="y", gone="gone"),
        crs="EPSG:4326" if rules.geographic else "planar",
        time_unit="us",
        attributes=ATTRIBUTES,
        lateness_s=rules.lateness_us / 1e6,
        silence_s=silence_s,
        max_speed_mps=1.0 if margin else None,
        cache_share=margin / silence_s if silence_s else 1.0,
        max_ahead_s=None,
        tick_s=rules.tick_us / 1e6,
        window_rows=rules.window_rows,
        shards=shards,
        units={"load": "m"} if rules.filters else {},
        filters=DECLARED,
        position_filter=_position_filter(rules),
    )


def _position_filter(rules: Rules) -> PositionFilter | None:
    """The one filter of all rows; None without any."""
    if not rules.filters:
        return None
    ((_, only),) = rules.filters
    after_us = only.accept_after_us
    return PositionFilter(
        accuracy=only.accuracy,
        max_accuracy_m=only.max_accuracy_m,
        beyond_accuracy=only.beyond_accuracy,
        min_distance_m=only.min_distance_m,
        max_speed_mps=only.max_speed_mps,
        accept_after_s=None if after_us is None else after_us / 1e6,
    )


def _parts(rows: Sequence[Row], cuts: frozenset[int]) -> list[list[Row]]:
    parts: list[list[Row]] = []
    for number, row in enumerate(rows):
        if (
            not parts
            or number in cuts
            or isinstance(row, Fix) != isinstance(parts[-1][-1], Fix)
        ):
            parts.append([])
        parts[-1].append(row)
    return parts


def _payload(part: list[Row]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    if isinstance(part[0], Fix):
        writer.writerow(HEADER)
    for row in part:
        if isinstance(row, Control):
            text.write(json.dumps(dict(row.row)) + "\n")
        elif row.gone:
            writer.writerow(
                (row.object, row.event_us, "", "", "1", *("" for _ in ATTRIBUTES))
            )
        else:
            values = [row.attributes.get(name) for name in ATTRIBUTES]
            texts = ["" if value is None else text_of(value) for value in values]
            writer.writerow(
                (row.object, row.event_us, repr(row.x), repr(row.y), "", *texts)
            )
    return text.getvalue().encode()


def ended(case: Case) -> Case:
    """The case with an end mark behind its rows, so that the archive waits for nothing: it does so piece by piece."""
    last = case.rows[-1].position if case.rows else -1
    end = Control(position=last + 1, row=json.loads(to_bytes(End())))
    return replace(case, rows=(*case.rows, end))
