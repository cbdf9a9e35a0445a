"""GeoJSON as records: the same fixes from a collection, a sequence and lines; all else is a reject with a reason."""

import io
import json
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.decode.batch import Raw, decode_all
from st_common.errors import ConfigError
from st_common.replay.chunks import chunks
from tests.kit.effort import tries

NOW = 1_800_000_000_000_000
WAYS = ("collection", "pretty", "sequence", "lines")


def stream(**table) -> StreamSettings:
    columns = table.pop("columns", {"object": "id", "event_ts": "ts"})
    said = {"max_ahead_s": "off", "time_unit": "s", **table, "columns": columns}
    return stream_of_table("s", {"format": "geojson", **said}, Path("streams.toml"))


CARS = stream(
    columns={"object": "id", "event_ts": "ts", "height": "geometry.coordinates[2]"},
    attributes={"speed": "double m/s", "height": "double m"},
)


def feature(fid, geometry, **properties):
    return {
        "type": "Feature",
        "id": fid,
        "properties": properties,
        "geometry": geometry,
    }


def point(*place):
    return {"type": "Point", "coordinates": place}


FEATURES = [
    feature("a", point(1.5, -2, 30), ts=1, speed=4.5, features=[1, "]"]),
    feature(7, point(2, 3), ts=2, note='quotes " and } in "features": ['),
    feature("c", {"type": "LineString", "coordinates": [[1, 2], [3, 4]]}, ts=3),
    feature("d", None, ts=4),
    feature("e", point(10, 91), ts=5),
    feature("f", point("x", 1), ts=6),
    feature("g", point(), ts=7),
    feature(None, point(1, 2), ts=8),
    {"type": "Point", "coordinates": [1, 2]},
    feature("h", point(1, 2)),
]
FIXES = [
    (0, "a", 1_000_000, 1.5, -2.0, False, 4.5, 30.0),
    (1, "7", 2_000_000, 2.0, 3.0, False, None, None),
]
REASONS = [
    (2, "no_point"),
    (3, "missing_position"),
    (4, "out_of_crs"),
    (5, "bad_number"),
    (6, "missing_position"),
    (7, "missing_object"),
    (8, "missing_object"),
    (9, "missing_time"),
]


def written(features, way: str) -> bytes:
    collection = {
        "type": "FeatureCollection",
        "about": {"features": [{"a": 1}]},
        "features": features,
        "bbox": [0, 0, 1, 1],
    }
    if way == "collection":
        return json.dumps(collection).encode()
    if way == "pretty":
        return b"\xef\xbb\xbf\n" + json.dumps(collection, indent=1).encode() + b"\n"
    if way == "sequence":
        return "".join(
            f"\x1e{json.dumps(one, indent=2)}\n" for one in features
        ).encode()
    return "\n".join(map(json.dumps, features)).encode()


def outcome(decoded):
    fixes = [tuple(row.values()) for row in decoded.fixes.to_pylist()]
    why = [(row["row"], row["reason"]) for row in decoded.rejects.to_pylist()]
    assert len(fixes) + len(why) == decoded.rows
    return fixes, why


def replayed(content: bytes, settings: StreamSettings, *, apart: int = 1 << 30):
    """All that the segments of a file give, each of at most `apart` records; rows counted through."""
    fixes, why, before = [], [], 0
    for chunk in chunks(io.BytesIO(content), settings, size=1):
        for start in range(0, len(chunk.spans), apart):
            stop = min(start + apart, len(chunk.spans))
            decoded = decode(chunk.payload(start, stop), settings, arrival_us=NOW)
            assert decoded.rows == stop - start
            own, reasons = outcome(decoded)
            fixes += [(before + row[0], *row[1:]) for row in own]
            why += [(before + row, reason) for row, reason in reasons]
            before += decoded.rows
    return fixes, why


@pytest.mark.spec("B7")
@pytest.mark.parametrize("way", WAYS)
def test_each_feature_is_a_fix_or_a_reject_with_its_reason(way):
    content = written(FEATURES, way)
    assert outcome(decode(content, CARS, arrival_us=NOW)) == (FIXES, REASONS)
    assert replayed(content, CARS) == (FIXES, REASONS)
    assert replayed(content, CARS, apart=1) == (FIXES, REASONS)


@pytest.mark.spec("B7")
@pytest.mark.parametrize(
    ("name", "fixes", "reasons"),
    [
        ("ne_10m_ports", 1081, {}),
        ("ne_10m_airports", 891, {}),
        ("ne_10m_reefs", 0, {"no_point": 1043}),
    ],
)
def test_the_points_of_natural_earth_are_fixes_and_its_lines_are_not(
    shared, name, fixes, reasons
):
    file = shared / "data" / "polygons-naturalearth" / f"{name}.geojson"
    places = stream(columns={"object": "scalerank"})
    found, why = replayed(file.read_bytes(), places, apart=100)
    counts = {reason: sum(r == reason for _, r in why) for _, reason in why}
    assert (len(found), counts) == (fixes, reasons)


