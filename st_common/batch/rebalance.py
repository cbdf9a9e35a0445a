"""Regions of a group kept between two thresholds, by what its sources hold now (SPEC B2)."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt

from st_common.batch.prepartition import (
    LOCAL,
    Partitioned,
    regions_of,
    require_points,
    require_same,
    source_of,
    texts_of,
)
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError
from st_common.layers.table import stored_bytes
from st_common.partitioning.kdtree import Split
from st_common.partitioning.regions import whole
from st_common.partitioning.sample import SAMPLED_PER_REGION, PointSource
from st_common.partitioning.splitting import Chosen, PointEngine, Stage
from st_common.partitioning.store import current, store, thresholds_of
from st_common.partitioning.thresholds import MB, Thresholds, balanced
from st_common.storage import bytes_below

Floats = npt.NDArray[np.float64]
Bytes = Callable[[], int]

THRESHOLDS = "thresholds"
_MB = 1 << 20


def rebalance(
    home: Home,
    group: str,
    sources: Sequence[tuple[PointSource, Bytes]],
    thresholds: Thresholds | None = None,
    *,
    workers: int = 2,
    only_changed: bool = False,
    engine: PointEngine = LOCAL,
    stage: Stage = lambda _what, _rows: None,
) -> Partitioned:
    """Splits regions of a group that hold too much, merges siblings that hold too little, and stores the next version.

    The others stay what they are, unless they have other dimensions than the sources: then the group begins with one
    region again. What a region holds is told by a sample, of some 300 rows for each full region.

    Args:
        home: the home folder.
        group: the name of the group; one that has no regions yet begins with one.
        sources: points, and how many bytes hold all of them.
        thresholds: when regions are split and merged; None: those by which its regions were made.
        workers: for the deviation over workers alone.
        only_changed: no version is stored where all regions stay what they are, or nothing lies in them.
        engine: reads the sources.
        stage: told what is being done, and how many rows of it are done.

    Raises:
        ConfigError: thresholds that make no sense, none at all, sources without points, or of different dimensions.
    """
    thresholds = thresholds or thresholds_of(home, group)
    if thresholds is None:
        raise ConfigError(
            f"group {group!r} has no thresholds yet",
            hint="--upper and --lower say how much a region may hold",
        )
    thresholds.check()
    dimensions = require_same(group, [source for source, _ in sources])
    stage("reading", 0)
    points, weights = _sampled(engine, sources, thresholds)
    before = current(home, group)
    if not only_changed or not before.version:
        require_points(len(points), group)
    stage("splitting", len(points))
    if before.dimensions != dimensions:
        before = whole(group, dimensions)
    split = Split(paths=before.region_id, bounds=before.bounds)
    made = regions_of(group, balanced(split, points, weights, thresholds))
    rows, lines = engine.counted([one for one, _ in sources], made, 0, stage)
    stays = made.region_id == before.region_id or not len(points)
    if only_changed and before.version and stays:
        stored = before
    else:
        stored = store(home, made, rows, f"{THRESHOLDS}, median", thresholds)
    chosen = Chosen(None, len(points), "median")
    return Partitioned.of(
        stored, rows, THRESHOLDS, chosen, workers=workers, left_out=lines
    )


def _sampled(
    engine: PointEngine,
    sources: Sequence[tuple[PointSource, Bytes]],
    thresholds: Thresholds,
) -> tuple[Floats, Floats]:
    """A sample of all points, and how much each stands for, in the unit of the thresholds."""
    points: list[Floats] = []
    weights: list[Floats] = []
    for source, nbytes in sources:
        row = _row_mb(source, nbytes) if thresholds.unit == MB else 1.0
        share = min(SAMPLED_PER_REGION * row / thresholds.upper, 1.0)
        chosen, total = engine.sampled(source, share, SAMPLED_PER_REGION)
        points.append(chosen)
        weights.append(np.full(len(chosen), row * total / max(len(chosen), 1)))
    if not points:
        return np.empty((0, 2)), np.empty(0)
    return np.concatenate(points), np.concatenate(weights)


def _row_mb(source: PointSource, nbytes: Bytes) -> float:
    """What a row of a source weighs where each has as many bytes as the others."""
    return nbytes() / _MB / max(sum(map(len, source.read())), 1)


def weighed(
    home: Home,
    conf: Path,
    streams: Sequence[StreamSettings],
    text: str | None,
    *,
    group: str,
) -> list[tuple[PointSource, Bytes]]:
    """The sources that a text names, with their bytes; None or "": the logs of all streams of the group.

    Raises:
        ConfigError: as `source_of`.
        LayerError: likewise.
    """
    of_group = [f"stream:{stream.name}" for stream in streams if stream.group == group]
    return [
        (source_of(home, conf, streams, one, group=group), partial(bytes_of, home, one))
        for one in texts_of(text) or of_group
    ]


def thresholds_given(
    upper: float | None, lower: float | None, unit: str
) -> Thresholds | None:
    """Thresholds as options give them; None where these say nothing of what is too much.

    Raises:
        ConfigError: what is too little stands alone.
    """
    if upper is not None:
        least = upper / 4 if lower is None else lower
        return Thresholds(upper=upper, lower=least, unit=unit)
    if lower is not None:
        raise ConfigError("--lower without --upper", hint="--upper says what is split")
    return None


def bytes_of(home: Home, text: str) -> int:
    """How many bytes hold the points that a text names, as `prepartition.source_of` takes it."""
    form, colon, name = text.partition(":")
    if colon and form == "layer":
        return stored_bytes(home, name)
    folder = home.log(name) if colon and form == "stream" else Path(text)
    if folder.is_file():
        return folder.stat().st_size
    return bytes_below(folder)
