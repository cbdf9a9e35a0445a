"""Queries that are registered FROM somewhere, beside the same ones that were registered before all fixes."""

import tempfile
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
import shapely
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.answers.answers import answer
from st_common.answers.changes import stream_changes
from st_common.batch.reprocess import reprocess
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.engine.backfill import Backfill
from st_common.engine.local import layers_of
from st_common.engine.packets import packets_of, step_settings
from st_common.engine.run import run
from st_common.engine.topology import frozen, topology_of
from st_common.errors import ConfigError, LogError, QueryError
from st_common.layers.announce import announce
from st_common.log.log_purging import purge_records
from st_common.operators.runtime.stages import step
from st_common.operators.state.state import State
from st_common.operators.turn.changes import settled
from st_common.query.registry import carry_out, drop, register
from st_common.query.text import parse
from tests.kit.effort import tries
from tests.kit.grid_days import HOUR_S, T0, histories, segment, settings
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("X10")

SELECTS = {
    "inside": "SELECT * FROM grid INSIDE (0, 0, 5, 10)",
    "columns": "SELECT x, y FROM grid INSIDE (0, 0, 5, 10) EMIT EVERY",
    "moving": "SELECT * FROM grid INSIDE ('M', 'a', 4 m)",
    "near": "SELECT * FROM grid KNN (2, 5, 5)",
    "pairs": "SELECT * FROM grid a JOIN grid b ON ST_DWithin(a, b, 3 m)",
    "many": "SELECT COUNT(*) FROM grid INSIDE (0, 0, 10, 5)",
    "lately": "SELECT * FROM grid INSIDE (3, 3, 7, 7) WINDOW 3 h",
    "last": "SELECT * FROM grid INSIDE (3, 3, 7, 7) WINDOW 3 TUPLES",
    "lately_many": "SELECT COUNT(*) FROM grid INSIDE (0, 0, 7, 7) WINDOW 9 h",
    "way": "SELECT x FROM grid [RANGE BY 12 m RATTR SPACE]",
    "rows": "SELECT x FROM grid [ROWS 3]",
    "time": "SELECT x FROM grid [RANGE '9 hours']",
    "speed": "SELECT RSTREAM(AVGSPD(R)) FROM R=grid [RANGE '9 hours', SLIDE '3 hours']",
    "stayed": "SELECT * FROM grid INSIDE (0, 0, 5, 5) DETECT ENTER, EXIT, DWELL 4 h",
    "around": "SELECT * FROM grid INSIDE ('M', 'a', 4 m) DETECT ENTER, EXIT, DWELL 2 h",
    "lasting": "SELECT * FROM grid WHERE x < 6 FOR 3 h UNTIL x > 8",
    "outer": "SELECT COUNT(*) FROM (SELECT * FROM grid INSIDE (0, 0, 9, 5)) r GROUP BY r.object",
}
KEY = (
    "position",
    "seq",
    "event_ts",
    "sign",
    "object",
    "partner",
    "cause",
    "value",
    "x",
    "y",
)


def begin(home, stream, select, pieces):
    """`always` is there before all fixes; then the pieces come, and the engine has read the first."""
    text = f"REGISTER QUERY always AS {select}"
    register(home, {stream.name: stream}, parse(text), owner="t")
    append(home, stream, pieces)
    run(home, stream, until_idle=True)


def append(home, stream, pieces):
    log = bare_log(home.log(stream.name))
    for piece in pieces:
        segment(log, piece)


def backfill(home, stream, select, beginning="FROM BEGINNING", name="later"):
    streams = {stream.name: stream}
    statements = parse(f"REGISTER QUERY {name} AS {select} {beginning}")
    seeding = Backfill(home, streams)
    seeding.prepare(statements)
    (row,) = carry_out(home, streams, statements, owner="t", seeding=seeding).rows
    return row


def told(home, query, *, since):
    rows = stream_changes(home, "grid", query).to_pylist()
    return [
        tuple(row[name] for name in KEY if name != "seq")
        for row in sorted(rows, key=lambda row: (row["position"], row["seq"]))
        if row["position"] > since
    ]


def members(home, query):
    names = ("object", "partner", "value", "fields")
    rows = answer(home, query).to_pylist()
    return sorted((tuple(row[name] for name in names) for row in rows), key=repr)


def cut(history, at):
    stream, arriving, cuts = history
    pieces = [arriving[start:end] for start, end in zip([0, *cuts], cuts, strict=False)]
    at = min(at, len(pieces) - 1)
    return stream, pieces[:at], pieces[at:]


