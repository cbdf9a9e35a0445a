"""Continuous queries over any DataFrame: what they tell is what brute force tells of the sorted rows."""

import datetime as dt
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from zoneinfo import ZoneInfo

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import shapely
from hypothesis import HealthCheck, Phase, assume, given, settings
from hypothesis import strategies as st

from st_common.errors import ConfigError, FairwayError, LayerError, QueryError
from st_common.operators.expressions.filters import FILTERS
from st_common.operators.state.state import State
from st_common.position import position_of
from st_common.query.plan import Plan
from st_common.spark.continuous import continuous
from st_common.spark.continuous import rows as batches
from st_common.spark.continuous.prepared import Prepared, prepare, stream_settings
from st_common.spark.continuous.rows import stepped
from tests.kit import oracle
from tests.kit.effort import tries
from tests.kit.laws import told, told_by_oracle
from tests.kit.layer_tables import features_of
from tests.kit.oracle import Control, Fix
from tests.kit.oracle_rows import ATTRIBUTES
from tests.kit.strategies import LAYER, Case, case_of

pytestmark = [pytest.mark.timeout(900), pytest.mark.spec("S7", "X1")]
TYPES = {"string": "string", "double": "double", "long": "long", "bool": "boolean"}
ARROW = {
    "string": pa.string(),
    "double": pa.float64(),
    "long": pa.int64(),
    "bool": pa.bool_(),
}
SCHEMA = pa.schema(
    [
        ("id", pa.string()),
        ("at", pa.timestamp("us", tz="UTC")),
        ("lon", pa.float64()),
        ("lat", pa.float64()),
        ("left", pa.bool_()),
        *((name, ARROW[kind]) for name, kind in ATTRIBUTES.items()),
    ]
)
COLUMNS = {"object": "id", "ts": "at", "x": "lon", "y": "lat", "gone": "left"}
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)


def few(examples):
    """So many examples in the quick profile; none is made smaller, as each takes seconds."""
    return settings(
        tries(examples),
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )


def table_of(fixes: Sequence[Fix]) -> pa.Table:
    rows = [
        {
            "id": fix.object,
            "at": EPOCH + dt.timedelta(microseconds=fix.event_us),
            "lon": None if fix.gone else fix.x,
            "lat": None if fix.gone else fix.y,
            "left": fix.gone,
            **{name: fix.attributes.get(name) for name in ATTRIBUTES},
        }
        for fix in fixes
    ]
    return pa.Table.from_pylist(rows, schema=SCHEMA)


def in_order(fixes: Sequence[Fix]) -> list[Fix]:
    """By time and object, then by all else, false before true, nothing last."""

    def key(fix: Fix):
        place = (None, None) if fix.gone else (fix.x, fix.y)
        others = (fix.attributes.get(name) for name in ATTRIBUTES)
        values = (*place, fix.gone, *others)
        return (fix.event_us, fix.object, *((v is None, v or 0) for v in values))

    return sorted(fixes, key=key)


def batches_of(case: Case, rng: Random, count: int) -> list[list[Fix]]:
    """The fixes of a case in about so many batches, out of order within each."""
    fixes = [row for row in case.rows if isinstance(row, Fix)]
    cuts = sorted(rng.sample(range(1, len(fixes)), count - 1))
    parts = [fixes[a:b] for a, b in zip([0, *cuts], [*cuts, len(fixes)], strict=True)]
    return [rng.sample(part, len(part)) for part in parts]


def plans_of(case: Case) -> dict[str, Plan]:
    """The first plan that each name is registered with, of those that could be registered."""
    plans: dict[str, Plan] = {}
    for row in case.rows:
        if isinstance(row, Control) and row.row["op"] == "register":
            plan = Plan.from_json(row.row["plan"])
            if row.row["query"] not in plans and is_possible(plan, case):
                plans[row.row["query"]] = plan
    return plans


