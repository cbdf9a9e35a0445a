"""KML, KMZ, GPX and TopoJSON as layers; what is not read is refused by its name, with a way out."""

import zipfile
from pathlib import Path

import pytest
import shapely

from st_common.errors import LayerError
from st_common.layers.kinds import Kinds
from st_common.layers.options import FileOptions
from st_common.layers.reading import Wanted, read_features

NONE = Kinds(())
HEAD = '<?xml version="1.0" encoding="UTF-8"?>'
SHELL = "10,0,5 14,0,5 14,4,5 10,4,5 10,0,5"
HOLES = ("11,1 12,1 12,2 11,2 11,1", "13,3 13.5,3 13.5,3.5 13,3.5 13,3")


def ring(tag: str, places: str) -> str:
    inner = f"<LinearRing><coordinates>{places}</coordinates></LinearRing>"
    return f"<{tag}>{inner}</{tag}>"


def placemark(name: str, shell: str = SHELL, *holes: str, more: str = "") -> str:
    rings = ring("outerBoundaryIs", shell) + "".join(
        ring("innerBoundaryIs", hole) for hole in holes
    )
    polygon = f"<Polygon>{rings}</Polygon>"
    return f"<Placemark><name>{name}</name>{more}{polygon}</Placemark>"


def write(file: Path, *parts: str) -> Path:
    inner = "".join(parts)
    kml = f'{HEAD}<kml xmlns="http://www.opengis.net/kml/2.2">{inner}</kml>'
    file.write_text(kml, encoding="utf-8")
    return file


def folder(name: str, *parts: str) -> str:
    return f"<Folder><name>{name}</name>{''.join(parts)}</Folder>"


def test_a_placemark_with_holes_is_called_by_its_name(tmp_path):
    yard = folder("depots", placemark("yard", SHELL, *HOLES))
    features = read_features(write(tmp_path / "a.kml", yard), Wanted(NONE))
    holes = [
        shapely.box(11, 1, 12, 2).exterior,
        shapely.box(13, 3, 13.5, 3.5).exterior,
    ]
    expected = shapely.Polygon([(10, 0), (14, 0), (14, 4), (10, 4)], holes)
    assert features.fids.tolist() == ["yard"]
    assert features.geometries[0].equals(expected)
    assert not features.geometries[0].has_z
    assert features.tags[0] == {"name": "yard"}
    assert features.notes == ("ids are those of name; --id names another column",)


def test_all_folders_are_read_and_one_where_it_is_named(tmp_path):
    data = (
        '<ExtendedData><Data name="kind"><value>depot</value></Data>'
        '<Data name="gate"><value>7</value></Data></ExtendedData>'
    )
    inner = folder("inner", placemark("c"))
    file = write(
        tmp_path / "a.kml",
        f"<Document>{placemark('a')}"
        f"{folder('outer', placemark('b', more=data), inner)}</Document>",
    )
    features = read_features(file, Wanted(NONE))
    assert features.fids.tolist() == ["a", "b", "c"]
    assert [one["folder"] for one in features.tags] == ["a", "outer", "inner"]
    assert features.kinds.tolist() == ["other", "depot", "other"]
    assert features.tags[1]["gate"] == "7"
    one = read_features(file, Wanted(NONE, options=FileOptions(table="inner")))
    assert one.fids.tolist() == ["c"]
    with pytest.raises(LayerError, match="no table 'other'"):
        read_features(file, Wanted(NONE, options=FileOptions(table="other")))


def test_names_that_repeat_are_no_ids_and_that_is_told(tmp_path):
    file = write(tmp_path / "a.kml", f"<Document>{placemark('a') * 2}</Document>")
    features = read_features(file, Wanted(NONE))
    assert features.fids.tolist() == ["#1", "#2"]
    assert "values of name repeat" in features.notes[0]


def test_a_kmz_is_read_by_its_main_file(tmp_path):
    main = write(tmp_path / "doc.kml", placemark("a"))
    other = write(tmp_path / "other.kml", placemark("b"))
    with zipfile.ZipFile(tmp_path / "a.kmz", "w") as archive:
        archive.write(main, "doc.kml")
        archive.write(other, "files/other.kml")
    assert read_features(tmp_path / "a.kmz", Wanted(NONE)).fids.tolist() == ["a"]
    (tmp_path / "b.kmz").write_bytes(b"PK\x03\x04 cut")
    with pytest.raises(LayerError, match="cannot be unpacked"):
        read_features(tmp_path / "b.kmz", Wanted(NONE))


