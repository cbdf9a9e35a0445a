"""Times that clocks of a zone show, against `datetime` and `zoneinfo`."""

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.config.streams import load_streams, stream_of_table
from st_common.decode import decode
from st_common.decode.instants import instants
from st_common.decode.zones import local_of, quarters_ahead
from st_common.errors import ConfigError

pytestmark = pytest.mark.spec("B7")

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
ZONES = (
    "Europe/Berlin",
    "America/New_York",
    "Asia/Kolkata",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",  # half an hour in summer
    "Pacific/Apia",  # had no 2011-12-30
    "Africa/Casablanca",
    "America/St_Johns",
    "UTC",
)
LOCALS = st.datetimes(datetime(1971, 1, 1), datetime(2199, 12, 30))  # noqa: DTZ001 - local times


def texts(*values: str) -> pa.Array:
    return pa.array(values, pa.string())


def read(text: str, zone: str | None, unit: str = "iso") -> str:
    """The instant of a text as ISO, or why there is none."""
    found = instants(texts(text), unit, zone)
    if found.bad[0]:
        return "never" if found.never[0] else "bad"
    at = EPOCH + timedelta(microseconds=int(found.values[0]))
    return f"{at:%Y-%m-%d %H:%M:%S}" + (" twice" if found.twice[0] else "")


@pytest.mark.parametrize(
    ("local", "utc"),
    [
        ("2025-11-24 08:00:00", "2025-11-24 07:00:00"),
        ("2025-07-24T08:00", "2025-07-24 06:00:00"),
        ("2025-03-30 01:59:59", "2025-03-30 00:59:59"),
        ("2025-03-30 02:00:00", "never"),
        ("2025-03-30 02:59:59", "never"),
        ("2025-03-30 03:00:00", "2025-03-30 01:00:00"),
        ("2025-10-26 01:59:59", "2025-10-25 23:59:59"),
        ("2025-10-26 02:00:00", "2025-10-26 00:00:00 twice"),
        ("2025-10-26 02:59:59", "2025-10-26 00:59:59 twice"),
        ("2025-10-26 03:00:00", "2025-10-26 02:00:00"),
        ("2025-11-24", "2025-11-23 23:00:00"),
        ("2025-11-24 08:00:00Z", "2025-11-24 08:00:00"),
        ("2025-11-24 08:00:00 UTC", "2025-11-24 08:00:00"),
        ("2025-11-24 08:00:00-05:00", "2025-11-24 13:00:00"),
        ("2025-11-24 08:00:00 America/New_York", "2025-11-24 13:00:00"),
        ("2025-11-24T08:00:00[Asia/Tokyo]", "2025-11-23 23:00:00"),
        ("2025-11-24T08:00:00-05:00[America/New_York]", "2025-11-24 13:00:00"),
        ("2025-11-24 08:00:00 Europe/Nowhere", "bad"),
        ("2025-11-24 08:00:00 ../../etc/passwd", "bad"),
    ],
)
def test_a_clock_in_berlin_shows_local_time_unless_the_text_says_another(local, utc):
    assert read(local, "Europe/Berlin") == utc


