"""Settings: what a file says becomes a stream; what it says wrongly is named with file, stream and key."""

import contextlib
import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.environment import conf_dir, contracts_dir, home_dir
from st_common.config.home import Home
from st_common.config.spark import SparkSettings
from st_common.config.stream import CLEANING, StreamSettings
from st_common.config.streams import load_streams, stream_of
from st_common.contracts import load_contract
from st_common.engine.packets import step_settings
from st_common.engine.topology import begin
from st_common.errors import ConfigError
from st_common.geometry.space import GLOBE, PLANE

COLUMNS = 'columns = { object = "id", event_ts = "t", x = "lon", y = "lat" }'
SMALLEST = f'[streams.buses]\nformat = "csv"\n{COLUMNS}\n'
REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture
def conf(tmp_path):
    def written(text: str) -> Path:
        (tmp_path / "streams.toml").write_text(text, encoding="utf-8")
        return tmp_path

    return written


def only_stream(folder: Path) -> StreamSettings:
    """The one stream of the settings, or the error that its table makes."""
    streams = load_streams(folder)
    return stream_of(streams, next(iter([*streams, *streams.broken])))


def test_what_is_not_said_has_its_default(conf):
    assert load_streams(conf(SMALLEST)) == {
        "buses": StreamSettings(
            name="buses",
            format="csv",
            columns=Columns(object="id", event_ts="t", x="lon", y="lat"),
            drop_null_island=True,
            cleaning=CLEANING,
        )
    }
    buses = load_streams(conf(SMALLEST))["buses"]
    assert (
        buses.crs,
        buses.time_unit,
        buses.lateness_s,
        buses.max_ahead_s,
        buses.shards,
    ) == (
        "EPSG:4326",
        "iso",
        0,
        60,
        2,
    )
    assert (buses.silence_s, buses.max_speed_mps, buses.running, buses.engine) == (
        None,
        None,
        False,
        "local",
    )
    assert (buses.latest_every, buses.latest_flush_s, buses.snapshot_s) == (1, 60, 3600)


def test_how_much_a_window_keeps_is_set_by_stream(conf):
    assert step_settings(load_streams(conf(SMALLEST))["buses"]).window_rows == 10_000
    assert (
        step_settings(
            load_streams(conf(SMALLEST + "window_rows = 2\n"))["buses"]
        ).window_rows
        == 2
    )


@pytest.mark.spec("P2")
def test_the_levels_of_storage_are_set_by_stream(conf):
    text = SMALLEST + 'latest_every = 10\nlatest_flush_s = 5\nsnapshot_s = "off"\n'
    buses = load_streams(conf(text))["buses"]
    assert (buses.latest_every, buses.latest_flush_s, buses.snapshot_s) == (
        10,
        5.0,
        None,
    )


