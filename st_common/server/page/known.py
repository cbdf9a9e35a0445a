"""What is registered and loaded, read anew only where something about it was written."""

import threading
from typing import Any

from st_common.config.home import DEFAULT_GROUP, Home
from st_common.layers.announce import layer_group
from st_common.layers.conversion import crs_of_group, space_of
from st_common.layers.summary import summary
from st_common.layers.table import layer_names, newest_version
from st_common.log.log import Log
from st_common.query.control import QueryRow
from st_common.query.lookup import logged_streams, queries
from st_common.query.plan import Plan
from st_common.query.text import to_text
from st_common.server.page.frame import GLOBE, Frame, plane_of
from st_common.server.page.watch import Box
from st_common.server.parameters import Parameters

_MOST_KINDS = 50
_PARTS = (
    ("outer", "rows of a query"),
    ("incident", "incident"),
    ("fence", "fence"),
    ("aggregate", "aggregate"),
    ("frame", "window"),
    ("neighbours", "knn"),
    ("pairs", "pairs"),
    ("join", "join"),
    ("window", "window"),
)


class Known:
    """Queries and layers of a home, as the page lists them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rows: tuple[Any, list[dict[str, Any]]] = (None, [])
        self._layers: dict[str, dict[str, Any]] = {}

    def queries(self, home: Home) -> list[dict[str, Any]]:
        """All queries that are registered, by name."""
        with self._lock:
            said = _statements(home)
            if said != self._rows[0]:
                self._rows = (said, [_shown(row) for row in queries(home)])
            return self._rows[1]

    def layers(self, asked: Parameters) -> list[dict[str, Any]]:
        """All layers that are loaded, by name."""
        with self._lock:
            names = list(layer_names(asked.place.home))
            return [
                one for name in names if (one := self._layer(asked, name)) is not None
            ]

    def attribution(self, asked: Parameters, layer: str) -> str | None:
        """Whose data a layer has; None where nothing must be said, or there is no such layer."""
        with self._lock:
            shown = self._layer(asked, layer)
        return None if shown is None else shown["attribution"]

    def box(self, asked: Parameters, layer: str) -> Box | None:
        """Where the features of a layer lie, in its own coordinates; None where it has none."""
        with self._lock:
            self._layer(asked, layer)
            box: Box | None = self._layers.get(layer, {}).get("box")
            return box

    def _layer(self, asked: Parameters, name: str) -> dict[str, Any] | None:
        version = newest_version(asked.place.home, name)
        if version is None:
            return None
        if self._layers.get(name, {}).get("version") != version:
            shown = summary(asked.place.home, name)
            kinds = sorted(shown.by_kind.items(), key=lambda pair: -pair[1])
            self._layers[name] = {
                "name": name,
                "version": version,
                "features": shown.features,
                "attribution": shown.attribution,
                "kinds": dict(kinds[:_MOST_KINDS]),
                "box": shown.box,
            }
        frame = layer_frame(asked, name)
        known = dict(self._layers[name])
        extent = frame.box(known.pop("box"))
        return {**known, "extent": extent, "space": frame.to_json(None)}


def _statements(home: Home) -> list[tuple[str, int]]:
    """Of each log the newest segment that may have changed what is registered."""
    said = []
    for name in logged_streams(home):
        log = Log(home.log(name))
        end = log.end()
        if end:
            last = log.segment(end - 1)
            number = last.number if last.statement else last.statement_before
            said.append((name, number))
    return said


def _shown(row: QueryRow) -> dict[str, Any]:
    plan = row.plan
    text = row.text or ("" if plan is None else to_text(plan, row.name))
    return {
        "name": row.name,
        "version": row.version,
        "stream": row.stream,
        "text": text,
        "kind": "unknown" if plan is None else kind_of(plan),
        "state": row.state,
        "why": row.why,
    }


def layer_frame(asked: Parameters, name: str) -> Frame:
    """Where the map shows a layer: as the streams of the group by whose regions it is spread."""
    group = layer_group(asked.place.home, name)
    crs = crs_of_group(asked.place.streams().values(), group or DEFAULT_GROUP)
    return plane_of(asked) if space_of(crs).is_flat else GLOBE


def kind_of(plan: Plan) -> str:
    """The kind: the first part of the plan that decides what its answer is; `range` or `filter` where none does.

    the k nearest inside a circle -> knn    a circle -> range    WHERE speed > 3 alone -> filter
    """
    for part, kind in _PARTS:
        if getattr(plan, part) is not None:
            return kind
    return "filter" if plan.inside is None else "range"
