"""How long old versions of layers are kept: as long as somebody may ask them again, and a while beyond.

Rows of a table that count no more are folded away into its next version before that.

    log of S     q joins parks   parks 3   fixes   parks 5   fixes   |border|   fixes   parks 8   fixes
    counting     q: 2            3         3       5         5       |        5         8         8
    kept         5 and 8; 2, 3 and the others (no stream was told of 4, 6 and 7) go when they were replaced long ago

The border of a stream is the place before which nothing of it is judged again: its records, its oldest fixes, changes,
snapshots and borders of days begin behind it. Where one of these was never purged it is the log's beginning.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

from st_common import tables
from st_common.batch.borders import kept_borders
from st_common.config.home import Home
from st_common.contracts import Contract, load_contract
from st_common.controls.rectangles import Rectangles
from st_common.controls.rows import (
    AboutQuery,
    ControlRow,
    Fail,
    Follow,
    LayerVersion,
    Register,
    Replace,
)
from st_common.errors import ContractError
from st_common.history.snapshots import snapshots
from st_common.layers.declared import table_settings
from st_common.layers.put import delete
from st_common.layers.table import (
    AT_HOME,
    CONTRACT,
    fold,
    read_rows,
    table_path,
)
from st_common.layers.table_settings import TableSettings
from st_common.log.control import control_rows
from st_common.log.log import Log
from st_common.position import segment_of
from st_common.query.lookup import logged_streams

_KEPT_FOR = "delta.deletedFileRetentionDuration"
Version = tuple[str, int]
"""A layer, and the version of its table."""

_DAYS = re.compile(r"interval (\d+) days?")


@dataclass(slots=True)
class Needed:
    """The versions of layers that somebody may ask again.

    Attributes:
        by_layer: by layer and version, who: `stream taxis`, `trial t of taxis`.
        all_of: who may ask any version of any layer; "" for nobody.
    """

    by_layer: dict[str, dict[int, str]] = field(default_factory=dict)
    all_of: str = ""

    def add(self, layer: str, version: int, who: str) -> None:
        """Notes that somebody needs a version."""
        self.by_layer.setdefault(layer, {}).setdefault(version, who)


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerRetained:
    """What retention did to the old versions of a layer, or would do: what went, and who holds others ("" nobody)."""

    dropped: tables.Dropped
    held_by: str = ""


def retain_layer(
    home: Home, layer: str, needed: Needed, *, today: date, dry: bool = False
) -> LayerRetained:
    """Drops the old versions of a layer that nobody needs, and that were replaced longer ago than the contract keeps.

    Args:
        home: the home folder.
        layer: its name.
        needed: as `needed_versions` gives it.
        today: the day (UTC) by the wall clock.
        dry: only say what would go.

    Raises:
        ContractError: the contract keeps old versions for what is no number of days.
    """
    if needed.all_of:
        return LayerRetained(dropped=tables.Dropped(), held_by=needed.all_of)
    path, mine = table_path(home, layer), needed.by_layer.get(layer, {})
    kept_for = timedelta(days=_kept_days(load_contract(CONTRACT)))
    before = datetime.combine(today, time(), UTC) - kept_for
    dropped = tables.drop_versions(path, mine, before=before, dry=dry)
    newest = tables.version(path)
    old = sorted(version for version in mine if version != newest)
    held_by = f"{mine[old[0]]} needs version {old[0]}" if old else ""
    return LayerRetained(dropped=dropped, held_by=held_by)


def fold_layer(home: Home, layer: str, *, now: datetime | None) -> int:
    """Takes rows of a table out that were put over, were deleted, or have lived longer than its `ttl`; gives how many.

    Rows whose time has come are deleted first, as people delete them: streams are told, and running queries leave them.

    Args:
        home: the home folder.
        layer: its name.
        now: the time by the wall clock; None: no row goes by its age.
    """
    settings = table_settings(home, layer) or TableSettings(key="", columns=[])
    before = None if now is None or settings.ttl is None else now - settings.ttl
    if now is not None and before is not None:
        is_old = ("put_at", "<", before)
        rows = read_rows(home, layer, columns=["fid"], filters=[*AT_HOME, is_old])
        if len(rows):
            now_us = int(now.timestamp() * 1_000_000)
            delete(home, layer, rows["fid"].to_pylist(), now_us=now_us)
    return fold(home, layer, versions=settings.versions, before=before)


def needed_versions(home: Home) -> Needed:
    """The versions of layers that the streams of a home and their trials may ask again.

    Raises:
        LogError: a log is damaged.
    """
    needed = Needed()
    for stream in logged_streams(home):
        for border in kept_borders(home, stream):
            who = f"trial {border.trial} of {stream}"
            if border.layers is None:
                needed.all_of = who
            for layer, version in (border.layers or {}).items():
                needed.add(layer, version, who)
        _add_told(needed, home, stream)
    return needed


def judged_from(home: Home, stream: str) -> int:
    """The segment of a stream's log before which nothing is judged again; 0 where all of it may be.

    Args:
        home: the home folder.
        stream: its name.
    """
    paths = [home.table(name, stream) for name in ("positions", "changes")]
    purged = [segment_of(tables.purged_before(path)) for path in paths]
    purged.append(Log(home.log(stream)).purged_before())
    kept = [segment_of(each.position) for each in snapshots(home, stream)]
    kept += [border.segment for border in kept_borders(home, stream)]
    return min([*purged, *kept])


def _add_told(needed: Needed, home: Home, stream: str) -> None:
    """Adds what counts at a stream's border, and all that its log names from there on."""
    log, border, told = Log(home.log(stream)), judged_from(home, stream), _Told()
    who, is_behind = f"stream {stream}", False
    for segment in log.control_segments(0):
        if segment.number >= border and not is_behind:
            is_behind = True
            _add(needed, told.counting(), who)
        rows = control_rows(log, segment)
        if not isinstance(rows, Rectangles):  # which join no layer
            named = [told.take(row) for row in rows]
            _add(needed, named if is_behind else [], who)
    if not is_behind:
        _add(needed, told.counting(), who)


def _add(needed: Needed, named: Iterable[Version | None], who: str) -> None:
    for layer, version in filter(None, named):
        needed.add(layer, version, who)


class _Told:
    """What the rows of a log so far say of layers: the version that counts; for queries from before, their own."""

    def __init__(self) -> None:
        self._layers: dict[str, int] = {}
        self._queries: dict[str, Version] = {}

    def take(self, row: ControlRow) -> Version | None:
        """The layer and version that count by a row, None for none, after all rows before it."""
        if isinstance(row, LayerVersion):
            self._layers[row.layer] = row.version
            return row.layer, row.version
        if isinstance(row, AboutQuery) and not isinstance(row, Fail | Follow):
            self._queries.pop(row.query, None)
        if not isinstance(row, Register | Replace) or row.layer_version is None:
            return None
        layer = str(row.plan["join"]["layer"])
        self._queries[row.query] = (layer, row.layer_version)
        return layer, self._layers.get(layer, row.layer_version)

    def counting(self) -> Iterator[Version]:
        """The layers and versions that count now."""
        yield from self._layers.items()
        for layer, version in self._queries.values():
            if layer not in self._layers:
                yield layer, version


def _kept_days(contract: Contract) -> int:
    stated = contract.properties.get(_KEPT_FOR, "")
    match = _DAYS.fullmatch(stated)
    if match is None:
        raise ContractError(
            f"{contract.path}: {_KEPT_FOR} is {stated!r}", hint="interval 30 days"
        )
    return int(match[1])
