"""The public interface: what programs put, ask for and follow, and what they are told when something is missing."""

import asyncio
import importlib.util
import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pytest

import fairway
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.run import run
from st_common.log.log import Log

ROOT = Path(__file__).resolve().parents[2]
STREAMS = """[streams.taxis]
format = "csv"
columns = { object = "id", x = "lon", y = "lat", event_ts = "t" }
time_unit = "ms"
engine = "local"
max_ahead_s = "off"
shards = 1

[streams.grid]
format = "ndjson"
columns = { object = "id", x = "x", y = "y" }
crs = "planar"
engine = "local"

[streams.buses]
format = "ndjson"
columns = { object = "VP.veh", x = "VP.long", y = "VP.lat" }
engine = "local"

[streams.tracks]
format = "gpx"
engine = "local"
columns = { object = "trk/name", x = "lon", y = "lat", event_ts = "time" }
"""
CENTRE = "SELECT * FROM taxis INSIDE (0, 0, 5, 5)"


def fix(name: str, lon: float, lat: float, second: float) -> dict[str, object]:
    at = datetime.fromtimestamp(second, UTC)
    return {"id": name, "lon": lon, "lat": lat, "t": at}


FIXES = [
    fix("a", 1.5, 1.25, 1.5),
    fix('b "q", c', 9.0, 9.0, 2),
    fix("a", 8.0, 8.0, 3),
    fix('b "q", c', 2.0, 3.0, 4.001),
]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(STREAMS)
    return tmp_path


def judged(home: Path, stream: str = "taxis") -> None:
    run(Home(home), load_streams(home / "conf")[stream], until_idle=True)


@pytest.mark.spec("S9", "B14")
def test_what_is_put_is_judged_and_told_and_lies_where_it_was_put(home):
    with fairway.connect(home) as client:
        subscription = client.register(CENTRE, "centre")
        assert len(client.answer("centre")) == 0  # nothing has run yet
        assert client.put("taxis", FIXES, live=False).records == 4
        judged(home)
        told = [(one.sign, one.element.object) for one in subscription.within(0)]
        assert told == [(1, "a"), (-1, "a"), (1, 'b "q", c')]
        changes = list(client.changes("centre", until_idle=True))
        assert [(one.sign, one.object) for one in changes] == told
        assert changes[2].event_ts == datetime(1970, 1, 1, 0, 0, 4, 1000, UTC)
        behind = client.changes("centre", since=changes[0].position, until_idle=True)
        assert list(behind) == changes[1:]
        (member,) = client.answer("centre")
        assert (member["object"], member["geometry"]) == (
            'b "q", c',
            {"x": 2.0, "y": 3.0},
        )
        (then,) = client.answer("centre", datetime(1970, 1, 1, 0, 0, 2, tzinfo=UTC))
        assert (then["object"], then["geometry"]) == ("a", {"x": 1.5, "y": 1.25})
        client.cancel(subscription)
        assert subscription.closed


@pytest.mark.spec("S9")
def test_objects_and_tables_come_as_arrow_and_places_say_their_system(home):
    with fairway.connect(home) as client:
        client.put("taxis", pa.Table.from_pylist(FIXES), live=False)
        judged(home)
        seen = client.objects("taxis", nearest=(1, 8.0, 8.1))
        table = pa.table(seen)
        field = table.schema.field("geometry")
        assert field.metadata[b"ARROW:extension:name"] == b"geoarrow.point"
        assert json.loads(field.metadata[b"ARROW:extension:metadata"]) == {
            "crs": "EPSG:4326",
            "crs_type": "authority_code",
        }
        assert table["geometry"].to_pylist() == [{"x": 8.0, "y": 8.0}]
        assert len(client.objects("taxis", inside=(0, 0, 5, 5))) == 1
        counted = client.sql("SELECT count(*) AS n FROM positions_taxis")
        assert list(counted) == [{"n": 4}]
        client.put("grid", [{"id": "car", "x": 1, "y": 2}], live=False)
        judged(home, "grid")
        planar = client.objects("grid")
        assert planar.crs is None
        assert planar.table["geometry"].to_pylist() == [{"x": 1.0, "y": 2.0}]
        with pytest.raises(fairway.ConfigError, match="have no places"):
            counted.to_geopandas()


