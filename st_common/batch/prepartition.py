"""Partitions a group before its streams begin: by a sample of the data, or by the first elements of a stream."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from st_common.config.home import Home, checked_name
from st_common.config.stream import StreamSettings
from st_common.errors import ConfigError
from st_common.layers.kinds import load_kinds
from st_common.layers.points import file_points, layer_points
from st_common.observed import note_read
from st_common.partitioning.balance import rows_per_worker, std_deviation
from st_common.partitioning.groups import Member, common_dimensions, members_of
from st_common.partitioning.kdtree import Split, median_split
from st_common.partitioning.regions import Regions
from st_common.partitioning.sample import (
    ROWS_PER_REGION,
    SAMPLED_PER_REGION,
    PointSource,
)
from st_common.partitioning.sources import csv_points, log_points
from st_common.partitioning.splitting import Chosen, LocalPoints, PointEngine, Stage
from st_common.partitioning.store import store
from st_common.partitioning.thresholds import Thresholds

LOCAL = LocalPoints()
SAMPLE, ELEMENTS = "sample", "elements"
_SHARE = 0.002
"""Of the data in a sample, as in the paper (BBoxDB Streams, section 5.4)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Partitioned:
    """What a partitioning gave.

    Attributes:
        group: the group.
        version: of its regions, as stored.
        strategy: `sample`, `elements` or `thresholds`.
        tree: who split, `sedona` or `median`.
        dimensions: that the regions have.
        regions: how many regions there are.
        chosen: how many rows made the split.
        rows: how many were counted for the deviations: all of them for a sample, the rest of the stream for its first
            elements.
        std_deviation: of the rows over the regions.
        std_deviation_workers: of the rows over workers that take the regions in turn.
        note: why Sedona did not split, if it should have; else "".
        left_out: a line for people about each thing in the sources that is no point.
    """

    group: str
    version: int
    strategy: str
    tree: str
    dimensions: int
    regions: int
    chosen: int
    rows: int
    std_deviation: float
    std_deviation_workers: float
    note: str
    left_out: tuple[str, ...] = ()

    @staticmethod
    def of(
        stored: Regions,
        rows: npt.NDArray[np.int64],
        strategy: str,
        chosen: Chosen,
        *,
        workers: int,
        left_out: Sequence[str] = (),
    ) -> "Partitioned":
        """What is told of regions that were stored, and of the rows that each of them has."""
        return Partitioned(
            group=stored.group,
            version=stored.version,
            strategy=strategy,
            tree=chosen.tree,
            dimensions=stored.dimensions,
            regions=len(rows),
            chosen=chosen.rows,
            rows=int(rows.sum()),
            std_deviation=std_deviation(rows),
            std_deviation_workers=std_deviation(rows_per_worker(rows, workers)),
            note=chosen.note,
            left_out=tuple(left_out),
        )

    def to_json(self) -> dict[str, Any]:
        """The fields as JSON values."""
        return asdict(self)


def prepartition(
    home: Home,
    group: str,
    source: PointSource,
    *,
    strategy: str,
    beside: Sequence[PointSource] = (),
    regions: int = 40,
    share: float | None = None,
    elements: int = 10_000,
    thresholds: Thresholds | None = None,
    workers: int = 2,
    engine: PointEngine = LOCAL,
    stage: Stage = lambda _what, _rows: None,
) -> Partitioned:
    """Finds regions, counts the rows of a source in them and stores them as the group's next version (SPEC B3).

    `sample` takes a share of the data (without one .2 %, and at least 300 rows per region) and, on Spark, a tree of
    Sedona's, or the own median split where Sedona cannot, as in other than two dimensions; `elements` takes the first
    rows and the own median split. What is stored as `strategy` says both, such as "sample, sedona". Regions have the
    dimensions of the source.

    Args:
        home: the home folder.
        group: the name of the group.
        source: the points; it is read twice.
        beside: other points, such as a layer's beside a stream's, of which each source counts as much as this one; only
            with `sample`.
        strategy: `sample` or `elements`.
        regions: how many are wanted.
        share: of the points in a sample, above 0 and at most 1; at least 20 rows per region are taken. None: .002, and
            at least 300.
        elements: how many first rows.
        thresholds: between which `rebalance` will keep the regions; None: it will not.
        workers: for the deviation over workers alone.
        engine: reads and splits.
        stage: told what is being done, and how many rows of it are done.

    Raises:
        ConfigError: an unknown strategy, a number out of its range, a source without points, or sources of different
            dimensions.
    """
    _check(strategy, regions=regions, share=share, elements=elements, workers=workers)
    if thresholds is not None:
        thresholds.check()
    sources = [source, *beside]
    require_same(group, sources)
    stage("reading", 0)
    if strategy == SAMPLE:
        chosen, skip = _by_sample(engine, sources, share, regions), 0
    elif beside:
        raise ConfigError(
            "elements are those of one stream",
            hint=f"--strategy {SAMPLE} takes several sources",
        )
    else:
        chosen, skip = _by_elements(engine, source, elements, regions), elements
    require_points(chosen.rows, group)
    stage("splitting", chosen.rows)
    assert chosen.split is not None  # noqa: S101 - there are rows
    made = regions_of(group, chosen.split)
    rows, lines = engine.counted(sources, made, skip, stage)
    stored = store(home, made, rows, f"{strategy}, {chosen.tree}", thresholds)
    return Partitioned.of(
        stored, rows, strategy, chosen, workers=workers, left_out=lines
    )


