"""Whoever posts fixes is told which of them are none, why, and where they stand in what was sent."""

import json

import pyarrow as pa
import pytest

import fairway
from st_common.config.home import Home
from st_common.server.installation import Installation
from tests.kit.feeding import payloads_of
from tests.kit.server_http import Engine, served

pytestmark = pytest.mark.spec("S8")

COLUMNS = """
columns = { object = "id", event_ts = "t", x = "lon", y = "lat" }
time_unit = "s"
max_ahead_s = "off"
engine = "local"
"""
SETTINGS = f"""
[streams.ships]
format = "ndjson"
{COLUMNS}
[streams.cars]
format = "csv"
{COLUMNS}
[streams.radar]
format = "sbs1"
columns = {{ object = "hex", event_ts = "time" }}
engine = "local"
max_ahead_s = "off"
"""
NDJSON, CSV, JSON = "application/x-ndjson", "text/csv", "application/json"
ARROW, FORM = "application/vnd.apache.arrow.stream", "application/x-www-form-urlencoded"
GOOD = {"id": "a", "t": 1, "lon": 2, "lat": 3}
NOWHERE = {"id": "b", "t": 2, "lat": 3}
TOO_FAR_NORTH = {"id": "c", "t": 3, "lon": 2, "lat": 93.5}


def place_in(root):
    conf = root / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text(SETTINGS)
    return Installation(home=Home(root / "home"), conf=conf)


@pytest.fixture
def place(tmp_path):
    return place_in(tmp_path)


@pytest.fixture
def client(place):
    with served(place) as client:
        yield client


@pytest.fixture(scope="module")
def refusing(tmp_path_factory):
    """A client of a server for requests that are refused, and so leave it as it is."""
    with served(place_in(tmp_path_factory.mktemp("refusing"))) as client:
        yield client


def send(client, body, media, stream="ships", **headers):
    named = {"content-type": media} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    return client.post(f"/v1/streams/{stream}/fixes", content=body, headers=named)


def ndjson(*records):
    return "".join(json.dumps(one) + "\n" for one in records)


def csv(*records):
    names = ("id", "t", "lon", "lat")
    rows = [",".join(str(one.get(name, "")) for name in names) for one in records]
    return "\n".join([",".join(names), *rows]) + "\n"


def arrow(*records):
    columns = {
        name: [one.get(name) for one in records] for name in ("id", "t", "lon", "lat")
    }
    table = pa.table({**columns, "lon": pa.array(columns["lon"], pa.float64())})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def array(*records):
    return json.dumps(list(records), indent=1)


def collection(*records):
    features = [
        {
            "type": "Feature",
            "properties": {"id": one["id"], "t": one["t"]},
            "geometry": {
                "type": "Point",
                "coordinates": [one["lon"], one["lat"]] if "lon" in one else [],
            },
        }
        for one in records
    ]
    return json.dumps({"type": "FeatureCollection", "features": features})


FORMS = [(NDJSON, ndjson), (JSON, array), (CSV, csv), (ARROW, arrow)]
NAMED = pytest.mark.parametrize(
    ("media", "written"), FORMS, ids=("ndjson", "array", "csv", "arrow")
)


@NAMED
def test_what_is_accepted_and_what_is_rejected_is_told_of_every_form_of_body(
    place, client, media, written
):
    for stream in ("ships", "cars"):
        check_verdict(place, client, media, written, stream)


def check_verdict(place, client, media, written, stream):
    told = send(client, written(GOOD, NOWHERE, TOO_FAR_NORTH), media, stream)
    assert told.status_code == 202
    body = told.json()
    assert (body["records"], body["accepted"], body["rejected"]) == (3, 1, 2)
    assert body["reasons"] == {"missing_position": 1, "out_of_crs": 1}
    first, second = body["rejects"]
    assert (first["record"], first["reason"]) == (2, "missing_position")
    assert (second["record"], second["reason"]) == (3, "out_of_crs")
    assert "93.5" in second["raw"]
    engine = Engine(place, stream)
    engine.work()
    engine.close()
    rows = client.get("/v1/objects", params={"stream": stream}).json()["rows"]
    assert [(one["object"], one["x"], one["y"]) for one in rows] == [("a", 2.0, 3.0)]
    kept = client.post(
        "/v1/sql", content=f"SELECT reason FROM rejects WHERE stream = '{stream}'"
    ).json()
    assert sorted(one["reason"] for one in kept["rows"]) == [
        "missing_position",
        "out_of_crs",
    ]


