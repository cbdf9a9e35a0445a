"""The log of a home as a source of Spark: `continuous` over it tells what the engine of the home tells (SPEC S7)."""

import numpy as np
import pytest

from st_common import tables
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.run import run
from st_common.errors import ConfigError, LogError
from st_common.log import appending
from st_common.log.log import Log
from st_common.log.record_settings import log_for
from st_common.query.registry import register
from st_common.query.text import parse
from st_common.replay.files import replay
from st_common.spark import log_source
from st_common.spark.continuous import continuous
from st_common.spark.log_source import LogSource, register_log_source

pytestmark = [pytest.mark.timeout(600), pytest.mark.spec("S7", "X1")]
STREAMS = """
[streams.cars]
engine = "local"
format = "csv"
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
silence_s = 30
codec = "{codec}"
columns = {{ object = "id", event_ts = "t", x = "x", y = "y", gone = "left" }}
attributes = {{ {attributes} }}
"""
QUERIES = """
REGISTER QUERY room AS SELECT * FROM cars INSIDE (0, 0, 10, 10);
REGISTER QUERY fast AS SELECT * FROM cars INSIDE (0, 0, 15, 15) WHERE speed > 25;
REGISTER QUERY many AS SELECT COUNT(*) FROM cars INSIDE (0, 0, 10, 10);
REGISTER QUERY near AS SELECT * FROM cars KNN (2, 5, 5);
REGISTER QUERY pairs AS SELECT * FROM cars a JOIN cars b ON ST_DWithin(a, b, 2 m);
"""
TOLD = ("query", "object", "partner", "sign", "cause", "event_ts", "value", "x", "y")


@pytest.fixture(params=["raw", "packet"])
def home(request, tmp_path, monkeypatch):
    """A home with a stream and queries, and nothing in its log but them."""
    monkeypatch.setattr(appending, "PACKED_BYTES", 0)
    home = Home(tmp_path / "home")
    configure(home, 'speed = "double"', codec=request.param)
    log_for(home, stream_of(home))
    register(home, {"cars": stream_of(home)}, parse(QUERIES), owner="t")
    return home


def configure(home, attributes, codec="raw"):
    (home.root / "conf").mkdir(parents=True, exist_ok=True)
    text = STREAMS.format(attributes=attributes, codec=codec)
    (home.root / "conf" / "streams.toml").write_text(text)


def stream_of(home):
    return load_streams(home.root / "conf")["cars"]


def drive(home, seconds, seed):
    """Eight cars for some seconds, a file each three; one leaves, and a record of each file is none."""
    rng, path = np.random.default_rng(seed), home.root / "records.csv"
    for start in range(seconds.start, seconds.stop, 3):
        rows = ["id,t,x,y,speed,left,load"]
        for second in range(start, min(start + 3, seconds.stop)):
            places = rng.integers(0, 20, (8, 2))
            for car, (x, y) in enumerate(places.tolist()):
                left = "true" if (car, second % 10) == (3, 5) else ""
                rows.append(
                    f"c{car},{second},{x},{y},{rng.integers(0, 50)},{left},{second}"
                )
        rows.append(f"c9,{start},nowhere,1,1,,1")
        path.write_text("\n".join(rows) + "\n")
        log = Log(home.log("cars"))
        replay(log, path, stream_of(home), end_mark=False, clock=lambda: 0)


def fixes_of(reader, home):
    return reader.format("fairway_log").options(home=str(home.root), stream="cars")


