"""Records in a list inside of JSON documents: `records = "vehicles"`."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.stream import StreamSettings
from st_common.config.streams import load_streams
from st_common.config.streams import stream_of as known_stream
from st_common.decode import decode
from st_common.detect.report import detect
from st_common.errors import ConfigError
from st_common.replay.chunks import chunks
from st_common.sources.framing import of_document, of_message

pytestmark = pytest.mark.spec("B6", "B7")

SETTINGS = """
[streams.vans]
format = "ndjson"
records = "{path}"
columns = {{ object = "id", event_ts = "ts", x = "lon", y = "lat" }}
time_unit = "s"
max_ahead_s = "off"
"""


def stream_of(tmp_path, path: str) -> StreamSettings:
    (tmp_path / "streams.toml").write_text(SETTINGS.format(path=path))
    return load_streams(tmp_path)["vans"]


def record(number: int) -> dict[str, object]:
    return {
        "id": f"v{number}",
        "ts": 1_700_000_000 + number,
        "lon": 24.9,
        "lat": 60.2,
        "stops": [{"id": "not a record", "at": {"x": 1}}],
        "note": '}]"{[\\',
    }


def nested(path: str, value: object) -> dict[str, object]:
    """A document in which a value lies at a path, with other members around it."""
    for name in reversed(path.split(".")):
        value = {"ok": [1, {"vehicles": 2}], name: value, "more": {"n": [[]]}}
    assert isinstance(value, dict)
    return value


def ids(document: bytes, stream: StreamSettings) -> tuple[list[str], list[str]]:
    """The objects of the fixes, and the reasons of the rejects."""
    cut = list(chunks(io.BytesIO(document), stream, size=1))
    parts = [decode(c.payload(0, len(c.spans)), stream, arrival_us=0) for c in cut]
    objects = [one for part in parts for one in part.fixes["object"].to_pylist()]
    return objects, [r for part in parts for r in part.rejects["reason"].to_pylist()]


@pytest.mark.parametrize("path", ["vehicles", "data.vehicles", "a.b.vehicles"])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("count", [0, 1, 7, 3_000])
def test_each_element_of_the_list_is_a_fix_wherever_it_lies(
    tmp_path, path, indent, count
):
    document = nested(path, [record(n) for n in range(count)])
    objects, reasons = ids(
        json.dumps(document, indent=indent).encode(), stream_of(tmp_path, path)
    )
    assert (objects, reasons) == ([f"v{n}" for n in range(count)], [])


@given(
    counts=st.lists(st.integers(0, 4), max_size=5),
    path=st.sampled_from(["v", "data.v"]),
    gap=st.sampled_from(["", "\n", " \r\n\t"]),
)
def test_documents_that_follow_each_other_lose_nothing(
    tmp_path_factory, counts, path, gap
):
    stream = stream_of(tmp_path_factory.mktemp("conf"), path)
    lists = [[record(10 * m + n) for n in range(c)] for m, c in enumerate(counts)]
    text = gap.join(json.dumps(nested(path, one)) for one in lists)
    expected = [str(one["id"]) for part in lists for one in part]
    assert ids(text.encode(), stream) == (expected, [])


@pytest.mark.parametrize(
    "document",
    [
        {"error": "too many requests"},
        {"data": {"error": 1}},
        {"vehicles": [record(1)]},
        {"data": [record(1)]},
        {"data": {"vehicles": {"a": record(1)}}},
    ],
)
def test_a_document_without_the_list_is_a_reject(tmp_path, document):
    stream = stream_of(tmp_path, "data.vehicles")
    text = json.dumps(document).encode()
    assert ids(text, stream) == ([], ["missing_object"])


def test_a_document_that_breaks_costs_its_last_record_alone(tmp_path):
    stream = stream_of(tmp_path, "data.vehicles")
    text = json.dumps(nested("data.vehicles", [record(n) for n in range(5)]))
    cut = text[: text.index('"v4"') + 2].encode()
    assert ids(cut, stream) == ([f"v{n}" for n in range(4)], ["bad_json"])


def test_what_is_wrong_behind_the_list_is_told(tmp_path):
    stream = stream_of(tmp_path, "data.vehicles")
    text = b'{"data":{"vehicles":[%s],oops}}' % json.dumps(record(0)).encode()
    objects, reasons = ids(text, stream)
    assert (objects, len(reasons)) == (["v0"], 1)


def test_a_message_and_an_answer_are_documents_and_a_socket_carries_none(tmp_path):
    stream = stream_of(tmp_path, "vehicles")
    text = json.dumps(nested("vehicles", [record(n) for n in range(3)]), indent=1)
    for cut in (of_message, of_document):
        (arrival,) = cut(text.encode(), stream)
        assert arrival.records == 3
        fixes = decode(arrival.body, stream, arrival_us=0).fixes
        assert fixes["object"].to_pylist() == ["v0", "v1", "v2"]


@pytest.mark.parametrize(
    ("settings", "wrong"),
    [
        ('format = "csv"\nrecords = "a"', "records has no meaning for csv"),
        ('format = "ndjson"\nrecords = "a..b"', "must be a path of keys"),
        ('format = "ndjson"\nrecords = 1', "must be a path of keys"),
    ],
)
def test_a_path_that_cannot_be_is_refused(tmp_path, settings, wrong):
    columns = 'columns = { object = "id", x = "x", y = "y" }\n'
    (tmp_path / "streams.toml").write_text(f"[streams.s]\n{settings}\n{columns}")
    with pytest.raises(ConfigError, match=wrong):
        known_stream(load_streams(tmp_path), "s")


FEATURE = {
    "type": "Feature",
    "properties": {"id": "a", "ts": 1_700_000_000},
    "geometry": {"type": "Point", "coordinates": [1, 2]},
}


@pytest.mark.parametrize(
    ("document", "path", "form", "fixes"),
    [
        ({"agencies": [{"name": "x"}], "vehicles": [record(1)]}, "vehicles", "ndjson", 1),
        ({"data": {"list": [record(n) for n in range(3)]}}, "data.list", "ndjson", 3),
        ({"data": {"list": [record(n) for n in range(3_000)]}}, "data.list", "ndjson", None),
        (record(1), None, "ndjson", 1),
        ({"type": "FeatureCollection", "features": [FEATURE]}, None, "geojson", 1),
        ({"type": "FeatureCollection", "features": [{"id": "own", **FEATURE}]}, None, "geojson", 1),
    ],
)  # fmt: skip
def test_check_finds_the_list_and_replay_reads_it(
    tmp_path, document, path, form, fixes
):
    file = tmp_path / "answer.json"
    file.write_text(json.dumps(document))
    seen = detect(str(file))
    assert (seen.table["format"], seen.table.get("records")) == (form, path)
    assert seen.is_readable
    if fixes is None:
        return  # its end is cut
    assert (seen.good, seen.records) == (fixes, fixes)
    home = ["--home", str(tmp_path / "home"), "--conf", str(tmp_path / "conf")]
    told = CliRunner().invoke(app, [*home, "check", str(file), "--write", "vans"])
    assert told.exit_code == 0, told.output
    told = CliRunner().invoke(app, [*home, "replay", "vans", str(file)])
    assert f"{fixes} record" in told.output
