"""What a load leaves out or mends is named: by the command, in the table, by the job, over HTTP, in the summary."""

import json
from pathlib import Path

import pytest
import shapely
from typer.testing import CliRunner

from demo.simulation.__main__ import main as simulate
from jobs import load_layer
from st_common import tables
from st_common.cli import app
from st_common.config.home import Home
from st_common.errors import LayerError
from st_common.layers.faults import WORDS
from st_common.layers.kinds import Kinds
from st_common.layers.load import load
from st_common.layers.options import FileOptions
from st_common.layers.reading import Wanted, read_features
from st_common.layers.summary import summary
from st_common.server.installation import Installation
from tests.kit.server_http import served

NONE = Kinds(())
STREAM = """[streams.s]
format = "csv"
columns = { object = "id", x = "lon", y = "lat" }
"""
SQUARE = [[10, 0], [12, 0], [12, 2], [10, 2], [10, 0]]
HOLE = [[10.5, 0.5], [11, 0.5], [11, 1], [10.5, 1], [10.5, 0.5]]
OUTER_HOLE = [[85, 0], [86, 0], [86, 1], [85, 1], [85, 0]]


def polygon(*rings):
    return {"type": "Polygon", "coordinates": list(rings)}


def feature(geometry, fid=None, **properties):
    own = {} if fid is None else {"id": fid}
    return {
        "type": "Feature",
        **own,
        "properties": properties,
        "geometry": geometry,
    }


def write(file: Path, *features, **members) -> Path:
    document = {"type": "FeatureCollection", **members, "features": list(features)}
    file.write_text(json.dumps(document))
    return file


ZONES = (
    feature(polygon([[177, -18], [-178, -18], [-178, -16], [177, -18]]), "fiji"),
    feature(polygon([[177, -18], [182, -18], [182, -16], [177, -18]]), "fiji360"),
    feature(polygon([[30, 0], [32, 0], [32, 2], [30, 2]]), "open"),
    feature(polygon(SQUARE, OUTER_HOLE), "holeout"),
    feature(polygon(SQUARE), "good"),
)


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)

    def command(*words):
        done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.stdout

    return command


def test_the_command_names_each_feature_that_is_not_loaded_as_it_stands(run, tmp_path):
    said = run("layer", "load", "zones", write(tmp_path / "zones.geojson", *ZONES))
    named = [line.split(":")[:2] for line in said.splitlines()[2:]]
    assert named == [
        ["rejected feature 1, id 'fiji'", " crosses_180"],
        ["rejected feature 2, id 'fiji360'", " out_of_crs"],
        ["rejected feature 3, id 'open'", " ring_not_closed"],
        ["repaired feature 4, id 'holeout'", " hole_outside"],
    ]
    assert run("layer", "show", "zones").splitlines()[-4:] == said.splitlines()[-4:]


def test_of_many_features_ten_are_named_and_all_where_somebody_asks(run, tmp_path):
    bad = [feature({"type": "Point", "coordinates": [n, 99]}, n) for n in range(12)]
    good = feature(polygon(SQUARE), "good")
    load = ("layer", "load", "zones", write(tmp_path / "zones.geojson", *bad, good))
    said = run(*load)
    assert said.count("rejected feature") == 10
    assert ".. and 2 more rejected: --all names them" in said
    assert run(*load, "--all").count("rejected feature") == 12
    assert run("layer", "show", "zones", "--all").count("rejected feature") == 12
    (shown,) = map(json.loads, run("layer", "show", "zones", "--json").splitlines())
    assert shown["rejected"] == {"out_of_crs": 12}
    assert [one["fid"] for one in shown["faults"]] == [str(n) for n in range(12)]


def test_a_table_has_what_the_newest_load_left_out(run, tmp_path):
    file = write(tmp_path / "zones.geojson", *ZONES)
    run("layer", "load", "zones", file)
    run("layer", "load", "zones", file)
    run("layer", "load", "others", write(tmp_path / "o.geojson", ZONES[2], ZONES[4]))
    home = Home(tmp_path / "home")
    rows = tables.read(home.table("feature_faults")).to_pylist()
    assert sorted((one["layer"], one["version"], one["fid"]) for one in rows) == [
        ("others", 1, "open"),
        *(("zones", 2, name) for name in ("fiji", "fiji360", "holeout", "open")),
    ]
    run("layer", "load", "zones", write(file, ZONES[4]))
    assert summary(home, "zones").faults == ()
    assert [one.fid for one in summary(home, "others").faults] == ["open"]


