"""Texts in other encodings than UTF-8: read by a setting, their bytes kept as they came."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.client.put import put
from st_common.config.home import Home
from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.decode.batch import Raw, decode_all
from st_common.errors import ConfigError
from st_common.formats.encodings import as_utf8, as_written, encoding_of, encoding_seen
from st_common.log.log import Log
from st_common.log.record_settings import reading_of, with_reading

pytestmark = pytest.mark.spec("B7")

COLUMNS = {"object": "Gerät", "event_ts": "t", "x": "x", "y": "y"}
TEXT = "Gerät,t,x,y\nMüller,2025-11-24T08:00:00Z,24.9,60.1\nStraße,heute,24.9,60.1\n"
ONE_BYTE = [
    "windows-1252",
    "latin-1",
    "cp1250",
    "cp1251",
    "cp437",
    "koi8-r",
    "mac-roman",
    "iso-8859-15",
]


def stream(encoding: str, form: str = "csv", **columns):
    table = {
        "format": form,
        "columns": {**COLUMNS, **columns},
        "max_ahead_s": "off",
        "encoding": encoding,
    }
    return stream_of_table("buses", table, "streams.toml")


@pytest.mark.parametrize("encoding", ["windows-1252", "latin-1", "cp850", "mac-roman"])
def test_records_are_read_in_their_encoding_and_rejects_keep_their_bytes(encoding):
    decoded = decode(TEXT.encode(encoding), stream(encoding), arrival_us=0)
    assert decoded.fixes["object"].to_pylist() == ["Müller"]
    assert decoded.rejects["reason"].to_pylist() == ["bad_time"]
    assert decoded.rejects["raw"].to_pylist() == [
        "Straße,heute,24.9,60.1".encode(encoding)
    ]


def test_the_same_bytes_are_read_anew_by_another_encoding():
    data = "Gerät,t,x,y\nŁódź,2025-11-24T08:00:00Z,24.9,60.1\n".encode("cp1250")
    names = [
        decode(data, stream(one), arrival_us=0).fixes["object"].to_pylist()
        for one in ("cp1250", "cp1252")
    ]
    assert names == [["Łódź"], ["£ódŸ"]]


def test_small_segments_that_are_decoded_together_are_read_in_their_encoding():
    payload = TEXT.encode("cp1252")
    settings = stream("cp1252")
    parts = list(decode_all([Raw(payload=payload, arrival_us=0)] * 5, settings))
    assert sum(part.segments for part in parts) == 5
    names = [
        name for part in parts for name in part.decoded.fixes["object"].to_pylist()
    ]
    raws = [raw for part in parts for raw in part.decoded.rejects["raw"].to_pylist()]
    assert names == ["Müller"] * 5
    assert raws == ["Straße,heute,24.9,60.1".encode("cp1252")] * 5


def test_a_byte_that_stands_for_no_character_costs_its_own_record():
    data = "Gerät,t,x,y\nM\x81ller,2025-11-24T08:00:00Z,1,2\nb,2025-11-24T08:00:00Z,1,2\n".encode(
        "latin-1"
    )
    decoded = decode(data, stream("windows-1252"), arrival_us=0)
    assert decoded.fixes["object"].to_pylist() == ["b"]
    assert decoded.rejects["reason"].to_pylist() == ["bad_utf8"]
    assert decoded.rejects["raw"].to_pylist() == [b"M\x81ller,2025-11-24T08:00:00Z,1,2"]


def test_json_may_be_in_another_encoding_too():
    line = '{"Gerät": "Müller", "t": "2025-11-24T08:00:00Z", "x": 1, "y": 2}\n'.encode(
        "latin-1"
    )
    assert decode(line, stream("latin-1", "ndjson"), arrival_us=0).fixes[
        "object"
    ].to_pylist() == ["Müller"]


@given(st.binary(max_size=200), st.sampled_from(ONE_BYTE))
def test_bytes_of_one_byte_encodings_come_back_as_they_were(data, encoding):
    known = encoding_of(encoding)
    assert as_written(as_utf8(data, known), known) == data


@given(
    st.binary(max_size=200),
    st.sampled_from(["shift_jis", "gb18030", "big5", "euc_kr", "cp932", "utf-16"]),
)
def test_no_bytes_raise_in_any_encoding(data, encoding):
    payload = b"Ger\xe4t,t,x,y\n" + data
    decode(payload, stream(encoding), arrival_us=0)


@given(
    st.text(
        st.characters(codec="shift_jis", exclude_characters=',"\r\n\0¥‾'), min_size=1
    ).filter(str.strip)
)
def test_names_in_shift_jis_read_back_equal(name):
    data = f"Ger,t,x,y\n{name},2025-11-24T08:00:00Z,1,2\n".encode("shift_jis")
    decoded = decode(data, stream("shift_jis", object="Ger"), arrival_us=0)
    assert [one.strip() for one in decoded.fixes["object"].to_pylist()] == [
        name.strip()
    ]


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("UTF8", "utf-8"),
        ("utf-8-sig", "utf-8"),
        ("Windows-1252", "cp1252"),
        ("latin1", "iso8859-1"),
        ("UTF-16LE", "utf-16-le"),
        ("cp037", None),
        ("utf-7", None),
        ("rot13", None),
        ("unicode_escape", None),
        ("iso2022_jp", None),
        ("base64", None),
        ("ebcdic", None),
        ("\0", None),
    ],
)
def test_encodings_are_known_by_their_names(name, known):
    assert encoding_of(name) == known


def test_a_name_that_is_none_is_refused():
    with pytest.raises(
        ConfigError, match="encoding = 'ebcdic' is no encoding that records can be in"
    ):
        stream("ebcdic")


@pytest.mark.parametrize(
    ("data", "seen"),
    [
        (b"plain", "utf-8"),
        ("Gerät".encode(), "utf-8"),
        ("Gerät".encode()[:4], "utf-8"),
        ("Gerät".encode("latin-1"), "windows-1252"),
        (b"\0\xff\0", "utf-8"),
    ],
)
def test_the_encoding_of_a_beginning_is_seen(data, seen):
    assert encoding_seen(data) == seen


def test_the_log_says_the_encoding_only_where_it_is_another_one():
    assert "encoding" not in reading_of(stream("utf-8"))
    said = reading_of(stream("latin-1"))
    assert said["encoding"] == "iso8859-1"
    assert with_reading(stream("utf-8"), said, where="here").encoding == "iso8859-1"


def test_texts_that_a_program_puts_are_read_whatever_the_encoding_of_the_stream(
    tmp_path,
):
    home, settings = Home(tmp_path), stream("latin-1")
    row = {"Gerät": "Müller", "t": "2025-11-24T08:00:00Z", "x": 1.0, "y": 2.0}
    done = put(home, settings, [row], live=False)
    assert (done.records, done.accepted) == (1, 1)
    put(home, settings, [{**row, "Gerät": "Łódź"}], live=False)
    log = Log(home.log("buses"))
    read = [
        decode(log.read(one), settings, arrival_us=0).fixes["object"].to_pylist()
        for one in log.segments(0)
        if not one.control
    ]
    assert read == [["Müller"], ["Łódź"]]