@pytest.mark.spec("S9")
def test_what_stands_in_objects_is_put_and_rows_without_a_place_are_counted(home):
    client = fairway.connect(home)
    rows = [{"VP": {"veh": 7, "long": 24.9, "lat": 60.2}}, {"VP": {"veh": 8}}]
    put = client.put("buses", rows, live=False)
    assert (put.records, put.accepted, put.reasons) == (2, 1, {"missing_position": 1})
    judged(home, "buses")
    assert client.objects("buses").table["object"].to_pylist() == ["7"]


@pytest.mark.spec("S9")
@pytest.mark.skipif(
    importlib.util.find_spec("geopandas") is not None, reason="GeoPandas is here"
)
def test_without_geopandas_its_name_is_said(home):
    client = fairway.connect(home)
    client.put("taxis", FIXES, live=False)
    judged(home)
    with pytest.raises(fairway.ConfigError, match="pip install geopandas"):
        client.objects("taxis").to_geopandas()


@pytest.mark.spec("S9")
def test_changes_and_subscriptions_are_awaited_while_others_work(home):
    async def follow() -> tuple[list[str], list[str]]:
        client = fairway.connect(home)
        subscription = client.register(CENTRE, "centre")
        feed = client.changes("centre", seconds=60)

        async def of_feed() -> list[str]:
            return [change.object async for change in feed]

        async def of_subscription() -> list[str]:
            names = []
            async for change in subscription:
                names.append(change.element.object)
                if len(names) == 3:
                    feed.close()
                    client.cancel(subscription)
            return names

        both = asyncio.gather(of_feed(), of_subscription())
        client.put("taxis", FIXES, live=False)
        await asyncio.to_thread(judged, home)
        return await asyncio.wait_for(both, timeout=60)

    told, subscribed = asyncio.run(follow())
    assert subscribed == ["a", "a", 'b "q", c']
    assert told == subscribed[: len(told)]


WRONG = {
    "texts and numbers": (
        "taxis",
        [fix("a", 1, 1, 1), {**fix("a", 1, 1, 1), "lat": "north"}],
        r"the column 'lat' has values of int, str",
    ),
    "no place": (
        "taxis",
        [{"id": "a", "t": 1}],
        r"the column 'lat' is missing \(the columns sent: id, t\)",
    ),
    "a time without a zone": (
        "taxis",
        [{**fix("a", 1, 1, 1), "t": datetime(2024, 1, 1)}],  # noqa: DTZ001 - wrong on purpose
        "has no time zone",
    ),
    "another stream": ("ships", FIXES, "there is no stream 'ships'"),
    "a format of files": (
        "tracks",
        [{"trk/name": "a", "lon": 1, "lat": 1, "time": 1}],
        "rows cannot be written as gpx",
    ),
}


@pytest.mark.spec("S9")
@pytest.mark.parametrize(("stream", "fixes", "said"), WRONG.values(), ids=WRONG)
def test_rows_that_cannot_be_put_are_named_and_nothing_is_put(
    home, stream, fixes, said
):
    with pytest.raises(fairway.ConfigError, match=said):
        fairway.connect(home).put(stream, fixes)
    assert Log(Home(home).log(stream)).end() == 0


@pytest.mark.spec("S9")
def test_a_backtest_takes_registrations_alone_and_needs_a_day_that_is_closed(home):
    client = fairway.connect(home)
    client.put("taxis", FIXES, live=False)
    judged(home)
    text = f"REGISTER QUERY centre AS {CENTRE}"
    with pytest.raises(fairway.ConfigError, match="closed"):
        client.backtest(text, "taxis")
    with pytest.raises(fairway.ConfigError, match="takes registrations on it alone"):
        client.backtest("DROP QUERY centre", "taxis")


@pytest.mark.spec("S9")
def test_spark_that_is_not_there_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark", None)
    with pytest.raises(
        fairway.ConfigError, match=r"pip install 'fairway-streams\[spark\]'"
    ):
        fairway.continuous  # noqa: B018 - asking for it is what is tried
    with pytest.raises(AttributeError, match="no attribute 'other'"):
        fairway.other  # noqa: B018 - likewise


@pytest.mark.spec("S9")
def test_the_page_of_the_interface_is_what_the_code_says():
    spec = importlib.util.spec_from_file_location("api", ROOT / "tools" / "api.py")
    api = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(api)
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert page == api.page(), "make generate ARGS=api"
    for name in fairway.__all__:
        assert f"## `fairway.{name}" in page
