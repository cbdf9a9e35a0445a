"""Loads a layer: `python -m jobs.load_layer NAME FILE --home H [--group default] [--kinds park,forest]`."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from st_common.home import Home
from st_common.layers.conversion import crs_of_group
from st_common.layers.faults import shared_out, told
from st_common.layers.load import load
from st_common.layers.options import FileOptions
from st_common.processes.entry import finish, job_parser
from st_common.query.created_streams import known_streams
from st_common.query.layer_following import follow_layers, names_of
from st_common.settings import conf_dir, has_streams, home_dir

_MORE = ": the table feature_faults names them"
_OF_FILE = {
    "table": "which table of a file, or which file of an archive",
    "id": "the column or property of ids",
    "source-crs": "in which system coordinates are, as EPSG:25832",
    "x": "of CSV, the column of longitudes",
    "y": "of CSV, the column of latitudes",
    "place": "of CSV, the column of geometries",
}
_NAMED = 100  # features of each outcome in the summary; `feature_faults` has all


def load_layer(arguments: argparse.Namespace) -> Mapping[str, Any]:
    """Replaces a layer by the features of a file, in one commit, and tells the streams and queries of its features."""
    home = Home(home_dir(arguments.home))
    kinds = [kind for kind in arguments.kinds.split(",") if kind]
    conf = conf_dir(home.root, arguments.conf)
    streams = known_streams(home, conf).values() if has_streams(conf) else ()
    report = load(
        home,
        arguments.layer,
        arguments.file,
        group=arguments.group,
        kinds=kinds or None,
        crs=crs_of_group(streams, arguments.group),
        conf=conf,
        options=_options(arguments),
        attribution=arguments.attribution or None,
    )
    rows = follow_layers(home, lambda: known_streams(home, conf))
    warning = [f"WARNING: {report.warning}"] if report.warning else []
    for line in (*report.notes, *told(report.faults, more=_MORE), *warning):
        print(line, file=sys.stderr, flush=True)
    faults = shared_out(report.faults, most=_NAMED)
    return {**asdict(report), "faults": faults, **names_of(rows)}


def _options(arguments: argparse.Namespace) -> FileOptions:
    columns = {key: getattr(arguments, key) for key in ("x", "y", "place")}
    return FileOptions(
        table=arguments.table or None,
        ids=arguments.id or None,
        crs=arguments.source_crs or None,
        columns={key: name for key, name in columns.items() if name},
        lat_lon=arguments.lat_lon,
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, loads, gives back the exit code."""
    parser = job_parser("load_layer", load_layer.__doc__)
    parser.add_argument("layer", help="the layer's name")
    parser.add_argument("file", type=Path, help="a file of features: see docs/cli.md")
    parser.add_argument(
        "--group", default="default", help="whose regions the layer is spread over"
    )
    parser.add_argument(
        "--kinds",
        default="",
        help="kinds of conf/layers.toml, with commas; default: all",
    )
    parser.add_argument(
        "--attribution",
        default="",
        help="whose data it is; default: OpenStreetMap's where the ids of features are its own",
    )
    for name, text in _OF_FILE.items():
        parser.add_argument(f"--{name}", default="", help=text)
    parser.add_argument(
        "--lat-lon", action="store_true", help="the file has latitude first"
    )
    arguments = parser.parse_args(argv)
    return finish(load_layer, arguments)


if __name__ == "__main__":
    sys.exit(main())
