"""Rows of a table put and deleted one by one; a row is a feature as GeoJSON has it, its geometry may be null.

    {"type": "Feature", "geometry": null, "properties": {"plate": "B-XY 12", "owner": "Ida"}}      key: the column plate
    {"type": "Feature", "id": "s1", "geometry": {"type": "Point", "coordinates": [13.4, 52.5]}}    a layer: id

Several rows are one commit, so a reader has all of them or none.
"""

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import shapely

from st_common import tables
from st_common.config.home import Home
from st_common.errors import LayerError
from st_common.layers.announce import announce, regions_of, spread_by
from st_common.layers.conversion import DEGREES
from st_common.layers.declared import table_settings
from st_common.layers.faults import REJECTED, WORDS
from st_common.layers.features import Features, Found
from st_common.layers.kinds import OTHER, tags_of
from st_common.layers.reading import Wanted, read_features
from st_common.layers.rows import layer_rows
from st_common.layers.table import (
    AT_HOME,
    append_rows,
    first_row,
    newest_version,
    read_rows,
    replace_rows,
    table_path,
)
from st_common.layers.table_settings import TableSettings
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import current

Feature = Mapping[str, Any]
_How = Literal["puts", "deletes", "replaces"]
_MOST_TEXT = 1 << 16  # characters of a key or a value
_NOWHERE = shapely.Point()


@dataclass(frozen=True, slots=True, kw_only=True)
class Put:
    """What a put or a delete did.

    Attributes:
        table: the table's name.
        version: the version that it made.
        rows: how many rows were put or deleted.
        streams: the streams whose logs were told.
    """

    table: str
    version: int
    rows: int
    streams: tuple[str, ...]


def put(
    home: Home,
    table: str,
    rows: Sequence[Feature],
    wanted: Wanted,
    *,
    now_us: int,
    before_writing: Callable[[], None] | None = None,
) -> Put:
    """Puts rows into a table or layer, each over the row of the same key if there is one; see the module.

    Args:
        home: the home folder.
        table: its name.
        rows: one or more features of GeoJSON.
        wanted: names kinds, and says what coordinates mean.
        now_us: the time, us UTC.
        before_writing: called when nothing is left to be found out: what it raises ends it all, and nothing is put.

    Raises:
        LayerError: there is no such table, a row is none or has no key, two have the same one, a column is not among
            those of the table, or a geometry cannot be used; nothing is put.
    """
    require_table(home, table)
    if not rows:
        raise LayerError("there is no row to put", hint="give one feature or more")
    settings = table_settings(home, table)
    read = [_read(row, number, settings) for number, row in enumerate(rows, 1)]
    _require_distinct([fid for fid, _, _ in read])
    features = _features(read, wanted)
    if before_writing is not None:
        before_writing()
    return _written(home, table, features, now_us, "puts")


def put_file(
    home: Home,
    table: str,
    file: Path,
    wanted: Wanted,
    *,
    now_us: int,
    replaces: bool = False,
) -> tuple[Put, Features]:
    """Puts all features of a file, of any format that layers are loaded from; gives what was left out with them, too.

    Where it `replaces`, all other rows go, as by a load.

    Raises:
        LayerError: as `put`; the file cannot be read, or has no feature that can be used.
    """
    require_table(home, table)
    features = read_features(file, wanted)
    if not len(features.fids):
        raise LayerError(f"{file} has no row for table {table!r}")
    settings = table_settings(home, table)
    if settings is not None:
        features = _keyed(features, settings)
    how: _How = "replaces" if replaces else "puts"
    return _written(home, table, features, now_us, how), features


def delete(home: Home, table: str, keys: Collection[str], *, now_us: int) -> Put:
    """Deletes the rows of some keys.

    Raises:
        LayerError: there is no such table, or no row of one of the keys; nothing is deleted.
    """
    require_table(home, table)
    wanted = sorted(set(keys))
    there = read_rows(
        home, table, columns=["fid"], filters=[("fid", "in", wanted), *AT_HOME]
    )
    missing = sorted(set(wanted) - set(there["fid"].to_pylist()))
    if missing or not wanted:
        what = f"row {missing[0]!r}" if missing else "key"
        raise LayerError(f"table {table!r} has no {what}")
    gone = _as_they_are([(key, {}, _NOWHERE) for key in wanted])
    return _written(home, table, gone, now_us, "deletes")


def _written(home: Home, table: str, features: Features, now_us: int, how: _How) -> Put:
    path = table_path(home, table)
    with tables.locked(path):  # else it may be spread anew, or dropped, meanwhile
        require_table(home, table)
        source = first_row(home, table, None, ["attribution"]).get("attribution")
        rows = layer_rows(features, _regions(home, table), attribution=source)
        if how == "deletes":
            gone = pa.repeat(pa.scalar(value=True), len(rows))
            rows = rows.append_column("deleted", gone)
        version = (
            replace_rows(path, rows)
            if how == "replaces"
            else append_rows(path, rows, now_us=now_us)
        )
    told = announce(home, arrival_us=now_us)
    return Put(
        table=table,
        version=version,
        rows=len(features.fids),
        streams=tuple(sorted({one.stream for one in told if one.layer == table})),
    )


def require_table(home: Home, table: str) -> None:
    """Raises a LayerError where there is no such table."""
    if newest_version(home, table) is None:
        raise LayerError(
            f"there is no table {table!r}",
            hint="CREATE TABLE makes one, fairway table list shows them",
        )


