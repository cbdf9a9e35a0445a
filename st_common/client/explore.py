"""Rows with places as a map for notebooks: one page without a request to anybody, drawn on a canvas."""

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from st_common.errors import ConfigError

MOST_ROWS = 200_000
"""More rows are not drawn: a browser would take minutes for them."""

_PAGES = Path(__file__).with_name("pages")
_HEIGHT_PX = 480
_DEGREES = "EPSG:4326"
_PLACES = ("geometry", "x", "y")


@dataclass(frozen=True, slots=True)
class MapPage:
    """A map as one HTML page; notebooks show it by itself.

    Attributes:
        page: the whole page.
    """

    page: str

    def _repr_html_(self) -> str:
        framed = html.escape(self.page, quote=True)
        style = f"width:100%;height:{_HEIGHT_PX}px;border:0"
        return f'<iframe srcdoc="{framed}" style="{style}" title="map"></iframe>'

    def save(self, path: str | Path) -> None:
        """Writes the page into a file.

        Args:
            path: of the file; one that is there is replaced.
        """
        Path(path).write_text(self.page, encoding="utf-8")


def explored(
    table: pa.Table, crs: str | None, color: str | None, under: Any | None
) -> MapPage:
    """A map of rows.

    Args:
        table: has `geometry`, GeoArrow points; rows whose place is null are counted, not drawn.
        crs: of the places.
        color: a column by whose values dots are coloured; None: all alike.
        under: what is drawn below the dots, in the same coordinates.

    Raises:
        ConfigError: there are too many rows, no such column, or `under` has no geometry.
    """
    known = table.filter(pc.is_valid(table["geometry"]))
    if len(known) > MOST_ROWS:
        raise ConfigError(
            f"a map shows at most {MOST_ROWS:,} rows, and these are {len(known):,}",
            hint="ask for fewer: inside=, nearest=, or WHERE",
        )
    points = known["geometry"].combine_chunks()
    shown = {
        "x": points.field("x").to_pylist(),
        "y": points.field("y").to_pylist(),
        "columns": _texts(known),
        "color": None if color is None else _checked(known, color),
        "isDegrees": crs == _DEGREES,
        "unplaced": len(table) - len(known),
        "under": _features(under),
    }
    return MapPage(_page(shown))


def _texts(table: pa.Table) -> dict[str, list[str | None]]:
    """What is said of each row, by column."""
    names = [name for name in table.column_names if name not in _PLACES]
    return {
        name: [None if value is None else str(value) for value in rows]
        for name, rows in ((name, table[name].to_pylist()) for name in names)
    }


def _checked(table: pa.Table, color: str) -> str:
    names = [name for name in table.column_names if name not in _PLACES]
    if color not in names:
        raise ConfigError(
            f"these rows have no column {color!r} to colour them by",
            hint=f"they have {', '.join(names)}",
        )
    return color


def _features(under: Any | None) -> Sequence[Mapping[str, Any]]:
    """The features of anything that is GeoJSON or says itself as such.

    Raises:
        ConfigError: it does neither.
    """
    if under is None:
        return []
    told = getattr(under, "__geo_interface__", under)
    if not isinstance(told, Mapping) or "type" not in told:
        raise ConfigError(
            f"a {type(under).__name__} cannot be drawn below a map",
            hint="give GeoJSON, a GeoDataFrame or a geometry of Shapely",
        )
    if told["type"] == "FeatureCollection":
        return [_bare(feature) for feature in told["features"]]
    return [_bare(told)]


def _bare(told: Mapping[str, Any]) -> Mapping[str, Any]:
    """Its geometry alone."""
    bare: Mapping[str, Any] = told.get("geometry") or told
    return bare


def _page(shown: Mapping[str, Any]) -> str:
    """The page with its data; nothing in them can end the script."""
    data = json.dumps(shown, separators=(",", ":")).replace("<", "\\u003c")
    page = (_PAGES / "explore.html").read_text(encoding="utf-8")
    return page.replace("/*DATA*/ null", data, 1)
