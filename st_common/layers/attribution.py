"""Whose data a layer has, as it must be said wherever the layer is shown."""

import pyarrow as pa
import pyarrow.compute as pc

from st_common.config.home import Home
from st_common.errors import LayerError
from st_common.layers.table import first_row, read_rows

OPENSTREETMAP = "© OpenStreetMap contributors"
OF_OPENSTREETMAP = r"^(node|way|relation)/\d"
"""What the ids of its features match, in the regular expressions of Arrow and of Java alike."""
_MOST = 200


def is_openstreetmap(fids: "pa.Array | pa.ChunkedArray") -> bool:
    """Whether there are features, and the ids of all are such as OpenStreetMap's have.

        way/37264739/area, node/319786923   ->   True         w1, w2   ->   False

    Args:
        fids: of all features, text.
    """
    matches = pc.match_substring_regex(fids, OF_OPENSTREETMAP)
    return bool(len(fids)) and bool(pc.all(matches).as_py())


def attribution_of(given: str | None, *, is_openstreetmap: bool) -> str | None:
    """What a layer says of its source: what is given, or OpenStreetMap's where the features are.

    Args:
        given: by whoever loads it; None: nothing was said.
        is_openstreetmap: the ids of its features say so.

    Raises:
        LayerError: what is given is empty, longer than 200 characters, or no line of text.
    """
    if given is not None:
        if not (0 < len(given) <= _MOST and given.isprintable() and given.strip()):
            raise LayerError(
                f"attribution {given!r} is no line of text",
                hint=f"at most {_MOST} characters, such as '{OPENSTREETMAP}'",
            )
        return given
    return OPENSTREETMAP if is_openstreetmap else None


def attribution(home: Home, layer: str, version: int) -> str | None:
    """What a version of a layer says of its source; one from before that was stored, by the ids of its features."""
    stored = first_row(home, layer, version, ["attribution"]).get("attribution")
    if stored:
        return str(stored)
    fids = read_rows(home, layer, version, columns=["fid"])["fid"]
    return OPENSTREETMAP if is_openstreetmap(fids) else None
