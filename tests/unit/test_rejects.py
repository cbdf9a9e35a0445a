"""`fairway quality replay-rejects`: after a mend records go into the log again, each once; counts add up (C8)."""

import csv
import gzip
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from st_common import tables
from st_common.cli import app
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.controls.rows import End
from st_common.engine.archive import Archive
from st_common.errors import LogError
from st_common.formats.arrow_rows import packed
from st_common.formats.said_before import SaidBefore, put_in_front
from st_common.log.control import control_rows, write_end
from st_common.log.log import Log
from st_common.log.record_settings import settle
from st_common.quality.report import rejected_on
from st_common.rejects.replay import Replayed, replay_rejects
from st_common.storage import LocalStorage
from tests.kit.effort import tries
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("C8")

ARRIVAL_US = int(datetime(2024, 3, 9, 12, tzinfo=UTC).timestamp()) * 1_000_000
DAY = date(2024, 3, 9)


def csv_stream(**given: object) -> StreamSettings:
    """A stream whose times were thought to be seconds."""
    values = {
        "name": "s",
        "format": "csv",
        "crs": "planar",
        "time_unit": "s",
        "columns": Columns(object="id", event_ts="t", x="x", y="y"),
        "max_ahead_s": None,
    }
    return StreamSettings(**(values | given))


SECONDS, ISO = csv_stream(), csv_stream(time_unit="iso")


def captured(
    home: Home, stream: StreamSettings, *payloads: bytes, at_us: int = ARRIVAL_US
) -> None:
    """Puts payloads into the log as they are, and archives what the log has by the settings."""
    log = bare_log(home.log(stream.name))
    for payload in payloads:
        log.append(payload, arrival_us=at_us)
    archived(home, stream)


def archived(home: Home, stream: StreamSettings) -> None:
    archive = Archive(home, stream)
    while archive.batch():
        pass


def read_first_by(home: Home, stream: StreamSettings) -> None:
    """Says, as an engine does at its start, that the log was read by these settings up to here."""
    settle(Log(home.log(stream.name)), stream, begun=stream)


def replayed(home: Home, stream: StreamSettings, **given: object) -> Replayed:
    return replay_rejects(home, stream, clock=lambda: ARRIVAL_US + 60_000_000, **given)


def objects(home: Home) -> list[str]:
    return sorted(tables.read(home.table("positions", "s"))["object"].to_pylist())


def head(*lines: str) -> bytes:
    return "\n".join(("id,t,x,y", *lines, "")).encode()


def test_after_a_mend_what_is_good_goes_into_the_log_once_and_the_rest_stays(
    tmp_path: Path,
):
    home = Home(tmp_path)
    read_first_by(home, SECONDS)
    first = head("a,2024-03-09T10:00:00Z,1,1", "b,5,2,2", "c,never,3,3")
    captured(home, SECONDS, first, head("d,2024-03-09T10:00:01Z,4,4"))
    assert objects(home) == ["b"]
    done = replayed(home, ISO)
    assert (done.records, done.before, done.again) == (3, 0, 2)
    assert done.stay == {"bad_time": 1}
    archived(home, ISO)
    assert objects(home) == ["a", "b", "d"]
    again = replayed(home, ISO)
    assert (again.records, again.before, again.again) == (3, 2, 0)
    assert again.stay == {"bad_time": 1}
    assert again.segments == ()
    rows = tables.read(home.table("rejects"))
    assert Counter(rows["reason"].to_pylist()) == {"bad_time": 3}


def test_only_the_reasons_and_the_day_that_were_asked_for(tmp_path: Path):
    home = Home(tmp_path)
    read_first_by(home, SECONDS)
    captured(home, SECONDS, head("a,2024-03-09T10:00:00Z,1,1", ",5,2,2"))
    late = ARRIVAL_US + 86_400_000_000
    captured(home, SECONDS, head("b,2024-03-09T10:00:00Z,1,1"), at_us=late)
    none = replayed(home, ISO, reasons=["missing_object"])
    assert (none.records, none.again, none.stay) == (1, 0, {"missing_object": 1})
    day = replayed(home, ISO, day=DAY)
    assert (day.records, day.again) == (2, 1)
    assert replayed(home, ISO).before == 1