@NAMED
@pytest.mark.parametrize("stream", ["ships", "cars"])
def test_a_body_without_a_fix_is_refused_and_nothing_of_it_is_stored(
    place, client, media, written, stream
):
    bad = written(NOWHERE, TOO_FAR_NORTH)
    told = send(client, bad, media, stream, Idempotency_Key="one")
    assert told.status_code == 422
    body = told.json()
    assert (
        body["error"] == "all 2 records are rejected: 1 missing_position, 1 out_of_crs"
    )
    assert (body["records"], body["accepted"], body["rejected"]) == (2, 0, 2)
    assert body["hint"]
    assert payloads_of(place.home, stream) == []
    # What is mended may come by the same key: nothing was stored by it.
    mended = send(client, written(GOOD), media, stream, Idempotency_Key="one")
    assert (mended.status_code, mended.json()["accepted"]) == (202, 1)


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ('{"id": "b", "t": 1, "lat": 3}', "missing_position"),
        ('{"id": "b", "t": 1, "lon": 2, "lat": 93.5}', "out_of_crs"),
        ('"abc"', "no_json_object"),
        ('{"id": "b", "t": "soon", "lon": 2, "lat": 3}', "bad_time"),
        ("abc", "no_json_object"),
        ('{"id": "b"', "bad_json"),
    ],
)
def test_a_single_record_that_is_no_fix_is_refused_with_its_reason(
    client, record, reason
):
    told = send(client, record, JSON)
    assert told.status_code == 422
    assert told.json()["error"] == f"the record is rejected: {reason}"
    assert told.json()["reasons"] == {reason: 1}


def place_told(told):
    (one,) = told.json()["rejects"]
    return one["line"], one["column"], one["offset"]


def test_places_count_in_the_text_that_was_sent(client):
    good = json.dumps(GOOD)
    body = f"\n{good}\n\n{json.dumps(NOWHERE)}\n"
    offset = body.index('{"id": "b"')
    assert place_told(send(client, body, NDJSON)) == (4, 1, offset)
    body = f" [\n {good},\n  {json.dumps(NOWHERE)}]"
    offset = body.index('{"id": "b"')
    assert place_told(send(client, body, JSON)) == (3, 3, offset)
    body = 'id,t,lon,lat\r\n"ä\n1",1,2,3\r\nb,2,,3\r\n'
    offset = len(body[: body.index("b,2")].encode())
    for stream in ("ships", "cars"):
        assert place_told(send(client, body.encode(), CSV, stream)) == (4, 1, offset)
    # Of what is no JSON it is told where it breaks.
    body = f'{good}\n{{"id": "ä", "t": 1, lon: 2}}\n'
    column = '{"id": "ä", "t": 1, '
    offset = len((good + "\n" + column).encode())
    found = place_told(send(client, body.encode(), NDJSON))
    assert found == (2, len(column) + 1, offset)


def test_a_record_of_another_format_that_cannot_be_taken_apart_costs_itself_alone(
    place, client
):
    body = "id,t,lon,lat\na,1,2,3\nb,2,3\nc,3,2,93.5\nd,4,2,3\n"
    told = send(client, body, CSV)
    assert told.status_code == 202
    body = told.json()
    assert (body["records"], body["accepted"], body["rejected"]) == (4, 2, 2)
    assert [(one["record"], one["line"], one["reason"]) for one in body["rejects"]] == [
        (2, 3, "ragged"),
        (3, 4, "out_of_crs"),
    ]


@pytest.mark.parametrize("media", [FORM, "text/plain", "application/octet-stream", ""])
def test_a_body_that_does_not_say_what_it_is_is_in_the_format_of_the_stream(
    client, media
):
    for stream, body in (("ships", ndjson(GOOD)), ("cars", csv(GOOD))):
        told = send(client, body, media, stream)
        assert (told.status_code, told.json()["accepted"]) == (202, 1)


def test_curl_that_took_the_line_ends_out_is_told_how_it_keeps_them(client):
    told = send(client, csv(GOOD).replace("\n", ""), FORM, "cars")
    assert told.status_code == 400
    assert "--data-binary" in told.json()["hint"]


def test_a_request_made_again_gets_the_same_counts(client):
    body = ndjson(GOOD, NOWHERE)
    first = send(client, body, NDJSON, Idempotency_Key="one").json()
    assert send(client, body, NDJSON, Idempotency_Key="one").json() == first


