"""Layers from CSV: lists of places, areas as WKT, the stops and shapes of GTFS; nothing is left out without a name."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest
import shapely

from jobs import load_layer
from st_common.errors import LayerError
from st_common.layers.kinds import Kinds
from st_common.layers.options import FileOptions
from st_common.layers.reading import Wanted, read_features

NONE = Kinds(())
STOPS = """stop_id,stop_name,stop_lat,stop_lon,location_type
S0,Stop 0,60.17,24.94,0
S1,Stop 1,60.171,24.941,0
"""
SHAPES = """shape_id,shape_pt_lat,shape_pt_lon,shape_pt_sequence
A,60.1,24.9,3
B,10,20,1
A,60.2,24.8,1
A,60.3,24.7,20
B,11,21,2
"""


def read(file: Path, text: str, encoding: str = "utf-8", **options):
    file.write_bytes(text.encode(encoding))
    return read_features(file, Wanted(NONE, options=FileOptions(**options)))


def points(features):
    pairs = zip(features.fids, features.geometries, strict=True)
    return {fid: one.coords[0] for fid, one in pairs}


def named(features):
    return [(one.where, one.fid, one.reason) for one in features.faults]


def test_stops_are_points_called_by_their_ids(tmp_path):
    features = read(tmp_path / "stops.txt", STOPS)
    assert points(features) == {"S0": (24.94, 60.17), "S1": (24.941, 60.171)}
    assert features.tags[0] == {
        "stop_id": "S0",
        "stop_name": "Stop 0",
        "location_type": "0",
    }
    assert "places are those of stop_lon and stop_lat" in features.notes
    assert "ids are those of stop_id; --id names another column" in features.notes


def test_shapes_are_lines_in_the_order_of_their_sequence(tmp_path):
    features = read(tmp_path / "shapes.txt", SHAPES)
    assert features.fids.tolist() == ["A", "B"]
    assert [one.wkt for one in features.geometries] == [
        "LINESTRING (24.8 60.2, 24.9 60.1, 24.7 60.3)",
        "LINESTRING (20 10, 21 11)",
    ]
    assert "shape_pt_sequence" in features.notes[0]


def test_a_shape_with_a_point_that_cannot_be_read_is_left_out_and_named(tmp_path):
    more = "C,60,25,1\nD,60,25,1\nD,x,25,2\nE,60,25,a\nE,61,25,2\n,60,25,1\nF,1\n"
    features = read(tmp_path / "shapes.txt", SHAPES + more)
    assert features.fids.tolist() == ["A", "B"]
    assert named(features) == [
        ("line 7", "C", "too_few_points"),
        ("line 9", "D", "bad_number"),
        ("line 10", "E", "bad_order"),
        ("line 12", "", "bad_id"),
        ("line 13", "", "ragged"),
    ]
    assert features.wanted == 7


def test_a_feed_of_gtfs_gives_its_stops_and_its_shapes_where_they_are_named(tmp_path):
    file = tmp_path / "gtfs.zip"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("agency.txt", "agency_id,agency_name\n1,A\n")
        archive.writestr("shapes.txt", SHAPES)
        archive.writestr("stops.txt", STOPS)
    features = read_features(file, Wanted(NONE))
    assert features.fids.tolist() == ["S0", "S1"]
    assert "--table shapes" in features.notes[0]
    lines = read_features(file, Wanted(NONE, options=FileOptions(table="shapes")))
    assert lines.fids.tolist() == ["A", "B"]


DEPOTS = "Standort;Breitengrad;Längengrad;Größe (m²)\nBerlin;52,52;13,405;120\nKöln;50,94;6,96;\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252", "utf-16"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_a_list_of_a_spreadsheet_is_read_as_spreadsheets_write_it(
    tmp_path, encoding, line_end
):
    text = DEPOTS.replace("\n", line_end)
    features = read(tmp_path / "depots.csv", text, encoding)
    assert points(features) == {"Berlin": (13.405, 52.52), "Köln": (6.96, 50.94)}
    tags = dict(zip(features.fids, features.tags, strict=True))
    assert tags["Berlin"] == {"Standort": "Berlin", "Größe (m²)": "120"}
    assert tags["Köln"] == {"Standort": "Köln"}
    said = " ".join(features.notes)
    assert "they are read with decimal = ','" in said
    assert ("windows-1252" in said) == (encoding == "cp1252")


def test_each_line_that_is_no_feature_is_named_with_its_id(tmp_path):
    bad = "München;abc;11,5;1\nUlm;48,4\nBonn;;6;1\nPol;99,0;6,9;1\n;1;1;1\n;;;\n"
    features = read(tmp_path / "depots.csv", DEPOTS + bad, ids="Standort")
    assert features.fids.tolist() == ["Berlin", "Köln"]
    assert named(features) == [
        ("line 4", "München", "bad_number"),
        ("line 5", "", "ragged"),
        ("line 6", "Bonn", "no_geometry"),
        ("line 7", "Pol", "out_of_crs"),
        ("line 8", "", "bad_id"),
    ]
    assert features.wanted == 7
    assert "lines without any value, left out: 1" in features.notes


def test_lines_are_counted_over_quotes_blanks_and_what_stands_in_front(tmp_path):
    text = 'sep=;\nname;lat;lon\n\n"A\nB";1;2\n"C, ""x""";3;4\n"D;5;6\nE;oops;8\n'
    features = read(tmp_path / "a.csv", text)
    assert points(features) == {"A\nB": (2, 1), 'C, "x"': (4, 3)}
    assert named(features) == [
        ("line 7", "", "unbalanced_quote"),
        ("line 8", "E", "bad_number"),
    ]