FIRST = b'{"id":"a","t":"2024-03-09T10:00:00Z","x":1,"y":1}\n'
GPX = (
    b'<gpx><trk><name>a</name><trkseg><trkpt lat="1" lon="2">'
    b"<time>2024-03-09T10:00:00Z</time></trkpt></trkseg></trk></gpx>"
)


def columns(text: str) -> Columns:
    return Columns(
        **dict(zip(("object", "event_ts", "x", "y"), text.split(), strict=True))
    )


GPX_STREAM = csv_stream(
    format="gpx", time_unit="iso", columns=columns("trk/name time lon lat")
)


@pytest.mark.parametrize(
    ("payload", "old", "new"),
    [
        (head("a,5,1,1"), csv_stream(columns=columns("name t x y")), SECONDS),
        (
            b"h,4,1,1\na,5,1,1\nb,6,2,2\n",
            SECONDS,
            csv_stream(header=False, columns=columns("1 2 3 4")),
        ),
        (b"id;t;x;y\na;5;1;1\n", SECONDS, csv_stream(delimiter=";")),
        (gzip.compress(head("a,2024-03-09T10:00:00Z,1,1")), SECONDS, ISO),
        (
            FIRST,
            csv_stream(format="ndjson"),
            csv_stream(format="ndjson", time_unit="iso"),
        ),
        (GPX, replace(GPX_STREAM, columns=columns("none time lon lat")), GPX_STREAM),
    ],
    ids=["column", "header", "delimiter", "gzip", "ndjson", "gpx"],
)
def test_records_of_each_format_are_known_again_by_their_bytes(
    tmp_path: Path, payload: bytes, old: StreamSettings, new: StreamSettings
):
    home = Home(tmp_path)
    read_first_by(home, old)
    captured(home, old, payload)
    rejected = len(tables.read(home.table("rejects")))
    assert rejected
    assert replayed(home, new).again == rejected
    archived(home, new)
    stored = Counter(objects(home))
    assert sum(stored.values()) == rejected
    assert set(stored.values()) == {1}


def test_a_fix_too_far_ahead_of_its_own_arrival_stays_so_later(tmp_path: Path):
    home, strict = Home(tmp_path), csv_stream(max_ahead_s=10.0)
    read_first_by(home, strict)
    ahead_s = ARRIVAL_US // 1_000_000 + 30
    captured(home, strict, head(f"a,{ahead_s},1,1"))
    assert replayed(home, strict).stay == {"too_far_ahead": 1}
    assert replayed(home, csv_stream(max_ahead_s=30.0)).again == 1


def test_an_end_mark_follows_where_the_log_had_ended(tmp_path: Path):
    home = Home(tmp_path)
    read_first_by(home, SECONDS)
    captured(home, SECONDS, head("a,2024-03-09T10:00:00Z,1,1"))
    write_end(Log(home.log("s")), arrival_us=ARRIVAL_US)
    (number,) = replayed(home, ISO).segments
    log = Log(home.log("s"))
    assert [type(row) for row in control_rows(log, log.segment(number + 1))] == [End]
    assert log.end() == number + 2


def test_what_cannot_be_judged_is_counted_and_stays(tmp_path: Path):
    home = Home(tmp_path)
    read_first_by(home, SECONDS)
    long = f"a,2024-03-09T10:00:00Z,1,{'1' * 5000}"
    captured(home, SECONDS, head(long), head("b,2024-03-09T10:00:00Z,1,1"))
    path = next(home.log("s").rglob("*1.seg"))
    path.write_bytes(path.read_bytes()[:-1])
    done = replayed(home, ISO)
    assert (done.records, done.again, done.stay) == (2, 0, {"bad_time": 2})
    assert sorted(done.beyond.values()) == [1, 1]


KINDS = st.sampled_from(["2024-03-09T10:00:0{}Z", "{}", "never{}", "", "2024-13-0{}"])
LINE = st.tuples(st.sampled_from("abc"), KINDS, st.integers(0, 3))


class KilledError(Exception):
    """The process is killed here."""


