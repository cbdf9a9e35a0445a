"""Closed days checked by both engines: in this process and on Spark they find the same (SPEC C8)."""

import json
import shutil
from datetime import UTC, date, datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import shapely
from deltalake import write_deltalake

from jobs.report_quality import main
from st_common import tables
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.contracts import contract_names, load_contract
from st_common.engine.archive import Archive
from st_common.errors import ContractError
from st_common.log.record_settings import log_for
from st_common.quality.engines import LOCAL
from st_common.quality.finding import data_label
from st_common.quality.table_check import check_table
from st_common.spark.quality import spark_engine

pytestmark = [
    pytest.mark.spark,
    pytest.mark.spec("C8", "S13"),
    pytest.mark.timeout(900),
    pytest.mark.filterwarnings("default:::great_expectations"),
    pytest.mark.filterwarnings("default::DeprecationWarning"),
]

ROOT = Path(__file__).parents[2]
DAY = date(2024, 3, 9)
MIDNIGHT = datetime(2024, 3, 9, tzinfo=UTC)
ROWS = 120
TEXTS = ["", "a", "b", "abc\n", "abc\r", "Ä\u2028ö", "a_1", None]


@pytest.fixture(scope="module")
def engine(spark, tmp_path_factory):
    """The engine, in a session whose own clock and quotes are others."""
    zone = "spark.sql.session.timeZone"
    before = spark.conf.get(zone)
    spark.catalog.clearCache()  # what other tests of this session keep
    spark.conf.set(zone, "Asia/Tokyo")
    with spark_engine(Home(tmp_path_factory.mktemp("engine"))) as found:
        yield found
    assert spark.conf.get(zone) == "Asia/Tokyo"
    spark.conf.set(zone, before)
    assert not spark.catalog.tableExists("tmp_view")
    assert spark._jsparkSession.sharedState().cacheManager().isEmpty()


def some_values(rng, field, known, n):
    """Values of a column, of which some break any rule: nulls, NaN, infinities, out of bounds, there twice."""
    kind = field.type
    if pa.types.is_integer(kind):
        values = [None, *range(-2, 9)]
    elif pa.types.is_floating(kind):
        values = [None, float("nan"), float("inf"), -float("inf"), -1.5, 0.0, 2.5, 3.0]
    elif pa.types.is_timestamp(kind):
        hours = [None, 0, 1, 23, 23.9999999, 30]
        values = [h if h is None else MIDNIGHT + timedelta(hours=h) for h in hours]
    elif pa.types.is_date(kind):
        values = [DAY, DAY, DAY, DAY + timedelta(days=1)]
    elif pa.types.is_boolean(kind):
        values = [None, True, False, False]
    elif pa.types.is_binary(kind):
        values = [None, b"", b"x"]
    elif pa.types.is_map(kind):
        values = [None, [], [("k", "v")]]
    else:
        values = [*TEXTS, *known, *known]
    return pa.array([values[i] for i in rng.integers(len(values), size=n)], kind)