def test_everything_can_be_said(conf):
    text = """
    [streams.ships]
    format = "tsv"
    crs = "EPSG:25832"
    time_unit = "%d/%m/%Y %H:%M:%S"
    attributes = { 6 = "double", 7 = "string" }
    header = false
    quote = "off"
    lateness_s = 2.5
    silence_s = 600
    max_ahead_s = "off"
    max_speed_mps = 40
    shards = 8
    group = "harbour"
    running = true
    engine = "local"
    [streams.ships.columns]
    object = 1
    event_ts = "2"
    x = 3
    y = 4
    gone = 5
    gone_values = ["left", "sunk"]
    """
    assert load_streams(conf(text))["ships"] == StreamSettings(
        name="ships",
        format="tsv",
        columns=Columns(
            object="1",
            event_ts="2",
            x="3",
            y="4",
            gone="5",
            gone_values=("left", "sunk"),
        ),
        crs="EPSG:25832",
        time_unit="%d/%m/%Y %H:%M:%S",
        attributes={"6": "double", "7": "string"},
        header=False,
        delimiter="\t",
        quote="",
        drop_null_island=False,
        cleaning=CLEANING,
        lateness_s=2.5,
        silence_s=600.0,
        max_ahead_s=None,
        max_speed_mps=40.0,
        shards=8,
        group="harbour",
        running=True,
        engine="local",
    )


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ("lateness = 3", "unknown key 'lateness' (did you mean 'lateness_s'?)"),
        (
            'master = "spark://127.0.0.1:7077"',
            "'master' is no key of the stream (put it into [streams.buses.spark])",
        ),
        ("cores = 4", "put it into [streams.buses.spark]"),
        ("min_distance_m = 4", "put it into [streams.buses.position_filter]"),
        ("zzz = 3", "unknown key 'zzz' (known keys: format, columns, crs"),
        ("lateness_s = -1", "lateness_s = -1 must be at least 0"),
        (
            "latest_every = 0",
            "latest_every = 0 must be a whole number from 1 to 1000000",
        ),
        ("window_rows = 1", "window_rows = 1 must be a whole number from 2 to 1000000"),
        (
            "window_rows = true",
            "window_rows = True must be a whole number from 2 to 1000000",
        ),
        (
            "latest_every = 1.5",
            "latest_every = 1.5 must be a whole number from 1 to 1000000",
        ),
        ("latest_flush_s = 0.5", "latest_flush_s = 0.5 must be at least 1"),
        ('latest_flush_s = "off"', "latest_flush_s = 'off' is no number"),
        ("snapshot_s = 0", "snapshot_s = 0 must be at least 1"),
        ('snapshot_s = "never"', "snapshot_s = 'never' is no number or \"off\""),
        ("lateness_s = true", "lateness_s = True is no number"),
        ("lateness_s = nan", "lateness_s = nan is no number"),
        ("silence_s = 0", "silence_s = 0 must be above 0"),
        ('silence_s = "never"', "silence_s = 'never' is no number or \"off\""),
        ("shards = 0", "shards = 0 must be a whole number from 1 to 256"),
        ("shards = 2.5", "shards = 2.5 must be a whole number"),
        (
            'engine = "sparc"',
            "engine = 'sparc' is none of spark, local (did you mean 'spark'?)",
        ),
        ('running = "yes"', "running = 'yes' must be true or false"),
        (
            'time_unit = "minutes"',
            "time_unit = 'minutes' is none of s, ms, us, ns, excel, excel1904, iso",
        ),
        ('time_unit = "%H:%M:%S"', "names no whole date"),
        ('time_unit = "%Y-%m-%d %Q"', "has the unknown directive %Q"),
        ('crs = "WGS84"', "crs = 'WGS84' must be"),
        ('crs = "EPSG:999999"', "is no geographic or projected system"),
        (
            'crs = "EPSG:4978"',
            "is no geographic or projected system",
        ),  # geocentric: x, y, z in metres
        ('delimiter = ";;"', "delimiter = ';;' must be one ASCII character"),
        ("delimiter = '\"'", "quote and delimiter are both"),
        ('group = "Über"', "group: 'Über' is no name for a group"),
        (
            'attributes = { speed = "float" }',
            "'speed' is none of string, double, long, bool",
        ),
        ('attributes = { "a b" = "long" }', "'a b' cannot be a table's column"),
        ('attributes = { Segment = "long" }', "'Segment' stands there already"),
        ('attributes = { a = "long", A = "long" }', "'A' stands there already"),
        ("header = false", "object = 'id' is no column number"),
    ],
)
def test_a_wrong_value_is_named_with_file_stream_and_key(conf, wrong, message):
    folder = conf(SMALLEST + wrong + "\n")
    with pytest.raises(ConfigError) as error:
        only_stream(folder)
    file = re.escape(str(folder / "streams.toml"))
    assert re.match(rf"{file}:[14]: stream 'buses': ", str(error.value))
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"[streams.buses]\n{COLUMNS}", "stream 'buses': format is missing"),
        ('[streams.buses]\nformat = "csv"', "stream 'buses': columns is missing"),
        (
            '[streams.buses]\nformat = "csv"\ncolumns = { object = "id", x = "a" }',
            "columns: y is missing",
        ),
        (
            SMALLEST.replace("event_ts", "event_time"),
            "columns: unknown key 'event_time' (did you mean 'event_ts'?)",
        ),
        (SMALLEST.replace('"lat"', '"lon"'), "columns: x and y are both 'lon'"),
        (
            SMALLEST.replace(" }", ', gone_values = ["1"] }'),
            "columns: gone_values without gone",
        ),
        (
            SMALLEST.replace(" }", ', gone = "g", gone_values = [] }'),
            "gone_values = [] must be a list of strings",
        ),
        (
            SMALLEST.replace('"csv"', '"ndjson"') + "header = true",
            "header has no meaning for ndjson",
        ),
        (
            SMALLEST.replace("streams.buses", "streams.Buses"),
            "'Buses' is no name for a stream",
        ),
        (
            SMALLEST.replace("streams.buses", "stream.buses"),
            "unknown key 'stream' (did you mean 'streams'?)",
        ),
        ("[streams]\nbuses = 3", "stream 'buses': must be a table"),
        ("streams = 3", "streams must be tables"),
        ("[streams.buses\n", "at line 1"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(conf, text, message):
    folder = conf(text)
    with pytest.raises(ConfigError) as error:
        only_stream(folder)
    assert str(error.value).startswith(str(folder / "streams.toml"))
    assert message in str(error.value)


def test_no_file_and_no_streams_are_two_things(conf, tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        load_streams(tmp_path / "nowhere")
    assert load_streams(conf("")) == {}


@given(st.text(max_size=200))
def test_no_text_makes_another_error(tmp_path_factory, text):
    folder = tmp_path_factory.mktemp("conf")
    (folder / "streams.toml").write_text(text, encoding="utf-8", errors="replace")
    with contextlib.suppress(ConfigError):
        load_streams(folder)


@pytest.mark.parametrize(
    ("crs", "epsg", "space"),
    [
        ("EPSG:4326", 4326, GLOBE),
        ("epsg:4258", 4258, GLOBE),
        ("EPSG:3067", 3067, PLANE),
        ("planar", 0, PLANE),
    ],
)
def test_a_crs_knows_what_coordinates_mean(conf, crs, epsg, space):
    stream = load_streams(conf(f'{SMALLEST}crs = "{crs}"'))["buses"]
    assert (stream.epsg, stream.space) == (epsg, space)


def test_the_sample_describes_real_data(shared):
    streams = load_streams(REPOSITORY / "conf")
    assert {"taxis": "csv", "aircraft": "ndjson"}.items() <= {
        name: s.format for name, s in streams.items()
    }.items()
    first = (shared / "data" / "adsb-switzerland" / "README.md").read_text(
        encoding="utf-8"
    )
    columns = streams["aircraft"].columns
    for name in (
        columns.object,
        columns.event_ts,
        columns.x,
        columns.y,
        *streams["aircraft"].attributes,
    ):
        assert f'"{name}":' in first


def test_no_attribute_can_be_a_column_that_every_table_of_positions_has(conf):
    for column in load_contract("positions").columns:
        with pytest.raises(ConfigError, match=f"'{column.name}' stands there already"):
            only_stream(conf(f'{SMALLEST}attributes = {{ {column.name} = "string" }}'))


def test_home_is_given_or_set_and_never_guessed(monkeypatch):
    monkeypatch.delenv("FAIRWAY_HOME", raising=False)
    with pytest.raises(ConfigError, match="--home DIR or set FAIRWAY_HOME"):
        home_dir()
    monkeypatch.setenv("FAIRWAY_HOME", "/set")
    assert home_dir() == Path("/set")
    assert home_dir("/given") == Path("/given")


def test_conf_is_given_set_in_home_or_here(monkeypatch, tmp_path):
    monkeypatch.delenv("FAIRWAY_CONF", raising=False)
    assert conf_dir(tmp_path) == Path("conf")
    (tmp_path / "conf").mkdir()
    assert conf_dir(tmp_path) == tmp_path / "conf"
    monkeypatch.setenv("FAIRWAY_CONF", "/set")
    assert conf_dir(tmp_path) == Path("/set")
    assert conf_dir(tmp_path, "/given") == Path("/given")


def test_contracts_are_given_set_or_beside_the_package(monkeypatch):
    monkeypatch.delenv("FAIRWAY_CONTRACTS", raising=False)
    assert contracts_dir() == REPOSITORY / "data_contracts"
    monkeypatch.setenv("FAIRWAY_CONTRACTS", "/set")
    assert contracts_dir() == Path("/set")
    assert contracts_dir("/given") == Path("/given")


def test_how_much_of_a_machine_a_stream_takes_is_set_by_stream(conf):
    path = conf(
        f'{SMALLEST}[streams.buses.spark]\ncores = 8\nmemory = "16g"\n'
        'master = "spark://127.0.0.1:7077"\nrest = "http://127.0.0.1:6066"\nexecutor_memory = "512m"\n'
    )
    assert load_streams(path)["buses"].spark == SparkSettings(
        cores=8,
        memory="16g",
        master="spark://127.0.0.1:7077",
        rest="http://127.0.0.1:6066",
        executor_memory="512m",
    )


def test_a_cluster_may_have_standby_masters(conf):
    table = f"{SMALLEST}[streams.buses.spark]\nmaster = "
    one = load_streams(conf(f'{table}"spark://localhost:7077,[::1]:7078"'))["buses"]
    assert one.spark.masters == ("localhost:7077", "[::1]:7078")
    assert one.spark.is_on_loopback
    other = load_streams(conf(f'{table}"spark://localhost:7077,far:7077"'))["buses"]
    assert not other.spark.is_on_loopback
    assert SparkSettings().masters == ()
    assert not SparkSettings().is_on_loopback


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("cores = 0", "cores = 0 must be a whole number from 1 to 1024"),
        ('memory = "4"', "memory = '4' must be a number with m or g"),
        ('memory = "511m"', "memory = '511m' must be at least 512m"),
        ('master = "spark://cluster"', 'must be "local" or "spark://HOST:PORT"'),
        ('master = "spark://a:7077,b"', 'must be "local" or "spark://HOST:PORT"'),
        ('master = "spark://a:1,spark://b:1"', 'must be "local" or'),
        ('master = "spark://u:p@cluster:7077"', 'must be "local" or'),
        ('master = "local[4]"', 'must be "local" or "spark://HOST:PORT"'),
        ('executor_memory = "4g"', "executor_memory has no meaning with master"),
        ('rest = "http://cluster:6066"', "rest has no meaning with master = 'local'"),
        ('rest = "cluster:6066"', 'must be "http://HOST:PORT"'),
        ('mode = "micro-batch"', "mode = 'micro-batch': there are no modes any more"),
        ('mode = "resident"', "take the line out; Structured Streaming reads a home"),
        ('ram = "4g"', "unknown key 'ram'"),
    ],
)
def test_a_wrong_place_of_spark_is_named(conf, line, message):
    path = conf(f"{SMALLEST}[streams.buses.spark]\n{line}\n")
    error = str(load_streams(path).broken["buses"])
    assert message in error
    assert "stream 'buses': spark:" in error


def test_where_spark_runs_may_change_at_any_start(conf, tmp_path):
    stream = load_streams(conf(SMALLEST))["buses"]
    begin(Home(tmp_path), stream, engine="spark", shards=2)
    larger = dataclasses.replace(stream, spark=SparkSettings(cores=8, memory="16g"))
    assert begin(Home(tmp_path), larger, engine="spark", shards=2).spark.cores == 8
