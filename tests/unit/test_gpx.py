"""GPX: a document is cut between points, and each segment is a document of its own."""

import contextlib
import csv
import gzip
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams
from st_common.decode import decode
from st_common.decode.batch import Raw, decode_all
from st_common.errors import ConfigError
from st_common.log.reader import pieces
from st_common.replay.chunks import chunks
from st_common.replay.files import replay
from st_common.replay.readable import refuse_unreadable
from tests.kit.log_writer import bare_log

WALKS = StreamSettings(
    name="walks",
    format="gpx",
    max_ahead_s=None,
    columns=Columns(object="trk/name", event_ts="time", x="lon", y="lat"),
)
AS_CSV = replace(
    WALKS,
    format="csv",
    columns=Columns(object="uid", event_ts="datetime", x="lng", y="lat"),
)
NOW = 1_700_000_000_000_000


def point(number: int, inside: str = "") -> str:
    time = f"2023-11-14T22:13:{number % 60:02}Z"
    return f'<trkpt lat="{number / 100}" lon="24.5"><time>{time}</time>{inside}</trkpt>'


def track(name: str, *points: str) -> str:
    return f"<trk><name>{name}</name><trkseg>{' '.join(points)}</trkseg></trk>"


def gpx(*parts: str) -> bytes:
    start = '<?xml version="1.0" encoding="UTF-8"?>\n<gpx version="1.1" xmlns="http://www.topografix.com/GPX/1/1">\n'
    return (start + "\n".join(parts) + "\n</gpx>\n").encode()


class Bytes:
    """A source that gives at most `portion` bytes at once."""

    def __init__(self, data: bytes, portion: int) -> None:
        self.data, self.portion = data, portion

    def read(self, size: int) -> bytes:
        size = min(size, self.portion)
        piece, self.data = self.data[:size], self.data[size:]
        return piece


def segments_of(data: bytes, portion: int = 1 << 16, most: int = 2) -> list[bytes]:
    """The payloads of a document, of at most `most` points."""
    return [
        chunk.payload(start, min(start + most, len(chunk.spans)))
        for chunk in chunks(Bytes(data, portion), WALKS, size=1)
        for start in range(0, len(chunk.spans), most)
    ]


def fixes_of(*payloads: bytes, stream: StreamSettings = WALKS) -> list[tuple]:
    found = [decode(payload, stream, arrival_us=NOW) for payload in payloads]
    return [
        (row["object"], row["event_ts"], row["x"], row["y"])
        for decoded in found
        for row in decoded.fixes.to_pylist()
    ]


def rejects_of(payload: bytes) -> list[tuple[int, str]]:
    rows = decode(payload, WALKS, arrival_us=NOW).rejects.to_pylist()
    return [(row["row"], row["reason"]) for row in rows]


# --- real tracks ---


def log_of(home: Home, path: Path, stream: StreamSettings) -> pa.Table:
    """The fixes of a file that was replayed in segments of 64 KiB and refused by nobody."""
    refuse_unreadable(path, stream)
    log = bare_log(home.log(stream.format))
    report = replay(
        log, path, stream, segment_bytes=1 << 16, end_mark=False, clock=lambda: NOW
    )
    parts = [piece.part.decoded for piece in pieces(log, log.segments(0), stream)]
    assert report.segments > 10
    assert report.records == sum(part.rows for part in parts)
    return pa.concat_tables(
        [
            part.fixes.drop_columns(["row"]).set_column(
                0, "object", part.fixes["object"].cast(pa.string())
            )
            for part in parts
        ]
    )


@pytest.mark.spec("B7")
def test_a_track_of_geolife_says_the_same_as_gpx_and_as_csv(tmp_path, shared):
    packed = shared / "data/gps-geolife-beijing/geolife_sample.txt.gz"
    with gzip.open(packed, "rt", encoding="utf-8") as lines:
        rows = [
            row for number, row in enumerate(csv.DictReader(lines)) if number % 8 == 0
        ]
    assert len({row["uid"] for row in rows}) == 2
    as_csv, as_gpx = tmp_path / "geolife.csv", tmp_path / "geolife.gpx"
    with as_csv.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    ET.ElementTree(document_of(rows)).write(as_gpx, "utf-8")
    home = Home(tmp_path / "home")
    expected = log_of(home, as_csv, AS_CSV)
    assert len(expected) == len(rows) == 27_207
    assert log_of(home, as_gpx, WALKS).equals(expected)


