"""Loads a layer: `python -m jobs.load_layer NAME FILE --home H [--engine local]`, or by spark-submit."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.config.streams import has_streams
from st_common.layers.conversion import crs_of_group
from st_common.layers.faults import shared_out, told
from st_common.layers.load import Engine, LayerReport, load, local
from st_common.layers.options import FileOptions
from st_common.processes.entry import finish, job_parser
from st_common.programs import LOAD_LAYER
from st_common.query.created_streams import known_streams
from st_common.query.layer_following import follow_layers, names_of

_MORE = ": the table feature_faults names them"
_NAMED = 100  # features of each outcome in the summary; `feature_faults` has all


def load_layer(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Replaces a layer by the features of a file, in one commit, and tells the streams and queries of its features."""
    home = Home(home_dir(arguments.home))
    conf = conf_dir(home.root, arguments.conf)
    streams = known_streams(home, conf).values() if has_streams(conf) else ()
    members = [one for one in streams if one.group == arguments.group]
    is_flat = all(one.columns.dimensions == 2 for one in members)
    with _engine(home, arguments, makes_regions=is_flat) as engine:
        report = load(
            home,
            arguments.layer,
            arguments.file,
            group=arguments.group,
            kinds=arguments.kinds or None,
            crs=crs_of_group(streams, arguments.group),
            conf=conf,
            options=_options(arguments),
            attribution=arguments.attribution or None,
            engine=engine,
        )
    rows = follow_layers(home, lambda: known_streams(home, conf))
    _say(report)
    faults = shared_out(report.faults, most=_NAMED)
    return {**asdict(report), "faults": faults, **names_of(rows)}


@contextmanager
def _engine(
    home: Home, arguments: argparse.Namespace, *, makes_regions: bool
) -> Iterator[Engine]:
    if arguments.engine == "local":
        yield local
        return
    from st_common.spark.layers import SparkLayers
    from st_common.spark.session import job_session

    with job_session(home, f"fairway layer {arguments.layer}") as spark:
        yield SparkLayers(spark, makes_regions)


def _options(arguments: argparse.Namespace) -> FileOptions:
    columns = {key: getattr(arguments, key) for key in ("x", "y", "place")}
    return FileOptions(
        table=arguments.table or None,
        ids=arguments.id or None,
        crs=arguments.source_crs or None,
        columns={key: name for key, name in columns.items() if name},
        lat_lon=arguments.lat_lon,
    )


def _say(report: LayerReport) -> None:
    warning = [f"WARNING: {report.warning}"] if report.warning else []
    for line in (*report.notes, *told(report.faults, more=_MORE), *warning):
        print(line, file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, loads, gives back the exit code."""
    return finish(load_layer, job_parser(LOAD_LAYER).parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
