"""Quality of a closed day: rules from contracts, counts from tables, an HTML report that opens offline."""

import json
import re
from collections import defaultdict
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from jobs.report_quality import main
from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.errors import ConfigError
from st_common.operations.days import is_closed, open_since
from st_common.operations.status import StreamStatus, write_status
from st_common.quality.check import StreamDay, check_day
from st_common.quality.daily import report_days
from st_common.quality.data_check import DataCheck
from st_common.quality.finding import Finding
from st_common.quality.home_check import check_now
from st_common.quality.report import Rejected, render, section_of
from st_common.quality.tally import Tally, _late_and_double, tally
from st_common.quality.trends import Trend

pytestmark = [
    pytest.mark.spec("C8"),
    pytest.mark.filterwarnings(
        "default:::great_expectations"
    ),  # its own affair; ours stay errors
]

DAY = date(2024, 3, 9)
US = 1_000_000
MIDNIGHT = int(datetime(2024, 3, 10, tzinfo=UTC).timestamp()) * US
TAXIS = StreamSettings(
    name="taxis", format="csv", columns=Columns(object="id", event_ts="t", x="x", y="y")
)


def fixes(rows: list[tuple[int, int, str, float]], **columns: Any) -> pa.Table:
    """Positions: segment, row, object, seconds before (-) or after midnight."""
    stamps = pa.array([MIDNIGHT + int(s * US) for *_, s in rows]).cast(
        pa.timestamp("us", "UTC")
    )
    given = {
        "region_id": ["0"] * len(rows),
        "segment": pa.array([segment for segment, *_ in rows], pa.int64()),
        "row": pa.array([row for _, row, *_ in rows], pa.int32()),
        "event_ts": stamps,
        "x": [8.5] * len(rows),
        "y": [47.3] * len(rows),
        "object": [name for *_, name, _ in rows],
        "gone": [False] * len(rows),
    }
    return pa.table(given | columns)


