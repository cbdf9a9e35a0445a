"""State vectors of OpenSky: the same fixes as from objects by name, from documents whole, one a line, or cut."""

import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.errors import ConfigError
from st_common.formats.opensky import NAMES
from st_common.replay.chunks import chunks
from tests.kit.effort import tries

NOW = 1_800_000_000_000_000


def stream(**columns) -> StreamSettings:
    table = {
        "format": "opensky",
        "columns": {"object": "icao24", "event_ts": "time_position", **columns},
        "attributes": {"velocity": "double m/s", "on_ground": "bool"},
        "max_ahead_s": "off",
    }
    return stream_of_table("aircraft", table, Path("streams.toml"))


PLANES = stream()


def vector(**known) -> list:
    return [known.get(name) for name in NAMES]


def replayed(content: bytes):
    fixes, reasons = [], []
    for chunk in chunks(io.BytesIO(content), PLANES, size=1):
        count = len(chunk.spans)
        decoded = decode(chunk.payload(0, count), PLANES, arrival_us=NOW)
        assert len(decoded.fixes) + len(decoded.rejects) == decoded.rows == count
        fixes.append(decoded.fixes)
        reasons += decoded.rejects["reason"].to_pylist()
    return pa.concat_tables(fixes) if fixes else None, reasons


@pytest.mark.spec("B7")
def test_aircraft_over_switzerland_come_as_state_vectors(shared):
    """The file's 139,098 records of 842 aircraft, put into documents by their times, as the network gives them."""
    file = shared / "data" / "adsb-switzerland" / "switzerland.json.gz"
    records = json.loads(gzip.decompress(file.read_bytes()))
    documents: dict[int, list] = {}
    for one in records:
        seconds = one["timestamp"] // 1000
        state = vector(
            icao24=one["icao24"],
            callsign=one["callsign"],
            time_position=seconds,
            longitude=one["longitude"],
            latitude=one["latitude"],
            on_ground=False,
        )
        documents.setdefault(seconds, []).append(state)
    texts = [json.dumps({"time": t, "states": s}) for t, s in documents.items()]
    fixes, reasons = replayed("\n".join(texts).encode())
    assert (len(fixes), reasons) == (139_098, [])
    assert len(set(fixes["object"].to_pylist())) == 842
    assert pc.min(fixes["x"]).as_py() == pytest.approx(5.95593, abs=1e-5)
    assert pc.max(fixes["event_ts"]).as_py() == max(documents) * 1_000_000


def test_what_a_vector_lacks_is_a_reason():
    where = {"longitude": 8.5, "latitude": 47, "time_position": 1}
    states = [
        vector(icao24="a", velocity=1.5, on_ground=True, **where),
        vector(icao24="b"),
        vector(**where),
        vector(icao24="c", time_position=1),
        ["d"],
        {"icao24": "e"},
    ]
    document = json.dumps({"time": 2, "states": states}, indent=1).encode()
    fixes, reasons = replayed(document)
    row = fixes.to_pylist()[0]
    assert (row["object"], row["event_ts"], row["x"], row["y"]) == (
        "a",
        1_000_000,
        8.5,
        47.0,
    )
    assert (row["velocity"], row["on_ground"]) == (1.5, True)
    assert reasons == [
        "missing_time",
        "missing_object",
        "missing_position",
        "missing_time",
        "no_json_object",
    ]


def test_an_empty_sky_has_no_record():
    assert replayed(b'{"time":1,"states":null}\n{"time":2,"states":[]}') == (None, [])


def test_a_column_that_no_vector_has_is_refused():
    with pytest.raises(ConfigError, match="object = 'hex' is no part"):
        stream(object="hex")


PIECES = [
    json.dumps(vector(icao24="a", longitude=1, latitude=2, time_position=3)).encode(),
    *(b"{", b"}", b"[", b"]", b",", b'"', b"\n", b"null", b'"states":', b"\xff", b"7"),
]


@pytest.mark.spec("B7")
@given(st.lists(st.sampled_from(PIECES), max_size=20).map(b"".join) | st.binary())
@tries(40)
def test_whatever_the_bytes_are_all_of_them_are_accounted_for(content):
    decoded = decode(content, PLANES, arrival_us=NOW)
    assert len(decoded.fixes) + len(decoded.rejects) == decoded.rows
    fixes, reasons = replayed(content)
    assert decoded.rejects["reason"].to_pylist() == reasons
    assert decoded.rows == len(reasons) + (0 if fixes is None else len(fixes))
