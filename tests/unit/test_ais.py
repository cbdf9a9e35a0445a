"""AIS: sentences against pyais, and real recordings with their known counts."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyais.encode import encode_dict
from pyais.exceptions import MissingPayloadException
from pyais.stream import FileReaderStream, IterMessages

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import Decoded, decode
from st_common.errors import ConfigError
from st_common.formats.registry import format_of
from st_common.replay.chunks import chunks
from st_common.replay.readable import refuse_unreadable

SHIPS = StreamSettings(
    name="ships",
    format="ais",
    columns=Columns(object="mmsi", event_ts="time", x="longitude", y="latitude"),
    time_unit="s",
    attributes={
        "type": "long",
        "sog": "double",
        "cog": "double",
        "heading": "long",
        "status": "long",
        "accuracy": "bool",
        "altitude": "long",
        "name": "string",
        "callsign": "string",
        "shiptype": "long",
        "imo": "long",
        "draught": "double",
        "destination": "string",
        "length": "long",
        "width": "long",
    },
    max_ahead_s=None,
)
TIMELESS = replace(SHIPS, columns=replace(SHIPS.columns, event_ts=None))
POSITIONS = (1, 2, 3, 4, 9, 18, 19, 21, 27)
STATIC = ("name", "callsign", "imo", "draught", "destination")
NONE = {
    "sog": {1: 102.3, 9: 1023, 27: 63},
    "status": {1: 15},
    "altitude": {9: 4095},
}
NAMES = {"sog": "speed", "cog": "course", "name": "shipname", "shiptype": "ship_type"}
RECORDING = "ais-denmark/nmea-stream-2010-06-11.txt"


def decoded_of(payload: bytes, stream: StreamSettings = TIMELESS) -> Decoded:
    return decode(payload, stream, arrival_us=0)


def reasons(decoded: Decoded) -> Counter:
    return Counter(decoded.rejects["reason"].to_pylist())


def said(message: object, name: str) -> object:
    """What pyais reads of a column; None where it is not there, or stands for that."""
    value = getattr(message, NAMES.get(name, name), None)
    if name == "name" and value is None:
        value = getattr(message, "name", None)
    if name == "altitude":
        value = getattr(message, "alt", None)
    if value is None or isinstance(value, str):
        return (value or "").partition("@")[0].strip() or None
    nones = NONE.get(name, {})
    kind = message.msg_type if message.msg_type in nones else 1
    if name in ("cog", "heading") and value >= 360:
        return None
    if value == nones.get(kind, 0 if name in STATIC else None):
        return None
    return bool(value) if name == "accuracy" else float(value)


def ship_type(sentence: object, message: object) -> int | None:
    """Read bit by bit: pyais takes numbers that have no name for 0."""
    codes = [letter - 48 - 8 * (letter >= 96) for letter in sentence.payload]
    bits = "".join(f"{code:06b}" for code in codes)
    at = {5: 232, 19: 263, 24: 40}[message.msg_type]
    return int(bits[at : at + 8] or "0", 2) or None


def expected_of(stream: Iterator) -> list[tuple | None]:
    """By pyais and a loop that remembers: of each message with a position its fix, or None where it has none."""
    memory: dict[int, dict] = {}
    expected: list[tuple | None] = []
    for sentence in stream:
        try:
            message = sentence.decode()
        except MissingPayloadException:
            continue
        known = memory.setdefault(message.mmsi, {})
        sizes = {
            "length": ("to_bow", "to_stern"),
            "width": ("to_port", "to_starboard"),
        }
        for name, ends in sizes.items():
            if message.mmsi // 10**7 != 98 and hasattr(message, ends[0]):
                size = sum(getattr(message, end) for end in ends)
                known[name] = size or known.get(name)
        known.update({n: v for n in STATIC if (v := said(message, n)) is not None})
        if message.msg_type != 23 and hasattr(message, "ship_type"):
            known["shiptype"] = ship_type(sentence, message) or known.get("shiptype")
        known = {name: value for name, value in known.items() if value is not None}
        if message.msg_type in POSITIONS and message.lat is not None:  # not cut short
            expected.append(one_expected(message, known))
    return expected


def one_expected(message, known: dict) -> tuple | None:
    if abs(message.lon) > 180 or abs(message.lat) > 90:
        return None
    own = {
        name: said(message, name)
        for name in ("sog", "cog", "heading", "status", "accuracy", "altitude")
    }
    known = {"type": message.msg_type, **own, **known}
    place = (round(message.lon, 4), round(message.lat, 4))
    return (str(message.mmsi), *place, *(known.get(n) for n in SHIPS.attributes))


def found_of(decoded: Decoded) -> list[tuple]:
    return [
        (
            row["object"],
            round(row["x"], 4),
            round(row["y"], 4),
            *(row[name] for name in SHIPS.attributes),
        )
        for row in decoded.fixes.to_pylist()
    ]


@pytest.mark.spec("B7")
def test_a_recording_is_what_pyais_reads_with_its_known_counts(shared):
    path = shared / "data" / RECORDING
    with FileReaderStream(str(path)) as stream:
        expected = expected_of(stream)
    payload = path.read_bytes()
    decoded = decoded_of(payload, SHIPS)
    assert found_of(decoded) == [fix for fix in expected if fix is not None]
    assert reasons(decoded)["missing_position"] == expected.count(None)
    assert set(reasons(decoded)) == {"no_position", "missing_position"}
    assert decoded.rows == 8551 - 4051  # each but the lines of times
    assert decoded.fixes["event_ts"].to_pylist()[0] == 1_276_256_771_390_000
    named = [row for row in found_of(decoded) if row[10] is not None]
    assert len(named) > 200
    sentences = chunks(BytesIO(payload), SHIPS, size=0)
    assert sum(len(chunk.spans) for chunk in sentences) == decoded.rows
    refuse_unreadable(path, SHIPS)


KNOWN = {
    "gpsd-sample.aivdm": {"unreadable": 1},  # a sentence without its first character
    "libais-test.aivdm": {"incomplete": 5},  # messages of two or five letters
    "libais-typeexamples.nmea": {},
    "libais-tagblock.nmea": {},
    "pyais-nmea_data_sample.txt": {"incomplete": 100 + 20},  # empty; second parts lack
}


@pytest.mark.spec("B7")
def test_messages_of_every_type_are_accounted_for(shared):
    for name, wrong in KNOWN.items():
        path = shared / "data/ais-nmea-mixed" / name
        decoded = decoded_of(path.read_bytes())
        with FileReaderStream(str(path)) as stream:
            expected = expected_of(stream)
        found = [(row[0], row[1], row[2]) for row in found_of(decoded)]
        wanted = [fix[:3] for fix in expected if fix is not None]
        assert Counter(found) <= Counter(wanted), name
        told = reasons(decoded)
        assert {n: told[n] for n in ("unreadable", "incomplete") if told[n]} == wrong


def test_times_are_those_of_tag_blocks_and_last_columns(shared):
    folder = shared / "data/ais-nmea-mixed"
    tagged = decoded_of((folder / "libais-tagblock.nmea").read_bytes(), SHIPS)
    seconds = [us // 1_000_000 for us in tagged.fixes["event_ts"].to_pylist()]
    assert seconds == [1418172113, 1418171722, 1418171561]
    behind = decoded_of((folder / "libais-test.aivdm").read_bytes(), SHIPS)
    assert behind.fixes["event_ts"].to_pylist()[0] == 1_272_412_827_000_000
    assert "missing_time" not in reasons(behind)


SENTENCE = b"!AIVDM,1,1,,A,15RTgt0PAso;90TKcjM8h6g208CQ,0*4A"


@pytest.mark.parametrize(
    ("payload", "outcome"),
    [
        (SENTENCE, "371798000"),
        (b"1272412827," + SENTENCE, "371798000"),
        (SENTENCE.replace(b"*4A", b"*4B"), "bad_checksum"),
        (SENTENCE.replace(b"15RT", b"25RT"), "bad_checksum"),
        (b"\\c:1418172113*55\\" + SENTENCE, "bad_checksum"),
        (b"$GPGGA,1,2*33", "no_position"),
        (b"hello", "unreadable"),
        (b"!AIVDM,1,1,,B,,0*25", "incomplete"),
        (b"!AIVDM,2,1,3,B,55NBjP01m,0*36", "incomplete"),
    ],
)
def test_a_sentence_is_a_fix_or_says_why_it_is_none(payload, outcome):
    if outcome == "incomplete" and b",2,1," in payload:
        payload = with_sum(payload)
    decoded = decoded_of(payload)
    assert decoded.rows == 1
    told = decoded.fixes["object"].to_pylist() + decoded.rejects["reason"].to_pylist()
    assert told == [outcome]
    assert decoded.rejects["raw"].to_pylist() in ([], [payload])


def with_sum(sentence: bytes) -> bytes:
    checked = sentence.rpartition(b"*")[0]
    return b"%s*%02X" % (checked, reduce(lambda left, right: left ^ right, checked[1:]))


MESSAGES = st.fixed_dictionaries(
    {
        "type": st.sampled_from([1, 3, 5, 18, 19, 21, 27]),
        "mmsi": st.sampled_from(["211224410", "265513810", "002190064", "982190064"]),
        "lon": st.floats(-180, 180) | st.just(181.0),
        "lat": st.floats(-90, 90) | st.just(91.0),
        "speed": st.sampled_from([0.0, 12.3, 102.3]),
        "course": st.sampled_from([0.0, 359.9, 360.0]),
        "heading": st.sampled_from([0, 359, 511]),
        "shipname": st.sampled_from(["", "BALTIC FRONT", "A@B", "X" * 20]),
        "callsign": st.sampled_from(["", "C4JX2"]),
        "ship_type": st.sampled_from([0, 81]),
        "to_bow": st.sampled_from([0, 100]),
        "to_port": st.sampled_from([0, 9]),
    }
)


@st.composite
def sentences(draw: st.DrawFn) -> list[bytes]:
    """Sentences of messages; the parts of one may have others between them."""
    told: list[bytes] = []
    for number, message in enumerate(draw(st.lists(MESSAGES, max_size=6))):
        group = {"seq_id": number}
        parts = encode_dict(message, talker_id="AI", sentence_type="VDM", **group)
        place = draw(st.integers(0, len(told))) if len(parts) > 1 else len(told)
        told.insert(place, parts[0].encode())
        told.extend(part.encode() for part in parts[1:])
    return told


@pytest.mark.spec("B7")
@given(sentences())
def test_messages_are_what_pyais_reads(told):
    decoded = decoded_of(b"\n".join(told))
    expected = expected_of(IterMessages(told))
    assert found_of(decoded) == [fix for fix in expected if fix is not None]
    assert reasons(decoded)["missing_position"] == expected.count(None)
    assert decoded.rows == len(told)


@given(sentences(), st.binary(max_size=40), st.data())
def test_any_bytes_are_fixes_or_rejects(told, noise, data):
    lines = b"$PGHP,1,2010,6,11,11,46,11,390,2,4,9,1,2B*5B\n" + b"\n".join(told)
    at = data.draw(st.integers(0, len(lines)))
    payload = lines[:at] + noise + lines[at:]
    for stream in (SHIPS, TIMELESS):
        decoded = decoded_of(payload, stream)
        assert len(decoded.fixes) + len(decoded.rejects) == decoded.rows
    if payload.startswith(b"\x1f\x8b"):
        return
    parts = list(chunks(BytesIO(payload), SHIPS, size=0))
    assert sum(len(chunk.spans) for chunk in parts) == decoded.rows
    for chunk in parts:
        raw = chunk.spans.texts(4096).to_pylist()
        whole = decoded_of(chunk.payload(0, len(raw)))
        for row in whole.rejects.to_pylist():
            assert row["raw"] == raw[row["row"]]


@given(st.lists(st.sampled_from(range(6)), min_size=1, max_size=9), st.data())
def test_a_time_in_front_stays_with_its_sentence_wherever_it_is_cut(numbers, data):
    lines = b"".join(
        b"$PGHP,1,2010,6,11,11,46,%d,390,2,4,9,1,2B*5B\n%s\n" % (number, SENTENCE)
        for number in numbers
    )
    (chunk,) = chunks(BytesIO(lines), SHIPS, size=0)
    at = data.draw(st.integers(0, len(numbers)))
    found = []
    for start, stop in ((0, at), (at, len(numbers))):
        if start < stop:
            decoded = decoded_of(chunk.payload(start, stop), SHIPS)
            found += decoded.fixes["event_ts"].to_pylist()
    assert [us // 1_000_000 % 60 for us in found] == numbers


def test_a_file_of_something_else_is_refused_with_its_mend(tmp_path):
    path = tmp_path / "ships.txt"
    path.write_text("id,x,y\na,1,2\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="mostly unreadable") as refused:
        refuse_unreadable(path, SHIPS)
    assert "!AIVDM" in (refused.value.hint or "")
    path.write_bytes(SENTENCE)
    with pytest.raises(ConfigError, match="mostly missing_time") as refused:
        refuse_unreadable(path, SHIPS)
    assert "leave out columns.event_ts" in (refused.value.hint or "")
    refuse_unreadable(path, TIMELESS)


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"x": "lon"}, "'lon'"),
        ({"event_ts": "at"}, "'at'"),
        ({"object": "ship"}, "'ship' is no column"),
    ],
)
def test_columns_that_no_sentence_has_are_refused(columns, named):
    stream = replace(SHIPS, columns=replace(SHIPS.columns, **columns))
    wrong, _ = format_of("ais").wrong_in(stream)
    assert named in wrong
    assert format_of("ais").wrong_in(SHIPS) is None


@pytest.mark.spec("B7")
@pytest.mark.parametrize(
    ("stamp", "time_us"),
    [
        (b"2025-11-24T08:00:00.123Z ", 1_763_971_200_123_000),
        (b"[2025-11-24 09:00:00 +01:00] ", 1_763_971_200_000_000),
        (b"2025-11-24T03:00:00,123456-0500;", 1_763_971_200_123_000),
        (b"2025-11-24 08:00:00 UTC: ", 1_763_971_200_000_000),
        (b"2025-11-24T08:00:00 ", None),
        (b"2025-02-31T08:00:00Z ", None),
        (b"0000-00-00T00:00:00Z ", None),
    ],
)
def test_a_stamp_in_front_of_a_sentence_is_its_time_where_it_says_its_zone(
    stamp, time_us
):
    line = b"!AIVDM,1,1,,B,177KQJ5000G?tO`K>RA1wUbN0TKH,0*5C\n"
    decoded = decode(stamp + line, SHIPS, arrival_us=0)
    assert decoded.fixes["event_ts"].to_pylist() == (
        [] if time_us is None else [time_us]
    )
    assert decoded.rejects["reason"].to_pylist() == (
        [] if time_us else ["missing_time"]
    )
