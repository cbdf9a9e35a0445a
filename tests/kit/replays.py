r"""Recorded logs that are replayed: what is told must stay the same, row by row, however the inside changes.

A recording is a file of JSON lines in words that users have too: the settings of a stream, then statements, layers,
records and control rows in the order of the log, and between them runs of the engine.

    {"conf": "[streams.grid] ..", "kinds": "[kinds.park] .."}   always the first: streams.toml and layers.toml
    {"say": "REGISTER QUERY q AS SELECT .."}               any statement that changes something
    {"layer": "shapes", "features": {..GeoJSON..}}
    {"records": "object,t,x,y\na,1,2,3\n", "live": false}
    {"clock": 1699999980000000}
    {"fail": ["q", 1, "it raises"]}
    {"end": true}
    {"run": "idle"}                                        to the log's end; "crash" ends without commit and state
    {"reshard": 2}                                         from the local engine to so many shards on Spark

The record of what was told is the hash of the rows of `changes`, in their order, and how many fixes and rejects came.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from st_common import tables
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams
from st_common.engine import reshard
from st_common.engine.archive import Archive
from st_common.engine.local import LocalEngine
from st_common.engine.run import run
from st_common.engine.topology import frozen, topology_of
from st_common.layers.load import load
from st_common.log.control import write_clock, write_end
from st_common.log.log import Log
from st_common.log.record_settings import log_for
from st_common.query.area_store import HomeAreas
from st_common.query.layer_following import follow_layers
from st_common.query.registry import carry_out, suspend
from st_common.query.text import parse

ARRIVAL_US = (
    1 << 51
)  # in 2041: behind what arrives by the clock of the machine, such as announced layers
DIGITS = 12  # of a number: the last bits of a geodesic may differ between machines

Step = Mapping[str, Any]


def read_recording(file: Path) -> list[Step]:
    """The steps of a recording, the settings first."""
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def needs_spark(steps: list[Step]) -> bool:
    """Whether a recording goes over to Spark."""
    return any("reshard" in one for one in steps)


def replay(steps: list[Step], folder: Path, spark: Any = None) -> dict[str, Any]:
    """Carries out the steps in a new home and says what came of it: the hash of all changes, and counts.

    `spark` is a session, for a recording that needs one.
    """
    told = rows_of(steps, folder, spark)
    home, stream = Home(folder), _stream_of(folder)
    return {
        "changes": len(told),
        "sha256": hashlib.sha256("\n".join(told).encode()).hexdigest(),
        "fixes": tables.read(home.table("positions", stream.name)).num_rows,
        "rejects": tables.read(home.table("rejects")).num_rows,
    }


def rows_of(steps: list[Step], folder: Path, spark: Any = None) -> list[str]:
    """Carries out the steps in a new home; the rows of `changes` as text, in their order."""
    (folder / "conf").mkdir(parents=True)
    (folder / "conf" / "streams.toml").write_text(steps[0]["conf"], encoding="utf-8")
    (folder / "conf" / "layers.toml").write_text(steps[0]["kinds"], encoding="utf-8")
    home, stream = Home(folder), _stream_of(folder)
    for number, one in enumerate(steps[1:]):
        _carry_out(home, stream, one, number)
    _go_on(home, stream, spark)
    return list(_texts(home, stream))


def _go_on(home: Home, stream: StreamSettings, spark: Any) -> None:
    """To the log's end, by the engine that is in force."""
    topology = topology_of(home, stream.name)
    if topology is None or topology.engine == "local":
        run(home, stream, until_idle=True)
        return
    from tests.kit.on_spark import follow_on

    follow_on(spark, home, stream, shards=topology.shards)
    archive = Archive(home, replace(stream, shards=topology.shards))
    while archive.batch():
        pass


def _stream_of(folder: Path) -> StreamSettings:
    streams = load_streams(folder / "conf")
    return next(iter(streams.values()))


def _carry_out(home: Home, stream: StreamSettings, one: Step, number: int) -> None:
    """One step; whatever it writes into the log arrives at a time that its number gives.

    Raises:
        KeyError: a step that nobody knows.
    """
    name = next(key for key in one if key not in ("features", "live"))
    if name == "run":
        _RUNS[one["run"]](home, stream)
    elif name == "reshard":
        run(home, stream, until_idle=True)
        reshard.reshard(
            home, stream, engine="spark", shards=one["reshard"], export=reshard.of_local
        )
    else:
        _WRITERS[name](home, stream, one, ARRIVAL_US + number)


def _say(home: Home, stream: StreamSettings, one: Step, arrival_us: int) -> None:
    carry_out(
        home,
        {stream.name: stream},
        parse(one["say"], areas=HomeAreas(home)),
        owner="replay",
        now_us=arrival_us,
    )


def _load(home: Home, stream: StreamSettings, one: Step, _arrival_us: int) -> None:
    file = home.root / "layer.geojson"
    file.write_text(json.dumps(one["features"]), encoding="utf-8")
    load(home, one["layer"], file, group=stream.group, space=stream.space)
    follow_layers(home, lambda: {stream.name: stream})


def _append(home: Home, stream: StreamSettings, one: Step, arrival_us: int) -> None:
    log_for(home, stream).append(
        one["records"].encode(), arrival_us=arrival_us, live=one["live"]
    )


def _tick(home: Home, stream: StreamSettings, one: Step, arrival_us: int) -> None:
    write_clock(Log(home.log(stream.name)), one["clock"], arrival_us=arrival_us)


def _fail(home: Home, _stream: StreamSettings, one: Step, arrival_us: int) -> None:
    query, version, why = one["fail"]
    suspend(home, [(query, version, why)], now_us=arrival_us)


def _end(home: Home, stream: StreamSettings, _one: Step, arrival_us: int) -> None:
    write_end(Log(home.log(stream.name)), arrival_us=arrival_us)


def _run(home: Home, stream: StreamSettings) -> None:
    run(home, stream, until_idle=True)


def _crash(home: Home, stream: StreamSettings) -> None:
    """An engine and an archive that read all and die before they commit it."""
    engine = LocalEngine(home, frozen(home, stream, engine="local", shards=1))
    while engine.batch():
        pass
    engine.abandon()
    archive = Archive(home, stream)
    archive.batch()


_WRITERS = {
    "say": _say,
    "layer": _load,
    "records": _append,
    "clock": _tick,
    "fail": _fail,
    "end": _end,
}
_RUNS = {"idle": _run, "crash": _crash}


def _texts(home: Home, stream: StreamSettings) -> Iterator[str]:
    rows = tables.read(home.table("changes", stream.name)).drop_columns(["event_date"])
    ordered = rows.sort_by([("position", "ascending"), ("seq", "ascending")])
    for row in ordered.to_pylist():
        yield json.dumps(
            {name: _plain(row[name]) for name in sorted(row)}, sort_keys=True
        )


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        return f"{value:.{DIGITS}g}"
    return value if value is None or isinstance(value, int | str | bool) else str(value)