def document_of(rows: list[dict[str, str]]) -> ET.Element:
    """A track for each user, one behind the other, as they stand in the rows."""
    ET.register_namespace("g", "urn:gpx")
    root = ET.Element("{urn:gpx}gpx", version="1.1")
    name, segment = None, root
    for row in rows:
        if row["uid"] != name:
            name = row["uid"]
            line = ET.SubElement(root, "{urn:gpx}trk")
            ET.SubElement(line, "{urn:gpx}name").text = name
            segment = ET.SubElement(line, "{urn:gpx}trkseg")
        place = {"lat": row["lat"], "lon": row["lng"]}
        fix = ET.SubElement(segment, "{urn:gpx}trkpt", place)
        ET.SubElement(fix, "{urn:gpx}time").text = (
            row["datetime"].replace(" ", "T") + "Z"
        )
    return root


# --- segments ---


texts = st.text(
    st.characters(
        codec="utf-8", exclude_characters="\r", exclude_categories=["Cc", "Cs"]
    ),
    max_size=8,
).filter(
    lambda text: text.isprintable() and "\ufffe" not in text and "\uffff" not in text
)


@given(
    tracks=st.lists(
        st.tuples(texts, st.lists(st.integers(0, 5_000), max_size=6)), max_size=4
    ),
    portion=st.integers(1, 300),
    most=st.integers(1, 4),
    note=st.sampled_from(
        ["", "<!-- > -->", "<ele>3</ele>", '<a b=">"/>', "<a><![CDATA[</trkpt>]]></a>"]
    ),
)
def test_segments_say_what_the_document_says_however_it_is_cut(
    tracks, portion, most, note
):
    root = ET.Element("x")
    parts = []
    for name, numbers in tracks:
        root.text = name
        escaped = ET.tostring(root, "unicode")[3:-4] if name else ""
        parts.append(track(escaped, *(point(number, note) for number in numbers)))
    document = gpx(*parts)
    payloads = segments_of(document, portion, most)
    assert fixes_of(*payloads) == fixes_of(document)
    rows = sum(decode(payload, WALKS, arrival_us=NOW).rows for payload in payloads)
    assert rows == sum(len(numbers) for _, numbers in tracks)
    for payload in payloads:
        ET.fromstring(payload)


def test_a_segment_keeps_the_namespaces_and_the_name_of_its_track():
    document = (
        b'<g:gpx xmlns:g="urn:g" xmlns:h="urn:h"><g:metadata><g:name>no</g:name></g:metadata>'
        b"<g:trk><g:name>one &amp; two</g:name><g:trkseg>"
        b'<g:trkpt lat="1" lon="2"><g:time>1970-01-01T00:00:01Z</g:time><h:hr>70</h:hr></g:trkpt>'
        b'</g:trkseg><g:trkseg a=">"><g:trkpt lat="3" lon="4"><g:time>1970-01-01T00:00:02Z</g:time></g:trkpt>'
        b"</g:trkseg></g:trk></g:gpx>"
    )
    payloads = segments_of(document)
    assert payloads[0] == (
        b'<g:gpx xmlns:g="urn:g" xmlns:h="urn:h"><g:trk><g:name>one &amp; two</g:name><g:trkseg>\n'
        b'<g:trkpt lat="1" lon="2"><g:time>1970-01-01T00:00:01Z</g:time><h:hr>70</h:hr></g:trkpt>\n'
        b"</g:trkseg></g:trk></g:gpx>\n"
    )
    assert fixes_of(*payloads) == [
        ("one & two", 1_000_000, 2.0, 1.0),
        ("one & two", 2_000_000, 4.0, 3.0),
    ]


def test_children_of_a_point_are_attributes_by_their_path():
    stream = replace(WALKS, attributes={"ele": "double", "extensions/hr": "long"})
    inside = "<ele> 3.5 </ele><extensions><hr>70</hr><hr>71</hr></extensions>"
    fixes = decode(gpx(track("a", point(1, inside))), stream, arrival_us=NOW).fixes
    assert fixes.select(["ele", "extensions/hr"]).to_pylist() == [
        {"ele": 3.5, "extensions/hr": 70}
    ]


