"""NMEA 0183: fixes whose values are worked out by hand, one for each moment, however sentences are cut."""

import itertools
from dataclasses import replace
from functools import reduce
from io import BytesIO
from operator import xor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import Decoded, decode
from st_common.detect.report import detect
from st_common.formats.registry import format_of
from st_common.replay.chunks import chunks
from st_common.replay.memory import Memory
from tests.kit.effort import tries

pytestmark = pytest.mark.spec("B7")

GPS = StreamSettings(
    name="boat",
    format="nmea",
    columns=Columns(object="device", event_ts="time", x="longitude", y="latitude"),
    attributes={
        "speed": "double",
        "course": "double",
        "altitude": "double",
        "satellites": "long",
        "hdop": "double",
    },
    max_ahead_s=None,
)
DAY = 1_598_313_600  # 2020-08-25


def summed(body: str) -> str:
    return f"${body}*{reduce(xor, body.encode(), 0):02X}"


def rmc(
    clock: str,
    *,
    status: str = "A",
    lat: str = "5051.8400,N",
    date: str = "250820",
    talker: str = "GP",
) -> str:
    return summed(
        f"{talker}RMC,{clock},{status},{lat},00510.3100,E,1.5,11.19,{date},,,A"
    )


def gga(
    clock: str, *, quality: int = 1, altitude: str = "32.6", talker: str = "GP"
) -> str:
    place = "5051.8400,N,00510.3100,E"
    return summed(f"{talker}GGA,{clock},{place},{quality},7,1.23,{altitude},M,47.4,M,,")


def decoded_of(*lines: str, stream: StreamSettings = GPS) -> Decoded:
    decoded = decode("\n".join(lines).encode("latin-1"), stream, arrival_us=0)
    assert len(decoded.fixes) + len(decoded.rejects) == decoded.rows
    return decoded


def told(decoded: Decoded) -> list:
    """In the order of the lines the second of the day of each fix, and the reasons of the others."""
    known = {
        row["row"]: row["event_ts"] / 1e6 - DAY for row in decoded.fixes.to_pylist()
    }
    known |= {row["row"]: row["reason"] for row in decoded.rejects.to_pylist()}
    return [known[row] for row in range(decoded.rows)]


def test_a_log_of_a_receiver_is_its_fixes():
    decoded = decoded_of(
        "$GPRMC,172356.000,A,5051.8400,N,00510.3100,E,0.188,11.19,250820,,,A*65",
        "$GPGGA,172356.000,5051.8400,N,00510.3100,E,1,7,1.23,32.6,M,47.4,M,,*64",
        "$GPRMC,172400.000,A,5051.8500,N,00510.3100,E,0.188,11.19,250820,,,A*60",
        "$GPRMC,172405.000,V,,,,,,,250820,,,N*45",
        "$GPRMC,000000.00,A,0.000,N,0.000,E,0.0,0.0,050505,0.0,E*6D",
    )
    clock = 17 * 3600 + 23 * 60 + 56
    lacking = "missing_position"
    assert told(decoded) == [clock, "no_position", clock + 4, lacking, lacking]
    first, second = decoded.fixes.to_pylist()
    assert (first["x"], first["y"]) == pytest.approx((5.171833333, 50.864), abs=1e-9)
    assert second["y"] == pytest.approx(50.864166667, abs=1e-9)
    assert first["object"] == second["object"] == "gps"
    said = ("speed", "course", "altitude", "satellites", "hdop")
    assert [first[name] for name in said] == [0.188, 11.19, 32.6, 7, 1.23]
    assert [second[name] for name in said] == [0.188, 11.19, None, None, None]


@pytest.mark.parametrize(
    ("lat", "lon", "place"),
    [
        ("5051.8400,N", "00510.3100,E", (5.171833333, 50.864)),
        ("3351.000,S", "15112.60,W", (-151.21, -33.85)),
        ("0000.6,N", "0.60,W", (-0.01, 0.01)),
        ("5060.0,N", "00510.0,E", "bad_number"),
        ("5051.8400,", "00510.3100,E", "bad_number"),
        ("fifty,N", "00510.3100,E", "bad_number"),
        ("9951.8400,N", "00510.3100,E", "out_of_crs"),
        (",", ",", "missing_position"),
    ],
)
def test_degrees_and_minutes_are_degrees(lat, lon, place):
    decoded = decoded_of(summed(f"GNRMC,010203.00,A,{lat},{lon},1.5,11.19,250820,,,A"))
    if isinstance(place, str):
        assert told(decoded) == [place]
    else:
        (fix,) = decoded.fixes.to_pylist()
        assert (fix["x"], fix["y"]) == pytest.approx(place, abs=1e-8)


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ([gga("000001"), rmc("000001.00")], [1, "no_position"]),
        ([gga("000001", talker="GN"), rmc("000001", talker="GL")], [1, "no_position"]),
        ([rmc("000001"), rmc("000002"), gga("000002")], [1, 2, "no_position"]),
        ([rmc("000001"), gga("000001.5"), gga("000002")], [1, 1.5, 2]),
        ([rmc("235959"), gga("000000.5")], [86399, 86400.5]),
        ([gga("000001"), rmc("000002")], ["missing_time", 2]),
        (["$GPZDA,000001.00,25,08,2020,00,00", gga("000002")], ["no_position", 2]),
        (
            [rmc("000001"), gga("000001", quality=0)],
            ["missing_position", "no_position"],
        ),
        (
            [rmc("000001", status="V"), gga("000001")],
            ["missing_position", "no_position"],
        ),
        (
            [rmc("000001"), "$GPGSV,3,1,11,03", gga("000001")],
            [1, "no_position", "no_position"],
        ),
        ([rmc("000001", date="310220")], ["missing_time"]),
        ([rmc("250001")], ["missing_time"]),
        ([rmc("000001").replace("1.5", "1.6")], ["bad_checksum"]),
        ([rmc("000001").partition("*")[0]], [1]),
        (
            ["!AIVDM,1,1,,A,15RTgt0,0*4A", "$PUBX,00", "# log", "\xff\xfe"],
            ["no_position"] * 3 + ["unreadable"],
        ),
    ],
)
def test_sentences_of_one_moment_are_one_fix(lines, expected):
    assert told(decoded_of(*lines)) == expected