def _by_sample(
    engine: PointEngine,
    sources: Sequence[PointSource],
    share: float | None,
    regions: int,
) -> Chosen:
    per_region = ROWS_PER_REGION if share else SAMPLED_PER_REGION
    at_least = -(-per_region * regions // len(sources))
    return engine.split_sample(sources, share or _SHARE, at_least, regions)


def _by_elements(
    engine: PointEngine, source: PointSource, elements: int, regions: int
) -> Chosen:
    points = engine.first(source, elements)
    split = median_split(points, regions) if len(points) else None
    return Chosen(split, len(points), "median")


def require_same(
    group: str, sources: Sequence[PointSource], others: Sequence[Member] = ()
) -> int:
    """How many dimensions the sources of a group have, and all else that shares its regions.

    Raises:
        ConfigError: two of them have different numbers; it names both.
    """
    members = [Member(source.name, source.dimensions) for source in sources]
    return common_dimensions(group, [*others, *members])


def require_points(rows: int, group: str) -> None:
    """Makes sure that sources have points.

    Raises:
        ConfigError: they have none.
    """
    if not rows:
        hint = "--source names a file, layer or stream"
        raise ConfigError(f"group {group!r}: the source has no points", hint=hint)


def regions_of(group: str, split: Split) -> Regions:
    """The cells of a split as regions that have no version yet."""
    return Regions(
        group=checked_name(group, "group"),
        version=0,
        region_id=split.paths,
        bounds=split.bounds,
    )


def sources_of(
    home: Home,
    conf: Path,
    streams: Sequence[StreamSettings],
    text: str | None,
    *,
    group: str,
) -> list[PointSource]:
    """The points that a text names, source by source: texts as `source_of` takes them, with commas between them.

    Raises:
        ConfigError: as `source_of`.
        LayerError: likewise.
    """
    texts: Sequence[str | None] = texts_of(text) or [None]
    return [source_of(home, conf, streams, one, group=group) for one in texts]


def texts_of(text: str | None) -> list[str]:
    """The sources that a text names, with commas between them; a file's name may have some of its own."""
    if not text:
        return []
    return [text] if Path(text).is_file() else [one.strip() for one in text.split(",")]


def source_of(
    home: Home,
    conf: Path,
    streams: Sequence[StreamSettings],
    text: str | None,
    *,
    group: str,
) -> PointSource:
    """The points that a text names.

    Args:
        home: the home folder.
        conf: the folder of the settings, for the kinds of layer files.
        streams: the settings of all streams.
        text: `stream:NAME`, `layer:NAME`, or a file (.csv with x and y, OSM, GeoJSON). None or "": the logs of all
            streams of the group.
        group: the group's name.

    Raises:
        ConfigError: no such stream or file, or streams of the group with different numbers of dimensions.
        LayerError: the layer or the layer file cannot be read.
    """
    if not text:
        own = [stream for stream in streams if stream.group == group]
        dimensions = common_dimensions(group, members_of(own, group))
        return log_points(home, own, dimensions)
    form, colon, name = text.partition(":")
    if colon and form == "layer":
        return layer_points(home, name)
    if colon and form == "stream":
        named = [stream for stream in streams if stream.name == name]
        if not named:
            raise ConfigError(
                f"there is no stream {name!r}", hint="conf/streams.toml names them"
            )
        return log_points(home, named, named[0].columns.dimensions)
    file = Path(text)
    if not file.is_file():
        raise ConfigError(
            f"there is no source {text!r}", hint="a file, stream:NAME or layer:NAME"
        )
    note_read(file)
    if file.name.lower().endswith((".csv", ".csv.gz")):
        return csv_points(file)
    return file_points(file, load_kinds(conf))


def _check(
    strategy: str, *, regions: int, share: float | None, elements: int, workers: int
) -> None:
    if strategy not in (SAMPLE, ELEMENTS):
        raise ConfigError(
            f"there is no strategy {strategy!r}", hint=f"{SAMPLE} or {ELEMENTS}"
        )
    if share is not None and not 0 < share <= 1:
        raise ConfigError(f"a share of {share}", hint="above 0, at most 1")
    for name, value in (
        ("regions", regions),
        ("first", elements),
        ("workers", workers),
    ):
        if value < 1:
            raise ConfigError(f"{name} is {value}", hint="at least 1")
