"""Whose data a layer has, as it must be said wherever the layer is shown."""

import pyarrow as pa
import pyarrow.compute as pc

from st_common import tables
from st_common.contracts import load_contract
from st_common.errors import LayerError
from st_common.home import Home

OPENSTREETMAP = "© OpenStreetMap contributors"
_OF_OPENSTREETMAP = r"^(node|way|relation)/\d"
_MOST = 200


def attribution_of(fids: "pa.Array | pa.ChunkedArray", given: str | None) -> str | None:
    """What a layer says of its source: what is given, or OpenStreetMap's where all ids are such as its features have.

        way/37264739/area, node/319786923   ->   © OpenStreetMap contributors         w1, w2   ->   None

    Args:
        fids: of all features, text.
        given: by whoever loads it; None: nothing was said.

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
    is_openstreetmap = len(fids) and pc.all(
        pc.match_substring_regex(fids, _OF_OPENSTREETMAP)
    )
    return OPENSTREETMAP if is_openstreetmap and is_openstreetmap.as_py() else None


def attribution(home: Home, layer: str, version: int) -> str | None:
    """What a version of a layer says of its source; one from before that was stored, by the ids of its features."""
    path, contract = home.table("layers", layer), load_contract("layers")
    rows = tables.dataset(path, version=version, contract=contract)
    stored = rows.head(1, columns=["attribution"])["attribution"].to_pylist()
    if any(stored):
        return str(stored[0])
    return attribution_of(rows.to_table(columns=["fid"])["fid"], None)
