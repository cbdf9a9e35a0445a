"""The lines of `shapes.txt` of GTFS: a line of the file is one point of them."""

import numpy as np
import shapely

from st_common.formats.numbers import doubles
from st_common.layers.features import Found
from st_common.layers.kinds import Kinds
from st_common.layers.lines import Lines

COLUMNS = ("shape_id", "shape_pt_lon", "shape_pt_lat", "shape_pt_sequence")
"""By these a file is such a one."""
_LEAST_POINTS = 2


def shapes_of(lines: Lines, kinds: Kinds) -> Found:
    """The lines of GTFS's shapes.txt; one with a point that cannot be read is left out as a whole."""
    found = Found(counts="line")
    found.notes.append(
        "lines are those of GTFS by shape_id, in the order of shape_pt_sequence"
    )
    fids = lines.columns["shape_id"]
    x, y, order = (doubles(lines.columns[name]) for name in COLUMNS[1:])
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
