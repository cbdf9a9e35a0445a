"""The tables that no stream has for itself: layers, regions, queries and the heartbeats of a day."""

import json
from datetime import date
from pathlib import Path

import pyarrow.compute as pc
import shapely

from st_common import tables
from st_common.errors import FairwayError
from st_common.home import Home
from st_common.layers.announce import layer_names
from st_common.quality.finding import Finding
from st_common.quality.table_check import check_table

_LEAST, _MOST = 0.5, 2.0  # features, of as many as in the version before


def check_now(home: Home) -> list[Finding]:
    """Checks layers, regions and queries, as they are now, against the contracts of the tables; nothing is written.

    Args:
        home: where the tables lie.

    Returns:
        None of a table that does not exist yet.
    """
    findings = [
        finding
        for name in layer_names(home)
        for finding in _layer(home.table("layers", name), f"layers/{name}")
    ]
    for name in ("regions", "queries", "feature_faults"):
        findings += check_table(home.table(name), name, name)
    return findings


def check_heartbeats(home: Home, day: date) -> list[Finding]:
    """Checks the heartbeats of a day (UTC); none where there is no table of them yet."""
    return check_table(
        home.table("stream_status"),
        "stream_status",
        "stream_status",
        [("date", "=", day)],
    )


def _layer(path: Path, label: str) -> list[Finding]:
    findings = check_table(path, "layers", label)
    if not findings:
        return []
    return [*findings, _geometries(path, label), _count(path, label)]


def _geometries(path: Path, label: str) -> Finding:
    """Whether the surfaces and lines of a layer are valid, each feature once, where it is home."""
    rows = tables.read(path, columns=["fid", "geometry"], filters=[("home", "=", True)])
    shapes = shapely.from_wkb(rows["geometry"].to_numpy(zero_copy_only=False))
    valid = shapely.is_valid(shapes)
    broken = rows["fid"].filter(pc.invert(valid)) if len(rows) else rows["fid"]
    return Finding(
        table=label,
        rule="geometry_is_valid",
        severity="error",
        passed=not len(broken),
        observed=float(len(broken)),
        expected="geometries are valid by the rules of OGC",
        rows=len(rows),
        details=json.dumps(broken.slice(0, 3).to_pylist()) if len(broken) else "",
    )


def _count(path: Path, label: str) -> Finding:
    """How many features the layer has, of as many as its version before."""
    version = tables.version(path) or 0
    now, before = _features(path, version), _features(path, version - 1)
    ratio = now / before if now is not None and before else None
    return Finding(
        table=label,
        rule="features_to_version_before",
        severity="warning",
        passed=ratio is None or _LEAST <= ratio <= _MOST,
        observed=ratio,
        expected=f"{_LEAST:g} to {_MOST:g} times the features of the version before",
        rows=now or 0,
        details="there is no version before" if ratio is None else f"{now} of {before}",
    )


def _features(path: Path, version: int) -> int | None:
    """How many features a version of a layer has; None when it is gone or was never there."""
    if version < 0:
        return None
    try:
        rows = tables.read(
            path, version=version, columns=["fid"], filters=[("home", "=", True)]
        )
    except FairwayError:
        return None
    return len(rows)