@contextmanager
def dying_at(step: int, *, is_done: bool) -> Iterator[list[int]]:
    """Kills at the step-th write of an object, before or after it is done; gives how many there were."""
    count = [0]
    own = {
        name: getattr(LocalStorage, name) for name in ("put", "create_all", "delete")
    }

    def patched(name: str):
        def write(self: LocalStorage, *args: object, **options: object) -> object:
            count[0] += 1
            if count[0] == step and not is_done:
                raise KilledError
            result = own[name](self, *args, **options)
            if count[0] == step:
                raise KilledError
            return result

        return write

    with pytest.MonkeyPatch.context() as patch:
        for name in own:
            patch.setattr(LocalStorage, name, patched(name))
        yield count


@tries(12)
@given(
    segments=st.lists(st.lists(LINE, min_size=1, max_size=6), min_size=1, max_size=4),
    deaths=st.lists(st.tuples(st.integers(1, 9), st.booleans()), max_size=3),
    packed=st.booleans(),
)
def test_each_goes_once_wherever_a_replay_dies_and_counters_add_up(
    tmp_path_factory: pytest.TempPathFactory, segments, deaths, packed
):
    home = Home(tmp_path_factory.mktemp("home"))
    read_first_by(home, SECONDS)
    texts = [
        [f"{name},{kind.format(n)},{n},{n}" for name, kind, n in lines]
        for lines in segments
    ]
    payloads = [head(*lines) for lines in texts]
    captured(home, SECONDS, *(map(gzip.compress, payloads) if packed else payloads))
    for step, is_done in deaths:
        with dying_at(step, is_done=is_done):
            try:
                replayed(home, ISO)
            except KilledError:
                continue
    done = replayed(home, ISO)
    good = Counter(line for lines in texts for line in lines if "T10:00" in line)
    log = Log(home.log("s"))
    again: Counter[str] = Counter()
    for segment in log.segments(len(payloads)):
        if not segment.control:
            rows = csv.reader(log.read(segment).decode().splitlines())
            again.update(",".join(row) for row in rows if row != ["id", "t", "x", "y"])
    assert again == good
    assert done.before + done.again == good.total()
    assert done.records == done.before + done.again + sum(done.stay.values())
    archived(home, ISO)
    assert len(objects(home)) == good.total() + sum(
        kind == "{}" for lines in segments for _, kind, _ in lines
    )


def test_a_note_that_cannot_be_read_stops_the_replay(tmp_path: Path):
    home = Home(tmp_path)
    read_first_by(home, SECONDS)
    captured(home, SECONDS, head("a,2024-03-09T10:00:00Z,1,1"))
    replayed(home, ISO)
    (home.log("s") / "again" / "000000000000.json").write_text('{"start": 1')
    with pytest.raises(LogError, match="rejected records are in the log again"):
        replayed(home, ISO)


def test_the_report_of_the_day_says_how_many_went_again(tmp_path: Path):
    home = Home(tmp_path)
    read_first_by(home, SECONDS)
    captured(home, SECONDS, head("a,2024-03-09T10:00:00Z,1,1", "b,never,1,1"))
    (before,) = rejected_on(home, "s", DAY)
    assert (before.count, before.again) == (2, 0)
    replayed(home, ISO)
    (after,) = rejected_on(home, "s", DAY)
    assert (after.count, after.again) == (2, 1)


CONF = """
[streams.s]
format = "csv"
crs = "planar"
time_unit = "{unit}"
engine = "local"
max_ahead_s = "off"
columns = {{ object = "id", event_ts = "t", x = "x", y = "y" }}
"""


def fairway(root: Path, *args: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["--home", str(root), *args], prog_name="fairway")
    assert done.exit_code == code, done.output
    return done.output


