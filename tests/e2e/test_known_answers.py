"""Real streams joined with real layers, from the log to the table: the counts are known (see ../shared)."""

import csv
import gzip
import json

import pytest

from st_common import tables
from st_common.checks.verify import verify
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.layers.load import load
from st_common.query.registry import register
from st_common.query.text import parse
from st_common.tables import read
from tests.kit.log_writer import bare_log

CONF = __import__("pathlib").Path(__file__).resolve().parents[2] / "conf"
COLUMNS = Columns(object="id", event_ts="t", x="x", y="y")


def stream_of(name, unit):
    return StreamSettings(
        name=name, format="csv", columns=COLUMNS, time_unit=unit, max_ahead_s=None
    )


def taxi_rows(shared):
    """The taxis' fixes in time order: id, seconds, longitude, latitude."""
    rows = []
    with (shared / "data" / "taxi-porto" / "train-1000.csv").open() as source:
        for trip, record in enumerate(csv.DictReader(source)):
            start = int(record["TIMESTAMP"])
            for step, (x, y) in enumerate(json.loads(record["POLYLINE"])):
                rows.append((start + 15 * step, trip, record["TAXI_ID"], x, y))
    return [(taxi, t, x, y) for t, _, taxi, x, y in sorted(rows)]


def plane_rows(shared):
    """The aircraft's state vectors in time order: id, milliseconds, longitude, latitude."""
    with gzip.open(
        shared / "data" / "adsb-switzerland" / "switzerland.json.gz"
    ) as source:
        records = json.load(source)
    records.sort(key=lambda record: record["timestamp"])
    return [
        (r["icao24"], r["timestamp"], r["longitude"], r["latitude"]) for r in records
    ]


def fill(home, stream, rows, segment_rows=10_000):
    log = bare_log(home.log(stream.name))
    for start in range(0, len(rows), segment_rows):
        lines = [
            "id,t,x,y",
            *(
                f"{i},{t},{x!r},{y!r}"
                for i, t, x, y in rows[start : start + segment_rows]
            ),
        ]
        log.append("\n".join(lines).encode(), arrival_us=0)


def run_local(home, stream):
    from st_common.engine.run import run

    summary = run(home, stream, until_idle=True)
    assert summary.rejects == 0
    return read(home.table("changes", stream.name)).to_pandas()


def pairs(changes, query):
    """How often a fix met a partner: an entry, or a further fix of a member."""
    mine = changes[changes["query"] == query]
    return (
        int((mine["sign"] >= 0).sum()),
        int((mine["sign"] == 1).sum()),
        int((mine["sign"] == -1).sum()),
    )


PORTO = """
REGISTER QUERY parks AS SELECT * FROM taxis JOIN porto ON ST_Intersects(taxis, porto)
  WHERE porto.kind = 'park' EMIT EVERY;
REGISTER QUERY buildings AS SELECT * FROM taxis JOIN porto ON ST_Intersects(taxis, porto)
  WHERE porto.kind = 'building' EMIT EVERY;
REGISTER QUERY by_park AS SELECT * FROM taxis JOIN porto ON ST_DWithin(taxis, porto, 5 m)
  WHERE porto.kind = 'park' EMIT EVERY;
REGISTER QUERY by_building AS SELECT * FROM taxis JOIN porto ON ST_DWithin(taxis, porto, 5 m)
  WHERE porto.kind = 'building' EMIT EVERY;
"""


