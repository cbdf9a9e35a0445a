"""What lies beside tables and logs goes when nothing needs it: seeds, borders, small files of trials; nothing else."""

import os
import shutil
import time
from datetime import UTC, date, datetime
from pathlib import Path

import pyarrow as pa
import pytest

from st_common import tables
from st_common.batch.borders import Border, Borders
from st_common.batch.trial import Trial, trial_table
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.controls.rows import Register
from st_common.controls.writing import payload_of
from st_common.engine.statements import Reached
from st_common.errors import ConfigError
from st_common.history.visits import MEMBERS
from st_common.log.log_purging import purge_records
from st_common.log.seeds import keep_seed, seeds_folder, seeds_in
from st_common.maintenance.leftovers import Cleared, clear_leftovers
from st_common.maintenance.maintain import maintain
from st_common.operations.alerts import Alert, alerts_file, append_alert, read_alerts
from st_common.operations.status import StreamStatus, write_status
from st_common.operators.state.state import State
from st_common.position import position_of
from st_common.query.plan import LayerJoin, Plan
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("S4")

TODAY = date(2024, 5, 30)
PLAN = Plan(stream="grid", join=LayerJoin(layer="parks", predicate="intersects"))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path)


def grow_old(*paths: Path) -> None:
    """Makes files and folders look as they will in two days."""
    then = time.time_ns() - 2 * 86_400 * 10**9
    for path in paths:
        os.utime(path, ns=(then, then))


def clear(home: Home) -> Cleared:
    return clear_leftovers(home, home.root, today=TODAY)


def purged(home: Home, name: str, segment: int, days: tuple[int, ...] = ()) -> None:
    """Makes a table that was purged before a segment, and holds a row of some days of May."""
    contract = load_contract(name)
    values = {
        "event_date": [date(2024, 5, day) for day in days],
        "region_id": ["0"] * len(days),
        "object": ["a"] * len(days),
        "segment": [segment] * len(days),
        "row": [0] * len(days),
        "event_ts": [
            1_714_521_600_000_000 + (day - 1) * 86_400_000_000 for day in days
        ],
        "x": [0.5] * len(days),
        "y": [0.5] * len(days),
        "gone": [False] * len(days),
    }
    schema = contract.arrow_schema()
    rows = schema.empty_table()
    if days:
        known = [field for field in schema if field.name in values]
        rows = pa.table(
            {field.name: pa.array(values[field.name], field.type) for field in known}
        )
    place = position_of(segment, 0)
    path = home.table(name, "grid")
    tables.append(path, rows, contract, app=tables.PURGED, version=place)


def registered(home: Home, name: str) -> str:
    """A query whose row names a seed; gives the seed's id."""
    log = bare_log(home.log("grid"))
    seed = keep_seed(log.folder, f"what {name} knew".encode())
    row = Register(query=name, version=1, plan=PLAN.to_json(), seed=seed)
    log.append(payload_of([row]), arrival_us=0, control=True)
    return seed


def test_seeds_that_no_row_names_any_more_go_when_they_are_a_day_old(
    home: Home,
) -> None:
    before, named = registered(home, "before"), registered(home, "named")
    log, folder = bare_log(home.log("grid")), seeds_folder(home.log("grid"))
    failed = keep_seed(log.folder, b"of a registration that failed")
    grow_old(*folder.iterdir())
    young = keep_seed(log.folder, b"of a registration under way")
    assert clear(home) == Cleared(seeds=1), "all of the log may be read again"
    assert not (folder / failed).exists()
    purge_records(log, 1)
    purged(home, "positions", 1)
    purged(home, "changes", 1)
    assert clear(home) == Cleared(seeds=1)
    assert not (folder / before).exists()
    rows = [Register(query="named", version=1, plan=PLAN.to_json(), seed=named)]
    assert seeds_in(log.folder, rows) == {"named": b"what named knew"}
    assert (folder / young).exists()


def border(home: Home, day: int, trial: Trial | None = None) -> None:
    Borders(home, "grid", "settings", trial).keep(
        Border(
            day=date(2024, 5, day),
            state=State(),
            members=MEMBERS.empty_table(),
            reached=Reached(segment=1),
            fixes=0,
            late=0,
        )
    )


def days_of_borders(folder: Path) -> list[str]:
    return sorted(path.stem[-2:] for path in folder.glob("*.json"))


