"""Features from CSV and TSV: a line each, or, of GTFS, the points of lines.

What separates fields and which columns hold the place is found as for streams; whatever was found is told.
"""

import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import shapely

from st_common.errors import LayerError
from st_common.formats.numbers import doubles, is_missing
from st_common.layers.features import Found
from st_common.layers.kinds import Kinds
from st_common.layers.line_places import DEGREES, Placed, placed
from st_common.layers.lines import Lines, read_lines
from st_common.layers.options import FileOptions

SHAPE_COLUMNS = ("shape_id", "shape_pt_lon", "shape_pt_lat", "shape_pt_sequence")
"""By these a file is the shapes.txt of GTFS."""
_LEAST_POINTS = 2

SUFFIXES = (".csv", ".tsv", ".txt")
_IDS = (
    r"f?id",
    r".*[ _-]?id",
    r"code|key|ref|nr\.?|no\.?|number|nummer|numero|num",
    r".*(code|key|ref|nr|number|nummer)",
    r".*name|bezeichnung|nom|nombre|nome|naam|nimi|label|title|titel",
)
"""What columns of ids are called, the surest names first."""


def read_delimited(
    file: Path, kinds: Kinds, options: FileOptions, *, target: str | None
) -> tuple[Found, str | None]:
    """The features of a file, and the system of their coordinates; None: numbers that are no degrees.

    Places are in columns of longitude and latitude, or in one of WKT, EWKT or WKB. `shapes.txt` of GTFS gives a line
    for each `shape_id`. The fid is the value of the column that has another one for each feature and is called so, or
    `#n`. Columns become tags, texts as they are, empty ones not at all; the kind is found as for GeoJSON.

    Reasons of rejects: `ragged`, `unbalanced_quote`, `bad_utf8`, `bad_number`, `no_geometry`, `bad_geometry`,
    `bad_id`, `other_crs` (a SRID that is not that of the others); of GTFS `bad_order` and `too_few_points`.

    Args:
        file: with a line that names the columns, or without one.
        kinds: the rules.
        options: columns that are named, and the system.
        target: the system of the layer: what an SRID may say as well.

    Raises:
        LayerError: no column holds places, a named one is not there, or an SRID is of another system.
    """
    lines = read_lines(file)
    crs: str | None = DEGREES
    if set(SHAPE_COLUMNS) <= lines.columns.keys() and not options.columns:
        found = shapes_of(lines, kinds)
    elif not len(lines):
        found = Found(counts="line")
    else:
        places = placed(lines, options, file, target)
        found, crs = _of_lines(lines, places, kinds, options.ids, file), places.crs
        found.notes[:0] = places.notes
    found.notes[:0] = lines.notes
    for number, reason in lines.faults:
        found.wanted += 1
        found.reject(reason, "", number)
    return found, crs


def _of_lines(
    lines: Lines, places: Placed, kinds: Kinds, ids: str | None, file: Path
) -> Found:
    """A feature a line."""
    found = Found(counts="line")
    fids, note = _fids(lines, places.used, ids, file)
    found.notes.append(note)
    tagged = [name for name in lines.columns if name not in places.used]
    tags = pa.table({n: lines.columns[n] for n in tagged}).to_pylist() if tagged else []
    wkb = shapely.to_wkb(places.geometries)
    for row, number in enumerate(lines.numbers.tolist()):
        found.wanted += 1
        fid = fids[row] or ""
        why = places.why[row] or ("" if fid else "bad_id")
        if why:
            found.reject(why, fid, number)
            continue
        own = {n: value for n, value in tags[row].items() if value} if tags else {}
        kind = kinds.named_or_of(own, places.geometries[row].geom_type)
        found.add(fid, kind, own, wkb[row], number)
    return found


def _fids(
    lines: Lines, used: frozenset[str], ids: str | None, file: Path
) -> tuple[list[str | None], str]:
    """The id of each line, and what they are."""
    if ids is not None:
        if ids not in lines.columns:
            known = ", ".join(lines.columns)
            raise LayerError(
                f"{file} has no column {ids!r} of ids", hint=f"it has {known}"
            )
        return lines.columns[ids].to_pylist(), f"ids are those of {ids}"
    left = [name for name in lines.columns if name not in used]
    for pattern in _IDS:
        for name in left:
            if re.fullmatch(pattern, name, re.IGNORECASE) and _differ(
                lines.columns[name]
            ):
                note = f"ids are those of {name}; --id names another column"
                return lines.columns[name].to_pylist(), note
    for name in left:
        values = lines.columns[name]
        if not doubles(values).bad.all() or not _differ(values):
            continue
        note = f"ids are those of {name}, a text that differs in each line; --id names another column"
        return values.to_pylist(), note
    numbered: list[str | None] = [f"#{place}" for place in range(1, len(lines) + 1)]
    return (
        numbered,
        "ids are #1, #2, ..: no column is called as one of ids are, with another value in each line; --id names one",
    )


def _differ(values: pa.Array) -> bool:
    """Whether a column has another value for each feature; lines without one are few, and named as rejects."""
    known = values.filter(pa.array(~is_missing(values)))
    return len(known) > 0 and pc.count_distinct(known).as_py() == len(known) == len(
        values
    )


def shapes_of(lines: Lines, kinds: Kinds) -> Found:
    """The lines of GTFS's shapes.txt; one with a point that cannot be read is left out as a whole."""
    found = Found(counts="line")
    found.notes.append(
        "lines are those of GTFS by shape_id, in the order of shape_pt_sequence"
    )
    fids = lines.columns["shape_id"]
    x, y, order = (doubles(lines.columns[name]) for name in SHAPE_COLUMNS[1:])
    bad = np.where(order.bad | order.missing, "bad_order", "")
    bad = np.where(x.bad | y.bad | x.missing | y.missing, "bad_number", bad)
    encoded = fids.dictionary_encode()
    code = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    rows = np.lexsort([np.arange(len(lines)), order.values, code])
    starts = np.searchsorted(code[rows], np.arange(len(encoded.dictionary) + 1))
    places = np.column_stack([x.values, y.values])
    for row in np.flatnonzero(code < 0):
        found.wanted += 1
        found.reject("bad_id", "", int(lines.numbers[row]))
    for one, fid in enumerate(encoded.dictionary.to_pylist()):
        mine = rows[starts[one] : starts[one + 1]]
        found.wanted += 1
        wrong = np.sort(mine[bad[mine] != ""])
        number = int(lines.numbers[wrong[0] if len(wrong) else mine.min()])
        if len(wrong):
            found.reject(str(bad[wrong[0]]), fid, number)
        elif len(mine) < _LEAST_POINTS:
            found.reject("too_few_points", fid, number)
        else:
            tags = {"shape_id": fid}
            kind = kinds.named_or_of(tags, "LineString")
            wkb = bytes(shapely.to_wkb(shapely.linestrings(places[mine])))
            found.add(fid, kind, tags, wkb, number)
    return found