SQUARE = "POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0))"
BOW = "POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))"


def test_areas_come_from_a_column_of_wkt_and_bad_ones_are_named(tmp_path):
    hexadecimal = shapely.to_wkb(shapely.from_wkt(SQUARE), hex=True)
    rows = [SQUARE, f"SRID=4326;{SQUARE}", hexadecimal, BOW, "oops", ""]
    lines = "".join(f"z{n}\t{one}\n" for n, one in enumerate(rows))
    features = read(tmp_path / "a.tsv", f"zone\tshape\n{lines}")
    assert features.fids.tolist() == ["z0", "z1", "z2", "z3"]
    assert all(one.equals(shapely.from_wkt(SQUARE)) for one in features.geometries[:3])
    assert named(features) == [
        ("line 5", "z3", "made_valid"),
        ("line 6", "z4", "bad_geometry"),
        ("line 7", "z5", "no_geometry"),
    ]


def test_an_area_longer_than_a_field_of_the_library_is_read(tmp_path):
    ring = shapely.Point(0, 0).buffer(1, quad_segs=3_000)
    text = f'id,wkt\na,"{ring.wkt}"\nb,"{SQUARE}"\n'
    assert len(ring.wkt) > 1 << 17
    features = read(tmp_path / "a.csv", text)
    assert features.geometries[0].equals(shapely.from_wkt(ring.wkt))


def test_a_srid_must_be_that_of_the_file_or_of_the_layer(tmp_path):
    file, text = tmp_path / "a.csv", 'id,geom\n1,"SRID=25832;POINT (500000 0)"\n'
    with pytest.raises(LayerError, match=r"SRID=25832, and EPSG:4326 is") as raised:
        read(file, text)
    assert raised.value.hint == "--source-crs EPSG:25832 converts it"
    with pytest.raises(LayerError, match=r"SRID=25832, and EPSG:3857 is"):
        read(file, text, crs="EPSG:3857")
    told = read(file, text, crs="EPSG:25832")
    assert told.geometries[0].bounds[:2] == pytest.approx((9, 0), abs=1e-9)
    in_it = read_features(file, Wanted(NONE, crs="EPSG:25832"))
    assert in_it.geometries[0].wkt == "POINT (500000 0)"


def test_a_line_of_another_srid_than_the_others_is_named(tmp_path):
    lines = '1,"SRID=4326;POINT (5 0)"\n2,"SRID=25832;POINT (5 0)"\n3,POINT (6 0)\n'
    features = read(tmp_path / "a.csv", f"id,geom\n{lines}")
    assert features.fids.tolist() == ["1", "3"]
    assert named(features) == [("line 3", "2", "other_crs")]