def is_possible(plan: Plan, case: Case) -> bool:
    """Whether a plan, drawn at random, may be registered, and its layer has features."""
    stream = stream_settings("grid", ATTRIBUTES, options_of(case))
    shapes = case.layers.get((LAYER, 0))
    layers = {LAYER: features_of(shapes)} if shapes else {}
    try:
        prepare({"q": plan}, stream, layers, shards=1)
    except FairwayError:
        return False
    return True


def expected(case: Case, plans, batches) -> list:
    """What brute force tells of the queries, then the sorted rows of each batch."""
    rows: list = []
    for name, plan in plans.items():
        said = {"op": "register", "query": name, "version": 1, "plan": plan.to_json()}
        said |= {"layer_version": 1 if plan.join else None, "text": "", "owner": ""}
        rows.append(Control(position=position_of(0, len(rows)), row=said))
    for number, batch in enumerate(batches, 1):
        for rank, fix in enumerate(in_order(batch)):
            rows.append(replace(fix, position=position_of(number, rank)))
    layers = {(LAYER, 1): case.layers[LAYER, 0]} if case.layers else {}
    return told_by_oracle(oracle.judge(rows, layers=layers, rules=case.rules).changes)


def options_of(case: Case) -> dict:
    rules = case.rules
    options = {
        "crs": "EPSG:4326" if rules.geographic else "planar",
        "lateness_s": rules.lateness_us / 1e6,
        "tick_s": rules.tick_us / 1e6,
        "window_rows": rules.window_rows,
    }
    silence_us = rules.silence_us
    return options | ({} if silence_us is None else {"silence_s": silence_us / 1e6})


def layers_of(spark, case: Case) -> dict:
    if not case.layers:
        return {}
    rows = [
        (one.fid, bytearray(shapely.to_wkb(one.geometry)), one.kind, dict(one.tags))
        for one in case.layers[LAYER, 0]
    ]
    types = "fid string, geometry binary, kind string, tags map<string,string>"
    return {LAYER: spark.createDataFrame(rows, types)}


def changes_in(table: pa.Table) -> pa.Table:
    return table.filter(pa.compute.field("cause") != "account")


def check_accounts(table: pa.Table, rows: int) -> None:
    """All rows that came are fixes or rejects."""
    accounts = table.filter(pa.compute.field("cause") == "account")
    said = [json.loads(text) for text in accounts["fields"].to_pylist()]
    assert sum(one.get("rows", 0) for one in said) == rows
    rejects = sum(sum(one.get("rejects", {}).values()) for one in said)
    assert sum(one["fixes"] for one in said) + rejects == rows


@st.composite
def questions(draw):
    """A case with its plans, batches of its fixes, and how many shards."""
    seed, layers = draw(st.integers(0, (1 << 48) - 1)), draw(st.booleans())
    case = case_of(
        seed, kept=(True,) * 120, names=("q1", "q2", "q3", "q4"), layers=layers
    )
    if layers and not case.layers[LAYER, 0]:
        case = replace(case, layers={})
    plans = plans_of(case)
    assume(plans)
    return case, plans, Random(seed), draw(st.sampled_from((1, 2, 3)))


@few(6)
@given(question=questions())
def test_a_batch_tells_what_brute_force_tells_of_its_sorted_rows(spark, question):
    case, plans, rng, shards = question
    (batch,) = batches_of(case, rng, 1)
    with shuffled_into(spark, shards):
        changes = continuous(
            spark.createDataFrame(table_of(batch)).repartition(3),
            plans,
            **COLUMNS,
            name="grid",
            layers=layers_of(spark, case),
            shards=shards,
            **options_of(case),
        ).toArrow()
    check_accounts(changes, len(batch))
    at_once = replace(case, rules=replace(case.rules, lateness_us=0))
    assert told(changes_in(changes)) == expected(at_once, plans, [batch])


@contextmanager
def shuffled_into(spark, partitions: int) -> Iterator[None]:
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", partitions)
    try:
        yield
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", before)