def random_table(path, name, seed, without=()):
    """A table that no contract would let through, without some columns: of an older version of the contract."""
    rng, contract = np.random.default_rng(seed), load_contract(name)
    known = {
        rule.columns[0]: rule.arguments["values"]
        for rule in contract.rules
        if rule.kind == "valid_values"
    }
    if name == "rejects":
        known["stream"] = ("taxis",)
    rows = pa.table(
        {
            field.name: some_values(rng, field, known.get(field.name, ()), ROWS)
            for field in contract.arrow_schema()
            if field.name not in without
        }
    )
    halves = rows.slice(0, ROWS // 2), rows.slice(ROWS // 3)  # some rows are twice
    for half in halves:
        write_deltalake(
            path, half, mode="append", partition_by=list(contract.partition_by)
        )


def bounds_of(contract):
    """Which rows a report looks at: those of a day, and of a stream where a table is one of all."""
    names = [column.name for column in contract.columns]
    dates = [name for name in ("event_date", "ingest_date", "date") if name in names]
    if dates:
        return [(dates[0], "=", DAY)]
    if contract.name in ("snapshots", "latest"):
        column = "snapshot_ts" if contract.name == "snapshots" else "event_ts"
        return [(column, ">=", MIDNIGHT), (column, "<", MIDNIGHT + timedelta(days=1))]
    return []


def require_alike(engine, path, name):
    bounds = bounds_of(load_contract(name))
    told = [check_table(path, name, name, bounds, each) for each in (LOCAL, engine)]
    assert told[1] == told[0]
    return told[0]


@pytest.mark.parametrize("name", contract_names())
def test_rows_that_break_rules_of_each_kind_are_found_alike(engine, tmp_path, name):
    path = tmp_path / name
    assert require_alike(engine, path, name) == [], "there is no table"
    random_table(path, name, seed=len(name))
    found = require_alike(engine, path, name)
    contract = load_contract(name)
    # Delta has no empty text as a partition: whose length has a rule cannot break it.
    kinds = {
        rule.name: rule.kind
        for rule in contract.rules
        if rule.kind != "length" or rule.columns[0] not in contract.partition_by
    }
    broken = {kinds[one.rule] for one in found if one.rule in kinds and not one.passed}
    assert broken == set(kinds.values()), "a rule of each kind is broken"
    assert all(one.observed is not None for one in found), "each could be measured"
    assert all(one.details for one in found if not one.passed)


@pytest.mark.parametrize(
    ("name", "without"),
    [
        ("regions", ("lo3", "hi3", "lo4", "hi4", "dimensions")),
        ("snapshots", ("partner", "query", "query_version")),
    ],
)
def test_a_table_of_an_older_contract_is_checked_alike(engine, tmp_path, name, without):
    path = tmp_path / name
    random_table(path, name, seed=7, without=without)
    (schema, *rules) = require_alike(engine, path, name)
    assert schema.passed or schema.details
    assert any(one.passed for one in rules)
    assert any(not one.passed for one in rules)


def test_an_empty_day_breaks_nothing(engine, tmp_path):
    path, contract = tmp_path / "positions", load_contract("positions")
    tables.create(path, contract)
    found = require_alike(engine, path, "positions")
    assert {(one.passed, one.rows, one.observed) for one in found} == {(True, 0, 0.0)}


def test_a_function_sees_each_row_once_and_its_errors_are_told_in_a_line(
    engine, tmp_path
):
    path = tmp_path / "regions"
    random_table(path, "regions", seed=1)
    for whole in (True, False):
        parts = engine.each_part(
            path, ["version"], [], len, label="regions", whole=whole
        )
        assert sum(parts) == len(tables.read(path))
    nothing = [("version", ">", 99)]
    assert engine.each_part(path, ["version"], nothing, len, label="regions") == [0]
    fit = partial(tables.fit, contract=load_contract("positions"))
    with pytest.raises(
        ContractError, match=r"^positions: attribute 'version' is int32"
    ):
        engine.each_part(path, ["version"], [], fit, label="regions")


SETTINGS = """
[streams.taxis]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
attributes = { speed = "double km/h", class = "string" }
"""


def lines_of(day, rng):
    """Records of a day in the order of their arrival; from the second day on a third of them is bad in some way."""
    start_s = int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
    for turn in range(48):
        for taxi in range(12):
            at_s = start_s + turn * 1800 + taxi * 3
            x, y = -8.65 + taxi * 0.001 + turn % 4 * 0.002, 41.15 + taxi * 0.0005
            speed, kind, name = 20 + (turn + taxi) % 40, "ABC"[taxi % 3], f"t{taxi:02}"
            if day >= DAY and rng.random() < 0.3:
                at_s -= int(rng.choice([0, 0, 3600]))
                x += rng.choice([0, 0, 0.5])
                speed = rng.choice([speed, 999, ""])
                kind = rng.choice([kind, "Z", ""])
                name = rng.choice([name, "t00", ""])
            yield f"{name},{at_s},{x:.6f},{y:.6f},{speed},{kind}"


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A home with a contract of its stream, a good day, a bad one, one on which nothing came, and one behind it."""
    home, rng = Home(tmp_path_factory.mktemp("days")), np.random.default_rng(3)
    example = ROOT / "data_contracts" / "examples" / "streams" / "taxis.odcs.yaml"
    for file, text in {
        "conf/streams.toml": SETTINGS,
        "data_contracts/streams/taxis.odcs.yaml": example.read_text(),
    }.items():
        (home.root / file).parent.mkdir(parents=True)
        (home.root / file).write_text(text)
    stream = load_streams(home.root / "conf")["taxis"]
    log = log_for(home, stream)
    for back in (1, 0, -2):
        lines = list(lines_of(DAY - timedelta(days=back), rng))
        for cut in range(0, len(lines), 100):
            body = "\n".join(["id,t,x,y,speed,class", *lines[cut : cut + 100], ""])
            at_us = max(int(each.split(",")[1]) for each in lines[cut : cut + 100])
            log.append(body.encode(), arrival_us=(at_us + 1) * 1_000_000)
    archive = Archive(home, stream)
    while archive.batch():
        pass
    parks = [rows.slice(0, 9) for rows in (layer(), layer())]
    for rows in parks:
        write_deltalake(
            home.table("layers", "parks"),
            rows,
            mode="append",
            partition_by=["region_id"],
        )
    random_table(home.table("visits", "taxis"), "visits", seed=5)
    return home


def layer():
    """Features of which each third crosses itself."""
    good, bow = (
        shapely.to_wkb(shapely.from_wkt(f"POLYGON (({points}))"))
        for points in ("0 0, 1 0, 1 1, 0 0", "0 0, 1 1, 1 0, 0 1, 0 0")
    )
    n = 9
    rows = {
        "region_id": ["0"] * n,
        "minx": [0.0] * n,
        "miny": [0.0] * n,
        "maxx": [1.0] * n,
        "maxy": [1.0] * n,
        "home": [True] * n,
        "fid": [f"w{each}" for each in range(n)],
        "kind": ["park"] * n,
        "tags": pa.array([[]] * n, pa.map_(pa.string(), pa.string())),
        "geometry": pa.array([bow, good, good] * 3, pa.binary()),
        "region_version": pa.array([1] * n, pa.int64()),
    }
    return pa.table(rows)


def reported(home, capsys, *words):
    """What a job says of three days, their reports, and the table of results, but for the folder and the times."""
    told = []
    for day in (DAY - timedelta(days=1), DAY, DAY + timedelta(days=1)):
        code = main(["--home", str(home.root), f"--day={day}", *words])
        said = json.loads(capsys.readouterr().out.splitlines()[-1])
        path = home.root / "reports" / "quality" / f"{day}.json"
        page = json.loads(path.read_text())
        for stream in page["streams"].values():
            stream["great_expectations"].pop("meta", None)
        told.append([code, said, page])
    rows = tables.read(home.table("quality")).drop_columns(["checked_ts"])
    order = [(name, "ascending") for name in ("date", "table", "rule")]
    told.append(rows.sort_by(order).to_pylist())
    return json.loads(json.dumps(told, default=str).replace(str(home.root), "HOME"))


def test_jobs_on_both_engines_write_equal_reports_and_results(
    engine, home, tmp_path, capsys
):
    homes = [Home(tmp_path / name) for name in ("local", "spark")]
    for each in homes:
        shutil.copytree(home.root, each.root)
    # Of a day that was checked before, the results are replaced.
    main(["--home", str(homes[1].root), f"--day={DAY}", "--engine=local"])
    capsys.readouterr()
    one, two = reported(homes[0], capsys, "--engine=local"), reported(homes[1], capsys)
    assert two == one
    *days, rows = one
    assert [code for code, *_ in days] == [3, 3, 3]
    verdicts = {row["verdict"] for row in rows if row["table"] == data_label("taxis")}
    assert verdicts >= {"kept", "broken", "grey"}
    broken = {row["rule"] for row in rows if row["verdict"] == "broken"}
    unique = "one_row_per_feature_and_region"
    wrong = {"geometry_is_valid", unique, "class_is_known", "speed_between"}
    assert wrong <= broken
    quality = homes[1].table("quality")
    last = max((quality / "_delta_log").glob("*.json")).read_text()
    assert '"engineInfo":"Apache-Spark' in last
    assert not list(quality.rglob(".*.crc"))
