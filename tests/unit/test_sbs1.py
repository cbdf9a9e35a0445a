"""SBS-1: lines merged by aircraft, against a loop that remembers, and a real recording with its known counts."""

from collections import Counter
from dataclasses import replace
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import Decoded, decode
from st_common.errors import ConfigError
from st_common.formats.registry import format_of
from st_common.replay.chunks import chunks
from st_common.replay.readable import refuse_unreadable

PLANES = StreamSettings(
    name="planes",
    format="sbs1",
    columns=Columns(object="hex", event_ts="time", x="longitude", y="latitude"),
    time_unit="%Y/%m/%d %H:%M:%S",
    attributes={
        "callsign": "string",
        "altitude": "double",
        "ground_speed": "double",
        "track": "double",
        "vertical_rate": "double",
        "on_ground": "bool",
    },
    max_ahead_s=None,
)


def decoded_of(payload: bytes, stream: StreamSettings = PLANES) -> Decoded:
    return decode(payload, stream, arrival_us=0)


def reasons(decoded: Decoded) -> Counter:
    return Counter(decoded.rejects["reason"].to_pylist())


def line(kind: int, icao: str, *values: str) -> str:
    """A message: callsign, altitude, speed, track, latitude, longitude, vertical rate; then flags."""
    said = [*values, *[""] * (7 - len(values))]
    stamp = "2022/09/23,11:27:16.635"
    return f"MSG,{kind},1,1,{icao},1,{stamp},{stamp},{','.join(said)},,0,0,0,-1"


MESSAGES = st.tuples(
    st.integers(1, 8),
    st.sampled_from(["A955D1", "3C56EE"]),
    st.sampled_from(["", "N700NY  "]),
    st.sampled_from(["", "40025"]),
    st.sampled_from(["", "443"]),
    st.sampled_from(["", "311"]),
    st.sampled_from(["", "48.43"]),
    st.sampled_from(["", "9.71"]),
    st.sampled_from(["", "64"]),
)


def expected_of(messages: list[tuple]) -> list[tuple | str]:
    """By a loop over the lines: each position with what its aircraft said last."""
    memory: dict[str, list] = {}
    expected: list[tuple | str] = []
    for kind, icao, *said in messages:
        known = memory.setdefault(icao, [""] * len(said))
        known[:] = [new or old for new, old in zip(said, known, strict=True)]
        callsign, *numbers = known
        altitude, speed, track, _, _, rate = (float(n) if n else None for n in numbers)
        if kind not in (2, 3):
            expected.append("no_position")
        elif not (said[4] and said[5]):
            expected.append("missing_position")
        else:
            place = (float(said[5]), float(said[4]))
            name = callsign.strip() or None
            expected.append((icao, *place, name, altitude, speed, track, rate))
    return expected


@pytest.mark.spec("B7")
@given(st.lists(MESSAGES, max_size=12))
def test_a_position_has_what_its_aircraft_said_last(messages):
    payload = "".join(line(*each) + "\n" for each in messages).encode()
    decoded = decoded_of(payload)
    found: dict[int, tuple | str] = {
        row["row"]: (row["object"], row["x"], row["y"], *list(row.values())[6:11])
        for row in decoded.fixes.to_pylist()
    }
    found |= {row["row"]: row["reason"] for row in decoded.rejects.to_pylist()}
    assert [found[row] for row in range(decoded.rows)] == expected_of(messages)


@pytest.mark.spec("B7")
def test_a_recording_has_its_known_counts(shared):
    path = shared / "data/adsb-sbs1-ulm/sbs1.txt"
    payload = path.read_bytes()
    decoded = decoded_of(payload)
    assert decoded.rows == 1739
    assert reasons(decoded) == {"no_position": 1739 - 56}
    x, y = decoded.fixes["x"].to_pylist(), decoded.fixes["y"].to_pylist()
    assert (min(x), min(y), max(x), max(y)) == (9.19108, 48.39622, 10.13827, 48.5365)
    first = decoded.fixes.to_pylist()[0]
    assert (first["object"], first["event_ts"]) == ("A955D1", 1_663_932_436_635_000)
    last = [row for row in decoded.fixes.to_pylist() if row["object"] == "A955D1"][-1]
    assert last["callsign"] == "N700NY"
    assert (last["ground_speed"], last["track"]) == (445.0, 311.0)
    (chunk,) = chunks(BytesIO(payload), PLANES, size=0)
    assert len(chunk.spans) == 1739
    refuse_unreadable(path, PLANES)  # most lines are no positions, and none is wrong
    named = decoded_of(payload, replace(PLANES, columns=by_callsign()))
    without = named.rejects.to_pylist()
    unnamed = sum(row["reason"] == "missing_object" for row in without)
    assert len(named.fixes) + unnamed == 56
    assert "N700NY" in named.fixes["object"].to_pylist()


def by_callsign() -> Columns:
    return replace(PLANES.columns, object="callsign")


@given(st.lists(MESSAGES, max_size=6), st.binary(max_size=40), st.data())
def test_any_bytes_are_fixes_or_rejects(messages, noise, data):
    lines = "".join(line(*each) + "\n" for each in messages).encode()
    at = data.draw(st.integers(0, len(lines)))
    payload = lines[:at] + noise + lines[at:]
    decoded = decoded_of(payload)
    assert len(decoded.fixes) + len(decoded.rejects) == decoded.rows
    if not payload.startswith(b"\x1f\x8b"):
        source = chunks(BytesIO(payload), PLANES, size=0)
        assert sum(len(chunk.spans) for chunk in source) == decoded.rows


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (line(3, "", "", "", "", "", "1", "2"), "missing_object"),
        (line(3, "A", "", "", "", "", "91", "2"), "out_of_crs"),
        (line(3, "A", "", "", "", "", "x", "2"), "bad_number"),
        (line(9, "A"), "unreadable"),
        (line(3, "A", "", "", "", "", "1", "2").replace("/", "-"), "bad_time"),
        ("MSG,3,1,1", "ragged"),
        ("AIR,,1,1,A,1,2022/09/23,11:27:16.635,,", "no_position"),
        ("GET / HTTP/1.1", "ragged"),
    ],
)
def test_a_line_that_is_no_fix_says_why(text, reason):
    decoded = decoded_of(f"{text}\n".encode())
    assert decoded.rejects.to_pylist() == [
        {"row": 0, "reason": reason, "raw": text.encode(), "line": None}
    ]


def test_dates_with_the_day_first_are_read_by_their_format():
    text = line(2, "A", "", "", "", "", "1", "2").replace("2022/09/23", "23/09/2022")
    stream = replace(PLANES, time_unit="%d/%m/%Y %H:%M:%S")
    (row,) = decoded_of(text.encode(), stream).fixes.to_pylist()
    assert row["event_ts"] == 1_663_932_436_635_000
    assert row["on_ground"] is True


def test_a_file_of_something_else_is_refused_with_its_mend(tmp_path):
    path = tmp_path / "planes.txt"
    path.write_text("id,x,y\na,1,2\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="mostly ragged") as refused:
        refuse_unreadable(path, PLANES)
    assert "22 fields" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("columns", "named"),
    [
        ({"x": "lon"}, "'lon'"),
        ({"event_ts": "logged"}, "'logged'"),
        ({"object": "icao"}, "'icao' is no column"),
    ],
)
def test_columns_that_no_line_has_are_refused(columns, named):
    stream = replace(PLANES, columns=replace(PLANES.columns, **columns))
    wrong, _ = format_of("sbs1").wrong_in(stream)
    assert named in wrong
    assert format_of("sbs1").wrong_in(PLANES) is None