def test_the_job_names_them_on_standard_error_and_in_its_summary(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path / "zones.geojson", *ZONES)
    home = ("--engine", "local", "--home", str(tmp_path / "home"))
    assert load_layer.main(["zones", str(file), *home]) == 0
    said = capsys.readouterr()
    assert "rejected feature 1, id 'fiji': crosses_180" in said.err
    told = json.loads(said.out)
    assert [one["fid"] for one in told["faults"]] == [
        "fiji",
        "fiji360",
        "open",
        "holeout",
    ]
    assert (told["features"], told["wanted"]) == (2, 5)


def test_a_query_on_a_feature_that_was_left_out_says_why(run, tmp_path):
    run("layer", "load", "zones", write(tmp_path / "zones.geojson", *ZONES))
    query = "SELECT * FROM s INSIDE FEATURE (zones, 'open')"
    conf = tmp_path / "home" / "conf"
    conf.mkdir(exist_ok=True)
    (conf / "streams.toml").write_text(STREAM)
    done = CliRunner().invoke(app, ["query", "check", "-"], input=query)
    assert done.exit_code == 2
    assert "its load left it out, ring_not_closed: a ring does not end" in done.output


def test_a_trial_names_what_its_layers_leave_out(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    zones = write(tmp_path / "zones.geojson", *ZONES)
    fixes = tmp_path / "fixes.csv"
    rows = "".join(f"a,2025-06-01T10:0{n}:00Z,{9 + n},1\n" for n in range(4))
    fixes.write_text(f"vehicle,time,lon,lat\n{rows}")
    query = "SELECT * FROM fixes f JOIN zones z ON ST_Intersects(f, z)"
    command = ["try", str(fixes), query, "--layer", f"zones={zones}"]
    done = CliRunner().invoke(app, command, catch_exceptions=False)
    assert done.exit_code == 0, done.output
    assert "layer zones: rejected feature 3, id 'open': ring_not_closed" in done.stderr
    assert "layer zones: repaired feature 4, id 'holeout'" in done.stderr


def test_the_server_names_what_loads_left_out(run, tmp_path):
    bad = [feature({"type": "Point", "coordinates": [n, 99]}, n) for n in range(12)]
    good = feature(polygon(SQUARE), "good")
    run("layer", "load", "zones", write(tmp_path / "zones.geojson", *bad, good))
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(STREAM)
    with served(Installation(home=Home(tmp_path / "home"), conf=conf)) as client:
        (few,) = client.get("/v1/layers").json()["layers"]
        (every,) = client.get("/v1/layers", params={"all_faults": "true"}).json()[
            "layers"
        ]
    assert few["rejected"] == every["rejected"] == {"out_of_crs": 12}
    assert (len(few["faults"]), len(every["faults"])) == (10, 12)
    assert few["faults"][0] == {
        "outcome": "rejected",
        "fid": "0",
        "place": "feature 1",
        "reason": "out_of_crs",
    }


def test_a_hole_outside_of_its_area_is_left_out_and_holes_in_it_stay(tmp_path):
    file = write(tmp_path / "a.geojson", feature(polygon(SQUARE, HOLE, OUTER_HOLE)))
    features = read_features(file, Wanted(NONE))
    expected = shapely.Polygon(SQUARE, [HOLE])
    assert features.geometries[0].equals(expected)
    assert [one.reason for one in features.faults] == ["hole_outside"]
    assert (features.repaired, features.rejected) == (1, {})


def test_a_hole_that_reaches_over_its_shell_takes_what_they_share(tmp_path):
    over = [[11, 1], [13, 1], [13, 1.5], [11, 1.5], [11, 1]]
    file = write(tmp_path / "a.geojson", feature(polygon(SQUARE, over)))
    features = read_features(file, Wanted(NONE))
    expected = shapely.Polygon(SQUARE) - shapely.Polygon(over)
    assert features.geometries[0].equals(expected)
    assert [one.reason for one in features.faults] == ["made_valid"]


def test_outer_holes_of_one_part_leave_the_others_as_they_are(tmp_path):
    far = [[x + 20, y] for x, y in SQUARE]
    far_hole = [[x + 20, y] for x, y in HOLE]
    parts = [[SQUARE, OUTER_HOLE, HOLE], [far, far_hole]]
    geometry = {"type": "MultiPolygon", "coordinates": parts}
    features = read_features(
        write(tmp_path / "a.geojson", feature(geometry)), Wanted(NONE)
    )
    expected = shapely.MultiPolygon([(SQUARE, [HOLE]), (far, [far_hole])])
    assert features.geometries[0].equals(expected)


EMPTY = [
    {"type": "MultiPolygon", "coordinates": [[SQUARE], []]},
    {"type": "MultiPolygon", "coordinates": [[], [SQUARE]]},
    {"type": "MultiPolygon", "coordinates": [[[]], [SQUARE]]},
    {"type": "MultiPolygon", "coordinates": [[[], HOLE], [SQUARE]]},
    {"type": "Polygon", "coordinates": [SQUARE, []]},
    {"type": "Polygon", "coordinates": [SQUARE, [], []]},
]


@pytest.mark.parametrize("geometry", EMPTY, ids=lambda one: json.dumps(one)[:60])
def test_an_empty_part_or_hole_is_left_out_and_the_rest_is_loaded(tmp_path, geometry):
    file = write(tmp_path / "a.geojson", feature(geometry, "a"), feature(EMPTY[0], "b"))
    features = read_features(file, Wanted(NONE))
    assert features.fids.tolist() == ["a", "b"]
    assert features.geometries[0].equals(shapely.Polygon(SQUARE))
    told = [(one.fid, one.outcome, one.reason) for one in features.faults]
    assert told == [
        ("a", "repaired", "empty_part"),
        ("b", "repaired", "empty_part"),
    ]


def test_an_empty_part_of_a_line_is_left_out_and_one_of_a_collection(tmp_path):
    lines = {"type": "MultiLineString", "coordinates": [[], [[0, 0], [1, 1]]]}
    several = {"type": "GeometryCollection", "geometries": [lines, EMPTY[0]]}
    features = read_features(
        write(tmp_path / "a.geojson", feature(lines), feature(several)), Wanted(NONE)
    )
    assert (len(features.fids), features.repaired) == (2, 2)


@pytest.mark.parametrize(
    "geometry",
    [
        {"type": "MultiPolygon", "coordinates": [[]]},
        {"type": "MultiPolygon", "coordinates": []},
        {"type": "Polygon", "coordinates": [[]]},
        {"type": "MultiLineString", "coordinates": [[], []]},
        {"type": "GeometryCollection", "geometries": []},
    ],
    ids=lambda one: json.dumps(one)[:60],
)
def test_a_feature_of_nothing_but_empty_parts_is_rejected(tmp_path, geometry):
    good = feature(polygon(SQUARE), "good")
    file = write(tmp_path / "a.geojson", feature(geometry, "empty"), good)
    features = read_features(file, Wanted(NONE))
    assert (features.fids.tolist(), features.repaired) == (["good"], 0)
    assert [(one.fid, one.reason) for one in features.faults] == [
        ("empty", "degenerate")
    ]


def test_an_id_from_a_file_stays_on_its_line(run, tmp_path):
    odd = feature({"type": "Point", "coordinates": [0, 99]}, "a\nrejected b\x1b[31m")
    long = feature({"type": "Point", "coordinates": [0, 99]}, "x" * 5_000)
    good = feature(polygon(SQUARE), "good")
    said = run("layer", "load", "z", write(tmp_path / "z.geojson", odd, long, good))
    assert r"id 'a\nrejected b\x1b[31m'" in said
    assert max(map(len, said.splitlines())) < 300


def test_lines_are_named_by_their_numbers(tmp_path):
    file = tmp_path / "a.geojsonl"
    good = json.dumps(feature(polygon(SQUARE), "good"))
    file.write_text(f"{good}\n\n{{oops\n{json.dumps(ZONES[2])}\n")
    features = read_features(file, Wanted(NONE))
    assert [(one.where, one.fid, one.reason) for one in features.faults] == [
        ("line 3", "#2", "bad_json"),
        ("line 4", "open", "ring_not_closed"),
    ]


def test_every_reason_has_its_words_and_stands_in_the_docs():
    page = Path(__file__).resolve().parents[2] / "docs" / "file-formats.md"
    section = page.read_text().partition("What a load leaves out")[2]
    for reason in WORDS:
        assert f"`{reason}`" in section, reason


def test_coordinates_in_the_wrong_order_are_asked_about(run, tmp_path):
    there = [[60.1, 100.9], [60.2, 100.9], [60.2, 101], [60.1, 100.9]]
    file = write(tmp_path / "a.geojson", feature(polygon(there), "a"))
    with pytest.raises(LayerError, match="--lat-lon reads them so"):
        load(Home(tmp_path / "home"), "zones", file, group="default")
    assert run("layer", "load", "zones", file, "--lat-lon").startswith("layer zones")
    told = read_features(file, Wanted(NONE, options=FileOptions(lat_lon=True)))
    assert told.geometries[0].bounds == (100.9, 60.1, 101, 60.2)


def crs(name):
    return {"crs": {"type": "name", "properties": {"name": name}}}


UTM = ("urn:ogc:def:crs:EPSG::25832", "EPSG:25832", "urn:ogc:def:crs:EPSG:9.6:25832")


@pytest.mark.parametrize("name", UTM)
def test_the_member_crs_says_the_system_of_a_file(tmp_path, name):
    point = feature({"type": "Point", "coordinates": [500_000, 0]}, "a")
    file = write(tmp_path / "a.geojson", point, **crs(name))
    features = read_features(file, Wanted(NONE))
    assert features.geometries[0].bounds[:2] == pytest.approx((9, 0), abs=1e-9)
    assert name in features.notes[0]
    planar = read_features(file, Wanted(NONE, crs="EPSG:25832"))
    assert planar.geometries[0].bounds[:2] == (500_000, 0)


@pytest.mark.parametrize(
    "member",
    [
        crs("urn:ogc:def:crs:OGC:1.3:CRS84"),
        crs("urn:ogc:def:crs:EPSG::4326"),
        {"crs": None},
        {"crs": {"type": "EPSG", "properties": {"code": 4326}}},
    ],
    ids=str,
)
def test_degrees_stay_degrees_whatever_the_member_calls_them(tmp_path, member):
    point = feature({"type": "Point", "coordinates": [11, 48]}, "a")
    features = read_features(
        write(tmp_path / "a.geojson", point, **member), Wanted(NONE)
    )
    assert features.geometries[0].wkt == "POINT (11 48)"


@pytest.mark.parametrize(
    ("member", "shown"),
    [
        (crs("urn:ogc:def:crs:EPSG::99999"), "EPSG::99999"),
        (crs("the grid of our town"), "the grid of our town"),
        ({"crs": {"type": "link", "properties": {"href": "http://a/b"}}}, "http://a/b"),
        ({"crs": "EPSG:25832"}, "EPSG:25832"),
        ({"crs": {"type": "name"}}, '"type"'),
    ],
    ids=str,
)
def test_a_member_that_nobody_knows_is_named_with_the_option(tmp_path, member, shown):
    point = feature({"type": "Point", "coordinates": [691_000, 5_334_000]}, "a")
    file = write(tmp_path / "a.geojson", point, **member)
    with pytest.raises(LayerError, match="system of coordinates") as raised:
        read_features(file, Wanted(NONE))
    assert shown in str(raised.value)
    assert "--source-crs" in raised.value.hint
    told = FileOptions(crs="EPSG:25832")
    assert read_features(file, Wanted(NONE, options=told)).fids.tolist() == ["a"]


def test_lines_of_two_systems_are_refused(tmp_path):
    file = tmp_path / "a.geojsonl"
    point = feature({"type": "Point", "coordinates": [9, 9]})
    lines = [{**point, **crs(name)} for name in ("EPSG:25832", "EPSG:3857")]
    file.write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(LayerError, match=r"several systems .*: EPSG:25832, EPSG:3857"):
        read_features(file, Wanted(NONE))


def test_a_property_names_features_where_it_is_asked_for(tmp_path):
    good = feature(polygon(SQUARE), 7, code="A1")
    file = write(tmp_path / "a.geojson", good, feature(polygon(SQUARE), 8))
    features = read_features(file, Wanted(NONE, options=FileOptions(ids="code")))
    assert features.fids.tolist() == ["A1"]
    assert features.rejected == {"bad_id": 1}


def test_an_empty_part_of_any_format_is_left_out_and_told(tmp_path):
    file = tmp_path / "a.csv"
    area = "MULTIPOLYGON (EMPTY, ((0 0, 1 0, 1 1, 0 0)))"
    several = "GEOMETRYCOLLECTION (POINT (1 1), GEOMETRYCOLLECTION (POINT EMPTY))"
    file.write_text(f"id;wkt\na;{area}\nb;{several}\nc;MULTIPOINT EMPTY\n")
    features = read_features(file, Wanted(NONE))
    assert [one.wkt for one in features.geometries] == [
        "MULTIPOLYGON (((0 0, 1 0, 1 1, 0 0)))",
        "GEOMETRYCOLLECTION (POINT (1 1))",
    ]
    assert [(one.fid, one.reason) for one in features.faults] == [
        ("a", "empty_part"),
        ("b", "empty_part"),
        ("c", "degenerate"),
    ]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-32-be"])
def test_geojson_is_read_in_each_encoding_of_json(tmp_path, encoding):
    file = write(tmp_path / "a.geojson", feature(polygon(SQUARE), "Köln"))
    file.write_bytes(file.read_text().encode(encoding))
    assert read_features(file, Wanted(NONE)).fids.tolist() == ["Köln"]


def test_a_document_that_is_cut_is_refused_and_not_read_in_part(tmp_path):
    file = write(tmp_path / "a.geojson", *ZONES)
    lines = file.read_text().replace('{"type": "Feature"', '\n{"type": "Feature"')
    file.write_text(lines[: len(lines) // 2])
    with pytest.raises(LayerError, match="is no GeoJSON"):
        read_features(file, Wanted(NONE))


def said_by(*words):
    """What a command says on standard error."""
    done = CliRunner().invoke(app, list(map(str, words)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stderr


ROADS = (
    feature({"type": "LineString", "coordinates": [[24, 60], [24.01, 60]]}, "good"),
    feature({"type": "LineString", "coordinates": [[24, 60]]}, "short"),
    feature({"type": "LineString", "coordinates": [[24, 60], [200, 60]]}, "far"),
)


def test_a_file_of_roads_to_simulate_on_is_told_what_it_lacks(run, tmp_path, capsys):
    (tmp_path / "home/conf").mkdir(parents=True)
    stream = STREAM.replace("x =", 'event_ts = "t", x =')
    (tmp_path / "home/conf/streams.toml").write_text(stream)
    roads = write(tmp_path / "roads.geojson", *ROADS)
    words = ["s", "--fast", "--seconds=2", "--objects=2", f"--network={roads}"]
    assert simulate([f"--home={tmp_path / 'home'}", *words]) == 0
    told = capsys.readouterr().err
    assert "rejected 2 of 3 features: 1 out_of_crs, 1 too_few_points" in told
    assert "'short'" in told
    assert "'far'" in told


def test_a_file_that_a_group_is_partitioned_by_is_told_what_it_lacks(run, tmp_path):
    (tmp_path / "home/conf").mkdir(parents=True)
    (tmp_path / "home/conf/streams.toml").write_text(STREAM)
    lines = [
        feature({"type": "Point", "coordinates": [x / 9, 1]}, f"p{x}")
        for x in range(99)
    ]
    zones = write(tmp_path / "zones.geojson", *ROADS, *lines)
    how = ("--strategy", "elements", "--first", 80, "--regions", 4)
    told = said_by("partition", "default", "--source", zones, *how)
    assert "rejected 2 of 102 features: 1 out_of_crs, 1 too_few_points" in told
    assert "'short'" in told
    assert "'far'" in told
    rows = tmp_path / "points.csv"
    rows.write_text("x,y\n" + "1,2\n" * 90 + "a,b\n" + "3,4\n" * 9)
    told = said_by("partition", "default", "--source", rows, *how)
    assert "1 row of" in told
    assert "the first is row 91" in told