def follow(spark, folder: Path, question, layers) -> list[pa.Table]:
    """What a stream of the files in a folder tells until it has read them all; it goes on where it stopped."""
    case, plans, _, shards = question
    source = spark.readStream.schema(
        "id string, at timestamp, lon double, lat double, left boolean, "
        + ", ".join(f"{name} {TYPES[kind]}" for name, kind in ATTRIBUTES.items())
    )
    fixes = source.option("maxFilesPerTrigger", 1).parquet(str(folder / "fixes"))
    told_of: list[pa.Table] = []
    changes = continuous(
        fixes,
        plans,
        **COLUMNS,
        name="grid",
        layers=layers,
        shards=shards,
        **options_of(case),
    )
    query = (
        changes.writeStream.foreachBatch(
            lambda frame, _: told_of.append(frame.toArrow())
        )
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination(300)
    assert query.exception() is None
    return told_of


@few(2)
@given(question=questions())
def test_a_stream_tells_what_brute_force_tells_also_after_a_restart(spark, question):
    case, plans, rng, shards = question
    batches = batches_of(case, rng, 4)
    with tempfile.TemporaryDirectory() as name, shuffled_into(spark, shards):
        folder, tables, layers = Path(name), [], layers_of(spark, case)
        (folder / "fixes").mkdir()
        for number, batch in enumerate(batches):
            file = folder / "fixes" / f"{number}.parquet"
            pq.write_table(table_of(batch), file)
            os.utime(file, (1_700_000_000 + number,) * 2)
            if number in (1, 3):  # two batches in one go, then the others
                tables += follow(spark, folder, question, layers)
    changes = pa.concat_tables(tables)
    check_accounts(changes, sum(map(len, batches)))
    assert told(changes_in(changes)) == expected(case, plans, batches)


def small(spark, columns="id string, at timestamp, lon double, lat double"):
    moment = dt.datetime(2026, 1, 1, tzinfo=dt.UTC)
    return spark.createDataFrame([("a", moment, 1.0, 1.0)], columns)


ROOM = "REGISTER QUERY room AS SELECT * FROM fixes INSIDE (0, 0, 5, 5)"
NAMED = {"object": "id", "ts": "at", "x": "lon", "y": "lat"}


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        ({"object": "ID2"}, ConfigError, r"object='ID2': the DataFrame has no such"),
        ({"ts": "lon"}, ConfigError, r"ts='lon' is double, and must be a timestamp"),
        ({"x": "id"}, ConfigError, r"x='id' is string, and must be a number"),
        ({"gone": "id"}, ConfigError, r"gone='id' is string, and must be a boolean"),
        ({"lateness": 5}, ConfigError, r"there is no option 'lateness'"),
        ({"lateness_s": "x"}, ConfigError, r"lateness_s = 'x'"),
        ({"crs": "EPSG:1"}, ConfigError, r"EPSG:1"),
        ({"shards": 3}, ConfigError, r"3 shards do not fit into 2 partitions"),
        ({"queries": "DROP QUERY room"}, QueryError, r"line 1: only REGISTER QUERY"),
        (
            {"queries": ROOM.replace("fixes", "cars")},
            QueryError,
            r"line 1, column 38: unknown stream 'cars'",
        ),
        (
            {"queries": f"{ROOM} WHERE speeed > 3"},
            QueryError,
            r"speeed",
        ),
        (
            {"queries": ROOM.replace("INSIDE (0, 0, 5, 5)", "INSIDE ()")},
            QueryError,
            r"line 1",
        ),
    ],
)
def test_what_is_wrong_with_a_call_is_said_at_once(spark, given, kind, message):
    given = {"queries": ROOM, **NAMED, **given}
    with shuffled_into(spark, 2), pytest.raises(kind, match=message):
        continuous(small(spark), **given)


