"""Changes, answers and objects with their places, as maps read them; the last changes; listings as JSON."""

import csv
import io
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pyogrio
import pyproj
import pytest
import shapely
from typer.testing import CliRunner

from st_common import tables
from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.local import LocalEngine
from st_common.engine.run import run as run_engine
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

CONF = """
[streams.s]
format = "csv"
columns = {{ object = "id", event_ts = "t", x = "x", y = "y", gone = "gone" }}
crs = "{crs}"
time_unit = "s"
max_ahead_s = "off"
silence_s = 50
engine = "local"
attributes = {{ state = "string" }}
"""
QUERIES = """
REGISTER QUERY box AS SELECT state FROM s INSIDE (0, 0, 5, 5);
REGISTER QUERY told AS SELECT x, y FROM s INSIDE (0, 0, 5, 5);
REGISTER QUERY near AS SELECT * FROM s KNN (2, 1, 1);
REGISTER QUERY groups AS SELECT COUNT(*) AS n FROM s GROUP BY state
"""
Fix = tuple[str, int, float, float, str, str]


def fixes(start: int, end: int) -> list[Fix]:
    """Six objects that come and go, none at 0, 0; `free` is the name of one, and of a group too."""
    names = ("a", "b", "c", "d", "e", "free")
    rows: list[Fix] = []
    for number in range(start, end):
        name = names[number % 6]
        x, y = (1 + number * 37 % 89) / 10, (1 + number * 53 % 79) / 10
        state = "free" if number % 4 else "busy"
        rows.append((name, number, x, y, "1" if number % 17 == 16 else "", state))
    return rows


def home_of(folder: Path, *, crs: str = "EPSG:4326") -> Home:
    (folder / "conf").mkdir()
    (folder / "conf" / "streams.toml").write_text(CONF.format(crs=crs))
    home = Home(folder)
    register(home, load_streams(folder / "conf"), parse(QUERIES), owner="ada")
    return home


def append(home: Home, rows: list[Fix]) -> None:
    lines = [
        f"{name},{t},{'' if gone else x},{'' if gone else y},{gone},{state}"
        for name, t, x, y, gone, state in rows
    ]
    payload = "\n".join(["id,t,x,y,gone,state", *lines, ""]).encode()
    bare_log(home.log("s")).append(payload, arrival_us=0)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., object]:
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))

    def invoke(*words: object) -> object:
        return CliRunner().invoke(app, [str(w) for w in words], prog_name="fairway")

    return invoke


def rows_of(found) -> list[dict[str, object]]:
    assert found.exit_code == 0, found.output
    return [json.loads(line) for line in found.stdout.splitlines()]


def place_by_hand(rows: list[Fix], name: str, until: float) -> tuple[float, float]:
    """Where an object was by its last fix up to a time."""
    return [
        (x, y)
        for own, t, x, y, gone, _ in rows
        if own == name and t <= until and not gone
    ][-1]


@pytest.mark.spec("X7")
def test_every_change_has_the_place_of_its_fix(run, tmp_path: Path) -> None:
    home, rows = home_of(tmp_path), fixes(0, 200)
    append(home, rows)
    run_engine(home, load_streams(tmp_path / "conf")["s"], until_idle=True)
    changes = rows_of(run("changes", "--stream", "s", "--places", "--json"))
    assert {row["cause"] for row in changes} >= {"enter", "leave", "gone"}
    stored = tables.read(home.table("changes", "s")).to_pylist()
    shown = {(row["position"], row["seq"]): row["fix_ts"] for row in stored}
    of_groups = 0
    for row in changes:
        if row["query"] == "groups":
            of_groups += 1
            assert (row["x"], row["y"]) == (None, None)
            continue
        fix_s = shown[row["position"], row["seq"]].timestamp()
        expected = place_by_hand(rows, row["object"], fix_s)
        assert (row["x"], row["y"]) == expected, row
    assert of_groups > 10
    assert {row["sign"] for row in changes} == {1, -1}


@pytest.mark.spec("X7")
def test_geoparquet_and_geojson_say_where_and_in_which_system(
    run, tmp_path: Path
) -> None:
    home, rows = home_of(tmp_path, crs="EPSG:25832"), fixes(0, 100)
    append(home, rows)
    run_engine(home, load_streams(tmp_path / "conf")["s"], until_idle=True)
    expected = rows_of(run("changes", "near", "--places", "--json"))

    out = tmp_path / "near.parquet"
    assert run("changes", "near", "--format", "geoparquet", "--out", out).exit_code == 0
    table = pq.read_table(out)
    geo = json.loads(table.schema.metadata[b"geo"])
    assert (geo["version"], geo["primary_column"]) == ("1.1.0", "geometry")
    about = geo["columns"]["geometry"]
    assert (about["encoding"], about["geometry_types"]) == ("WKB", ["Point"])
    assert pyproj.CRS.from_json_dict(about["crs"]).to_epsg() == 25832
    places = shapely.get_coordinates(shapely.from_wkb(table["geometry"].to_numpy()))
    assert places.tolist() == [[row["x"], row["y"]] for row in expected]
    assert about["bbox"] == [*places.min(axis=0), *places.max(axis=0)]
    assert table["object"].to_pylist() == [row["object"] for row in expected]

    plain = tmp_path / "plain.parquet"
    assert run("changes", "near", "--format", "parquet", "--out", plain).exit_code == 0
    assert pq.read_table(plain)["x"].to_pylist() == [row["x"] for row in expected]

    drawn = tmp_path / "near.geojson"
    assert run("changes", "near", "--format", "geojson", "--out", drawn).exit_code == 0
    meta, _, shapes, values = pyogrio.raw.read(drawn)
    assert meta["crs"] == "EPSG:4326"
    there = pyproj.Transformer.from_crs(25832, 4326, always_xy=True)
    on_earth = np.stack(there.transform(*places.T), axis=1)
    assert np.allclose(shapely.get_coordinates(shapely.from_wkb(shapes)), on_earth)
    column = values[list(meta["fields"]).index("object")]
    assert column.tolist() == [row["object"] for row in expected]