def _regions(home: Home, table: str) -> Regions:
    """The regions by which a table is spread; of one without rows those of its group as they are now."""
    settings = table_settings(home, table)
    if settings is not None and spread_by(home, table)[0] is None:
        return current(home, settings.group)
    return regions_of(home, table)


_Row = tuple[str, dict[str, str], Any]


def _read(row: object, number: int, settings: TableSettings | None) -> _Row:
    """The key, the tags and the geometry of a feature; an empty one where it has none."""
    if not isinstance(row, Mapping) or row.get("type") != "Feature":
        raise LayerError(
            f"row {number} is no feature of GeoJSON",
            hint='{"type": "Feature", "geometry": .., "properties": {..}}',
        )
    properties = row.get("properties") or {}
    if not isinstance(properties, Mapping):
        raise LayerError(f"row {number}: its properties are no object")
    tags = tags_of(properties)
    fid = _key_of(row.get("id"), tags, number, settings)
    for name, value in tags.items():
        if len(name) > _MOST_TEXT or len(value) > _MOST_TEXT:
            raise LayerError(
                f"row {fid!r}: column {name[:40]!r} is longer than {_MOST_TEXT:,} characters"
            )
    return fid, tags, _shape(fid, row.get("geometry"))


def _key_of(
    given: object, tags: dict[str, str], number: int, settings: TableSettings | None
) -> str:
    """The key of a row; of a declared table it stands among its tags, and all of these are its columns."""
    fid = tags_of({"id": given}).get("id") if given is not None else None
    if settings is not None:
        own = tags.setdefault(settings.key, fid or "")
        if fid is not None and own != fid:
            raise LayerError(
                f"row {number}: its id is {fid!r}, and its key {settings.key} {own!r}"
            )
        fid = own
        _require_columns(fid, tags, settings)
    if not fid or len(fid) > _MOST_TEXT or not fid.isprintable():
        key = "id" if settings is None else settings.key
        raise LayerError(
            f"row {number} has no {key} that can be a key",
            hint="a text or a number, without line breaks",
        )
    return fid


def _require_columns(
    fid: str, tags: Mapping[str, str], settings: TableSettings
) -> None:
    unknown = sorted(tags.keys() - {*settings.columns})
    if unknown:
        raise LayerError(
            f"row {fid!r}: the table has no column {unknown[0]!r}",
            hint=f"it has {', '.join(settings.columns)}",
        )


def _shape(fid: str, geometry: object) -> Any:
    if geometry is None:
        return _NOWHERE
    try:
        if not isinstance(geometry, Mapping):
            raise TypeError  # noqa: TRY301 - one error for all
        shape = shapely.from_geojson(json.dumps(geometry))
    except (TypeError, ValueError, shapely.errors.ShapelyError):
        raise LayerError(
            f"row {fid!r}: its geometry is none of GeoJSON",
            hint='{"type": "Point", "coordinates": [13.4, 52.5]}, or null',
        ) from None
    if shape.is_empty:
        raise LayerError(
            f"row {fid!r}: its geometry is empty", hint="null where it has no place"
        )
    return shape


def _features(read: Sequence[_Row], wanted: Wanted) -> Features:
    """The rows as features: those with a place checked as those of a file are, the others as they are."""
    found = Found(wanted=len(read))
    nowhere: list[_Row] = []
    for fid, tags, shape in read:
        if shape is _NOWHERE:
            nowhere.append((fid, tags, shape))
            continue
        kind = wanted.rules.named_or_of(tags, str(shape.geom_type))
        found.add(fid, kind, tags, bytes(shape.wkb))
    placed = wanted.shaped(found, DEGREES, file=Path("put"))
    for fault in placed.faults:
        if fault.outcome == REJECTED:
            why = WORDS.get(fault.reason, fault.reason)
            raise LayerError(f"row {fault.fid!r} cannot be put: {why}")
    others = _as_they_are(nowhere, wanted)
    fids = np.concatenate([placed.fids, others.fids])
    order = np.argsort(fids, kind="stable")
    return Features(
        fids=fids[order],
        kinds=np.concatenate([placed.kinds, others.kinds])[order],
        tags=np.concatenate([placed.tags, others.tags])[order],
        geometries=np.concatenate([placed.geometries, others.geometries])[order],
        wanted=len(read),
    )


def _as_they_are(rows: Sequence[_Row], wanted: Wanted | None = None) -> Features:
    """Rows without a place, sorted by key."""
    fids, kinds, tags, shapes = (np.empty(len(rows), object) for _ in range(4))
    for at, (fid, own, shape) in enumerate(sorted(rows, key=itemgetter(0))):
        kind = OTHER if wanted is None else wanted.rules.named_or_of(own, "")
        fids[at], kinds[at], tags[at], shapes[at] = fid, kind, own, shape
    return Features(
        fids=fids, kinds=kinds, tags=tags, geometries=shapes, wanted=len(rows)
    )


def _keyed(features: Features, settings: TableSettings) -> Features:
    """Features of a file by the key of a table, which is one of their properties; sorted by it."""
    fids, key = features.fids.copy(), settings.key
    for at, tags in enumerate(features.tags):
        fids[at] = tags.setdefault(key, str(features.fids[at]))
        _require_columns(fids[at], tags, settings)
    _require_distinct(fids.tolist())
    order = np.argsort(fids, kind="stable")
    return replace(
        features,
        fids=fids[order],
        kinds=features.kinds[order],
        tags=features.tags[order],
        geometries=features.geometries[order],
    )


def _require_distinct(fids: Sequence[str]) -> None:
    twice = [fid for fid, count in Counter(fids).items() if count > 1]
    if twice:
        raise LayerError(f"row {twice[0]!r} stands twice in one put")
