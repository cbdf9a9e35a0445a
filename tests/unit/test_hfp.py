"""HFP: a real recording with its known counts, and lines that are none."""

import re
from collections import Counter
from dataclasses import replace

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.errors import ConfigError
from st_common.formats.registry import format_of
from st_common.replay.chunks import chunks
from st_common.replay.readable import refuse_unreadable

pytestmark = pytest.mark.spec("B7")

PLACE = {"event_ts": "tst", "x": "long", "y": "lat"}
VEHICLES = StreamSettings(
    name="vehicles",
    format="hfp",
    columns=Columns(object=("operator_id", "vehicle_number"), **PLACE),
    attributes={
        "received": "string",
        "journey_type": "string",
        "temporal_type": "string",
        "transport_mode": "string",
        "route_id": "string",
        "headsign": "string",
        "geohash": "string",
        "desi": "string",
        "spd": "double",
        "hdg": "long",
    },
    max_ahead_s=None,
)
FIRST = (
    b"2018-10-09T04:32:52.549698+0000 /hfp/v1/journey/ongoing/bus/0018/00640/1057/1/"
    b"Munkkiniemi/07:32/1471139/3/60;25/20/38/71 "
)
PAYLOAD = (
    b'{"VP":{"desi":"57","oper":18,"veh":640,"tst":"2018-10-09T04:32:52Z","spd":8.53,'
    b'"lat":60.237024,"long":25.081113}}'
)


def decoded_of(payload, stream=VEHICLES):
    return decode(payload, stream, arrival_us=0)


def test_a_recording_has_its_known_counts(shared):
    path = shared / "data/hfp-helsinki/hfp-5000.txt"
    payload = path.read_bytes()
    refuse_unreadable(path, VEHICLES)
    with path.open("rb") as file:
        spans = sum(len(each.spans) for each in chunks(file, VEHICLES, size=1 << 18))
    records = format_of("hfp").records(payload, VEHICLES)
    assert (spans, len(records.fault), records.fault.sum()) == (5000, 5000, 0)
    said = {name: values.to_pylist() for name, values in records.fields.items()}
    assert Counter(said["transport_mode"]) == {"bus": 4249, "train": 456, "tram": 295}
    assert Counter(said["journey_type"]) == {"journey": 4279, "deadrun": 721}
    assert Counter(said["temporal_type"]) == {"ongoing": 4884, "upcoming": 116}
    blanks = [
        " " in (sign or "") or " " in (route or "")
        for sign, route in zip(said["headsign"], said["route_id"], strict=True)
    ]
    assert sum(blanks) == 608
    assert said["received"][0] == "2018-10-09T04:32:52.549043+0000"
    decoded = decoded_of(payload)
    assert Counter(decoded.rejects["reason"].to_pylist()) == {"missing_position": 146}
    assert len(set(decoded.fixes["object"].to_pylist())) == 1420
    x, y = decoded.fixes["x"].to_pylist(), decoded.fixes["y"].to_pylist()
    box = (23.75593, 60.03417, 27.08526, 64.11650)
    found = (min(x), min(y), max(x), max(y))
    assert tuple(round(value, 5) for value in found) == box
    times = [each["event_ts"] for each in decoded.fixes.to_pylist()]
    assert max(times) == 1_539_059_579_000_000  # 04:32:59


def test_a_line_is_taken_apart():
    (fix,) = decoded_of(FIRST + PAYLOAD + b"\r\n").fixes.to_pylist()
    assert (fix["object"], fix["x"], fix["y"]) == ("0018/00640", 25.081113, 60.237024)
    assert (fix["route_id"], fix["headsign"]) == ("1057", "Munkkiniemi")
    assert (fix["geohash"], fix["desi"], fix["spd"]) == ("60;25/20/38/71", "57", 8.53)


SECOND = FIRST.replace(b"/v1/journey/ongoing/", b"/v2/journey/ongoing/vp/")
WITH_EVENT = replace(
    VEHICLES,
    attributes={**VEHICLES.attributes, "event_type": "string", "start_time": "string"},
)


def test_topics_of_both_versions_have_the_same_parts():
    early = SECOND.replace(b"07:32", b"7:32")  # as the documentation writes it
    lines = (FIRST + PAYLOAD, SECOND + PAYLOAD, early + PAYLOAD)
    first, *later = decoded_of(b"\n".join(lines), WITH_EVENT).fixes.to_pylist()
    assert (first["event_type"], first["start_time"]) == (None, "07:32")
    assert [fix["start_time"] for fix in later] == ["07:32", "7:32"]
    beside = {"event_type": None, "start_time": None, "row": None}
    assert {fix["event_type"] for fix in later} == {"vp"}
    assert [{**fix, **beside} for fix in later] == [{**first, **beside}] * 2


def test_a_recording_of_version_2_is_that_of_version_1(shared):
    payload = (shared / "data/hfp-helsinki/hfp-5000.txt").read_bytes()
    version_2 = re.sub(rb" /hfp/v1/(\w+/\w+)/", rb" /hfp/v2/\1/vp/", payload)
    first, second = (decoded_of(one, WITH_EVENT).fixes for one in (payload, version_2))
    assert pc.unique(second["event_type"]).to_pylist() == ["vp"]
    assert second.drop(["event_type"]).equals(first.drop(["event_type"]))


def test_what_a_broker_brings_has_no_topic():
    stream = StreamSettings(
        name="vehicles",
        format="hfp",
        columns=Columns(object=("oper", "veh"), **PLACE),
        attributes={"headsign": "string"},
        max_ahead_s=None,
    )
    (fix,) = decoded_of(PAYLOAD, stream).fixes.to_pylist()
    assert (fix["object"], fix["headsign"]) == ("18/640", None)


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"noise", "unreadable"),
        (FIRST, "unreadable"),
        (FIRST + PAYLOAD[:-1], "bad_json"),
        (FIRST + b'{"DUE":{"lat":1,"long":2}}', "no_position"),
        (PAYLOAD, "missing_object"),
        (FIRST + PAYLOAD.replace(b"60.2", b"160.2"), "out_of_crs"),
        (FIRST.replace(b"/v1/", b"/v3/") + PAYLOAD, "missing_object"),
        (FIRST + PAYLOAD.replace(b"57", b"\xff"), "bad_utf8"),
    ],
)
def test_a_line_that_is_no_fix_says_why(line, reason):
    rejects = decoded_of(line + b"\n" + FIRST + PAYLOAD).rejects.to_pylist()
    assert rejects == [{"row": 0, "reason": reason, "raw": line, "line": None}]


@given(st.lists(st.sampled_from([FIRST + PAYLOAD, b"x", b""])), st.binary(max_size=9))
def test_any_bytes_are_fixes_or_rejects(some, noise):
    payload = b"\n".join([*some, noise + FIRST + noise + PAYLOAD, noise])
    decoded = decoded_of(payload)
    assert len(decoded.fixes) + len(decoded.rejects) == decoded.rows


def test_a_column_that_no_line_has_is_refused(tmp_path):
    columns = Columns(object="vehicle", **PLACE)
    stream = StreamSettings(name="vehicles", format="hfp", columns=columns)
    wrong, _ = format_of("hfp").wrong_in(stream)
    assert wrong == "object = 'vehicle' is no column of HFP"
    path = tmp_path / "records"
    path.write_text("a,1,2\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="mostly unreadable"):
        refuse_unreadable(path, VEHICLES)