@pytest.fixture(scope="module")
def porto(shared, tmp_path_factory):
    """A home with the taxis' log, the centre of Porto as a layer, four queries."""
    home, stream = Home(tmp_path_factory.mktemp("porto")), stream_of("taxis", "s")
    file = shared / "data" / "osm-porto" / "porto-centre-2020-07-20.osm.pbf"
    report = load(
        home, "porto", file, group="default", kinds=["park", "building"], conf=CONF
    )
    assert report.by_kind == {"park": 493, "building": 11_404}
    register(home, {"taxis": stream}, parse(PORTO), owner="test")
    fill(home, stream, taxi_rows(shared))
    return home, stream


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.spec("B8", "B9", "P3", "X1")
def test_taxis_in_parks_and_buildings_of_porto(porto):
    home, stream = porto
    changes = run_local(home, stream)
    assert pairs(changes, "parks")[0] == 106
    assert pairs(changes, "buildings")[0] == 1_510
    # The figures for 5 m are of a planar buffer with 8 segments a quarter: within 0.5 % of the geodesic distance.
    assert pairs(changes, "by_park")[0] == pytest.approx(599, rel=0.005)
    assert pairs(changes, "by_building")[0] == pytest.approx(6_196, rel=0.005)
    assert all(found.holds for found in verify(home, stream))


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.spec("B9", "C7")
def test_aircraft_over_forests_of_liechtenstein(shared, tmp_path):
    home, stream = Home(tmp_path), stream_of("planes", "ms")
    file = shared / "data" / "osm-liechtenstein" / "liechtenstein-2022-07-24.osm.pbf"
    report = load(home, "land", file, group="default", kinds=["forest"], conf=CONF)
    assert report.by_kind == {"forest": 567}
    text = "REGISTER QUERY over AS SELECT * FROM planes JOIN land ON ST_Intersects(planes, land) EMIT EVERY"
    register(home, {"planes": stream}, parse(text), owner="test")
    fill(home, stream, plane_rows(shared))
    changes = run_local(home, stream)
    assert pairs(changes, "over")[0] == 111
    assert all(found.holds for found in verify(home, stream))
    assert len(read(home.table("positions", "planes"))) == 139_098


@pytest.mark.slow
@pytest.mark.e2e
@pytest.mark.spec("X4", "X5", "C7")
def test_a_layer_that_is_loaded_anew_tells_who_entered_and_left_without_moving(
    shared, tmp_path
):
    home, stream = Home(tmp_path), stream_of("planes", "ms")
    folder = shared / "data" / "osm-liechtenstein"
    load(
        home,
        "land",
        folder / "liechtenstein-2013-08-03.osm.pbf",
        group="default",
        kinds=["forest"],
        conf=CONF,
    )
    text = "REGISTER QUERY over AS SELECT * FROM planes JOIN land ON ST_Intersects(planes, land)"
    register(home, {"planes": stream}, parse(text), owner="test")
    inside = [
        row for row in plane_rows(shared) if 9.4 < row[2] < 9.7 and 47.0 < row[3] < 47.3
    ]
    # Each place as an object of its own that stays: the layer alone decides who is where.
    fill(home, stream, [(f"p{n}", t, x, y) for n, (_, t, x, y) in enumerate(inside)])
    load(
        home,
        "land",
        folder / "liechtenstein-2022-07-24.osm.pbf",
        group="default",
        kinds=["forest"],
        conf=CONF,
    )
    changes = run_local(home, stream)
    by_layer = changes[changes["cause"] == "layer"]
    newest = tables.version(home.table("layers", "land"))
    assert set(by_layer["layer_version"]) == {newest}
    assert (changes["query_version"] == 1).all()
    assert (by_layer["sign"] == 1).sum() > 50
    assert all(found.holds for found in verify(home, stream))


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.spec("B9", "X1")
def test_spark_joins_layers_as_the_local_engine_does(porto, spark, tmp_path):
    from tests.kit.on_spark import replayed_on

    home, stream = porto
    changes = replayed_on(spark, home, stream, tmp_path, shards=2).to_pandas()
    assert pairs(changes, "parks")[0] == 106
    assert pairs(changes, "buildings")[0] == 1_510
    if not tables.exists(home.table("changes", "taxis")):
        run_local(home, stream)
    told = tables.read(
        home.table("changes", "taxis"), columns=changes.columns.to_list()
    ).to_pandas()
    keys = ["position", "seq"]
    told, changes = (
        t.sort_values(keys).reset_index(drop=True) for t in (told, changes)
    )
    assert told.astype(str).equals(changes.astype(str))
