"""Features from KML, read by GDAL: the placemarks of all folders, called by their names."""

import codecs
import re
from pathlib import Path

import pyarrow as pa

from st_common.errors import LayerError

SUFFIX = ".kml"
FOLDER = "folder"
"""The tag that says in which folder a placemark is, where there are several."""
_COORDINATES = re.compile(r"<coordinates>([^<]*)</coordinates>")
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_PLACES = re.compile(rf"\s*(?:{_NUMBER}(?:\s*,\s*{_NUMBER}){{1,2}}\s*)*")
_LINK = re.compile(r"<NetworkLink\b")
_PLACEMARK = re.compile(r"<Placemark\b")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_RENAMED = {"Name": "name"}
_LOOKS = frozenset({"tessellate", "extrude", "visibility", "drawOrder", "icon"})
_SHOWN = 40


def require_coordinates(file: Path) -> list[str]:
    """Makes sure that GDAL can read all coordinates, for it takes what is no number for 0.

    Args:
        file: a KML file.

    Returns:
        What people should know: links to other files are not followed.

    Raises:
        LayerError: a coordinate is no number.
    """
    text = _COMMENT.sub(lambda found: "\n" * found[0].count("\n"), _text(file))
    for found in _COORDINATES.finditer(text):
        match = _PLACES.match(found[1])
        end = match.end() if match else 0
        if end < len(found[1]):
            line = text.count("\n", 0, found.start(1) + end) + 1
            wrong = found[1][end:].split()[0][:_SHOWN]
            raise LayerError(
                f"{file}, line {line}: {wrong!r} is no place",
                hint="coordinates are longitude,latitude or longitude,latitude,height, with blanks between places",
            )
    links = len(_LINK.findall(text))
    return [f"{links} NetworkLink to other files: not followed"] if links else []


def placemarks(file: Path) -> int:
    """How many placemarks a file has."""
    return len(_PLACEMARK.findall(_COMMENT.sub("", _text(file))))


def _text(file: Path) -> str:
    data = file.read_bytes()
    is_wide = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if is_wide else "latin-1", "replace")


def joined(tables: dict[str, pa.Table], geometry: str) -> pa.Table:
    """The placemarks of all folders as one table: texts, and how they look left out.

    Args:
        tables: by the names of folders.
        geometry: the column that stays as it is.
    """
    several = sum(len(one) > 0 for one in tables.values()) > 1
    parts = []
    for folder, rows in tables.items():
        columns = {
            _RENAMED.get(name, name): rows[name]
            if name == geometry
            else _texts(rows[name])
            for name in rows.column_names
            if name not in _LOOKS
        }
        if several:
            columns.setdefault(FOLDER, pa.repeat(pa.scalar(folder), len(rows)))
        parts.append(pa.table(columns))
    return pa.concat_tables(parts, promote_options="default")


def _texts(values: pa.ChunkedArray) -> pa.ChunkedArray:
    """Values of any type as texts; lists and the like as JSON is left to whoever makes tags of them."""
    if pa.types.is_nested(values.type):
        texts = [None if one is None else str(one) for one in values.to_pylist()]
        return pa.chunked_array([pa.array(texts, pa.string())])
    return values.cast(pa.string())