def test_what_peers_feed_to_see_others_fail_well_is_taken_apart(shared):
    """No file raises anything, and each record of it is a fix or a reject."""
    folder = shared / "data" / "malformed"
    files = sorted(folder.glob("geojsonhint-*/*.geojson"))
    files += sorted((folder / "sedona").iterdir())
    assert len(files) == 64
    places = stream(columns={"object": "id"})
    records = 0
    for file in files:
        fixes, why = replayed(file.read_bytes(), places)
        assert [row for row, *_ in sorted([*fixes, *why])] == list(
            range(len(fixes) + len(why))
        )
        records += len(fixes) + len(why)
    assert records > 64
    stops = folder / "r5py"
    for file in stops.glob("*.geojson"):
        twice, why = replayed(file.read_bytes(), places)
        whole = len(json.loads(file.read_text())["features"])
        assert len(twice) + len(why) == whole


@pytest.mark.parametrize("way", WAYS)
def test_wherever_a_file_ends_each_whole_feature_is_read(way):
    content = written(FEATURES[:3], way)
    whole, _ = replayed(content, CARS)
    for cut in range(0, len(content), 23):
        fixes, reasons = replayed(content[:cut], CARS)
        assert fixes == whole[: len(fixes)]
        assert outcome(decode(content[:cut], CARS, arrival_us=NOW)) == (fixes, reasons)


def test_documents_may_follow_each_other_and_lines_behind_them_stay_lines():
    one, two = written(FEATURES[:1], "collection"), written(FEATURES[1:2], "pretty")
    empty = b'{"type":"FeatureCollection","features":[]}'
    content = b"\n".join([one, empty, two.strip(b"\xef\xbb\xbf\n"), b"7", b"{"])
    wrong = [(2, "no_json_object"), (3, "bad_json")]
    assert replayed(content, CARS) == (FIXES, wrong)


def test_what_stands_behind_a_list_and_ends_no_document_is_a_reject():
    content = written(FEATURES[:2], "collection").replace(b', "bbox"', b"; bbox")
    fixes, why = replayed(content, CARS)
    assert (fixes, why) == (FIXES, [(2, "no_json_object")])


PIECES = [
    *(json.dumps(one).encode() for one in FEATURES[:4]),
    *(b"{", b"}", b"[", b"]", b",", b'"', b"\\", b"\n", b"\x1e", b"\xef\xbb\xbf"),
    *(b'"features":', b'"type":"FeatureCollection",', b"null", b"\xff", b"\0", b" "),
]


@pytest.mark.spec("B7")
@given(st.lists(st.sampled_from(PIECES), max_size=20).map(b"".join) | st.binary())
@tries(60)
def test_whatever_the_bytes_are_all_of_them_are_accounted_for(content):
    whole = outcome(decode(content, CARS, arrival_us=NOW))
    assert replayed(content, CARS) == whole
    parts = list(decode_all([Raw(payload=content, arrival_us=NOW)] * 2, CARS))
    rows = sum(part.decoded.rows for part in parts)
    assert rows == 2 * (len(whole[0]) + len(whole[1]))


def test_segments_of_lines_decoded_together_give_what_each_gives():
    lines = [json.dumps(one).encode() for one in FEATURES]
    segments = [b"\n".join(lines[start : start + 3]) for start in range(10)]
    segments.insert(4, written(FEATURES[:2], "pretty"))
    raws = [Raw(payload=payload, arrival_us=NOW) for payload in segments]
    parts = list(decode_all(raws, CARS))
    assert len(parts) < len(segments)
    apart = [decode(payload, CARS, arrival_us=NOW) for payload in segments]
    for kind in ("fixes", "rejects"):
        together = [
            row for part in parts for row in getattr(part.decoded, kind).to_pylist()
        ]
        assert together == [
            row for one in apart for row in getattr(one, kind).to_pylist()
        ]


def test_a_large_collection_is_never_held_as_a_whole():
    count = 9000
    many = written(FEATURES[:1] * count, "collection")
    sizes = [
        len(one.spans.buffer) for one in chunks(io.BytesIO(many), CARS, size=1 << 18)
    ]
    assert len(many) > 4 * max(sizes)
    fixes, why = replayed(many, CARS)
    assert (len(fixes), why) == (count, [])


def test_properties_are_named_by_path_and_the_geometry_cannot_be_named():
    nested = stream(columns={"object": ["owner.name", "properties.id"]})
    line = feature("x", point(1, 2), id=5, owner={"name": "me"})
    decoded = decode(json.dumps(line).encode(), nested, arrival_us=NOW)
    assert decoded.fixes["object"].to_pylist() == ["me/5"]
    with pytest.raises(ConfigError, match="place of a feature is its geometry"):
        stream(columns={"object": "id", "x": "lon", "y": "lat"})
    assert isinstance(decoded.fixes, pa.Table)