def test_several_zones_in_a_column_count_for_their_own_rows():
    found = instants(
        texts(
            "2025-07-01 12:00 Europe/Paris",
            "2025-07-01 12:00",
            "2025-07-01 12:00 Asia/Tokyo",
            "x Asia/Tokyo",
        ),
        "iso",
        "+02:00",
    )
    hours = [10, 10, 3]
    assert found.bad.tolist() == [False, False, False, True]
    assert [int(us) // 3_600_000_000 % 24 for us in found.values[:3]] == hours


@given(st.lists(LOCALS, min_size=1, max_size=20), st.sampled_from(ZONES))
def test_local_times_are_those_of_zoneinfo(moments, zone):
    found = instants(texts(*(at.isoformat() for at in moments)), "iso", zone)
    for place, at in enumerate(moments):
        utc, again = (
            at.replace(tzinfo=ZoneInfo(zone), fold=fold).astimezone(UTC)
            for fold in (0, 1)
        )
        is_shown = utc.astimezone(ZoneInfo(zone)).replace(tzinfo=None) == at
        assert found.never[place] == (not is_shown)
        assert found.twice[place] == (is_shown and utc != again)
        if is_shown:
            assert EPOCH + timedelta(microseconds=int(found.values[place])) == utc


@given(
    st.lists(st.integers(0, 7_258_000_000), min_size=1, max_size=20),
    st.sampled_from(ZONES),
)
def test_what_a_clock_shows_is_what_zoneinfo_says(seconds, zone):
    shown = local_of(np.array(seconds, np.int64) * 1_000_000, zone)
    expected = [
        datetime.fromtimestamp(one, ZoneInfo(zone)).replace(tzinfo=UTC)
        for one in seconds
    ]
    assert [EPOCH + timedelta(microseconds=int(us)) for us in shown] == expected


def test_timestamps_without_a_zone_are_local_and_those_with_one_are_not():
    at = datetime(2025, 7, 1, 12)  # noqa: DTZ001 - a local time
    naive = pa.array([at, None], pa.timestamp("us"))
    found = instants(naive, "iso", "Europe/Berlin")
    assert found.values[0] == 1_751_364_000_000_000  # 10:00 UTC
    assert found.missing.tolist() == [False, True]
    zoned = pa.array([at], pa.timestamp("us", "UTC"))
    assert instants(zoned, "iso", "Europe/Berlin").values[0] == 1_751_371_200_000_000


def csv_stream(**keys):
    columns = {"object": "id", "event_ts": "t", "x": "x", "y": "y"}
    table = {"format": "csv", "columns": columns, **keys}
    return stream_of_table("buses", table, "streams.toml")


def test_decoding_counts_the_hour_that_comes_twice_and_rejects_the_one_that_never_comes():
    payload = (
        b"id,t,x,y\n"
        b"a,2025-10-26 01:30:00,1,1\n"
        b"a,2025-10-26 02:30:00,1,1\n"
        b"b,2025-10-26 02:30:00,,1\n"
        b"a,2025-03-30 02:30:00,1,1\n"
    )
    decoded = decode(payload, csv_stream(time_zone="Europe/Berlin"), arrival_us=10**18)
    assert decoded.rejects["reason"].to_pylist() == ["missing_position", "bad_time"]
    assert (decoded.twice, decoded.never) == (1, 1)


def test_sbs1_is_read_in_the_zone_of_its_receiver():
    line = b"MSG,3,1,1,4B1800,1,2025/07/01,12:00:00.000,2025/07/01,12:00:00.000,,3000,,,47.4,8.5,,,0,0,0,0\n"
    table = {
        "format": "sbs1",
        "columns": {"object": "hex", "event_ts": "time"},
        "time_zone": "Europe/Berlin",
    }
    stream = stream_of_table("planes", table, "streams.toml")
    fixes = decode(line, stream, arrival_us=1_751_364_000_000_000).fixes
    assert fixes["event_ts"].to_pylist() == [1_751_364_000_000_000]


@pytest.mark.parametrize(
    ("zone", "said"),
    [
        ("europe/berlin", "did you mean 'Europe/Berlin'?"),
        ("Berlin", "did you mean 'Europe/Berlin'?"),
        ("new york", "did you mean 'America/New_York'?"),
        ("Europe/Berlim", "did you mean 'Europe/Berlin'?"),
        ("CEST", "names no time zone"),
        ("../../etc/passwd", "names no time zone"),
        ("localtime", "names no time zone"),
        ("+1", "names no time zone"),
        ("", "names no time zone"),
        (2, "names no time zone"),
    ],
)
def test_a_zone_that_is_none_is_refused_with_the_one_that_was_meant(zone, said):
    with pytest.raises(ConfigError) as error:
        csv_stream(time_zone=zone)
    assert said in error.value.message


def test_times_that_count_from_1970_take_no_zone():
    with pytest.raises(ConfigError) as error:
        csv_stream(time_unit="ms", time_zone="Europe/Berlin")
    assert "time_zone = 'Europe/Berlin' of times in ms" in error.value.message


@pytest.mark.parametrize("form", ["ais", "gtfs-rt"])
def test_formats_whose_times_are_instants_take_no_zone(tmp_path, form):
    (tmp_path / "streams.toml").write_text(
        f'[streams.s]\nformat = "{form}"\ncolumns = {{ object = "mmsi", x = "longitude", y = "latitude" }}\n'
        'time_zone = "Europe/Berlin"\n'
    )
    broken = load_streams(tmp_path).broken["s"]
    assert f"time_zone has no meaning for {form}" in broken.message


@pytest.mark.parametrize(
    ("ahead_s", "hours"),
    [
        ([3600, 3598, 3604], 1.0),
        ([-18_000, -18_001], -5.0),
        ([20_700], 5.75),  # Kathmandu
        ([3_000, 3_000], None),
        ([10], None),
        ([86_400 * 3], None),
        ([], None),
    ],
)
def test_times_ahead_by_whole_quarters_of_an_hour_look_like_another_zone(
    ahead_s, hours
):
    assert quarters_ahead(np.array(ahead_s, np.int64) * 1_000_000) == hours