def test_a_stamp_in_front_of_a_line_does_not_matter_and_can_be_the_time():
    stamped = [f"2020-08-25T00:00:0{n}Z {rmc(f'00000{n}')}" for n in range(3)]
    assert told(decoded_of(*stamped)) == [0, 1, 2]
    columns = replace(GPS.columns, event_ts="received")
    by_stamp = replace(GPS, columns=columns)
    only_gga = [f"[2020-08-25 00:00:05] {gga('000001')}"]
    assert told(decoded_of(*only_gga, stream=by_stamp)) == [5]


CLOCKS = st.sampled_from(["235959", "000000", "000001.5"])


def dated_rmc(clock: str, status: str) -> str:
    """With the day before midnight, or behind it."""
    return rmc(clock, status=status, date="250820" if clock > "2" else "260820")


SENTENCES = st.one_of(
    st.builds(dated_rmc, CLOCKS, st.sampled_from("AAV")),
    st.builds(gga, CLOCKS, quality=st.integers(0, 1)),
    st.sampled_from(["$GPGSV,3,1,11,03", "nonsense", "$GPZDA,000000,26,08,2020,00,00"]),
)


@tries(100)
@given(st.lists(SENTENCES, max_size=12), st.lists(st.integers(0, 13), max_size=4))
def test_a_feed_has_the_same_fixes_wherever_it_is_cut(lines, cuts):
    lines = [rmc("235958"), *lines]  # says the date
    whole = decoded_of(*lines)
    memory, parts = Memory(GPS), []
    borders = sorted({0, len(lines), *cuts})
    for start, stop in itertools.pairwise(borders):
        if lines[start:stop]:
            payload = "".join(f"{line}\n" for line in lines[start:stop]).encode()
            payload = memory.put_in_front(payload, arrival_us=0)
            parts.append(decode(payload, GPS, arrival_us=0))
    own = [each for part in parts for each in told(part)]
    # Of a void moment that is cut the part that was told first is believed.
    if "missing_position" not in told(whole):
        assert own == told(whole)
    assert len(own) == len(lines)


def test_a_file_is_cut_between_moments():
    lines = [
        one
        for n in range(6000)
        for one in (
            rmc(f"{n // 3600:02}{n // 60 % 60:02}{n % 60:02}"),
            gga(f"{n // 3600:02}{n // 60 % 60:02}{n % 60:02}"),
        )
    ]
    source = BytesIO("\n".join(lines).encode())
    parts = [
        chunk.payload(0, len(chunk.spans)) for chunk in chunks(source, GPS, size=0)
    ]
    assert len(parts) > 2
    decoded = [decode(part, GPS, arrival_us=0) for part in parts]
    assert sum(len(part.fixes) for part in decoded) == 6000
    assert all(part.fixes["altitude"].null_count == 0 for part in decoded)


@tries(200)
@given(
    st.lists(SENTENCES | st.text(max_size=20), max_size=6),
    st.binary(max_size=20),
    st.data(),
)
def test_any_bytes_are_fixes_or_rejects(lines, noise, data):
    start = "\n".join(lines).encode()
    at = data.draw(st.integers(0, len(start)))
    payload = start[:at] + noise + start[at:]
    if payload.startswith(b"\x1f\x8b"):
        return
    decoded = decode(payload, GPS, arrival_us=0)
    assert len(decoded.fixes) + len(decoded.rejects) == decoded.rows
    assert format_of("nmea").record_count(payload) == decoded.rows
    Memory(GPS).put_in_front(payload, arrival_us=0)
    cut = chunks(BytesIO(payload), GPS, size=0)
    assert sum(len(chunk.spans) for chunk in cut) == decoded.rows


def test_check_finds_a_log_of_a_receiver_behind_other_sentences(tmp_path):
    path = tmp_path / "gps.log"
    path.write_text(
        "\n".join(["$GPGSV,3,1,11,03", "$GPGSA,A,3", rmc("000001"), gga("000001")]),
        "utf-8",
    )
    seen = detect(str(path), kept=["all"])
    assert (seen.table["format"], seen.good) == ("nmea", 1)
    assert seen.table["attributes"]["speed"] == "double knots"


@pytest.mark.parametrize("column", ["lat", "speed_kmh"])
def test_columns_that_no_sentence_has_are_refused(column):
    stream = replace(GPS, attributes={column: "double"})
    wrong, hint = format_of("nmea").wrong_in(stream)
    assert column in wrong
    assert "satellites" in hint
