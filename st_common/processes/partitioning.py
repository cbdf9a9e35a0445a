"""What `fairway partition` and its job do: find a group's regions anew, or keep them between thresholds."""

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

from st_common.batch.prepartition import (
    LOCAL,
    Partitioned,
    prepartition,
    require_same,
    sources_of,
)
from st_common.batch.rebalance import THRESHOLDS, rebalance, thresholds_given, weighed
from st_common.config.home import Home
from st_common.config.redaction import redacted
from st_common.config.stream import StreamSettings
from st_common.errors import FairwayError
from st_common.layers.announce import announce
from st_common.layers.spreading import layers_of, spread_layers
from st_common.partitioning.groups import Member, members_of
from st_common.partitioning.sample import PointSource
from st_common.partitioning.splitting import PointEngine, Stage
from st_common.partitioning.store import groups_between_thresholds
from st_common.partitioning.thresholds import Thresholds
from st_common.query.layer_following import follow_layers, names_of
from st_common.storage import refused


def partition_group(
    home: Home,
    conf: Path,
    streams: Sequence[StreamSettings],
    group: str,
    source: str | None,
    *,
    strategy: str,
    regions: int = 40,
    share: float | None = None,
    elements: int = 10_000,
    thresholds: Thresholds | None = None,
    workers: int = 2,
    only_changed: bool = False,
    engine: PointEngine = LOCAL,
    stage: Stage = lambda _what, _rows: None,
) -> Partitioned:
    """Divides space into regions by what sources hold, and stores them as the group's next version.

    Args:
        home: the home folder.
        conf: the folder of the settings.
        streams: the settings of all streams.
        group: the name of the group.
        source: texts as `source_of` takes them, with commas between them; None: the logs of the group's streams.
        strategy: `sample`, `elements` (see `prepartition`), or `thresholds` (see `rebalance`).
        regions: how many are wanted, by `sample` and `elements`.
        share: see `prepartition`.
        elements: likewise.
        thresholds: see `rebalance`.
        workers: for the deviation over workers alone.
        only_changed: see `rebalance`.
        engine: reads the sources, and splits space.
        stage: told what is being done, and how many rows of it are done.

    Raises:
        ConfigError: as these; or a stream or layer of the group has other dimensions than the sources.
        LayerError: a layer cannot be read.
    """
    if strategy == THRESHOLDS:
        held = weighed(home, conf, streams, source, group=group)
        sources = [one for one, _ in held]
        _require_one_group(home, streams, group, sources)
        return rebalance(
            home,
            group,
            held,
            thresholds,
            workers=workers,
            only_changed=only_changed,
            engine=engine,
            stage=stage,
        )
    points, *beside = sources_of(home, conf, streams, source, group=group)
    _require_one_group(home, streams, group, [points, *beside])
    return prepartition(
        home,
        group,
        points,
        beside=beside,
        strategy=strategy,
        regions=regions,
        share=share,
        elements=elements,
        thresholds=thresholds,
        workers=workers,
        engine=engine,
        stage=stage,
    )


def partition_as(
    home: Home,
    conf: Path,
    streams: Sequence[StreamSettings],
    given: Namespace,
    engine: PointEngine,
    stage: Stage = lambda _what, _rows: None,
) -> Partitioned:
    """Partitions as `programs.PARTITION` is given it; see `partition_group`."""
    return partition_group(
        home,
        conf,
        streams,
        given.group,
        given.source,
        strategy=given.strategy,
        regions=given.regions,
        share=given.share,
        elements=given.first,
        thresholds=thresholds_given(given.upper, given.lower, given.unit),
        workers=given.workers,
        engine=engine,
        stage=stage,
    )


def rebalance_groups(
    home: Home, conf: Path, streams: Sequence[StreamSettings], engine: PointEngine
) -> tuple[dict[str, Partitioned], dict[str, str]]:
    """Keeps each group that has thresholds between them, by all its streams and layers; the others are left alone.

    A group whose regions all stay what they are keeps its version.

    Returns:
        What was done, by group; and what went wrong, by group, which does not keep the others from being done.
    """
    done: dict[str, Partitioned] = {}
    failed: dict[str, str] = {}
    for group in groups_between_thresholds(home):
        sources = [f"stream:{one.name}" for one in streams if one.group == group]
        sources += [f"layer:{name}" for name in layers_of(home, group)]
        if not sources:
            continue
        try:
            done[group] = partition_group(
                home,
                conf,
                streams,
                group,
                ",".join(sources),
                strategy=THRESHOLDS,
                only_changed=True,
                engine=engine,
            )
        except (FairwayError, OSError) as error:
            failed[group] = redacted(str(refused(error)))
    return done, failed


def follow_regions(
    home: Home, streams: Callable[[], Mapping[str, StreamSettings]]
) -> dict[str, Any]:
    """Spreads layers over the newest regions of their groups, and tells streams and queries of the new versions.

    Answers stay the same. Repeated, or after one that was killed, it does what is left.

    Args:
        home: the home folder.
        streams: gives the settings of the streams, where some query has another region.

    Returns:
        `versions` of the layers that were spread anew, those that were `kept`, those whose group is `unknown`; the
        `streams` that were told; the queries that went over (`followed`) or were `suspended`.

    Raises:
        LayerError: the regions of a layer's group have other than two dimensions.
        ConfigError: queries are on streams without right settings; all others went over.
    """
    done = spread_layers(home)
    told = sorted({one.stream for one in announce(home)})
    rows = follow_layers(home, streams)
    return {**asdict(done), "streams": told, **names_of(rows)}


@contextmanager
def engine_of(
    home: Home, group: str, engine: str, tree: Literal["kdtree", "quadtree"] = "kdtree"
) -> Iterator[PointEngine]:
    """What reads sources and splits space while a block runs: `local`, or Spark, whose session begins when it is asked.

    A ConfigError is raised then where Java or the jars are missing, or a session that exists lacks Delta or Sedona.
    """
    if engine == "local":
        yield LOCAL
        return
    from st_common.spark.points import SparkPoints
    from st_common.spark.session import late_session

    with late_session(home, f"fairway regions of {group}") as spark_of:
        yield SparkPoints(spark_of, tree)


def _require_one_group(
    home: Home,
    streams: Sequence[StreamSettings],
    group: str,
    sources: Sequence[PointSource],
) -> None:
    """Makes sure that sources have the dimensions of all streams and layers that share the regions of the group."""
    own = members_of(streams, group)
    if require_same(group, sources, own) != 2:
        flat = [Member(f"layer {name!r}", 2) for name in layers_of(home, group)]
        require_same(group, sources, flat)
