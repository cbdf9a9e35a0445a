"""A layer as what FROM names: the settings of the stream of its features, and its features as records of that stream.

    layer stations             stream stations
    fid, kind, tags, shape     object, fid, kind, the tags that queries name, geometry
    another version            a record of each feature that is another one, or that has gone

So a layer is asked by the same clauses, operators and laws as a stream of elements with an extent (docs/adr/0111).
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from st_common.config.home import DEFAULT_GROUP, Home
from st_common.config.stream import StreamSettings
from st_common.config.stream_values import can_be_attribute, is_of_fixes
from st_common.layers.announce import layer_group
from st_common.layers.stored import read_features
from st_common.tables.pruning import Filters

OWN = ("fid", "kind")
"""The attributes that every feature has; the others are tags."""

_TAG = "tag "  # in front of the name of a tag, which may be called as anything else


def table_of_layer(
    home: Home, layer: str, tags: Collection[str], *, crs: str
) -> dict[str, Any]:
    """The settings of the stream of a layer's features, in the terms of a table.

    Args:
        home: where the table of the layer lies.
        layer: its name, which is that of the stream.
        tags: the names of the tags that are attributes.
        crs: the system of its coordinates.
    """
    return {
        "format": "parquet",
        "layer": layer,
        "columns": {
            "object": "fid",
            "event_ts": "event_ts",
            "shape": "geometry",
            "gone": "gone",
            **{name: _TAG + name for name in tags},
        },
        "time_unit": "us",
        "attributes": dict.fromkeys((*OWN, *tags), "string"),
        "crs": crs,
        "group": layer_group(home, layer) or DEFAULT_GROUP,
        "running": True,
        # A version is no report of a device: it was judged when it was loaded.
        "max_ahead_s": "off",
        "max_jump_s": "off",
        "drop_null_island": False,
    }


def tags_meant(
    names: Collection[str], tags: Iterable[str], before: Iterable[str]
) -> list[str]:
    """The tags that names of columns mean, sorted, with those that were attributes before.

    A name that an attribute cannot have, or that stands there already in another case, is left out.

    Args:
        names: in small letters.
        tags: the names of the tags that features have.
        before: the attributes that there are.
    """
    meant = {name.casefold(): name for name in before}
    for name in sorted(tags):
        if name.casefold() in names and _can_be(name):
            meant.setdefault(name.casefold(), name)
    return sorted(meant.values())


def _can_be(name: str) -> bool:
    return can_be_attribute(name) and not is_of_fixes(name, filtered=False)


def records_of(
    home: Home,
    stream: StreamSettings,
    version: int,
    *,
    at_us: int,
    part: Filters | None = None,
) -> pa.Table:
    """The features of a version of a layer, or of a part of it, as records of its stream; sorted by fid.

    Args:
        home: where the table of the layer lies.
        stream: the settings that `table_of_layer` described.
        version: of the table.
        at_us: the event time of the records, us UTC.
        part: only rows of which this holds; files that have none are not read.

    Raises:
        LayerError: there is no such layer or version.
        TransientError: it cannot be read now.
    """
    layer = stream.layer or stream.name
    rows = read_features(
        home, layer, version, [*OWN, "geometry", "tags"], part
    ).combine_chunks()
    tags = rows["tags"].combine_chunks() if len(rows) else None
    named = {
        column: _looked_up(tags, name)
        for name, column in stream.columns.attributes.items()
        if column.startswith(_TAG)
    }
    columns = {name: rows[name] for name in (*OWN, "geometry")}
    return pa.table({**columns, **named, **_stamps(len(rows), at_us, gone=False)})


def records_of_gone(
    fids: Sequence[str], stream: StreamSettings, *, at_us: int
) -> pa.Table:
    """Records that say that features have gone; all else in them is null.

    Args:
        fids: n ids.
        stream: as for `records_of`.
        at_us: the event time of the records, us UTC.
    """
    count = len(fids)
    named = (one for one in stream.columns.attributes.values() if one.startswith(_TAG))
    nothing = dict.fromkeys(("kind", *named), pa.nulls(count, pa.string()))
    return pa.table(
        {
            "fid": pa.array(fids, pa.string()),
            "geometry": pa.nulls(count, pa.binary()),
            **nothing,
            **_stamps(count, at_us, gone=True),
        }
    )


def _looked_up(tags: pa.Array | None, name: str) -> pa.Array:
    if tags is None:
        return pa.array([], pa.string())
    return pc.map_lookup(tags, pa.scalar(name), "first")


def _stamps(count: int, at_us: int, *, gone: bool) -> dict[str, Any]:
    return {
        "event_ts": np.full(count, at_us, np.int64),
        "gone": pa.repeat(pa.scalar("true" if gone else "false"), count),
    }
