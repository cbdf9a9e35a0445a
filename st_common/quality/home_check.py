"""The tables that no stream has for itself: layers, regions, queries and the heartbeats of a day."""

import heapq
import json
from datetime import date
from functools import partial
from itertools import chain
from pathlib import Path

import pyarrow as pa
import shapely

from st_common.config.home import Home
from st_common.contracts.judging import EXAMPLES
from st_common.errors import FairwayError
from st_common.layers.table import (
    feature_count,
    layer_names,
    newest_version,
    table_path,
)
from st_common.quality.engines import LOCAL, Engine
from st_common.quality.finding import Finding, found_of
from st_common.quality.table_check import check_table

_LEAST, _MOST = 0.5, 2.0  # features, of as many as in the version before


def check_now(home: Home, engine: Engine = LOCAL) -> list[Finding]:
    """Checks layers, regions and queries, as they are now, against the contracts of the tables; nothing is written.

    Args:
        home: where the tables lie.
        engine: reads and judges the rows.

    Returns:
        None of a table that does not exist yet.
    """
    findings: list[Finding] = []
    for name in layer_names(home):
        label = f"layers/{name}"
        findings += found_of(label, partial(_layer, home, name, label, engine))
    for name in ("regions", "queries", "feature_faults"):
        check = partial(check_table, home.table(name), name, name, engine=engine)
        findings += found_of(name, check)
    return findings


def check_heartbeats(home: Home, day: date, engine: Engine = LOCAL) -> list[Finding]:
    """Checks the heartbeats of a day (UTC); none where there is no table of them yet."""
    name, of_day = "stream_status", [("date", "=", day)]
    check = partial(check_table, home.table(name), name, name, of_day, engine)
    return found_of(name, check)


def _layer(home: Home, layer: str, label: str, engine: Engine) -> list[Finding]:
    path = table_path(home, layer)
    findings = check_table(path, "layers", label, engine=engine)
    if not findings:
        return []
    return [*findings, _geometries(path, label, engine), _count(home, layer, label)]


def _geometries(path: Path, label: str, engine: Engine) -> Finding:
    """Whether the surfaces and lines of a layer are valid, each feature once, where it is home."""
    is_home = [("home", "=", True)]
    parts = engine.each_part(path, ["fid", "geometry"], is_home, _invalid, label=label)
    rows, broken = sum(part[0] for part in parts), sum(part[1] for part in parts)
    first = heapq.nsmallest(EXAMPLES, chain.from_iterable(part[2] for part in parts))
    return Finding(
        table=label,
        rule="geometry_is_valid",
        severity="error",
        passed=not broken,
        observed=float(broken),
        expected="geometries are valid by the rules of OGC",
        rows=rows,
        details=json.dumps(first) if broken else "",
    )


def _invalid(rows: pa.Table) -> tuple[int, int, list[str]]:
    """How many features there are, how many of them are invalid, and the first of these by their ids."""
    shapes = shapely.from_wkb(rows["geometry"].to_numpy(zero_copy_only=False))
    broken = rows["fid"].filter(pa.array(~shapely.is_valid(shapes)))
    first = broken.combine_chunks().sort().slice(0, EXAMPLES)
    return len(rows), len(broken), first.to_pylist()


def _count(home: Home, layer: str, label: str) -> Finding:
    """How many features the layer has, of as many as its version before."""
    version = newest_version(home, layer) or 0
    now, before = (_features(home, layer, each) for each in (version, version - 1))
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


def _features(home: Home, layer: str, version: int) -> int | None:
    """How many features a version of a layer has; None when it is gone or was never there."""
    if version < 0:
        return None
    try:
        return feature_count(home, layer, version)
    except FairwayError:
        return None
