"""One sample of a file, by which `check`, `replay` and `capture` judge it: the first, the middle and the last of it."""

import ast
import gzip
import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.replay.sample import PART_BYTES, sample_of, sample_of_bytes
from st_common.replay.tally import Tally

pytestmark = pytest.mark.spec("B6", "B7", "X15")

ROOT = Path(__file__).resolve().parents[2] / "st_common"
CSV = StreamSettings(
    name="s",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="lon", y="lat"),
    time_unit="s",
)
JSON = StreamSettings(name="s", format="ndjson", columns=CSV.columns, time_unit="s")
GPX = StreamSettings(
    name="s",
    format="gpx",
    columns=Columns(object="trk/name", event_ts="time", x="lon", y="lat"),
)


def csv_of(count: int) -> bytes:
    rows = (f"a,{1_700_000_000 + n},10,50\n" for n in range(count))
    return ("id,t,lon,lat\n" + "".join(rows)).encode()


def array_of(count: int) -> bytes:
    rows = [
        {"id": "a", "t": 1_700_000_000 + n, "lon": 10, "lat": 50} for n in range(count)
    ]
    return json.dumps(rows).encode()


def gpx_of(count: int) -> bytes:
    points = (
        f'<trkpt lat="50" lon="10"><time>2024-01-01T00:{n // 60 % 60:02}:{n % 60:02}Z</time></trkpt>'
        for n in range(count)
    )
    track = f"<trk><name>a</name><trkseg>{''.join(points)}</trkseg></trk>"
    return f"<gpx>{track}</gpx>".encode()


def seconds_of(sample, stream) -> list[int]:
    tally = Tally()
    tally.add_sample(sample, stream, arrival_us=1_800_000_000_000_000)
    assert not tally.reasons
    times = [us for part in tally.fixes for us in part["event_ts"].to_pylist()]
    return [us // 1_000_000 - 1_700_000_000 for us in times]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("stream", "written"), [(CSV, csv_of), (JSON, array_of)], ids=["lines", "array"]
)
def test_of_a_large_file_its_first_middle_and_last_records_are_looked_at(
    tmp_path, stream, written, packed
):
    count = 100_000
    path = tmp_path / "file"
    path.write_bytes(gzip.compress(written(count)) if packed else written(count))
    sample = sample_of(path, stream)
    seconds = seconds_of(sample, stream)
    assert not sample.is_whole
    size = sum(map(len, sample.payloads))
    assert size < 6 * PART_BYTES
    assert (seconds[0], seconds[-1]) == (0, count - 1)
    assert seconds == sorted(set(seconds))
    assert any(count * 0.4 < one < count * 0.6 for one in seconds)


@pytest.mark.parametrize(
    ("stream", "written", "count"),
    [(CSV, csv_of, 9), (CSV, csv_of, 20_000), (JSON, array_of, 9), (GPX, gpx_of, 9)],
)
def test_of_a_small_one_all_of_them_are(tmp_path, stream, written, count):
    path = tmp_path / "file"
    path.write_bytes(written(count))
    sample = sample_of(path, stream)
    assert sample.is_whole
    tally = Tally()
    tally.add_sample(sample, stream, arrival_us=1_800_000_000_000_000)
    assert tally.good == tally.records == count


def test_of_an_answer_that_is_cut_the_last_record_is_left_out():
    for stream, data in ((CSV, csv_of(10)), (JSON, array_of(10))):
        seconds = seconds_of(sample_of_bytes(data[:-3], stream, is_whole=False), stream)
        assert seconds == list(range(9))


def test_waypoints_in_front_of_a_track_stand_in_nobodys_way(tmp_path):
    points = '<wpt lat="50" lon="10"><name>w</name></wpt>' * 3
    path = tmp_path / "walk.gpx"
    path.write_bytes(gpx_of(40).replace(b"<gpx>", f"<gpx>{points}".encode()))
    where = ["--home", str(tmp_path), "--conf", str(tmp_path / "conf")]
    told = CliRunner().invoke(app, [*where, "check", str(path), "--write", "walk"])
    assert "40 of 43 records looked at are fixes" in told.stdout
    done = CliRunner().invoke(app, [*where, "replay", "walk", str(path)])
    assert done.exit_code == 0, done.output


def calls_of(text: str, name: str) -> bool:
    """Whether a module uses a name: its text has it, and not only in a comment or docstring."""
    return name in text and any(
        getattr(node, "id", getattr(node, "attr", None)) == name
        for node in ast.walk(ast.parse(text))
    )


def modules_that_use(name: str) -> set[str]:
    return {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if calls_of(path.read_text(), name)
    }


def test_whoever_judges_whether_records_can_be_read_does_it_in_one_way():
    """`check`, `replay` and feeds count one sample in one tally: a second judge may refuse what the first promises."""
    judges = {"replay/readable.py", "sources/reject_rate.py", "detect/report.py"}
    assert modules_that_use("is_mostly_rejected") == judges
    assert modules_that_use("sample_of") == {"replay/readable.py"}
    assert modules_that_use("sample_of_bytes") == judges - {"replay/readable.py"}
    assert modules_that_use("refuse_unreadable") == {"cli/replay.py"}


def test_names_of_columns_are_guessed_in_one_place():
    words = ("latitude", "lat", "breitengrad")
    knowing = {
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if sum(f"|{word}|" in path.read_text() for word in words) > 1
    }
    assert {name.partition("/")[0] for name in knowing} <= {"detect"}
