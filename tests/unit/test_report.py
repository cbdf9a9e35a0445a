"""What a stream came to: figures from the tables that a real run of the local engine leaves behind."""

import datetime as dt
import shutil
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import shapely

from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.engine.run import run
from st_common.log.control import write_end
from st_common.log.log import Log
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log
from tests.kit.report import Report, collect

STREAM = StreamSettings(
    name="cars",
    format="csv",
    columns=Columns(object="id", event_ts="t", x="x", y="y"),
    crs="planar",
    time_unit="s",
    max_ahead_s=None,
    engine="local",
)
QUERIES = """
    REGISTER QUERY west AS SELECT * FROM cars INSIDE (0, 0, 5, 10);
    REGISTER QUERY parked AS SELECT * FROM cars JOIN parks ON ST_Intersects(cars, parks) EMIT EVERY;
"""
FIXES = """id,t,x,y
a,1,1,1
b,1,8,8
a,2,2,2
c,2,nowhere,1
b,3,4,4
b,3,9,9
a,1,0,0
a,4,9,1
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    home = Home(tmp_path_factory.mktemp("home"))
    store_parks(home)
    register(home, {"cars": STREAM}, parse(QUERIES), owner="me", now_us=1_000_000)
    bare_log(home.log("cars")).append(FIXES.encode(), arrival_us=2_000_000)
    run(home, STREAM, until_idle=True)
    return home


def store_parks(home: Home) -> None:
    contract = load_contract("layers")
    park = shapely.box(1.5, 1.5, 6, 6)
    row = {
        "region_id": "0",
        "home": True,
        "fid": "way/1/area",
        "kind": "park",
        "tags": [],
        "geometry": park.wkb,
    }
    row |= dict(zip(("minx", "miny", "maxx", "maxy"), park.bounds, strict=True))
    tables.replace(
        home.table("layers", "parks"),
        pa.Table.from_pylist([row], contract.arrow_schema()),
        contract,
    )


@pytest.fixture(scope="module")
def report(home: Home) -> Report:
    return collect(home, STREAM)


@pytest.mark.spec("W3")
def test_a_window_is_counted_by_its_fixes(tmp_path: Path) -> None:
    home = Home(tmp_path)
    text = """
        REGISTER QUERY trail AS SELECT * FROM cars [RANGE BY (0, 0, 5, 10) RATTR SPACE];
        REGISTER QUERY now AS SELECT * FROM cars [ROWS 2] INSIDE (0, 0, 20, 20);
    """
    register(home, {"cars": STREAM}, parse(text), owner="me", now_us=1_000_000)
    bare_log(home.log("cars")).append(FIXES.encode(), arrival_us=2_000_000)
    write_end(Log(home.log("cars")), arrival_us=2_000_000)
    run(home, STREAM, until_idle=True)
    found = collect(home, STREAM)
    assert {one.name: (one.objects, one.pairs) for one in found.queries} == {
        "trail": (2, 3),
        "now": (2, 4),
    }


def test_counts(report: Report) -> None:
    assert (report.fixes, report.objects, report.rejects) == (7, 2, {"bad_number": 1})
    assert (report.late, report.double, report.changes) == (1, 1, 6)
    assert (report.first.timestamp(), report.last.timestamp()) == (1, 4)
    assert report.engine == "local"


def test_answers_and_changes_by_query(report: Report) -> None:
    """West: a in at 1, b in at 3, a out at 4. Parked: a in at 2, b in at 3, a out at 4."""
    facts = {query.name: query for query in report.queries}
    assert (facts["west"].objects, facts["west"].plus, facts["west"].minus) == (1, 2, 1)
    assert (
        facts["parked"].pairs,
        facts["parked"].plus,
        facts["parked"].minus,
        facts["parked"].again,
    ) == (1, 2, 1, 0)
    assert facts["west"].text.startswith("REGISTER QUERY west AS")


def test_layers_latency_and_what_is_not_there_yet(report: Report) -> None:
    assert [(layer.name, layer.kinds) for layer in report.layers] == [
        ("parks", {"park": 1})
    ]
    assert report.latency_s is not None
    assert (
        report.latency_s[0] > 1_600_000_000
    )  # the segment is said to have come in 1970
    assert report.regions is None
    assert report.rules == ()


def test_values_of_groups_are_told(home: Home, tmp_path: Path) -> None:
    home = Home(shutil.copytree(home.root, tmp_path / "copy"))
    text = (
        "REGISTER QUERY how_many AS SELECT COUNT(*) FROM cars INSIDE CIRCLE (4, 4, 10)"
    )
    register(home, {"cars": STREAM}, parse(text), owner="me", now_us=3_000_000)
    run(home, STREAM, until_idle=True)
    report = collect(home, STREAM)
    assert {query.name: query.values for query in report.queries if query.values} == {
        "how_many": (("*", 2.0),)
    }


def test_a_home_where_nothing_ran(tmp_path: Path) -> None:
    report = collect(Home(tmp_path), STREAM)
    assert (
        report.fixes,
        report.changes,
        report.queries,
        report.layers,
        report.latency_s,
    ) == (0, 0, (), (), None)


def test_regions_of_the_newest_version(home: Home, tmp_path: Path) -> None:
    home = Home(shutil.copytree(home.root, tmp_path / "copy"))
    contract = load_contract("regions")
    base = {
        "group": "default",
        "miny": -np.inf,
        "maxy": np.inf,
        "strategy": "sample",
        "std_deviation": 1.5,
    }
    cells = [
        (1, "0", -np.inf, np.inf, 9),
        (2, "0", -np.inf, 4.0, 3),
        (2, "1", 4.0, np.inf, 6),
    ]
    rows = [
        base | {"version": v, "region_id": r, "minx": a, "maxx": b, "rows": n}
        for v, r, a, b, n in cells
    ]
    tables.replace(
        home.table("regions"),
        pa.Table.from_pylist(rows, contract.arrow_schema()),
        contract,
    )
    report = collect(home, STREAM)
    assert (
        report.regions.version,
        report.regions.rows,
        report.regions.std_deviation,
    ) == (2, (3, 6), 1.5)


def test_broken_rules_come_first_each_once_as_last_checked(
    home: Home, tmp_path: Path
) -> None:
    home = Home(shutil.copytree(home.root, tmp_path / "copy"))
    contract = load_contract("quality")
    base = {
        "table": "rejects",
        "severity": "warning",
        "expected": "few",
        "rows": 10,
        "details": "many",
        "observed": 1.0,
    }
    days = [dt.date(2026, 6, 19), dt.date(2026, 6, 20)]
    checks = [
        ("a", days[0], 1, False),
        ("a", days[0], 2, True),
        ("a", days[1], 2, True),
        ("b", days[0], 1, False),
    ]
    rows = [
        base
        | {
            "rule": rule,
            "date": day,
            "checked_ts": dt.datetime(2026, 7, hour, tzinfo=dt.UTC),
            "passed": passed,
        }
        for rule, day, hour, passed in checks
    ]
    tables.replace(
        home.table("quality"),
        pa.Table.from_pylist(rows, contract.arrow_schema()),
        contract,
    )
    found = collect(home, STREAM).rules
    assert [(rule.rule, rule.passed, rule.details) for rule in found] == [
        ("b", False, "many"),
        ("a", True, "many"),
    ]