@pytest.mark.parametrize(
    ("places", "wrong"),
    [
        ("10,abc 14,0 14,4 10,0", "10,abc"),
        ("10,0 14,0 14 10,0", "14"),
        ("10;0 14;0 14;4 10;0", "10;0"),
        ("10,0,0,0 14,0 14,4 10,0", "10,0,0,0"),
        ("nan,0 14,0 14,4 nan,0", "nan,0"),
    ],
)
def test_coordinates_that_are_none_end_the_load_with_their_line(
    tmp_path, places, wrong
):
    file = write(
        tmp_path / "a.kml", "<Document>\n", placemark("a", places), "</Document>"
    )
    with pytest.raises(LayerError, match="line 2: ") as raised:
        read_features(file, Wanted(NONE))
    assert wrong.split(",")[-1] in str(raised.value)


def test_a_placemark_whose_geometry_cannot_be_read_is_named(tmp_path):
    point = "<Placemark><name>no place</name></Placemark>"
    parts = (placemark("good"), placemark("open", "10,0 14,0 14,4 10,4"), point)
    features = read_features(
        write(tmp_path / "a.kml", "<Document>", *parts, "</Document>"), Wanted(NONE)
    )
    assert (features.fids.tolist(), features.wanted) == (["good"], 3)
    assert [(one.fid, one.where) for one in features.faults] == [
        ("open", "feature 2"),
        ("no place", "feature 3"),
    ]


def test_links_to_other_files_are_told_and_never_followed(tmp_path):
    link = (
        "<NetworkLink><Link><href>http://127.0.0.1:9/a.kml</href></Link></NetworkLink>"
    )
    file = write(tmp_path / "a.kml", f"<Document>{link}{placemark('a')}</Document>")
    assert "1 NetworkLink" in read_features(file, Wanted(NONE)).notes[0]


@pytest.mark.parametrize("end", ["kml", "gpx", "topojson", "shp", "gpkg", "fgb"])
def test_an_error_has_no_words_of_the_library_that_reads(tmp_path, end):
    for content in (b"", b"<kml><Document><Placemark>", b"{", b"\0\1\2" * 90):
        file = tmp_path / f"a.{end}"
        file.write_bytes(content)
        with pytest.raises(LayerError) as raised:
            read_features(file, Wanted(NONE))
        said = str(raised.value)
        assert f"a.{end} cannot be read as " in said or "has no table" in said
        assert "ERROR" not in said


GPX = """<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">{}</gpx>"""
TRACK = "<trk><name>t</name><trkseg><trkpt lat='48' lon='11'/><trkpt lat='49' lon='11'/></trkseg></trk>"
POINT = "<wpt lat='48' lon='11'><name>depot</name></wpt>"


def test_waypoints_and_tracks_of_gpx_are_layers(tmp_path):
    file = tmp_path / "a.gpx"
    file.write_text(GPX.format(POINT))
    features = read_features(file, Wanted(NONE))
    assert (features.fids.tolist(), features.geometries[0].wkt) == (
        ["depot"],
        "POINT (11 48)",
    )
    file.write_text(GPX.format(POINT + TRACK))
    with pytest.raises(LayerError, match="several tables: waypoints, tracks"):
        read_features(file, Wanted(NONE))
    track = read_features(file, Wanted(NONE, options=FileOptions(table="tracks")))
    assert track.geometries[0].wkt == "MULTILINESTRING ((11 48, 11 49))"


TOPOLOGY = """{"type": "Topology", "arcs": [[[10, 0], [12, 0], [12, 2], [10, 0]]],
"objects": {"zones": {"type": "GeometryCollection", "geometries": [
{"type": "Polygon", "id": "z1", "properties": {"kind": "zone"}, "arcs": [[0]]}]}}}"""


def test_topojson_is_read_by_its_name_and_named_by_another(tmp_path):
    file = tmp_path / "a.topojson"
    file.write_text(TOPOLOGY)
    features = read_features(file, Wanted(NONE))
    assert (features.fids.tolist(), features.kinds.tolist()) == (["z1"], ["zone"])
    assert features.geometries[0].bounds == (10, 0, 12, 2)
    called = file.rename(tmp_path / "a.json")
    with pytest.raises(LayerError, match="is TopoJSON, and no GeoJSON"):
        read_features(called, Wanted(NONE))


def test_json_of_esri_is_refused_by_its_name(tmp_path):
    file = tmp_path / "a.json"
    file.write_text('{"geometryType": "esriGeometryPoint", "features": []}')
    with pytest.raises(LayerError, match="is Esri JSON") as raised:
        read_features(file, Wanted(NONE))
    assert "ogr2ogr" in raised.value.hint


@pytest.mark.parametrize(
    ("end", "what", "way"),
    [
        ("gml", "GML", "ogr2ogr"),
        ("dxf", "DXF", "ogr2ogr"),
        ("xlsx", "spreadsheets", "CSV"),
        ("tab", "MapInfo", "ogr2ogr"),
    ],
)
def test_what_is_not_read_is_named_with_the_way_out(tmp_path, end, what, way):
    file = tmp_path / f"a.{end}"
    file.write_text("anything")
    with pytest.raises(LayerError, match=f"not read from {what}") as raised:
        read_features(file, Wanted(NONE))
    assert way in raised.value.hint