def rejects(rows: list[tuple[int, str]], stream: str = "taxis") -> pa.Table:
    """Rejects: seconds before (-) or after midnight at which they came, reason."""
    return pa.table(
        {
            "segment": pa.array(range(len(rows)), pa.int64()),
            "row": pa.array(range(len(rows)), pa.int32()),
            "arrival_ts": pa.array([MIDNIGHT + s * US for s, _ in rows]).cast(
                pa.timestamp("us", "UTC")
            ),
            "stream": [stream] * len(rows),
            "reason": [reason for _, reason in rows],
            "raw": pa.array([b"?"] * len(rows), pa.binary()),
        }
    )


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home in which one day of `taxis` is closed and the next is open."""
    home = Home(tmp_path)
    rows = [
        (0, 0, "a", -30),
        (0, 1, "b", -29),
        (1, 0, "a", -10),
        (1, 1, "a", -20),
        (2, 0, "b", -29),
        (3, 0, "a", 5),
    ]
    rows += [(4, 0, "b", -1)]
    tables.append(
        home.table("positions", "taxis"), fixes(rows), load_contract("positions")
    )
    bad = [(-9, "bad_time"), (-8, "ragged"), (-1, "bad_time"), (0, "nul"), (9, "nul")]
    tables.append(home.table("rejects"), rejects(bad), load_contract("rejects"))
    tables.append(
        home.table("rejects"),
        rejects([(-8, "ragged")], "buses"),
        load_contract("rejects"),
    )
    beat(home, now_us=MIDNIGHT + 5 * US)
    return home


def beat(
    home: Home, *, now_us: int | None, job: str = "engine", stream: str = "taxis"
) -> None:
    status = StreamStatus(
        state="running", beat_ts=1, position=0, end_position=0, now_ts=now_us, job=job
    )
    write_status(home.stream(stream), status)


def test_a_day_is_closed_when_every_clock_has_passed_its_end(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert open_since(home, "taxis") is None
    beat(home, now_us=MIDNIGHT - 1)
    assert not is_closed(home, "taxis", DAY)
    beat(home, now_us=MIDNIGHT)
    assert is_closed(home, "taxis", DAY)
    assert not is_closed(home, "taxis", DAY + timedelta(days=1))
    beat(home, now_us=MIDNIGHT - 1, job="archive")
    assert not is_closed(home, "taxis", DAY), "the slowest writer counts"
    beat(home, now_us=MIDNIGHT + 1, job="archive")
    beat(home, now_us=None, job="archive")
    assert is_closed(home, "taxis", DAY), (
        "a job that starts again has not turned its clock back"
    )


@pytest.mark.spec("C6", "C8")
@pytest.mark.parametrize(("why", "holds"), [("late", True), ("unexplained", False)])
def test_a_difference_that_no_late_fix_explains_is_a_breach(
    home: Home, why: str, holds: bool
) -> None:
    at = datetime.fromtimestamp(MIDNIGHT // US - 60, UTC)
    row = {"query": "q", "query_version": 1, "object": "a", "arm": "told", "run": "r"}
    row |= {"from_ts": at, "to_ts": at, "cause_in": "enter", "cause_out": "leave"}
    contract = load_contract("differences")
    schema = contract.arrow_schema()
    rows = pa.Table.from_pylist([row | {"event_date": at.date(), "why": why}], schema)
    tables.replace(home.table("differences", "taxis"), rows, contract)
    broken = [(one.table, one.rule) for one in check_day(home, TAXIS, DAY).breaches]
    told = ("differences/taxis", "differences_are_explained")
    assert (told not in broken) == holds


def test_every_record_of_a_day_is_accounted_for(home: Home) -> None:
    found = tally(home, TAXIS, DAY)
    assert found == Tally(
        fixes=6,
        objects=2,
        late=1,
        double=1,
        rejects={"bad_time": 2, "ragged": 1},
        changes=0,
    )
    after = tally(home, TAXIS, DAY + timedelta(days=1))
    assert (after.fixes, after.rejects) == (1, {"nul": 2})
    assert tally(home, TAXIS, DAY + timedelta(days=2)).fixes == 0


def naive(rows: list[tuple[str, int]], lateness: int) -> tuple[int, int]:
    """Late and double by the words of the promise, row after row."""
    last: dict[str, int] = {}
    seen: set[tuple[str, int]] = set()
    clock, late, double = None, 0, 0
    for name, ts in rows:
        if lateness:
            if clock is not None and ts < clock - lateness:
                late += 1
            elif (name, ts) in seen:
                double += 1
            else:
                seen.add((name, ts))
        elif name in last and ts <= last[name]:
            late, double = late + (ts < last[name]), double + (ts == last[name])
        else:
            last[name] = ts
        clock = ts if clock is None else max(clock, ts)
    return late, double


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(-9, -1)), min_size=1),
    st.sampled_from([0, 1, 3]),
)
def test_late_and_double_are_those_of_the_promise(
    rows: list[tuple[str, int]], lateness: int
) -> None:
    table = fixes([(n // 2, n % 2, name, ts) for n, (name, ts) in enumerate(rows)])
    table = table.append_column("event_date", pa.array([DAY] * len(rows), pa.date32()))
    unsaid = table.append_column("too_late", pa.nulls(len(rows), pa.bool_()))
    assert _late_and_double(unsaid, DAY, lateness * US) == naive(rows, lateness)


@pytest.mark.parametrize("lateness", [0, 3])
def test_fixes_that_say_whether_they_were_late_are_believed(lateness: int) -> None:
    """Clock rows and silence make fixes late, too, and are not in the table."""
    rows = [(0, 0, "a", -9), (0, 1, "a", -8), (1, 0, "a", -8), (1, 1, "b", -8)]
    table = fixes(rows)
    table = table.append_column("event_date", pa.array([DAY] * len(rows), pa.date32()))
    said = pa.array([False, False, False, True])
    table = table.append_column("too_late", said)
    assert _late_and_double(table, DAY, lateness * US) == (1, 1)


def broken(findings: tuple[Finding, ...]) -> dict[str, tuple[str, float | None]]:
    return {
        f"{f.table} {f.rule}": (f.severity, f.observed)
        for f in findings
        if not f.passed
    }


@pytest.mark.slow
def test_a_clean_day_keeps_every_rule_and_planted_faults_break_theirs_alone(
    home: Home,
) -> None:
    found = check_day(home, TAXIS, DAY)
    assert broken(found.findings) == {}
    assert {finding.table for finding in found.findings} == {
        "data/taxis",
        "positions/taxis",
        "rejects/taxis",
    }
    assert len(found.findings) > 15
    gone = fixes([(5, 0, "c", -3)], gone=[True], x=[float("nan")], y=[float("nan")])
    nowhere = fixes([(5, 1, "c", -2)], x=[float("nan")])
    twice = fixes([(0, 0, "d", -2), (-4, 2, "", -1)])
    nameless = fixes([(7, n, "", -1) for n in range(5)])
    tomorrow = fixes([(6, 0, "", 7)])
    for rows in (gone, nowhere, twice, nameless, tomorrow):
        tables.append(
            home.table("positions", "taxis"), rows, load_contract("positions")
        )
    found = check_day(home, TAXIS, DAY)
    assert broken(found.findings) == {
        "positions/taxis segment_between": ("error", 1.0),
        "positions/taxis object_length": ("error", 6.0),
        "positions/taxis key_is_unique": ("error", 2.0),
        "positions/taxis place_is_finite": ("error", 1.0),
    }
    example = next(f for f in found.findings if f.rule == "place_is_finite")
    assert json.loads(example.details)[0]["y"] == 47.3
    assert example.rows == 15


@pytest.mark.slow
@pytest.mark.spec("P2")
def test_latest_and_snapshots_of_the_day_are_checked_too(home: Home) -> None:
    stamp = pa.timestamp("us", "UTC")
    times = pa.array([MIDNIGHT - US, MIDNIGHT - 2 * US, MIDNIGHT + US], stamp)
    latest = {
        "segment": pa.array([0, 0, 0]),
        "row": pa.array([0, 1, 2], pa.int32()),
        "event_ts": times,
        "x": [8.5, float("nan"), float("nan")],
        "y": [47.3] * 3,
        "gone": [False] * 3,
        "readings": pa.array([1, 1, 1]),
        "newest_ts": pa.array([MIDNIGHT - US, MIDNIGHT - 9 * US, MIDNIGHT + US], stamp),
        "object": ["a", "b", "c"],
    }
    tables.replace(
        home.table("latest", "taxis"), pa.table(latest), load_contract("latest")
    )
    when = pa.array([MIDNIGHT - 3600 * US] * 3, stamp)
    snapshot = {
        "snapshot_ts": when,
        "position": pa.array([9, 9, 9]),
        "from_ts": when,
        "since_position": pa.array([1, 12, 1]),
        "event_ts": when,
        "x": [8.5, 8.5, None],
        "y": [47.3, 47.3, None],
        "gone": [False, False, None],
        "kind": ["object", "object", "answer"],
        "object": ["a", "b", "a"],
        "query": [None, None, "q"],
    }
    tables.append(
        home.table("snapshots", "taxis"), pa.table(snapshot), load_contract("snapshots")
    )
    found = check_day(home, TAXIS, DAY)
    assert {"latest/taxis", "snapshots/taxis"} < {
        finding.table for finding in found.findings
    }
    assert broken(found.findings) == {
        "latest/taxis place_is_finite": ("error", 1.0),
        "latest/taxis kept_is_not_newer_than_newest": ("error", 1.0),
        "snapshots/taxis kind_fits_columns": ("error", 1.0),
        "snapshots/taxis nothing_is_ahead": ("error", 1.0),
    }
    assert broken(check_day(home, TAXIS, DAY - timedelta(days=1)).findings) == {}


@pytest.mark.slow
def test_reports_are_written_once_per_closed_day_and_their_results_are_a_table(
    home: Home,
) -> None:
    streams = {"taxis": TAXIS}
    with pytest.raises(ConfigError, match="2024-03-10 is not closed"):
        report_days(home, streams, DAY + timedelta(days=1), checked_us=1)
    reports = report_days(home, streams, None, checked_us=2)
    assert [(report.day, report.breaches) for report in reports] == [(DAY, 0)]
    assert "all promises kept" in reports[0].path.read_text()
    assert report_days(home, streams, None, checked_us=3) == [], "checked already"
    report_days(home, streams, DAY, checked_us=4)
    kept = tables.read(home.table("quality"))
    assert len(kept) == reports[0].rules, "a second check replaces the first"
    query = "SELECT rule, observed FROM kept WHERE expected = 'counted' AND observed > 0 ORDER BY rule"
    counted = duckdb.sql(query).fetchall()
    assert counted == [
        ("double", 1.0),
        ("late", 1.0),
        ("rejects_bad_time", 2.0),
        ("rejects_ragged", 1.0),
    ]


@pytest.mark.slow
def test_the_job_ends_with_3_when_a_promise_is_broken_and_has_written_the_report(
    home: Home, capsys: pytest.CaptureFixture[str]
) -> None:
    (home.root / "conf").mkdir()
    columns = 'format = "csv"\ncolumns = { object = "id", x = "x", y = "y" }'
    (home.root / "conf" / "streams.toml").write_text(f"[streams.taxis]\n{columns}\n")
    nowhere = fixes([(5, 1, "c", -2)], x=[float("inf")])
    tables.append(home.table("positions", "taxis"), nowhere, load_contract("positions"))
    assert main(["--engine=local", "--home", str(home.root), "--day", str(DAY)]) == 3
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert summary["breaches"] == 1
    assert "1 broken" in Path(summary["days"][0]["path"]).read_text()
    assert (
        main(["--engine=local", "--home", str(home.root), "--day", "2024-03-11"]) == 2
    )
    assert main(["--engine=local", "--home", str(home.root)]) == 0
    summary = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [report["day"] for report in summary["days"]] == ["2024-03-10"], (
        "on that open day rejects came"
    )
    assert main(["--engine=local", "--home", str(home.root)]) == 0
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["days"] == []


@pytest.mark.slow
def test_a_broken_layer_is_found_and_one_that_lost_most_features(home: Home) -> None:
    path = home.table("layers", "parks")
    square = "POLYGON ((0 0, 1 0, 1 1, 0 1, 0 0))"
    bow = "POLYGON ((0 0, 1 1, 1 0, 0 1, 0 0))"
    tables.append(path, layer([square] * 5), load_contract("layers"))
    assert broken(tuple(check_now(home))) == {}
    tables.replace(path, layer([square, bow]), load_contract("layers"))
    assert broken(tuple(check_now(home))) == {
        "layers/parks geometry_is_valid": ("error", 1.0),
        "layers/parks features_to_version_before": ("warning", 0.4),
    }
    (report,) = report_days(home, {"taxis": TAXIS}, None, checked_us=1)
    assert report.breaches == 1
    assert "geometry_is_valid" in report.path.read_text()


def layer(texts: list[str]) -> pa.Table:
    """A layer of these features, all of them home in one region."""
    shapes = shapely.from_wkt(texts)
    minx, miny, maxx, maxy = shapely.bounds(shapes).T
    n = len(texts)
    return pa.table(
        {
            "region_id": ["0"] * n,
            "minx": minx,
            "miny": miny,
            "maxx": maxx,
            "maxy": maxy,
            "home": [True] * n,
            "fid": [f"w{each}" for each in range(n)],
            "kind": ["park"] * n,
            "tags": pa.array([[]] * n, pa.map_(pa.string(), pa.string())),
            "geometry": pa.array(shapely.to_wkb(shapes).tolist(), pa.binary()),
            "region_version": pa.array([1] * n, pa.int64()),
        }
    )


class Links(HTMLParser):
    """What a page would load or lead to, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.links += [
            f"{name}={value}"
            for name, value in attrs
            if name in {"src", "href", "action", "data", "style"}
        ]

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_report_loads_nothing_and_shows_everything_as_text() -> None:
    rule = Finding(
        table="positions/taxis",
        rule="object_length",
        severity="error",
        passed=False,
        observed=12_345.0,
        expected="length(object) >= 1",
        rows=99_999,
        details="<script src='http://x/'>",
    )
    unmeasured = Finding(
        table="positions/taxis",
        rule="odd",
        severity="warning",
        passed=False,
        observed=None,
        expected="",
        rows=0,
    )
    nothing = replace(
        unmeasured, table="data/taxis", rule="volume", passed=True, details="no day"
    )
    counted = Tally(
        fixes=99_999, objects=7, late=3, double=4, rejects={"bad<time": 5}, changes=6
    )
    taxis = StreamDay(
        stream="taxis",
        day=DAY,
        tally=counted,
        findings=(rule, unmeasured),
        data=DataCheck(contract="taxis 1.0.0", findings=(nothing,)),
    )
    rejected = Rejected(reason="bad<time", count=5, again=0, examples=("<img src=x>",))
    trend = Trend(days=(DAY - timedelta(days=2), DAY), values=(0.5, 0.25))
    trends = defaultdict(Trend, {("data/taxis", "volume"): trend})
    page = render(DAY, [section_of(taxis, [rejected])], trends)
    links = Links()
    links.feed(page)
    assert links.links == ["href=index.html"]
    assert not {"script", "link", "img", "iframe"} & set(links.tags)
    assert not re.search(r"(?i)url\(|@import", page)
    for text in (
        "1 broken",
        "12,345",
        "99,999",
        "bad<time",
        "<script src='http://x/'>",
        "not measured",
        "nothing to judge",
        "no day",
        "2024-03-07 to 2024-03-09: 0.25 to 0.5, last 0.25",
        "<img src=x>",
        "double",
    ):
        assert text in links.text