@pytest.mark.parametrize(
    "options",
    [{}, {"position_filter": {"max_speed_mps": 90}}],
    ids=["plain", "filtered"],
)
def test_columns_with_the_names_of_a_fix_beside_those_that_are_named_are_left_alone(
    spark, options
):
    """A frame may have a second time, a row and a name with spaces; what can be asked about is an attribute."""
    frame = spark.sql(
        "SELECT 'car' AS id, TIMESTAMP'2026-01-01 00:00:00' AS at, 1D AS lon, 1D AS lat, 7L AS load,"
        " TIMESTAMP'1999-01-01 00:00:00' AS EVENT_TS, 'other' AS object, 99D AS x, 99D AS y, true AS gone,"
        " 3 AS row, 'far' AS segment, 2 AS `speed (km/h)`, 'word' AS filtered"
    )
    asked = "load = 7" if options else "load = 7 AND filtered = 'word'"
    room = f"REGISTER QUERY room AS SELECT * FROM fixes WHERE {asked} INSIDE (0, 0, 2, 2) EMIT EVERY"
    names = {"object": "id", "ts": "at", "x": "lon", "y": "lat"}
    with shuffled_into(spark, 2):
        rows = continuous(frame, room, **names, **options).toArrow().to_pylist()
    entered = [
        (row["object"], row["event_ts"].year, row["sign"])
        for row in rows
        if row["query"] == "room"
    ]
    assert entered == [("car", 2026, 1)]


def test_a_layer_with_a_geometry_that_cannot_be_used_is_refused(spark):
    broken = [("one", bytearray(shapely.to_wkb(shapely.Point(0, 0)))), ("two", b"?")]
    layer = spark.createDataFrame(broken, "fid string, geometry binary")
    with pytest.raises(LayerError, match=r"'parks': 1 of 2 features.*1 bad_geometry"):
        continuous(small(spark), ROOM, **NAMED, layers={"parks": layer})
    bare = layer.drop("geometry")
    with pytest.raises(ConfigError, match="layer 'parks' has no column 'geometry'"):
        continuous(small(spark), ROOM, **NAMED, layers={"parks": bare})


def test_a_stream_without_a_state_store_on_rocksdb_is_told_so(spark):
    rates = spark.readStream.format("rate").load()
    fixes = rates.selectExpr("'a' AS id", "timestamp AS at", "0D AS lon", "0D AS lat")
    key = "spark.sql.streaming.stateStore.providerClass"
    before = spark.conf.get(key)
    spark.conf.set(key, "another")
    try:
        with pytest.raises(ConfigError, match="needs Spark's state store on RocksDB"):
            continuous(fixes, ROOM, **NAMED)
    finally:
        spark.conf.set(key, before)


def at(*parts: int) -> dt.datetime:
    """A timestamp without a time zone."""
    return dt.datetime(*parts, tzinfo=dt.UTC).replace(tzinfo=None)


def test_what_is_no_fix_is_counted_by_its_reason(spark):
    """A timestamp without a time zone is UTC, whatever the session's is; numbers are ids too."""
    rows = [
        (7, at(2026, 3, 29, 2, 30), 1.0, 1.0, [1]),
        (None, at(2026, 3, 29, 2, 31), 1.0, 1.0, None),
        (7, None, 1.0, 1.0, None),
        (7, at(2026, 3, 29, 2, 32), None, 1.0, None),
        (7, at(2026, 3, 29, 2, 33), 1.0, 91.0, None),
        (7, at(2026, 3, 29, 2, 34), float("nan"), 1.0, None),
        (7, at(1969, 3, 29, 2, 34), 1.0, 1.0, None),
    ]
    types = "id int, at timestamp_ntz, lon double, lat double, more array<int>"
    frame = spark.createDataFrame(rows, types)
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Europe/Lisbon")
    try:
        changes = continuous(frame, ROOM, **NAMED, shards=1).toArrow()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    check_accounts(changes, len(rows))
    enters, account = changes.to_pylist()
    assert (enters["object"], enters["sign"]) == ("7", 1)
    assert enters["event_ts"] == dt.datetime(2026, 3, 29, 2, 30, tzinfo=dt.UTC)
    assert json.loads(account["fields"])["rejects"] == {
        "missing_object": 1,
        "missing_time": 1,
        "missing_position": 2,
        "out_of_crs": 1,
        "bad_time": 1,
    }


