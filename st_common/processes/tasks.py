"""What commands and their jobs do alike, with the engine that is asked for: load a layer, process days again."""

from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from st_common.batch.days import Again, WholeDays, engine_of, whole_days
from st_common.batch.reprocess import reprocess as by_days
from st_common.batch.trial import Trial
from st_common.config.home import Home
from st_common.config.redaction import redacted
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of
from st_common.errors import FairwayError
from st_common.layers.conversion import crs_of_group
from st_common.layers.features import Progress
from st_common.layers.load import Engine, LayerReport, load, local
from st_common.layers.options import FileOptions
from st_common.operations.days import is_closed_before
from st_common.storage import refused


def load_layer(
    home: Home,
    conf: Path,
    streams: Collection[StreamSettings],
    given: Namespace,
    progress: Progress | None = None,
) -> LayerReport:
    """Replaces a layer by the features of a file; see `layers.load.load`.

    Args:
        home: the home folder.
        conf: the folder of the settings.
        streams: the settings of all streams: those of the group say which system coordinates are to be in.
        given: what `programs.LOAD_LAYER` takes.
        progress: told what is being done, and how many features of it are done; not by Spark.
    """
    columns = {key: getattr(given, key) for key in ("x", "y", "place")}
    options = FileOptions(
        table=given.table,
        ids=given.id,
        crs=given.source_crs,
        columns={key: name for key, name in columns.items() if name},
        lat_lon=given.lat_lon,
    )
    members = [one for one in streams if one.group == given.group]
    is_flat = all(one.columns.dimensions == 2 for one in members)
    with _engine(home, given, progress, makes_regions=is_flat) as engine:
        return load(
            home,
            given.layer,
            given.file,
            group=given.group,
            kinds=given.kinds or None,
            crs=given.crs or crs_of_group(members, given.group),
            conf=conf,
            options=options,
            attribution=given.attribution,
            engine=engine,
        )


@contextmanager
def _engine(
    home: Home, given: Namespace, progress: Progress | None, *, makes_regions: bool
) -> Iterator[Engine]:
    if given.engine == "local":
        yield partial(local, progress=progress)
        return
    from st_common.spark.layers import SparkLayers
    from st_common.spark.session import job_session

    with job_session(home, f"fairway layer {given.layer}") as spark:
        yield SparkLayers(spark, makes_regions)


def reprocess(
    home: Home,
    streams: Mapping[str, StreamSettings],
    given: Namespace,
    trial: Trial | None = None,
) -> tuple[str, dict[str, Again], dict[str, str]]:
    """Processes days of one stream again, or of all for which they are closed, also beside running engines.

    Args:
        home: the home folder.
        streams: the settings of all streams.
        given: what `programs.REPROCESS` takes.
        trial: where visits go in place of the stream's own table; None: they replace those.

    Returns:
        Which days these are, "" where they are what was asked for; what was done and what went wrong, by stream. A
        stream that is in neither has an open day.

    Raises:
        ConfigError: there is no such stream, or nothing lies between the two times.
        FairwayError: of one stream; of several, one that fails keeps no other from being processed.
    """
    days, failed = whole_days(given.from_, given.to), {}
    if given.stream:
        stream = stream_of(streams, given.stream)
        again = _fold(home, stream, days, given.engine, trial)
        return days.note, {stream.name: again}, {}
    done: dict[str, Again] = {}
    for name, stream in streams.items():
        if not is_closed_before(home, name, days.until):
            continue
        try:
            done[name] = _fold(home, stream, days, given.engine, trial)
        except (FairwayError, OSError) as error:
            failed[name] = redacted(str(refused(error)))
    return days.note, done, failed


def _fold(
    home: Home,
    stream: StreamSettings,
    days: WholeDays,
    engine: str | None,
    trial: Trial | None,
) -> Again:
    if engine_of(home, stream.name, engine) == "local":
        return by_days(home, stream, days.since, days.until, trial)
    from st_common.spark.batch_days import reprocess_on_spark

    return reprocess_on_spark(home, stream, days.since, days.until, trial)
