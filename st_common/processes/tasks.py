"""What commands and their jobs do alike, with the engine that is asked for: load a layer, process days again."""

from argparse import Namespace
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from st_common.batch.days import (
    Again,
    WholeDays,
    check_closed,
    whole_days,
)
from st_common.batch.reprocess import reprocess as by_days
from st_common.batch.run_plan import Run, RunPlan, plan_runs
from st_common.batch.trial import Trial
from st_common.config.home import Home
from st_common.config.redaction import redacted
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of
from st_common.errors import ConfigError, FairwayError
from st_common.layers.conversion import crs_of_group
from st_common.layers.features import Progress
from st_common.layers.load import Engine, LayerReport, load, local
from st_common.layers.options import FileOptions
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reprocessed:
    """What was to be processed again, and what came of it.

    Attributes:
        plan: the runs, and what they leave out.
        done: what was done, by stream; nothing where only the plan was asked for.
        failed: what went wrong, by stream.
        note: which days these are; "" where they are what was asked for.
    """

    plan: RunPlan
    done: Mapping[str, Again] = field(default_factory=dict)
    failed: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


def reprocess(
    home: Home,
    streams: Mapping[str, StreamSettings],
    given: Namespace,
    trial: Trial | None = None,
) -> Reprocessed:
    """Processes days of one stream again, or of all for which they are closed, also beside running engines.

    Args:
        home: the home folder.
        streams: the settings of all streams.
        given: what `programs.REPROCESS` takes.
        trial: where visits go in place of the stream's own table; None: they replace those.

    Raises:
        ConfigError: there is no such stream; nothing lies between the two times, one of them is missing, or a trial
            has none; of one stream, a day between them is open.
        FairwayError: of one stream; of several, one that fails keeps no other from being processed.
    """
    days = _days(given, trial)
    if given.stream:
        streams = {given.stream: stream_of(streams, given.stream)}
    plan = plan_runs(home, streams, days, wait_s=given.wait, engine=given.engine)
    note = "" if days is None else days.note
    if given.plan:
        return Reprocessed(plan=plan, note=note)
    if given.stream and days is not None:
        check_closed(home, given.stream, days.since, days.until)
    done, failed = {}, {}
    for run in plan.runs:
        try:
            done[run.stream] = _fold(home, streams[run.stream], run, trial)
        except (FairwayError, OSError) as error:
            if given.stream:
                raise
            failed[run.stream] = redacted(str(refused(error)))
    return Reprocessed(plan=plan, done=done, failed=failed, note=note)


def _days(given: Namespace, trial: Trial | None) -> WholeDays | None:
    """The days that are asked for; None: those that are due.

    Raises:
        ConfigError: one of two times is missing, or both, of a trial; nothing lies between them.
    """
    if given.from_ is not None and given.to is not None:
        return whole_days(given.from_, given.to)
    if given.from_ is not None or given.to is not None:
        there, missing = ("--from", "--to") if given.from_ else ("--to", "--from")
        raise ConfigError(
            f"{there} is given without {missing}",
            hint="both say an interval; with neither, the days that are due are processed",
        )
    if trial is not None:
        raise ConfigError(
            "a trial has no days that are due", hint="--from and --to say which days"
        )
    return None


def _fold(
    home: Home,
    stream: StreamSettings,
    run: Run,
    trial: Trial | None,
) -> Again:
    if run.engine == "local":
        return by_days(home, stream, run.since, run.until, trial)
    from st_common.spark.batch_days import reprocess_on_spark

    return reprocess_on_spark(home, stream, run.since, run.until, trial)