def test_small_segments_that_follow_each_other_are_read_as_each_alone():
    document = gpx(track("a", *map(point, range(5))), track("b", point(7), "<trkpt/>"))
    payloads = [*segments_of(document, most=1), b"<gpx>", gpx()]
    raw = [Raw(payload=payload, arrival_us=NOW) for payload in payloads]
    parts = list(decode_all(raw, WALKS))
    assert sum(part.segments for part in parts) == len(payloads) == 9
    together = pa.concat_tables([part.decoded.fixes for part in parts])
    alone = [decode(payload, WALKS, arrival_us=NOW) for payload in payloads]
    assert together.equals(pa.concat_tables([decoded.fixes for decoded in alone]))
    assert [part.decoded.rows for part in parts] == [decoded.rows for decoded in alone]


def test_a_packed_payload_that_breaks_gives_the_points_in_front_of_the_break():
    document = gpx(track("a", *(point(number, "<ele>3</ele>") for number in range(9))))
    assert fixes_of(gzip.compress(document)) == fixes_of(document)
    cut = gzip.compress(document, compresslevel=0)[:-200]
    decoded = decode(cut, WALKS, arrival_us=NOW)
    assert 0 < len(decoded.fixes) < 9
    assert decoded.rejects["reason"].to_pylist() == ["unreadable", "bad_gzip"]


# --- what goes wrong ---


def test_a_bad_point_is_a_reject_and_counts_add_up():
    late = '<trkpt lat="1" lon="2"><time>yesterday</time></trkpt>'
    nowhere = '<trkpt lon="2"><time>2023-11-14T22:13:00Z</time></trkpt>'
    far = '<trkpt lat="91" lon="2"><time>2023-11-14T22:13:00Z</time></trkpt>'
    waypoint = '<wpt lat="1" lon="2"/>'
    document = gpx(
        waypoint,
        track("a", point(1), late, nowhere, far, "<trkpt/>"),
        track("", point(2)),
    )
    decoded = decode(document, WALKS, arrival_us=NOW)
    assert rejects_of(document) == [
        (0, "no_position"),
        (2, "bad_time"),
        (3, "missing_position"),
        (4, "out_of_crs"),
        (5, "missing_time"),
        (6, "missing_object"),
    ]
    assert (decoded.rows, len(decoded.fixes)) == (7, 1)
    assert decoded.rejects["raw"][0].as_py() == waypoint.encode()


def test_a_payload_that_breaks_has_one_more_record_for_its_rest():
    document = gpx(track("a", point(1), point(2)))
    cut = document[: document.index(b"</trkpt>", document.index(b"0.02"))]
    decoded = decode(cut, WALKS, arrival_us=NOW)
    assert (decoded.rows, len(decoded.fixes)) == (2, 1)
    assert rejects_of(cut) == [(1, "unreadable")]
    assert decoded.rejects["raw"][0].as_py().startswith(b' <trkpt lat="0.02"')


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (gpx(track("a", point(1)) + "</wpt>"), r"line 3, column 1\d\d: mismatched tag"),
        (gpx(track("a", point(1)))[:-8], r"line 3, column 1\d\d: no element found"),
        (b"<kml/>", "line 1, column 1: its root is 'kml' and not gpx"),
        (b"<!DOCTYPE gpx><gpx/>", "it has a DOCTYPE, which is refused"),
        (
            b'<!DOCTYPE g [<!ENTITY a SYSTEM "file:///etc/passwd">]><gpx>&a;</gpx>',
            "it has a DOCTYPE",
        ),
        (gpx(track("&a;", point(1))), "undefined entity"),
        (
            b'<?xml version="1.0" encoding="ISO-8859-1"?><gpx/>',
            "its encoding is ISO-8859-1, and must be UTF-8",
        ),
        (
            gpx(track("a", point(1, "<a>" * 200))),
            "elements stand too deep in each other",
        ),
        (b"<gpx>" + b"<a>" * 200, "elements stand too deep in each other"),
        (gpx(track("a", point(1, "x" * (1 << 21)))), "has more than 1 MiB"),
    ],
)
def test_a_broken_file_is_refused_with_the_place_before_any_of_it_is_captured(
    tmp_path, document, message
):
    path = tmp_path / "walk.gpx"
    path.write_bytes(document)
    with pytest.raises(ConfigError, match=message) as error:
        refuse_unreadable(path, WALKS)
    assert str(path) in str(error.value)
    assert "mend the file" in str(error.value.hint)