class Raising:
    """A filter that cannot judge anything."""

    def __getattr__(self, name):
        raise KeyError(name)


def test_a_query_that_cannot_be_judged_ends_it_with_an_error_that_names_it(monkeypatch):
    monkeypatch.setitem(FILTERS, "wkt", Raising())
    text = "REGISTER QUERY q AS SELECT * FROM grid USING filter('wkt', 'POINT (1 1)')"
    with pytest.raises(QueryError, match=r"query 'q' cannot be judged: filter wkt"):
        stepped(planar(text), State(), 0, walk())


def planar(text: str) -> Prepared:
    """The queries of a text on a plane, for one shard."""
    stream = stream_settings("grid", {}, {"crs": "planar"})
    return prepare(text, stream, {}, shards=1)


def walk() -> pa.Table:
    """The rows of one object that walks to and fro for 50 seconds."""
    seconds = range(50)
    return pa.table(
        {
            "object": ["a"] * len(seconds),
            "event_ts": [second * 1_000_000 for second in seconds],
            "x": [float(second % 9) for second in seconds],
            "y": [1.0] * len(seconds),
            "gone": [False] * len(seconds),
        }
    )


def test_a_batch_of_more_rows_than_a_segment_has_is_cut(monkeypatch):
    """Ranks go on in further segments, in the same order."""
    prepared, rows = planar(ROOM.replace("fixes", "grid")), walk()
    _, whole = stepped(prepared, State(), 0, rows)
    monkeypatch.setattr(batches, "SEGMENT_ROWS", 7)
    _, cut = stepped(prepared, State(), 0, rows)
    compared = ["sign", "object", "event_ts", "cause"]
    assert changes_in(whole).select(compared) == changes_in(cut).select(compared)
    assert len(changes_in(cut)) > 8
    assert max(changes_in(cut)["position"].to_pylist()) >= position_of(7, 0)


@pytest.mark.spec("X2")
def test_clocks_of_a_zone_are_those_of_zoneinfo_whatever_the_session_s_is(spark):
    """Both nights in which clocks in Berlin change: the hour that comes twice, and the one that does not come."""
    begins = (dt.datetime(2025, 10, 25, 20), dt.datetime(2025, 3, 29, 20))  # noqa: DTZ001 - UTC
    rows = [
        (f"bus{n}", begin + dt.timedelta(minutes=15 * step), 1.0, 1.0)
        for n, begin in enumerate(begins)
        for step in range(40)
    ]
    text = (
        "REGISTER QUERY q AS SELECT event_ts AT TIME ZONE 'Europe/Berlin' AS here FROM fixes "
        "WHERE CAST(event_ts AT TIME ZONE 'Europe/Berlin' AS TIME) BETWEEN '01:30' AND '03:00' EMIT EVERY"
    )
    frame = spark.createDataFrame(
        rows, "id string, at timestamp_ntz, lon double, lat double"
    )
    before = spark.conf.get("spark.sql.session.timeZone")
    spark.conf.set("spark.sql.session.timeZone", "Asia/Tokyo")
    try:
        changes = continuous(frame, text, **NAMED, shards=2).toArrow().to_pylist()
    finally:
        spark.conf.set("spark.sql.session.timeZone", before)
    seen = [
        (one["object"], json.loads(one["fields"])["here"])
        for one in changes
        if one["cause"] in ("enter", "inside")
    ]
    local = [
        (name, at.replace(tzinfo=dt.UTC).astimezone(ZoneInfo("Europe/Berlin")))
        for name, at, _, _ in rows
    ]
    expected = [
        (name, f"{at:%Y-%m-%d %H:%M:%S}")
        for name, at in local
        if dt.time(1, 30) <= at.time() <= dt.time(3)
    ]
    assert sorted(seen) == sorted(expected)
    assert len(expected) == 2 + 8 + 1 + 2 + 1