def test_a_fix_that_leaps_ahead_of_its_stream_is_told_and_again_by_the_next_server(
    place,
):
    leap = {**GOOD, "id": "b", "t": 400 * 86_400}
    body = f"\n{ndjson(GOOD, leap, {**GOOD, 't': 2})}"
    with served(place) as client:
        first = send(client, body, NDJSON, Idempotency_Key="one").json()
        assert (first["records"], first["accepted"], first["rejected"]) == (3, 2, 1)
        (told,) = first["rejects"]
        assert (told["record"], told["line"], told["reason"]) == (
            2,
            3,
            "ahead_of_stream",
        )
        assert send(client, body, NDJSON, Idempotency_Key="one").json() == first
    with served(place) as client:
        assert send(client, body, NDJSON, Idempotency_Key="one").json() == first
    assert len(payloads_of(place.home, "ships")) == 1


def test_records_that_need_those_before_are_stored_and_not_judged_at_once(
    place, client
):
    """A name without a position is what a position of the next request needs."""
    line = "MSG,1,1,1,A955D1,1,2024/05/01,12:00:00.000,2024/05/01,12:00:00.000,N700NY,,,,,,,,,,,\n"
    told = send(client, line, FORM, "radar")
    assert told.status_code == 202
    assert not {"accepted", "rejected"} & set(told.json())
    assert len(payloads_of(place.home, "radar")) == 1


def test_arrow_reaches_the_log_as_rows_and_is_read_anew_by_other_settings(
    place, client
):
    engine = Engine(place, "ships")
    number = 0.1 + 0.2
    send(client, arrow({**GOOD, "lat": number}), ARROW)
    send(client, arrow({**GOOD, "id": "b"}), ARROW)
    engine.work()
    rows = client.get("/v1/objects", params={"stream": "ships"}).json()["rows"]
    assert [(one["object"], one["y"]) for one in rows] == [("a", number), ("b", 3.0)]
    engine.close()
    payloads = payloads_of(place.home, "ships")
    assert all(pa.ipc.open_stream(one).read_all().num_rows for one in payloads)


def test_a_body_of_arrow_that_is_damaged_or_lies_is_refused(client):
    good = arrow(GOOD)
    for at in range(8, len(good), 7):
        broken = good[:at] + bytes([good[at] ^ 0xFF]) + good[at + 1 :]
        assert send(client, broken, ARROW).status_code in (202, 400, 422), at
    for end in range(0, len(good), 11):
        assert send(client, good[:end], ARROW).status_code in (202, 400, 422), end
    twice = pa.table([[1.0], [2.0]], names=["lon", "lon"])
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, twice.schema) as writer:
        writer.write_table(twice)
    assert send(client, sink.getvalue().to_pybytes(), ARROW).status_code == 400


def test_a_body_that_is_too_large_once_it_is_read_hurts_nobody_who_comes_later(client):
    empty = pa.nulls(4_000_000, pa.float64())
    rows = pa.table(
        {"id": pa.nulls(4_000_000, pa.string()), "lon": empty, "lat": empty}
    )
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_stream(sink, rows.schema, options=options) as writer:
        writer.write_table(rows)
    told = send(client, sink.getvalue().to_pybytes(), ARROW)
    assert (told.status_code, told.json()["error"]) == (400, "the body is too large")
    assert send(client, ndjson(GOOD), NDJSON).status_code == 202


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("SELECT * FROM ships INSIDES (0, 0, 1, 1)", "line 1, column 21"),
        ("\n\n  SELECT * FROM ships\n INSIDE (0, 0, 1)", "line 4, column 10"),
        ("SELECT * FROM ships WHERE nothing > 1", "line 1, column 27"),
        ("-- a comment\nSELECT * FROM boats", "line 2, column 15"),
    ],
)
def test_what_is_wrong_in_a_query_stands_at_its_place_in_what_was_sent(
    refusing, text, where
):
    told = refusing.put("/v1/queries/zone", content=text)
    assert told.status_code == 400
    assert told.json()["error"].startswith(where), told.text
    with (
        fairway.connect(str(refusing.base_url)) as remote,
        pytest.raises(fairway.QueryError) as wrong,
    ):
        remote.register(text, "zone")
    assert wrong.value.message == told.json()["error"]


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (b'{"text":\n x}', "line 2, column 2: the body is no JSON from here on"),
        (b"[" * 100_000, "the body is too deep: objects in objects"),
        (b'{"text": "SELECT \\ud800"}', "the text has half a character"),
        (b"\xc3{}", "the body is no JSON, or no UTF-8"),
    ],
)
def test_a_body_that_is_no_json_is_told_in_our_own_words(refusing, body, wrong):
    for path in ("/v1/queries", "/v1/sql", "/v1/explain"):
        told = refusing.post(
            path, content=body, headers={"content-type": "application/json"}
        )
        assert (told.status_code, told.json()["error"]) == (400, wrong), path