def test_a_file_that_breaks_far_behind_its_first_records_is_refused_too(tmp_path):
    path = tmp_path / "walk.gpx"
    path.write_bytes(gpx(track("a", *(point(number) for number in range(8_000))))[:-8])
    with pytest.raises(ConfigError, match="no element found"):
        refuse_unreadable(path, WALKS)


def test_a_file_without_a_point_is_fine(tmp_path):
    for data in (b"", b"\xef\xbb\xbf\n", b"<gpx/>"):
        path = tmp_path / "walk.gpx"
        path.write_bytes(data)
        refuse_unreadable(path, WALKS)
        assert segments_of(data) == []


def test_a_name_that_comes_too_late_is_said_to_be_missing(tmp_path):
    path = tmp_path / "walk.gpx"
    path.write_bytes(gpx(f"<trk><trkseg>{point(1)}</trkseg><name>late</name></trk>"))
    with pytest.raises(ConfigError, match="missing_object") as error:
        refuse_unreadable(path, WALKS)
    assert "each track needs a <name>" in str(error.value.hint)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("header = false\n", "header has no meaning for gpx"),
        (
            'attributes = { "trk/type" = "string" }\n',
            "'trk/type' is nothing that is read of a track",
        ),
    ],
)
def test_settings_that_gpx_has_no_use_for_are_refused(tmp_path, change, message):
    assert message in str(loaded(tmp_path, change).broken["walks"])


def test_coordinates_that_are_exchanged_are_refused(tmp_path):
    streams = loaded(tmp_path, "", x="lat", y="lon")
    assert "x and y are 'lat' and 'lon'" in str(streams.broken["walks"])


def loaded(folder: Path, change: str, x: str = "lon", y: str = "lat"):
    path = folder / "streams.toml"
    columns = (
        f'columns = {{ object = "trk/name", event_ts = "time", x = "{x}", y = "{y}" }}'
    )
    path.write_text(
        f'[streams.walks]\nformat = "gpx"\n{change}{columns}\n', encoding="utf-8"
    )
    return load_streams(path)


def test_waypoints_beside_tracks_are_nowhere_unless_they_are_the_objects():
    document = gpx(
        '<wpt lat="1" lon="2"><name>hut</name><time>2023-11-14T22:13:00Z</time></wpt>',
        track("a", point(1), point(2)),
        '<wpt lat="1" lon="2"/>',
    )
    assert rejects_of(document) == [(0, "no_position"), (3, "no_position")]
    by_name = replace(WALKS, columns=replace(WALKS.columns, object="name"))
    decoded = decode(document, by_name, arrival_us=NOW)
    assert decoded.fixes["object"].to_pylist() == ["hut"]
    assert decoded.rejects["reason"].to_pylist() == ["missing_object"] * 3


@given(
    st.lists(
        st.tuples(st.integers(0, 2_000), st.integers(0, 12), st.binary(max_size=12)),
        min_size=1,
        max_size=4,
    ),
    st.integers(0, 2_000),
)
def test_damaged_documents_are_fixes_rejects_or_one_of_our_errors(damages, end):
    document = gpx(
        '<wpt lat="1" lon="2"><name>hut</name></wpt>',
        track("a &amp; b", point(1, "<ele>3</ele>"), point(2)),
        track("c", point(3)),
    )
    for at, cut, put in damages:
        document = document[:at] + put + document[at + cut :]
    document = document[: max(end, 40)]
    if not document.startswith(b"\x1f\x8b"):
        decoded = decode(document, WALKS, arrival_us=NOW)
        assert len(decoded.fixes) + len(decoded.rejects) == decoded.rows
        with contextlib.suppress(ConfigError):
            found = chunks(Bytes(document, 64), WALKS, size=1)
            assert sum(len(chunk.spans) for chunk in found) <= decoded.rows