@pytest.mark.spec("X7")
def test_answers_and_objects_are_exported_where_they_are(run, tmp_path: Path) -> None:
    home, rows = home_of(tmp_path), fixes(0, 100)
    append(home, rows)
    run_engine(home, load_streams(tmp_path / "conf")["s"], until_idle=True)
    for words in (("answer", "box"), ("answer", "told"), ("objects", "s")):
        members = {row["object"] for row in rows_of(run(*words, "--json"))}
        document = json.loads(run(*words, "--format", "geojson").stdout)
        features = document["features"]
        assert members == {one["properties"]["object"] for one in features} != set()
        for one in features:
            name = one["properties"]["object"]
            place = list(place_by_hand(rows, name, 1000))
            assert one["geometry"] == {"type": "Point", "coordinates": place}
    found = run("answer", "groups", "--format", "geojson")
    groups = json.loads(found.stdout)["features"]
    assert {one["properties"]["object"]: one["geometry"] for one in groups} == {
        "free": None,
        "busy": None,
    }
    assert groups[0]["properties"]["fields"]["n"] > 0
    assert found.stderr == "note: 2 of 2 rows have no place\n"
    out = tmp_path / "objects.csv"
    assert run("objects", "s", "--format", "csv", "--out", out).stdout == ""
    written = list(csv.DictReader(io.StringIO(out.read_text())))
    assert [row["object"] for row in written] == sorted(
        row["object"] for row in written
    )


@pytest.mark.spec("X7")
def test_the_tail_is_the_end_of_all_changes_and_old_files_are_not_read(
    run, tmp_path: Path
) -> None:
    home, stream = home_of(tmp_path), None
    for start in range(0, 300, 60):
        append(home, fixes(start, start + 60))
        stream = load_streams(tmp_path / "conf")["s"]
        engine = LocalEngine(home, stream)
        while engine.batch():
            pass
        engine.close() if start < 240 else engine.abandon()  # the last in the journal
    for words in ((), ("box",), ("groups", "--stream", "s")):
        every = rows_of(run("changes", *words, "--json"))
        for count in (1, 7, 40, len(every), len(every) + 5):
            tail = rows_of(run("changes", *words, "--json", "--tail", count))
            assert tail == every[-count:]
    oldest = min(
        home.table("changes", "s").rglob("*.parquet"),
        key=lambda path: min(pq.read_table(path)["position"].to_pylist()),
    )
    oldest.unlink()
    assert rows_of(run("changes", "--json", "--tail", 40)) == rows_of(
        run("changes", "--json", "--tail", 40, "--limit", 40)
    )
    assert run("changes", "--json").exit_code != 0


@pytest.mark.spec("P6")
def test_listings_are_json_lines_with_names_that_stay(run, tmp_path: Path) -> None:
    home = home_of(tmp_path)
    append(home, fixes(0, 50))
    assert [row["state"] for row in rows_of(run("status", "--json"))] == ["never run"]
    run_engine(home, load_streams(tmp_path / "conf")["s"], until_idle=True)
    queries = rows_of(run("query", "list", "--json"))
    assert [row["query"] for row in queries] == ["box", "groups", "near", "told"]
    assert list(queries[0]) == [
        "query",
        "version",
        "stream",
        "owner",
        "state",
        "text",
        "why",
        "group",
    ]
    (status,) = rows_of(run("status", "--json"))
    assert (status["stream"], status["fixes"], status["segments"]) == ("s", 50, 2)
    assert status["clock"] == datetime.fromtimestamp(49, UTC).isoformat(
        timespec="microseconds"
    ).replace("+00:00", "Z")
    (stream,) = rows_of(run("streams", "list", "--json"))
    assert stream == {
        "stream": "s",
        "engine": "local",
        "shards": 1,
        "settings_engine": "local",
        "settings_shards": 1,
        "generation": 0,
        "since_segment": 0,
    }
    assert rows_of(run("layer", "list", "--json")) == []
    verified = rows_of(run("verify", "--json"))
    assert all(row["holds"] for row in verified)
    of_queries = {row["query"] for row in verified if "query" in row}
    assert of_queries == {"box", "groups", "near", "told"}
    assert {"what", "problem"} <= set(verified[-1])
    assert rows_of(run("sql", "SELECT 1 AS n", "--json")) == [{"n": 1}]
    (rejects,) = rows_of(run("quality", "replay-rejects", "s", "--json"))
    assert (rejects["stream"], rejects["records"], rejects["stay"]) == ("s", 0, {})


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--follow", "--format", "geojson"), "--format geojson does not go with"),
        (("--follow", "--tail", "3"), "--tail and --out do not go with --follow"),
        (("--tail", "3", "--since", "4"), "--tail and --since do not go together"),
        (("--format", "geojson"), "the stream's plane has no place on Earth"),
        (("--json", "--out", "no/such/file"), "--out no/such/file: No such file"),
    ],
)
def test_what_does_not_go_together_is_one_line(
    run, tmp_path: Path, words: tuple[str, ...], says: str
) -> None:
    home = home_of(tmp_path, crs="planar")
    append(home, fixes(0, 5))
    run_engine(home, load_streams(tmp_path / "conf")["s"], until_idle=True)
    found = run("changes", *words)
    assert found.exit_code == 2, found.output
    assert found.stderr.startswith(f"error: {says}")