@tries(6)
@given(histories(), st.integers(1, 5), st.booleans())
def test_from_its_row_on_it_tells_what_one_tells_that_was_always_there(
    history, at, restarts
):
    stream, before, after = cut(history, at)
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        for kind, select in SELECTS.items():
            text = f"REGISTER QUERY always_{kind} AS {select}"
            register(home, {"grid": stream}, parse(text), owner="t")
        append(home, stream, before)
        run(home, stream, until_idle=True)
        (*_, last) = backfill_all(home, stream)
        for piece in after:
            append(home, stream, [piece])
            if restarts:
                run(home, stream, until_idle=True)
        run(home, stream, until_idle=True)
        for kind in SELECTS:
            check_alike(home, kind, last.position)


def backfill_all(home, stream):
    text = "".join(
        f"REGISTER QUERY later_{kind} AS {select} FROM BEGINNING;"
        for kind, select in SELECTS.items()
    )
    streams, statements = {"grid": stream}, parse(text)
    seeding = Backfill(home, streams)
    seeding.prepare(statements)
    return carry_out(home, streams, statements, owner="t", seeding=seeding).rows


def check_alike(home, kind, last):
    """From the registrations on, which end at position `last`, both have told the same, and have the same answer."""
    later, always = f"later_{kind}", f"always_{kind}"
    assert told(home, later, since=last) == told(home, always, since=last)
    assert members(home, later) == members(home, always)
    first = stream_changes(home, "grid", later).to_pylist()
    causes = {one["cause"] for one in first if one["position"] <= last}
    assert causes <= {"backfilled"}


@tries(3)
@given(histories(), st.integers(1, 5), st.sampled_from([2, 3]))
def test_any_number_of_shards_tells_the_same_in_any_batches(history, at, shards):
    stream, before, after = cut(history, at)
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        begin(home, stream, SELECTS["many"], before)
        for name in ("pairs", "lately", "stayed", "way"):
            backfill(home, stream, SELECTS[name], name=name)
        append(home, stream, after)
        run(home, stream, until_idle=True)
        begun = frozen(home, stream, engine="local", shards=1)
        wanted = stream_changes(home, "grid").to_pylist()
        assert stepped(home, begun, shards) == [
            tuple(row[name] for name in KEY) for row in wanted
        ]


def stepped(home, stream, shards):
    """What the log comes to by the step of so many shards, segment by segment."""
    log = bare_log(home.log(stream.name))
    states, parts = [State()] * shards, []
    for packets in packets_of(log, list(log.segments(0)), stream, shards=shards):
        done = [
            step(
                state,
                [type(packet).from_blob(packet.to_blob())],
                step_settings(stream, shard=shard, shards=shards),
                layers_of(home, stream),
            )
            for shard, (state, packet) in enumerate(zip(states, packets, strict=True))
        ]
        states = [one.state for one in done]
        parts.append(settled([one.changes for one in done]))
    rows = pa.concat_tables(parts).to_pylist()
    return [tuple(row[name] for name in KEY) for row in rows]


FIXES = [("a", 0, 1, 1, False), ("b", HOUR_S, 2, 2, False)]
MORE = [("a", 5 * HOUR_S, 1, 2, False), ("b", 6 * HOUR_S, 9, 9, False)]
STAYED = SELECTS["stayed"]


@pytest.fixture
def grid(tmp_path):
    home, stream = Home(tmp_path), settings()
    begin(home, stream, SELECTS["inside"], [FIXES, MORE])
    return home, stream


def test_who_is_in_comes_in_at_the_row_with_what_came_before(grid):
    home, stream = grid
    row = backfill(home, stream, STAYED)
    run(home, stream, until_idle=True)
    (first,) = stream_changes(home, "grid", "later").to_pylist()
    assert (first["object"], first["sign"], first["cause"], first["position"]) == (
        "a",
        1,
        "backfilled",
        row.position,
    )
    assert first["event_ts"] == T0 + timedelta(hours=6)
    # It dwelt at 4:00, so nothing is told again; without FROM it would dwell at 10:00.
    append(home, stream, [[("a", 20 * HOUR_S, 1, 1, False)]])
    run(home, stream, until_idle=True)
    assert len(stream_changes(home, "grid", "later")) == 1


def test_from_a_time_on_nothing_before_counts(grid):
    home, stream = grid
    count = "SELECT COUNT(*) FROM grid INSIDE (0, 0, 5, 5) WINDOW 9 h"
    backfill(home, stream, count, "FROM '2024-05-01T05:00:00Z'", name="from_five")
    backfill(home, stream, count, name="from_the_first")
    run(home, stream, until_idle=True)
    counts = {
        name: [row["value"] for row in answer(home, name).to_pylist()]
        for name in ("from_five", "from_the_first")
    }
    # a at 5:00, and b as it was then; beside these a at 0:00 and b at 1:00
    assert counts == {"from_five": [1.0], "from_the_first": [3.0]}


