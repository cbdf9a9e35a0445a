"""The folder in which the docs' commands are typed: a home with taxis of Porto, and the files that pages speak of.

Twenty taxis drive around the centre of Porto, each on a circle of its own, from 30 June 2013, 22:00 UTC, to 2 July,
00:10, with a fix every ten minutes. Before that their settings were wrong for a while (`time_unit`): twelve records
became rejects, of which ten are good by the settings of now.
"""

import gzip
import json
import lzma
import shutil
import zipfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import osmium
import pyarrow as pa
import pyogrio
import shapely
from osmium.osm.mutable import Node, Way
from pyarrow import csv

from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.run import run
from st_common.log.control import write_end
from st_common.log.record_settings import log_for
from st_common.query.builder import query
from st_common.query.registry import register
from st_common.query.text import parse

ROOT = Path(__file__).resolve().parents[2]
BEGIN = datetime(2013, 6, 30, 22, tzinfo=UTC)
FIXES = 158
TAXIS = 20
ARRIVAL_US = 1_372_636_800_000_000  # 1 July 2013
STREAMS = """
[streams.taxis]
format = "csv"
columns = { object = "object_id", event_ts = "event_ts", x = "x", y = "y" }
time_unit = "iso"
attributes = { state = "string" }
max_ahead_s = "off"
engine = "local"
moving = true
changes_days = 0

[streams.aircraft]
format = "ndjson"
columns = { object = "icao24", event_ts = "timestamp", x = "longitude", y = "latitude" }
time_unit = "ms"
max_ahead_s = "off"
engine = "local"
"""
QUERIES = """
REGISTER QUERY centre AS SELECT * FROM taxis INSIDE (-8.63, 41.14, -8.60, 41.16);
REGISTER QUERY free_in_the_centre AS SELECT * FROM taxis WHERE state = 'free' INSIDE (-8.63, 41.14, -8.60, 41.16);
CREATE AREA centre AS (-8.63, 41.14, -8.60, 41.16);
"""
MISREAD = "object_id,event_ts,x,y,state\n" + "".join(
    f"t0,{'soon' if minute > 9 else f'2013-06-30T21:0{minute}:00Z'},-8.61,41.15,free\n"
    for minute in range(12)
)


def make_folder(folder: Path) -> None:
    """Makes the folder `home` and the files beside it."""
    conf = folder / "home" / "conf"
    conf.mkdir(parents=True)
    home = Home(folder / "home")
    for name in ("layers.toml", "operations.toml"):
        (conf / name).write_text((ROOT / "conf" / name).read_text())
    contracts = home.root / "data_contracts" / "streams"
    contracts.mkdir(parents=True)
    shutil.copy(ROOT / "data_contracts/examples/streams/taxis.odcs.yaml", contracts)
    _judge(home, STREAMS.replace('"iso"', '"s"'), MISREAD)
    streams = load_streams(conf)
    register(home, streams, parse(QUERIES), owner="ada")
    _judge(home, STREAMS, fixes())
    for name, content in _files().items():
        (folder / name).write_bytes(content)
    _write_maps(folder)


def fixes() -> str:
    """The fixes of the taxis as CSV, in the order of their times."""
    step, taxi = np.divmod(np.arange(FIXES * TAXIS), TAXIS)
    angle = taxi + step * 0.4
    times = [BEGIN + timedelta(minutes=10 * at) for at in range(FIXES)]
    table = pa.table(
        {
            "object_id": pa.array([f"t{one}" for one in range(TAXIS)]).take(taxi),
            "event_ts": pa.array([f"{at:%FT%TZ}" for at in times]).take(step),
            "x": (-8.61 + 0.002 * taxi * np.cos(angle)).round(6),
            "y": (41.15 + 0.002 * taxi * np.sin(angle)).round(6),
            "state": pa.array(["free", "busy"]).take(taxi % 2),
        }
    )
    sink = pa.BufferOutputStream()
    csv.write_csv(table, sink, csv.WriteOptions(quoting_style="none"))
    return str(sink.getvalue().to_pybytes(), "utf-8")


def _judge(home: Home, settings: str, records: str) -> None:
    (home.root / "conf" / "streams.toml").write_text(settings)
    taxis = load_streams(home.root / "conf")["taxis"]
    log = log_for(home, taxis)
    log.append(records.encode(), arrival_us=ARRIVAL_US)
    write_end(log, arrival_us=ARRIVAL_US)
    run(home, taxis, until_idle=True)


def _files() -> dict[str, bytes]:
    """The files that pages speak of, by name."""
    later = fixes().replace("2013-07-02T00:10", "2013-07-02T00:11").encode()
    told = "SELECT * FROM taxis INSIDE"
    plan = query("taxis").in_space((-8.62, 41.14, -8.60, 41.16)).build()
    plane = {"icao24": "4b1814", "timestamp": 1, "longitude": 8.5, "latitude": 47.4}
    return {
        "fixes.csv": later,
        "fixes.csv.xz": lzma.compress(later),
        "switzerland.json.gz": gzip.compress(json.dumps(plane).encode() + b"\n"),
        "aisdk.csv": b"mmsi,timestamp,lat,lon\n219000001,2013-07-01T00:00:00Z,55.5,11.5\n",
        "queries.sql": f"REGISTER QUERY here AS {told} (-8.62, 41.14, -8.60, 41.16)".encode(),
        "near.sql": f"REGISTER QUERY near_$id AS {told} CIRCLE ($x, $y, 200 m)".encode(),
        "shops.csv": b"id,x,y\na,-8.61,41.15\nb,-8.62,41.15\n",
        "plan.json": json.dumps(plan.to_json()).encode(),
        "tighter.sql": f"REGISTER QUERY centre AS {told} (-8.62, 41.14, -8.60, 41.16)".encode(),
        "now.sql": f"REGISTER QUERY centre AS {told} (-8.63, 41.14, -8.60, 41.16)".encode(),
        "new.sql": f"REGISTER QUERY centre AS {told} (-8.62, 41.14, -8.60, 41.16)".encode(),
    }


def _write_maps(folder: Path) -> None:
    """A park and a road in `porto.osm.pbf`, two zones in `zones.zip`, a list of depots in `depots.csv`."""
    corners = [(-8.62, 41.145), (-8.615, 41.145), (-8.615, 41.15), (-8.62, 41.15)]
    with osmium.SimpleWriter(str(folder / "porto.osm.pbf")) as writer:
        for number, place in enumerate(corners, start=1):
            writer.add_node(Node(id=number, version=1, location=place))
        ring = [1, 2, 3, 4, 1]
        writer.add_way(Way(id=1, version=1, nodes=ring, tags={"leisure": "park"}))
        writer.add_way(Way(id=2, version=1, nodes=ring, tags={"highway": "primary"}))
    boxes = shapely.to_wkb([shapely.box(-8.62, 41.14, x, 41.15) for x in (-8.61, -8.6)])
    file = folder / "zones.gpkg"
    zones = pa.table({"ZONE_NO": ["1", "2"], "geom": boxes})
    meta = {"geometry_name": "geom", "geometry_type": "Polygon", "crs": "EPSG:4326"}
    pyogrio.write_arrow(zones, file, layer="zones", **meta)
    with zipfile.ZipFile(folder / "zones.zip", "w") as packed:
        packed.write(file, file.name)
    rows = (
        "Boavista;41,158;-8,630;12\nCampanhã;41,149;-8,585;30\nMaia;41.236,x;-8,620;8\n"
    )
    (folder / "depots.csv").write_text(f"depot;latitude;longitude;places\n{rows}")