def test_numbers_that_are_no_degrees_need_a_system(tmp_path):
    file, text = tmp_path / "a.csv", "id,x,y\n1,500000,0\n2,500000,1\n"
    with pytest.raises(LayerError, match="does not say in which system") as raised:
        read(file, text)
    assert "--source-crs" in raised.value.hint
    features = read(file, text, crs="EPSG:25832")
    assert features.geometries[0].bounds[:2] == pytest.approx((9, 0), abs=1e-9)


def test_columns_are_named_where_nothing_says_what_they_are(tmp_path):
    file, text = tmp_path / "a.csv", "c,a,b\nn,1,2\nm,3,4\n"
    with pytest.raises(LayerError, match="no column looks like a place") as raised:
        read(file, text)
    assert "it has c, a, b: --x and --y name" in raised.value.hint
    assert points(read(file, text, columns={"x": "b", "y": "a"})) == {
        "n": (2, 1),
        "m": (4, 3),
    }
    with pytest.raises(LayerError, match="no column 'z'"):
        read(file, text, columns={"x": "z", "y": "a"})
    with pytest.raises(LayerError, match="no column 'z' of ids"):
        read(file, text, columns={"x": "b", "y": "a"}, ids="z")


def test_ids_are_of_no_column_whose_values_repeat_unless_it_is_named(tmp_path):
    file, text = tmp_path / "a.csv", "depot,lat,lon\na,1,2\na,3,4\nb,5,6\n"
    features = read(file, text)
    assert features.fids.tolist() == ["#1", "#2", "#3"]
    assert any(note.startswith("ids are #1, #2, ..") for note in features.notes)
    told = read(file, text, ids="depot")
    assert (told.fids.tolist(), named(told)) == (
        ["a", "b"],
        [("line 3", "a", "duplicate_fid")],
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "is empty"),
        ("name,lat,lon\n", "no line under its header"),
        ("hello\nworld\n", "text without fields"),
        ("a\0b,c,d\n1,2,3\n", "is no text"),
    ],
)
def test_a_file_without_features_says_what_it_lacks(tmp_path, text, said):
    with pytest.raises(LayerError, match=said):
        read(tmp_path / "a.csv", text)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("name,lat,lon\na,60.17N,24.94W\nb,60.17N,24.94E\n", (-24.94, 60.17)),
        ('name,position\na,"60.17, 124.94"\nb,"60.18, 124.94"\n', (124.94, 60.17)),
        ("name,latitude,longitude\na,601700000,249400000\nb,1,2\n", (24.94, 60.17)),
    ],
    ids=["letters", "both in one column", "E7"],
)
def test_coordinates_are_read_in_the_forms_of_streams(tmp_path, text, place):
    features = read(tmp_path / "a.csv", text)
    assert points(features)["a"] == pytest.approx(place, abs=1e-9)


def test_the_job_takes_what_the_command_takes(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "depots.csv"
    file.write_text("code;e;n;c\nA;500000;0;7\nB;500000;x;8\n")
    told = ("--id", "c", "--source-crs", "EPSG:25832", "--x", "e", "--y", "n")
    home = ("--home", str(tmp_path / "home"))
    assert load_layer.main(["depots", str(file), "--engine=local", *told, *home]) == 0
    said = capsys.readouterr()
    summary = json.loads(said.out)
    assert (summary["wanted"], summary["features"]) == (2, 1)
    assert summary["faults"][0]["fid"] == "8"
    assert "rejected line 3, id '8': bad_number" in said.err


def test_packed_files_are_read_as_well(tmp_path):
    file = tmp_path / "stops.csv.gz"
    file.write_bytes(gzip.compress(STOPS.encode()))
    assert read_features(file, Wanted(NONE)).fids.tolist() == ["S0", "S1"]
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("folder/depots.csv", DEPOTS)
    assert len(read_features(tmp_path / "a.zip", Wanted(NONE)).fids) == 2


def test_the_kind_is_a_column_and_a_header_is_not_needed(tmp_path):
    features = read(tmp_path / "a.csv", "kind,lat,lon\ndepot,1,2\nshop,3,4\n")
    assert sorted(features.kinds.tolist()) == ["depot", "shop"]
    bare = read(tmp_path / "b.csv", "a,60.12345,24.91234\nb,60.22345,24.81234\n")
    assert len(bare.fids) == 2
