"""Queries and areas go over to the newest surfaces of features: after a layer was loaded (docs/adr/0032)."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from st_common.config.home import Home
from st_common.errors import ConfigError
from st_common.query.area_store import FILE as AREAS
from st_common.query.area_store import HomeAreas, areas
from st_common.query.area_store import encoded as areas_file
from st_common.query.commit import registry_locked
from st_common.query.control import QueryRow
from st_common.query.layer_change import gone_over, is_behind, newest_areas
from st_common.query.lookup import history, latest_rows
from st_common.query.row_writing import write_rows

if TYPE_CHECKING:
    from st_common.config.stream import StreamSettings


def follow_layers(
    home: Home,
    streams: "Callable[[], Mapping[str, StreamSettings]]",
    *,
    now_us: int | None = None,
) -> list[QueryRow]:
    """The control rows by which queries went over to the newest surfaces of features, and areas with them.

    Whoever loaded a layer calls it. Called again it completes what a load that died in between left undone; where
    nothing is to be done it writes nothing. `streams` is asked where some query has another region.

    Raises:
        ConfigError: queries are on streams without right settings; all others went over.
    """
    with registry_locked(home):
        arrival_us = time.time_ns() // 1000 if now_us is None else now_us
        feature_of, named = HomeAreas(home).feature, areas(home)
        latest = latest_rows(history(home)).values()
        behind = sorted(
            (row for row in latest if is_behind(row, feature_of)),
            key=lambda row: row.name,
        )
        settings = streams() if behind else {}
        rows = [
            replace(gone_over(row, feature_of, stream), arrival_us=arrival_us)
            for row in behind
            if (stream := settings.get(row.stream)) is not None
        ]
        changed = dict(newest_areas(named, feature_of))
        stored = areas_file(changed.get(area, area) for area in named)
        files = {AREAS: stored} if changed else {}
        written = write_rows(home, rows, arrival_us, files) if rows or files else []
    _refuse_left(behind, settings)
    return written


def _refuse_left(
    behind: Sequence[QueryRow], settings: "Mapping[str, StreamSettings]"
) -> None:
    """Names the queries that could not go over, for nobody knows their stream."""
    left = [row for row in behind if row.stream not in settings]
    if left:
        names = ", ".join(f"{row.name} on {row.stream}" for row in left)
        raise ConfigError(
            f"a layer has another surface for queries of unknown streams: {names}",
            hint="mend the settings of the stream and load the layer again, or drop the queries",
        )


def names_of(rows: Sequence[QueryRow]) -> dict[str, list[str]]:
    """The names of the queries that went over (`followed`), and of those that are judged no more (`suspended`)."""
    names: dict[str, list[str]] = {"followed": [], "suspended": []}
    for row in rows:
        names["suspended" if row.op == "fail" else "followed"].append(row.name)
    return names