def test_a_query_sees_them_and_the_command_says_what_became_of_each(tmp_path: Path):
    conf = tmp_path / "conf" / "streams.toml"
    conf.parent.mkdir()
    conf.write_text(CONF.format(unit="s"))
    register = "REGISTER QUERY west AS SELECT * FROM s INSIDE (0, 0, 9, 9)"
    fairway(tmp_path, "query", "register", "--text", register)
    log = bare_log(Home(tmp_path).log("s"))
    log.append(
        head("a,2024-03-09T10:00:00Z,1,1", "b,5,2,2", "c,x,3,3"), arrival_us=ARRIVAL_US
    )
    fairway(tmp_path, "run", "s", "--until-idle")
    conf.write_text(CONF.format(unit="iso"))
    said = fairway(tmp_path, "quality", "replay-rejects", "s", "--reason", "bad_time")
    assert said.splitlines() == [
        "s: 2 rejected records",
        "s: 1 go into the log again, in 1 segments, from 3 on",
        "s: 1 stay rejected: 1 bad_time",
    ]
    fairway(tmp_path, "run", "s", "--until-idle")
    answer = fairway(tmp_path, "answer", "west", "--format", "csv")
    assert sorted(line.split(",")[0] for line in answer.splitlines()[1:]) == ["a", "b"]
    assert "1 went into the log before" in fairway(
        tmp_path, "quality", "replay-rejects", "s"
    )
    wrong = fairway(
        tmp_path, "quality", "replay-rejects", "s", "--reason", "bad", code=2
    )
    assert "the reasons are bad_gzip" in wrong


def arrow_of(**columns: list) -> bytes:
    """Rows as a server stores them that were posted as Arrow, or in another format than the stream's."""
    return b"".join(packed(pa.table(columns)))


@pytest.mark.spec("S8")
@pytest.mark.parametrize("form", ["csv", "ndjson", "ais", "parquet"])
def test_rejected_rows_of_arrow_are_taken_up_like_lines(tmp_path: Path, form: str):
    names = {"columns": columns("mmsi time longitude latitude"), "crs": "EPSG:4326"}
    old = csv_stream(
        format=form,
        **(
            names | {"columns": columns("name time longitude latitude")}
            if form == "ais"
            else names
        ),
    )
    new = csv_stream(format=form, **names)
    if form != "ais":
        old, new = replace(new, time_unit="s"), replace(new, time_unit="iso")
    home = Home(tmp_path)
    read_first_by(home, old)
    iso = "2024-03-09T10:00:0{}Z"
    two = [
        arrow_of(
            mmsi=[f"{name}1", f"{name}2", f"{name}3"],
            time=[iso.format(1), "never", iso.format(3)]
            if form != "ais"
            else [1_700_000_000] * 3,
            longitude=[1.0, 2.0, 3.0 if form != "ais" else None],
            latitude=[1.0, 2.0, 3.0],
            more=[{"a": 1}, None, {"a": 2}],
        )
        for name in "ab"
    ]
    captured(home, old, *two)
    assert objects(home) == []
    done = replayed(home, new)
    assert (done.records, done.again) == (6, 4)
    assert len(done.segments) == 1, "bodies with one schema stand together"
    archived(home, new)
    good = ["a1", "a3", "b1", "b3"] if form != "ais" else ["a1", "a2", "b1", "b2"]
    assert objects(home) == good
    again = replayed(home, new)
    assert (again.before, again.again, again.segments) == (4, 0, ())


def test_records_without_ids_are_still_of_their_files_when_they_are_taken_up(
    tmp_path: Path,
):
    """Of a segment with rows of two files one row of each is good later; each is of its own file."""
    owned = Columns(object=None, object_from="file name", event_ts="t", x="x", y="y")
    old = csv_stream(columns=owned)
    rows = (
        b"t,x,y\n5,1,1\n2024-03-09T10:00:00Z,2,2\nnever,3,3\n2024-03-09T10:00:01Z,4,4\n"
    )
    said = SaidBefore(owners=("first", "second"), owner_of=(0, 0, 1, 1))
    home = Home(tmp_path)
    read_first_by(home, old)
    captured(home, old, put_in_front(rows, said))
    new = replace(old, time_unit="iso")
    done = replayed(home, new)
    assert (done.records, done.again) == (3, 2)
    archived(home, new)
    found = tables.read(home.table("positions", "s"))
    pairs = zip(found["object"].to_pylist(), found["x"].to_pylist(), strict=True)
    assert sorted(pairs) == [("first", 1.0), ("first", 2.0), ("second", 4.0)]


def test_lines_that_a_file_begins_with_are_skipped_once(tmp_path: Path):
    old = csv_stream(skip_lines=1)
    home = Home(tmp_path)
    read_first_by(home, old)
    captured(home, old, head("a,2024-03-09T10:00:00Z,1,1", "b,5,2,2"))
    assert replayed(home, replace(old, time_unit="iso")).again == 1
