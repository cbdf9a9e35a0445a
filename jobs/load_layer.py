"""Loads a layer: `python -m jobs.load_layer NAME FILE --home H [--engine local]`, or by spark-submit."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from st_common.config.environment import conf_dir, home_dir
from st_common.config.home import Home
from st_common.config.streams import has_streams
from st_common.layers.faults import shared_out, told
from st_common.layers.load import LayerReport
from st_common.processes.entry import finish, job_parser
from st_common.processes.tasks import load_layer as load
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
    report = load(home, conf, streams, arguments)
    rows = follow_layers(home, lambda: known_streams(home, conf))
    _say(report)
    faults = shared_out(report.faults, most=_NAMED)
    return {**asdict(report), "faults": faults, **names_of(rows)}


def _say(report: LayerReport) -> None:
    warning = [f"WARNING: {report.warning}"] if report.warning else []
    for line in (*report.notes, *told(report.faults, more=_MORE), *warning):
        print(line, file=sys.stderr, flush=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Parses the command line, loads, gives back the exit code."""
    return finish(load_layer, job_parser(LOAD_LAYER).parse_args(argv))


if __name__ == "__main__":
    sys.exit(main())