class Follower:
    """`continuous` over the log of a home, with a checkpoint."""

    def __init__(self, spark, home, folder):
        self.spark, self.home, self.folder, self.rows = spark, home, folder, []

    def follow(self):
        """All that the log has by now, as after a restart."""
        fixes = fixes_of(self.spark.readStream, self.home).load()
        names = {"object": "object", "ts": "event_ts", "x": "x", "y": "y"}
        options = {"crs": "planar", "silence_s": 30, "shards": 2}
        changes = continuous(
            fixes, QUERIES, **names, gone="gone", name="cars", **options
        )
        query = (
            changes.writeStream.foreachBatch(self._keep)
            .option("checkpointLocation", str(self.folder))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(300)
        assert query.exception() is None

    def _keep(self, frame, _):
        self.rows += frame.where("query IS NOT NULL").toArrow().to_pylist()


@pytest.fixture
def follower(spark, home, tmp_path):
    register_log_source(spark)
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", 2)
    yield Follower(spark, home, tmp_path / "checkpoint")
    spark.conf.set("spark.sql.shuffle.partitions", before)


def told(rows):
    return sorted((tuple(row[name] for name in TOLD) for row in rows), key=repr)


def test_continuous_over_a_log_tells_what_the_engine_of_the_home_tells(follower, home):
    """Also after a restart, with readings that changed, and when a batch brings nothing but control rows."""
    drive(home, range(10), 1)
    follower.follow()
    first = len(follower.rows)
    drive(home, range(10, 22), 2)
    register(
        home,
        {"cars": stream_of(home)},
        parse("CREATE AREA a AS (0, 0, 1, 1)"),
        owner="t",
    )
    follower.follow()
    assert len(follower.rows) > first > 0
    run(home, stream_of(home), until_idle=True)
    expected = tables.read(home.table("changes", "cars")).to_pylist()
    assert {row["query"] for row in expected} == {
        "room",
        "fast",
        "many",
        "near",
        "pairs",
    }
    assert told(follower.rows) == told(expected)


def test_a_batch_gives_the_fixes_that_the_archive_has_in_parts(
    follower, spark, home, monkeypatch
):
    drive(home, range(9), 3)
    configure(home, 'speed = "double", load = "long"')
    drive(home, range(9, 12), 4)
    run(home, stream_of(home), until_idle=True)
    archived = tables.read(home.table("positions", "cars"))
    order = [("segment", "ascending"), ("row", "ascending")]
    frame = fixes_of(spark.read, home).load()
    names = ["segment", "row", "object", "event_ts", "x", "y", "gone", "speed", "load"]
    assert frame.columns == names
    found = frame.toArrow().select(names).sort_by(order)
    wanted = archived.select(names).sort_by(order)
    assert repr(found.to_pylist()) == repr(wanted.to_pylist())  # x of who left is NaN
    assert (found.num_rows, found["load"].null_count) == (96, 72)
    assert frame.where("object = 'c3' AND gone").count() == 1
    monkeypatch.setattr(log_source, "PART_BYTES", 100)
    place = reader_of(home)._place
    parts = place.parts(0, place.log.end())
    assert len(parts) > 2
    assert sum(len(batch) for part in parts for batch in place.read(part)) == 96


def reader_of(home, /, **options):
    source = LogSource({"home": str(home.root), "stream": "cars", **options})
    return source.streamReader(source.schema())


@pytest.mark.spec("S2")
@pytest.mark.parametrize("more", [1, 40], ids=["older", "passed"])
def test_a_log_that_was_put_back_to_an_older_copy_is_refused(home, tmp_path, more):
    drive(home, range(30), 5)
    reader, where = reader_of(home), tmp_path / "later"
    start, end = reader.initialOffset(), reader.latestOffset()
    assert reader.partitions(start, end)
    home.root.rename(where)
    other = Home(home.root)
    configure(other, 'speed = "double"')
    log_for(other, stream_of(other))
    drive(other, range(more), 6)
    log_source._log.cache_clear()
    with pytest.raises(LogError, match=r"older (copy|than the checkpoint)") as raised:
        reader_of(other).partitions(end, reader_of(other).latestOffset())
    assert "begin a new checkpointLocation" in raised.value.hint


@pytest.mark.spec("S4")
def test_segments_that_retention_removed_are_not_passed_over(home):
    drive(home, range(30), 5)
    reader = reader_of(home)
    start, end = reader.initialOffset(), reader.latestOffset()
    segment = next(home.log("cars").rglob("000000000004.seg"))
    segment.unlink()
    log_source._log.cache_clear()
    with pytest.raises(LogError, match="segment 4 is missing"):
        reader_of(home).partitions(start, end)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"stream": ""}, "no stream is given"),
        ({"stream": "ships"}, "there is no stream 'ships'"),
        ({"begin": "latest"}, "unknown option 'begin'"),
        ({"home": ""}, "no home folder is given"),
        ({"home": "s3://bucket/home"}, "a home cannot lie at s3://bucket/home"),
    ],
    ids=["no stream", "another stream", "unknown", "no home", "not a folder"],
)
def test_a_wrong_option_is_named(home, options, said, monkeypatch):
    monkeypatch.delenv("FAIRWAY_HOME", raising=False)
    with pytest.raises(ConfigError, match=said):
        reader_of(home, **options)


def test_values_that_an_attribute_of_another_type_cannot_have_are_no_nulls(home):
    configure(home, 'speed = "string"')
    path = home.root / "records.csv"
    path.write_text("id,t,x,y,speed,left\na,1,1,1,fast,\n")
    replay(log_for(home, stream_of(home)), path, stream_of(home), end_mark=False)
    configure(home, 'speed = "double"')
    log_for(home, stream_of(home))
    reader = reader_of(home)
    parts = reader.partitions(reader.initialOffset(), reader.latestOffset())
    with pytest.raises(LogError, match="'speed' was read as string, and is double now"):
        [list(reader.read(part)) for part in parts]
