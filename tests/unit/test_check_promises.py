"""What `check --write` proposes for a file is read so by `replay`: the same values, or it was said to be in doubt."""

import csv
import io
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from st_common.cli import app
from st_common.config.streams import load_streams
from st_common.replay.readable import refuse_unreadable
from st_common.replay.sample import sample_of
from st_common.replay.tally import Tally
from tests.kit.effort import tries

pytestmark = pytest.mark.spec("B6", "B7")

OBJECTS = [
    "id",
    "Vehicle ID",
    "plate",
    "Kennzeichen",
    "unidad",
    "véhicule",
    "mmsi",
    "kenteken",
    "ajoneuvo",
    "tracker",
]
PLACES = [
    ("lon", "lat"),
    ("Longitude", "Latitude"),
    ("Länge", "Breite"),
    ("longitud", "latitud"),
    ("x", "y"),
    ("location-long", "location-lat"),
    ("GPS_Lng", "GPS_Lat"),
]
STAMPS = ["time", "Timestamp", "Zeitstempel", "Fecha", "horodatage", "recorded_at", "t"]
OTHERS = ["speed", "colour", "row"]
FORMS = ["%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M:%S", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M:%S", "%m/%d/%Y %I:%M:%S %p",
         "%Y%m%d%H%M%S", "%a, %d %b %Y %H:%M:%S +0000", "s", "ms"]  # fmt: skip


def lettered(value: float, letters: str) -> str:
    return f"{abs(value)}{letters[value < 0]}"


WAYS = {
    "plain": lambda value, _: str(value),
    "comma": lambda value, _: str(value).replace(".", ","),
    "letters": lettered,
}


@dataclass(frozen=True)
class Fix:
    """What was written of one record."""

    object: str
    at: datetime
    x: float
    y: float


@dataclass(frozen=True)
class Written:
    """A file, and the fixes that whoever wrote it meant."""

    text: str
    fixes: tuple[Fix, ...]


def stamp_of(at: datetime, form: str) -> str:
    seconds = int(at.timestamp())
    return {"s": str(seconds), "ms": str(seconds * 1000)}.get(form) or at.strftime(form)


@st.composite
def files(draw) -> Written:
    count = draw(st.integers(3, 12))
    ids = draw(
        st.lists(
            st.sampled_from(["a1", "007", "211234560", "B-AB 12"]),
            min_size=1,
            max_size=3,
            unique=True,
        )
    )
    begin = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(
        hours=draw(st.integers(0, 12_000))
    )
    step = timedelta(seconds=draw(st.sampled_from([1, 60, 7_200])))
    x, y = draw(
        st.sampled_from([(13.4, 52.5), (116.4, 39.9), (-71.05, 42.36), (151.2, -33.86)])
    )
    fixes = tuple(
        Fix(ids[n % len(ids)], begin + n * step, round(x + n / 1e4, 6), round(y + n / 1e4, 6))
        for n in range(count)
    )  # fmt: skip
    delimiter = draw(st.sampled_from([",", ";", "\t", "|"]))
    ways = [way for way in WAYS if way != "comma" or delimiter != ","]
    written = WAYS[draw(st.sampled_from(ways))]
    names = [
        draw(st.sampled_from(OBJECTS)),
        draw(st.sampled_from(STAMPS)),
        *draw(st.sampled_from(PLACES)),
    ]
    form = draw(st.sampled_from(FORMS))
    columns = {
        names[0]: [fix.object for fix in fixes],
        names[1]: [stamp_of(fix.at, form) for fix in fixes],
        names[2]: [written(fix.x, "EW") for fix in fixes],
        names[3]: [written(fix.y, "NS") for fix in fixes],
        "speed": [str(n * 3 % 7 + 0.5) for n in range(count)],
        "colour": ["red"] * count,
        "row": [str(n) for n in range(count)],
    }
    order = draw(st.permutations([*names, *draw(st.sets(st.sampled_from(OTHERS)))]))
    out = io.StringIO()
    writer = csv.writer(
        out, delimiter=delimiter, lineterminator=draw(st.sampled_from(["\n", "\r\n"]))
    )
    if draw(st.booleans()):
        writer.writerow(order)
    writer.writerows(zip(*(columns[name] for name in order), strict=True))
    return Written(out.getvalue(), fixes)


def fixes_by(path: Path, stream) -> list[tuple]:
    tally = Tally()
    tally.add_sample(sample_of(path, stream), stream, arrival_us=2_000_000_000_000_000)
    rows = [row for part in tally.fixes for row in part.to_pylist()]
    return [(row["object"], row["event_ts"], row["x"], row["y"]) for row in rows]


@given(files())
@tries(150)
def test_what_check_writes_is_read_as_it_was_meant_or_was_said_to_be_in_doubt(written):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "fixes.txt"
        path.write_bytes(written.text.encode())
        where = ["--home", str(folder), "--conf", str(folder / "conf")]
        told = CliRunner().invoke(app, [*where, "check", str(path), "--write", "s"])
        assert told.exit_code == 0, (told.output, written.text)
        stream = load_streams(folder / "conf")["s"]
        refuse_unreadable(path, stream)
        meant = [
            (fix.object, int(fix.at.timestamp()) * 1_000_000, fix.x, fix.y)
            for fix in written.fixes
        ]
        read = fixes_by(path, stream)
    for part, what in enumerate(
        ("is taken for the object", "time_unit = ", "", "also fits: --x")
    ):
        same = [one[part] for one in read] == [one[part] for one in meant]
        assert same or what in told.stderr, (part, told.output, written.text)