def store_zone(home, x):
    """A new version of the layer `zones`: one square, from `x` to 9."""
    contract = load_contract("layers")
    row = {
        "region_id": "0",
        "minx": x,
        "miny": 0,
        "maxx": 9,
        "maxy": 9,
        "home": True,
        "fid": "w1",
        "kind": "zone",
        "tags": [],
        "geometry": shapely.to_wkb(shapely.box(x, 0, 9, 9)),
    }
    rows = pa.Table.from_pylist([row], schema=contract.arrow_schema())
    tables.replace(home.table("layers", "zones"), rows, contract)
    announce(home, layer="zones")


@pytest.mark.parametrize("loaded_again", [False, True])
def test_features_of_layers_are_those_of_the_log(tmp_path, loaded_again):
    home, stream = Home(tmp_path), settings()
    store_zone(home, 0)
    join = "SELECT * FROM grid JOIN zones ON ST_Intersects(grid, zones) DETECT ENTER, EXIT, DWELL 4 h"
    begin(home, stream, join, [FIXES])
    if loaded_again:
        store_zone(home, 2)
    append(home, stream, [MORE])
    row = backfill(home, stream, join)
    store_zone(home, 1)
    append(home, stream, [[("a", 20 * HOUR_S, 1, 1, False)]])
    run(home, stream, until_idle=True)
    wanted = told(home, "always", since=row.position)
    assert told(home, "later", since=row.position) == wanted
    assert members(home, "later") == members(home, "always") != []


def test_a_replay_of_the_log_takes_the_same_seed(grid):
    home, stream = grid
    backfill(home, stream, STAYED)
    append(home, stream, [[("a", 20 * HOUR_S, 9, 9, False)]])
    run(home, stream, until_idle=True)
    wanted = stream_changes(home, "grid").to_pylist()
    begun = frozen(home, stream, engine="local", shards=1)
    assert stepped(home, begun, 1) == [
        tuple(row[name] for name in KEY) for row in wanted
    ]


def test_a_seed_that_is_damaged_or_gone_stops_a_reader_by_name(grid):
    home, stream = grid
    row = backfill(home, stream, STAYED)
    path = home.stream("grid") / "seeds" / row.seed
    whole = path.read_bytes()
    for broken in (whole[:-1], None):
        path.unlink()
        if broken is not None:
            path.write_bytes(broken)
        else:
            path.touch()
        with pytest.raises(LogError, match=r"'later' .* missing or damaged"):
            run(home, stream, until_idle=True)
    path.write_bytes(whole)
    run(home, stream, until_idle=True)
    assert members(home, "later")


def test_a_name_that_is_dropped_and_registered_again_knows_what_its_seed_says(grid):
    home, stream = grid
    for _ in range(2):
        backfill(home, stream, STAYED)
        run(home, stream, until_idle=True)
        assert [row[0] for row in members(home, "later")] == ["a"]
        drop(home, "later")
        run(home, stream, until_idle=True)
        assert members(home, "later") == []


def test_of_a_log_whose_first_records_are_gone_nothing_is_made_up(grid):
    home, stream = grid
    purge_records(bare_log(home.log("grid")), 2)
    with pytest.raises(LogError, match="purged before segment 2"):
        backfill(home, stream, STAYED)


def test_what_cannot_be_is_refused_and_nothing_is_registered(grid):
    home, stream = grid
    with pytest.raises(QueryError, match="has not come to 2025-01-01"):
        backfill(home, stream, STAYED, "FROM '2025-01-01'")
    streams, known = {"grid": stream}, f"REGISTER QUERY q AS {STAYED} FROM BEGINNING"
    seeding = Backfill(home, streams)
    both = parse(f"CREATE AREA c AS (0, 0, 1, 1); {known}")
    with pytest.raises(QueryError, match="about one stream, and changes no areas"):
        carry_out(home, streams, both, owner="t", seeding=seeding)
    with pytest.raises(QueryError, match="FROM is for"):
        register(home, streams, parse(known), owner="t")
    other = Home(home.root / "other")
    with pytest.raises(ConfigError, match="never ran"):
        backfill(other, stream, STAYED)
    assert topology_of(other, "grid") is None


@tries(4)
@given(
    histories(),
    st.integers(1, 5),
    st.sampled_from(["lately", "stayed", "rows", "many", "lasting"]),
)
def test_days_that_are_processed_again_take_the_seed_too(history, at, kind):
    stream, before, after = cut(history, at)
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        begin(home, stream, SELECTS["inside"], before)
        backfill(home, stream, SELECTS[kind])
        append(home, stream, after)
        run(home, stream, until_idle=True)
        done = reprocess(home, stream, T0.date(), T0.date() + timedelta(days=3))
        assert [(day.failed, day.differs) for day in done.days] == [((), 0)] * 3
