"""OSM files: multipolygons of the community's test grid, counts of real extracts, broken files."""

import json
import struct
import zlib
from collections import Counter
from pathlib import Path

import osmium
import pytest
import shapely

from st_common.errors import LayerError
from st_common.layers.faults import counted
from st_common.layers.features import checked
from st_common.layers.kinds import Kinds, Rule, load_kinds
from st_common.layers.osm import read_osm
from st_common.layers.reading import Wanted, read_features

KINDS = load_kinds(Path(__file__).resolve().parents[2] / "conf")
MARKED = Kinds((Rule(kind="marked", geometry="area", tags=(("test:section", None),)),))
KEYS = ("landuse", "building", "natural")
TAGGED = Kinds(
    (Rule(kind="use", geometry="area", tags=tuple((key, None) for key in KEYS)),)
)

# Cases that are meant to be invalid, so that no area comes of the relation. Of the repairs that the cases allow,
# osmium compares places instead of node ids and drops doubled segments, and makes no touching rings fit ("fix").
INVALID = {
    710,
    711,
    714,
    715,
    740,
    741,
    743,
    744,
    745,
    746,
    752,
    753,
    754,
    756,
    768,
    771,
    773,
    791,
    792,
    793,
}
# Cases whose relation has no tags of its own: "old-style" multipolygons, abolished in OpenStreetMap in 2017. Here the
# tagged way is the feature, and the relation is none.
OLD_STYLE = {911, 912, 921, 923, 925, 927, 931}


def cases(shared):
    files = sorted(
        (shared / "data" / "conformance-osm-areas" / "grid").rglob("test.json")
    )
    return [(json.loads(file.read_text()), file.parent / "data.osm") for file in files]


def areas_of(file, kinds):
    found = read_osm(file, kinds)
    return dict(zip(found.fids, shapely.from_wkb(found.geometries), strict=True))


def agrees(expected, found):
    if expected["wkt"] == "INVALID":
        return fid(expected) not in found
    return fid(expected) in found and bool(
        shapely.equals(shapely.from_wkt(expected["wkt"]), found[fid(expected)])
    )


def fid(expected):
    return f"{expected['from_type']}/{expected['from_id']}/area"


def test_all_130_cases_of_the_multipolygon_grid_give_the_expected_areas(shared):
    wrong, invalid, seen = [], set(), 0
    for case, file in cases(shared):
        found = areas_of(file, MARKED)
        variants = case.get("areas", {"default": []}).values()
        right = [
            areas for areas in variants if all(agrees(area, found) for area in areas)
        ]
        seen += 1
        if not right:
            wrong.append(case["test_id"])
        elif any(area["wkt"] == "INVALID" for area in right[0]):
            invalid.add(case["test_id"])
        for area in found.values():
            assert shapely.is_valid(area), case["test_id"]
    assert (seen, wrong) == (130, [])
    assert invalid == INVALID


def test_areas_of_the_grid_that_cannot_be_assembled_are_counted(shared):
    for case, file in cases(shared):
        if case["test_id"] in INVALID:
            rejected = counted(read_osm(file, MARKED).faults, "rejected")
            assert rejected["no_area"] >= 1, case["test_id"]


def test_the_tags_of_a_relation_decide_not_those_of_its_ways(shared):
    without = set()
    for case, file in cases(shared):
        relations = [
            area
            for area in case.get("areas", {}).get("default", [])
            if area["from_type"] == "relation"
        ]
        found = areas_of(file, TAGGED)
        tagged = any(key in area.get("tags", {}) for area in relations for key in KEYS)
        if (
            tagged
            and case["test_id"] not in INVALID
            and not any(name.startswith("relation") for name in found)
        ):
            without.add(case["test_id"])
    assert without == OLD_STYLE


def counts(file, kinds=KINDS, **chosen):
    features = read_features(file, Wanted(kinds, **chosen))
    return Counter(features.kinds.tolist()), features


SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    ("name", "known"),
    [
        (
            "osm-monaco/monaco-2023-12-26",
            {"road": 2852, "forest": 13, "building": 1283, "water": 21, "park": 45},
        ),
        (
            "osm-monaco/monaco-2022-07-19-nochangesets",
            {"road": 2475, "forest": 12, "building": 1214, "water": 16, "park": 49},
        ),
        (
            "osm-monaco/monaco-2021-04-21-lz4",
            {"road": 2379, "forest": 6, "building": 1207, "water": 18, "park": 45},
        ),
        (
            "osm-liechtenstein/liechtenstein-2013-08-03",
            {"road": 2753, "forest": 63, "building": 3723, "water": 28, "park": 7},
        ),
        (
            "osm-porto/porto-centre-2020-07-20",
            {"road": 4656, "forest": 5, "building": 11404, "water": 54, "park": 493},
        ),
        pytest.param(
            "osm-liechtenstein/liechtenstein-2015-07-27",
            {"road": 4660, "forest": 268, "building": 8995, "water": 83, "park": 10},
            marks=SLOW,
        ),
        pytest.param(
            "osm-liechtenstein/liechtenstein-2022-07-24",
            {"road": 7506, "forest": 567, "building": 17638, "water": 102, "park": 38},
            marks=SLOW,
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_kinds_count_what_is_known_of_real_extracts(shared, name, known):
    file = shared / "data" / f"{name}.osm.pbf"
    found, features = counts(file)
    assert {
        kind: found[kind] for kind in ("road", "forest", "building")
    }.items() <= known.items()
    # a building with a garden on its roof is a building in a layer of everything, and a park in a layer of parks
    apart = counts(file, kinds=KINDS.only(["park", "water"]))[0]
    assert apart.items() <= known.items()
    assert set(apart) == {"park", "water"}
    assert shapely.is_valid(features.geometries).all()


def wanted_in(file, kinds):
    """How many features a file has, counted thing by thing, without building any."""
    count = 0
    for thing in osmium.FileProcessor(str(file)):
        tags = dict(thing.tags)
        if thing.is_node():
            count += kinds.of(tags, "point") is not None
        elif thing.is_way():
            is_area, is_line = (
                kinds.of(tags, "area") is not None,
                kinds.of(tags, "line") is not None,
            )
            count += is_line + (is_area and (thing.is_closed() or not is_line))
        elif tags.get("type") in ("multipolygon", "boundary"):
            count += kinds.of(tags, "area") is not None
    return count


@pytest.mark.spec("C2")
@pytest.mark.parametrize(
    "name",
    [
        "osm-liechtenstein/liechtenstein-2013-08-03",
        "osm-monaco/monaco-2023-12-26",
        "osm-helsinki/Helsinki",
        "osm-porto/porto-centre-2020-07-20",
    ],
)
def test_what_is_loaded_and_what_is_rejected_are_together_what_was_wanted(shared, name):
    file = shared / "data" / f"{name}.osm.pbf"
    features = read_features(file, Wanted(KINDS))
    assert (
        len(features.fids) + sum(features.rejected.values())
        == features.wanted
        == wanted_in(file, KINDS)
    )


def test_an_area_that_was_built_before_its_relation_was_read_is_not_rejected(shared):
    features = read_features(
        shared / "data" / "osm-liechtenstein" / "liechtenstein-2013-08-03.osm.pbf",
        Wanted(KINDS),
    )
    assert sum(fid.startswith("relation/") for fid in features.fids) == 4
    assert features.rejected == {"no_area": 1}


@pytest.mark.spec("C2")
def test_the_law_of_counts_holds_for_every_case_of_the_grid(shared):
    for case, file in cases(shared):
        for kinds in (MARKED, TAGGED):
            features = checked(read_osm(file, kinds))
            assert (
                len(features.fids) + sum(features.rejected.values()) == features.wanted
            ), case["test_id"]


@pytest.mark.slow
def test_forests_of_liechtenstein_come_from_ways_and_from_relations(shared):
    file = shared / "data" / "osm-liechtenstein" / "liechtenstein-2022-07-24.osm.pbf"
    features = read_features(file, Wanted(KINDS, kinds=["forest"]))
    assert len(features.fids) == 567
    assert sum(fid.startswith("relation/") for fid in features.fids) == 41


def test_a_cut_extract_keeps_the_known_stretches_of_its_lines(shared):
    found, features = counts(shared / "data" / "osm-helsinki" / "Helsinki.osm.pbf")
    assert (found["building"], found["water"], found["park"], found["forest"]) == (
        446,
        13,
        13,
        0,
    )
    file = shared / "data" / "osm-helsinki" / "Helsinki.osm.pbf"
    roads = read_features(file, Wanted(KINDS, kinds=["road"]))
    assert len(roads.fids) + roads.rejected["missing_nodes"] == 2650
    assert roads.repaired > 50
    assert features.repaired >= roads.repaired


def test_real_ways_without_their_nodes_are_counted(shared):
    file = (
        shared / "data" / "malformed" / "osm" / "campo-grande-ways-missing-nodes.osm.gz"
    )
    roads = read_features(file, Wanted(KINDS, kinds=["road"]))
    assert len(roads.fids) + roads.rejected["missing_nodes"] == 4129
    assert roads.rejected["missing_nodes"] > 0


OSM = '<osm version="0.6">{}</osm>'
NODES = "".join(
    f'<node id="{i}" lon="{x}" lat="{y}"/>'
    for i, (x, y) in enumerate([(0, 0), (1, 0), (1, 1), (0, 1)], 1)
)


def way(number, refs, **tags):
    inner = "".join(f'<nd ref="{ref}"/>' for ref in refs) + "".join(
        f'<tag k="{k}" v="{v}"/>' for k, v in tags.items()
    )
    return f'<way id="{number}">{inner}</way>'


def read_text(tmp_path, text):
    file = tmp_path / "case.osm"
    file.write_text(OSM.format(text))
    return checked(read_osm(file, KINDS))


def test_a_closed_way_may_be_a_line_and_an_area(tmp_path):
    features = read_text(
        tmp_path, NODES + way(7, [1, 2, 3, 4, 1], highway="pedestrian", leisure="park")
    )
    assert dict(zip(features.fids, features.kinds, strict=True)) == {
        "way/7": "road",
        "way/7/area": "park",
    }
    assert [geometry.geom_type for geometry in features.geometries] == [
        "LineString",
        "MultiPolygon",
    ]


def test_what_cannot_be_used_is_rejected_with_its_reason(tmp_path):
    text = (
        NODES
        + '<node id="9" lon="0.5" lat="0.5"><tag k="highway" v="bus_stop"/></node>'
    )
    text += (
        way(1, [1, 77, 2], highway="path")
        + way(2, [1, 2, 77, 3, 4], highway="path")
        + way(3, [1, 1], highway="a")
    )
    text += (
        way(4, [1, 2, 3], building="yes")
        + way(5, [1, 3, 2, 4, 1], building="yes")
        + way(6, [1, 2], name="none")
    )
    features = read_text(tmp_path, text)
    assert features.fids.tolist() == ["node/9", "way/2"]
    assert features.geometries[1].wkt == "MULTILINESTRING ((0 0, 1 0), (1 1, 0 1))"
    assert features.rejected == {
        "degenerate": 1,
        "missing_nodes": 1,
        "no_area": 1,
        "not_closed": 1,
    }
    assert features.repaired == 1


@pytest.mark.parametrize(
    "name", ["bitflip-middle", "empty", "truncated-after-header", "truncated-mid-blob"]
)
def test_a_damaged_file_is_one_error_line(shared, name):
    file = shared / "data" / "malformed" / "osm-derived" / f"{name}.osm.pbf"
    with pytest.raises(LayerError, match="cannot be read as OSM") as raised:
        read_osm(file, KINDS)
    assert "\n" not in str(raised.value)


def test_xml_that_is_meant_to_be_refused_is_refused(shared):
    refused = set()
    for file in (shared / "data" / "conformance-osm-areas" / "xml").glob("*/data.osm*"):
        try:
            read_osm(file, KINDS)
        except LayerError:
            refused.add(file.parent.name[:3])
    accepted = {"100", "109", "120", "140", "141", "142", "200"}
    assert len(refused) == 17
    assert not refused & accepted


def test_a_blob_that_claims_to_be_huge_is_refused(tmp_path):
    body = zlib.compress(b"\0" * 1000)
    blob = b"\x10" + _varint(1 << 30) + b"\x1a" + _varint(len(body)) + body
    header = b"\x0a\x09OSMHeader\x18" + _varint(len(blob))
    file = tmp_path / "bomb.osm.pbf"
    file.write_bytes(struct.pack(">I", len(header)) + header + blob)
    with pytest.raises(LayerError, match="cannot be read as OSM"):
        read_osm(file, KINDS)


def _varint(value):
    out = b""
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def test_files_that_are_no_layers_are_refused(tmp_path):
    with pytest.raises(LayerError, match="there is no file"):
        read_features(tmp_path / "none.osm.pbf", Wanted(KINDS))
    (tmp_path / "changes.osc").write_text("<osmChange/>")
    with pytest.raises(LayerError, match="no known format"):
        read_features(tmp_path / "changes.osc", Wanted(KINDS))
    (tmp_path / "unsorted.osm").write_text(
        OSM.format(NODES + way(2, [1, 2]) + way(1, [1, 2]))
    )
    with pytest.raises(LayerError, match="sort it first"):
        read_features(tmp_path / "unsorted.osm", Wanted(KINDS))