def test_borders_go_at_which_no_run_can_begin_any_more(home: Home) -> None:
    bare_log(home.log("grid")).append(b"id,t,x,y\n", arrival_us=0)
    folder, trial = home.stream("grid") / "batch", Trial(name="wider")
    for day in (1, 3, 4, 7):
        border(home, day)
        border(home, day, trial)
    tables.create(trial_table(home, "grid", "wider"), load_contract("visits"))
    purged(home, "positions", 1, days=(6, 7))
    grow_old(folder / "wider")
    assert clear(home) == Cleared(borders=12)
    assert days_of_borders(folder) == ["04", "07"], "nothing came on the 4th and 5th"
    assert days_of_borders(folder / "wider") == ["04", "07"]
    shutil.rmtree(trial_table(home, "grid", "wider"))
    assert clear(home) == Cleared(), "a trial of today may come to have its table"
    grow_old(folder / "wider")
    assert clear(home) == Cleared(borders=6)
    assert days_of_borders(folder) == ["04", "07"]


def test_borders_of_a_stream_that_was_never_purged_stay(home: Home) -> None:
    bare_log(home.log("grid")).append(b"id,t,x,y\n", arrival_us=0)
    for day in (1, 7):
        border(home, day)
    assert clear(home) == Cleared()
    assert days_of_borders(home.stream("grid") / "batch") == ["01", "07"]


def test_small_files_of_a_trial_become_one_with_the_same_rows(home: Home) -> None:
    path, contract = trial_table(home, "grid", "wider"), load_contract("visits")
    for number in range(4):
        stamp = 1_714_521_600_000_000 + number
        row = {
            "event_date": date(2024, 5, 1),
            "query_version": 1,
            "from_ts": stamp,
            "query": "q",
            "object": f"o{number}",
            "cause_in": "enters",
            "run": "r",
        }
        schema = contract.arrow_schema()
        arrays = {
            field.name: pa.array([row.get(field.name)], field.type) for field in schema
        }
        tables.append(path, pa.table(arrays, schema=schema), contract)
    now = 1_714_521_600_000_000 + 3 * 86_400_000_000
    status = StreamStatus(
        state="idle", beat_ts=1, position=0, end_position=0, now_ts=now
    )
    write_status(home.stream("grid"), status)
    before = tables.read(path).sort_by("object")
    (done,) = maintain(home, today=TODAY)
    assert (done.table, done.before.files, done.after.files) == (
        "trials/grid.wider",
        4,
        1,
    )
    assert tables.read(path).sort_by("object") == before


def alerts_told(home: Home, *days: int) -> None:
    for day in days:
        begin = datetime(2024, 5, day, tzinfo=UTC)
        ts = int(begin.timestamp()) * 1_000_000
        append_alert(home, Alert(ts=ts, stream="s", level="error", text=f"day {day}"))


def retained(home: Home, **days: int) -> None:
    lines = [f"{name} = {count}" for name, count in days.items()]
    text = "\n".join(("[retention]", *lines))
    (home.root / "operations.toml").write_text(text)


def test_alerts_and_pages_of_reports_go_after_the_days_of_the_settings(home: Home):
    retained(home, alerts_days=10, reports_days=20)
    alerts_told(home, 1, 19, 20, 30)
    with alerts_file(home).open("ab") as file:
        file.write(b"cut by a cra\n")
    pages = home.reports / "quality"
    (pages / "data_docs").mkdir(parents=True)
    names = ["{}.html", "{}.json", "data_docs/my-cars-{}.html"]
    for day in ("2023-12-31", "2024-05-09", "2024-05-10", "2024-05-30"):
        for name in names:
            (pages / name.format(day)).write_text("")
    cleared = clear(home)
    assert (cleared.alerts, cleared.report_files) == (2, 6)
    assert [alert.text for alert in read_alerts(home)] == ["day 20", "day 30"]
    assert b"cut by a cra\n" in alerts_file(home).read_bytes()
    rest = {str(page.relative_to(pages)) for page in pages.rglob("*.*")}
    kept = {name.format(day) for name in names for day in ("2024-05-10", "2024-05-30")}
    assert rest == kept | {"index.html"}
    assert clear(home) == Cleared()


def test_alerts_stay_for_two_years_when_nothing_is_said(home: Home):
    alerts_told(home, 30)
    assert clear_leftovers(home, home.root, today=date(2026, 5, 30)).alerts == 0
    assert clear_leftovers(home, home.root, today=date(2026, 5, 31)).alerts == 1


@pytest.mark.parametrize(
    ("days", "said"),
    [({"alerts_days": 0}, "alerts_days"), ({"alert_days": 3}, "alert_days")],
)
def test_a_retention_that_is_not_understood_is_named(home: Home, days, said):
    retained(home, **days)
    with pytest.raises(ConfigError, match=f"retention.*{said}"):
        clear(home)
