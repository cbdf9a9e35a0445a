"""Delta tables without a JVM: what is appended once is there once, in the shape of its contract, for every reader."""

import datetime as dt
import itertools
import math
import shutil
import threading
from pathlib import Path

import duckdb
import hypothesis
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from deltalake import Schema as DeltaSchema
from hypothesis import example as case
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import contract_names, load_contract, matches
from st_common.errors import ContractError, FairwayError
from st_common.tables.zorder import in_cells

UTC = pa.timestamp("us", tz="UTC")
DAY_US = 86_400_000_000
CHANGES, POSITIONS, REJECTS, REGIONS = map(
    load_contract, ("changes", "positions", "rejects", "regions")
)
numbers = itertools.count()


@pytest.fixture
def path(tmp_path):
    return Home(tmp_path).table("changes", "taxis")


FAR_AHEAD = dt.datetime(2100, 1, 1, tzinfo=dt.UTC)


def changes(positions: list[int], *, event_us: int = 0, **other: object) -> pa.Table:
    columns = {
        "position": pa.array(positions, pa.int64()),
        "seq": 0,
        "event_ts": pa.array([event_us + p for p in positions], pa.int64()),
        "query_version": 1,
        "sign": 1,
        "query": "q",
        "object": "taxi-1",
        "cause": "enter",
    } | other
    full = {
        name: value
        if isinstance(value, pa.Array | pa.ChunkedArray)
        else pa.array([value] * len(positions))
        for name, value in columns.items()
    }
    return pa.table(full)


def positions_of(path: Path) -> list[int]:
    return sorted(tables.read(path, columns=["position"])["position"].to_pylist())


def example(name: str) -> pa.Table:
    """Two rows of a table, filled by type alone."""
    values = {
        pa.string(): ["a", "b"],
        pa.int64(): [1, 2],
        pa.int32(): [1, 2],
        pa.int8(): [0, 1],
        pa.float64(): [1.5, 2.5],
        pa.bool_(): [True, False],
        pa.date32(): [dt.date(1970, 1, 1)] * 2,
        UTC: [0, 1],
        pa.binary(): [b"\0", b""],
        pa.map_(pa.string(), pa.string()): [[("highway", "primary")], []],
    }
    schema = load_contract(name).arrow_schema()
    return pa.table(
        [pa.array(values[field.type], field.type) for field in schema], schema=schema
    )


@pytest.mark.spec("C7", "C8")
@pytest.mark.parametrize("name", contract_names())
def test_every_table_is_what_its_contract_says_and_plain_readers_read_it(
    tmp_path, name
):
    path, rows = tmp_path / name, example(name)
    assert tables.append(path, rows, load_contract(name))
    assert matches(load_contract(name), path) == []
    assert tables.read(path).sort_by(rows.schema.names[1]) == rows.sort_by(
        rows.schema.names[1]
    )
    plain = DeltaTable(str(path))
    assert plain.to_pyarrow_table().num_rows == 2
    with duckdb.connect() as connection:
        connection.register("found", plain.to_pyarrow_dataset())
        assert connection.sql("SELECT count(*) FROM found").fetchall() == [(2,)]


@pytest.mark.spec("C7")
def test_tables_answer_sql_without_a_jvm(path):
    rows = changes(
        [1, 2, 3, 4],
        object=pa.array(["a", "a", "b", "c"]),
        sign=pa.array([1, -1, 1, 1]),
    )
    tables.append(path, rows, CHANGES)
    query = (
        'SELECT "object", sum(sign) AS n FROM found GROUP BY 1 HAVING n > 0 ORDER BY 1'
    )
    with duckdb.connect() as connection:
        connection.register("found", tables.dataset(path))
        assert connection.sql(query).fetchall() == [("b", 1), ("c", 1)]


# --- shape ------------------------------------------------------------------------------------------------------------


def test_rows_are_brought_to_the_contracts_columns_order_and_types(path):
    rows = changes(
        [7], query=pa.array(["q"]).dictionary_encode(), sign=pa.array([-1], pa.int64())
    )
    tables.append(path, rows.select(reversed(rows.column_names)), CHANGES)
    stored = tables.read(path)
    assert stored.schema == CHANGES.arrow_schema()
    row = stored.to_pylist()[0]
    assert (row["event_date"], row["sign"], row["query"]) == (
        dt.date(1970, 1, 1),
        -1,
        "q",
    )
    assert (row["fix_ts"], row["partner"]) == (None, None)


@given(st.lists(st.integers(-(10**15), 10**16), min_size=1))
def test_a_derived_date_is_the_utc_day_of_its_timestamp(instants):
    rows = pa.table(
        {
            "event_ts": pa.array(instants, UTC),
            "event_date": pa.array([None] * len(instants), pa.date32()),
        }
    )
    days = tables.with_date(rows, CHANGES)["event_date"].to_pylist()
    assert days == [
        dt.date(1970, 1, 1) + dt.timedelta(days=instant // DAY_US)
        for instant in instants
    ]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (changes([1]).drop_columns(["cause"]), "'cause' is missing"),
        (changes([1]).drop_columns(["event_ts"]), "'event_date' is missing"),
        (changes([1], cause=pa.nulls(1, pa.string())), "'cause' holds 1 nulls"),
        (changes([1], event_ts=pa.nulls(1, pa.int64())), "holds 1 nulls"),
        (
            changes([1], event_ts=pa.array([2**62])),
            "'event_ts' holds a time outside of the years 1 to 9999",
        ),
        (changes([1], sign=pa.array([300])), "'sign' is no tinyint"),
        (changes([1], seq=pa.array([0.5])), "'seq' is no int"),
        (changes([1], seq=pa.array(["one"])), "'seq' is no int"),
        (changes([1], speed=pa.array([1.0])), "'speed' is not in the contract"),
    ],
)
def test_rows_that_break_the_contract_are_refused_whole(path, rows, message):
    tables.append(path, changes([0]), CHANGES)
    with pytest.raises(ContractError, match=message):
        tables.append(path, rows, CHANGES)
    with pytest.raises(ContractError, match=message):
        tables.replace(path, rows, CHANGES)
    assert positions_of(path) == [0]


def fixes(rows: list[int], **attributes: object) -> pa.Table:
    columns = {
        "region_id": ["0"] * len(rows),
        "segment": [0] * len(rows),
        "row": rows,
        "event_ts": [0] * len(rows),
        "x": [0.5] * len(rows),
        "y": [0.5] * len(rows),
        "object": ["a"] * len(rows),
        "gone": [False] * len(rows),
    }
    return pa.table(columns | attributes)


def test_attributes_may_come_later_and_be_left_out(tmp_path):
    path = tmp_path / "positions"
    tables.create(path, POSITIONS, {"speed": "double"})
    assert tables.read(path).schema == POSITIONS.arrow_schema({"speed": "double"})
    tables.append(path, fixes([0]), POSITIONS)
    tables.append(path, fixes([1], speed=[3.5]), POSITIONS)
    tables.append(path, fixes([2], line=["4T"], seats=[40]), POSITIONS)
    found = (
        tables.read(path)
        .sort_by("row")
        .select(["row", "speed", "line", "seats"])
        .to_pylist()
    )
    assert [tuple(each.values()) for each in found] == [
        (0, None, None, None),
        (1, 3.5, None, None),
        (2, None, "4T", 40),
    ]
    assert matches(POSITIONS, path) == []
    with pytest.raises(
        ContractError, match="'speed' is string, but the table holds it as double"
    ):
        tables.append(path, fixes([3], speed=["fast"]), POSITIONS)


def test_a_table_that_differs_from_its_contract_is_refused(path):
    write_deltalake(str(path), pa.table({"a": [1]}))
    with pytest.raises(ContractError, match="differs from contract 'changes'"):
        tables.append(path, changes([1]), CHANGES)


def test_properties_follow_the_contract(path):
    DeltaTable.create(
        str(path), CHANGES.arrow_schema(), partition_by=["event_date"], configuration={}
    )
    tables.append(path, changes([1]), CHANGES)
    assert matches(CHANGES, path) == []


def test_every_partition_has_its_file_and_regions_lie_together_in_it(tmp_path):
    path, days = tmp_path / "positions", [0, DAY_US, 0, DAY_US, -1, 0]
    regions = ["1", "0", "0", "0", "0", "1"]
    tables.append(
        path, fixes(list(range(6)), event_ts=days, region_id=regions), POSITIONS
    )
    partitions = pa.table(DeltaTable(str(path)).get_add_actions(flatten=True)).select(
        ["partition.event_date", "num_records"]
    )
    assert sorted(tuple(row.values()) for row in partitions.to_pylist()) == [
        (dt.date(1969, 12, 31), 1),
        (dt.date(1970, 1, 1), 3),
        (dt.date(1970, 1, 2), 2),
    ]
    (name,) = (name for name in files(path) if "1970-01-01" in name)
    stored_there = pq.read_table(path / name, partitioning=None)
    assert stored_there["row"].to_pylist() == [2, 0, 5], "by region, else as they came"
    rows = tables.read(path, filters=[("region_id", "=", "1")])["row"].to_pylist()
    assert sorted(rows) == [0, 5]


VALUES = st.one_of(st.none(), st.floats(), st.just(math.inf), st.just(math.nan))
TEXTS = st.one_of(
    st.none(), st.text(max_size=3), st.text("é", min_size=30, max_size=40)
)


@pytest.mark.spec("C7")
@hypothesis.example(rows=[(None, "\U00020000")], number=None, text="\U00020000")
@given(st.lists(st.tuples(VALUES, TEXTS), min_size=1, max_size=6), VALUES, TEXTS)
def test_no_reader_skips_a_file_that_holds_what_it_looks_for(
    tmp_path_factory, rows, number, text
):
    path = tmp_path_factory.mktemp("table") / f"t{next(numbers)}"
    values, partners = zip(*rows, strict=True)
    written = changes(
        list(range(len(rows))),
        value=pa.array(values, pa.float64()),
        partner=pa.array(partners, pa.string()),
        event_ts=pa.array([0] * len(rows)),
    )
    for row in range(len(rows)):  # a file each
        tables.append(path, written.slice(row, 1), CHANGES)
    plain = DeltaTable(str(path)).to_pyarrow_dataset()
    for name, operator, wanted in (
        ("value", ">=", number),
        ("value", "<", number),
        ("partner", "=", text),
    ):
        if wanted is None or wanted != wanted:  # noqa: PLR0124, NaN
            continue
        compare = {">=": pc.greater_equal, "<": pc.less, "=": pc.equal}[operator]
        expected = written.filter(compare(written[name], wanted))[
            "position"
        ].to_pylist()
        found = tables.read(path, filters=[(name, operator, wanted)])
        assert sorted(found["position"].to_pylist()) == expected
        assert tables.dataset(path).to_table(
            filter=compare(pc.field(name), wanted)
        ).num_rows == len(expected)
        if not (isinstance(wanted, float) and math.isinf(wanted)):
            assert plain.to_table(
                filter=compare(pc.field(name), wanted)
            ).num_rows >= len(expected)


@pytest.mark.parametrize("instant", [-(2**62), -1, 0, 1_700_000_000_123_456, 2**62])
def test_instants_are_found_however_far_they_are(path, instant):
    tables.append(path, changes([0], fix_ts=pa.array([instant], UTC)), CHANGES)
    at = pa.scalar(instant, UTC)
    assert tables.read(path, filters=[("fix_ts", "=", at)]).num_rows == 1
    assert (
        DeltaTable(str(path))
        .to_pyarrow_dataset()
        .to_table(filter=pc.field("position") == 0)
        .num_rows
        == 1
    )


def test_filters_read_only_files_that_can_hold_their_rows(path):
    for number in range(4):
        tables.append(path, changes([number * 10, number * 10 + 5]), CHANGES)
    for file in path.glob("event_date=*/*.parquet"):
        if pq.read_table(file, partitioning=None)["position"][0].as_py() != 20:
            file.unlink()
    assert tables.read(path, filters=[("position", "in", [25, 28])])[
        "position"
    ].to_pylist() == [25]
    assert (
        tables.read(
            path, filters=[("position", ">", 19), ("position", "<=", 25)]
        ).num_rows
        == 2
    )


# --- once -------------------------------------------------------------------------------------------------------------


@pytest.mark.spec("X6")
def test_what_an_app_has_committed_is_not_appended_again(path):
    assert tables.committed(path, "engine") is None
    assert tables.append(path, changes([0]), CHANGES, app="engine", version=0)
    assert not tables.append(path, changes([0]), CHANGES, app="engine", version=0)
    assert tables.append(path, changes([1, 2]), CHANGES, app="engine", version=7)
    assert not tables.append(path, changes([3]), CHANGES, app="engine", version=6)
    assert tables.append(path, changes([4]), CHANGES, app="other", version=3)
    assert (tables.committed(path, "engine"), tables.committed(path, "other")) == (7, 3)
    assert positions_of(path) == [0, 1, 2, 4]


@pytest.mark.spec("X6")
def test_an_empty_append_moves_the_app_on_and_writes_no_file(path):
    assert tables.append(path, changes([]), CHANGES, app="engine", version=5)
    assert tables.committed(path, "engine") == 5
    assert tables.append(path, changes([]), CHANGES, app="engine", version=6)
    assert not tables.append(path, changes([1]), CHANGES, app="engine", version=6)
    assert positions_of(path) == []
    assert list(path.glob("**/*.parquet")) == []


def test_an_empty_append_without_an_app_commits_nothing(path):
    tables.append(path, changes([]), CHANGES)
    before = tables.version(path)
    assert tables.append(path, changes([]), CHANGES)
    assert tables.version(path) == before


@pytest.mark.spec("X6")
def test_apps_survive_checkpoints_compaction_and_vacuum(path):
    for version in range(45):  # two checkpoints
        tables.append(path, changes([version]), CHANGES, app="engine", version=version)
    assert len(list((path / "_delta_log").glob("*.checkpoint.parquet"))) == 2
    tables.compact(path, before=dt.date(1970, 1, 2), zorder=CHANGES.zorder_by)
    tables.vacuum(path, retention_h=0)
    assert DeltaTable(str(path)).transaction_version("engine") == 44
    assert positions_of(path) == list(range(45))
    assert len(list(path.glob("event_date=*/*.parquet"))) == 1


def test_a_failed_commit_is_tried_again(path, monkeypatch):
    """Somebody who does not hold the lock commits between our look at the table and our commit."""
    tables.append(path, changes([0]), CHANGES, app="engine", version=0)
    from st_common.tables import writing

    written, intruded = writing.write_files, []

    def slow(*args):
        if not intruded:
            intruded.append(True)
            write_deltalake(
                str(path), tables.fit(changes([100]), CHANGES), mode="append"
            )
        return written(*args)

    monkeypatch.setattr(writing, "write_files", slow)
    assert tables.append(path, changes([1]), CHANGES, app="engine", version=1)
    assert positions_of(path) == [0, 1, 100]


# --- replace ----------------------------------------------------------------------------------------------------------


def regions(group: str, version: int, names: str) -> pa.Table:
    edges = {
        "minx": -math.inf,
        "miny": -math.inf,
        "maxx": math.inf,
        "maxy": math.inf,
        "std_deviation": 0.0,
    }
    fixed = {
        "group": group,
        "version": version,
        "rows": 1,
        "strategy": "sample",
    } | edges
    return pa.table(
        {name: [value] * len(names) for name, value in fixed.items()}
        | {"region_id": list(names)}
    )


def stored(path: Path, **options: object) -> list[tuple[str, str]]:
    return sorted(
        (row["group"], row["region_id"])
        for row in tables.read(path, **options).to_pylist()
    )


def test_replace_takes_the_place_of_everything_or_of_what_the_predicate_selects(
    tmp_path,
):
    path = tmp_path / "regions"
    first = tables.replace(path, regions("a", 1, "01"), REGIONS)
    second = tables.replace(
        path, regions("b b", 1, "xyz"), REGIONS, predicate="\"group\" = 'b b'"
    )
    third = tables.replace(
        path, regions("a", 2, "2"), REGIONS, predicate="\"group\" = 'a'"
    )
    assert first < second < third == tables.version(path)
    assert stored(path) == [("a", "2"), ("b b", "x"), ("b b", "y"), ("b b", "z")]
    assert stored(path, version=first) == [("a", "0"), ("a", "1")]
    assert tables.replace(path, regions("c", 1, "0"), REGIONS) > third
    assert stored(path) == [("c", "0")]
    tables.replace(path, regions("c", 1, ""), REGIONS)
    assert stored(path) == []
    assert matches(REGIONS, path) == []


def test_replace_by_values_inside_partitions(tmp_path):
    path = tmp_path / "regions"
    tables.append(
        path, pa.concat_tables([regions("a", 1, "01"), regions("a", 2, "23")]), REGIONS
    )
    tables.replace(
        path, regions("a", 2, "4"), REGIONS, predicate="\"group\" = 'a' AND version = 2"
    )
    assert stored(path) == [("a", "0"), ("a", "1"), ("a", "4")]


def test_replace_refuses_rows_that_it_could_never_replace_again(tmp_path):
    path = tmp_path / "regions"
    tables.append(path, regions("a", 1, "01"), REGIONS)
    with pytest.raises(ContractError, match="not every new row keeps version = 2"):
        tables.replace(path, regions("a", 1, "4"), REGIONS, predicate="version = 2")
    with pytest.raises(FairwayError, match="cannot be asked of these rows"):
        tables.replace(path, regions("a", 1, "4"), REGIONS, predicate="versoin = 2")
    assert stored(path) == [("a", "0"), ("a", "1")]


def test_infinite_edges_come_back_as_they_were(tmp_path):
    tables.append(tmp_path / "regions", regions("a", 1, "0"), REGIONS)
    found = tables.read(
        tmp_path / "regions", filters=[("minx", "<", 0.0), ("maxx", ">", 0.0)]
    )
    assert found.select(["minx", "maxy"]).to_pylist() == [
        {"minx": -math.inf, "maxy": math.inf}
    ]


# --- reading ----------------------------------------------------------------------------------------------------------


def test_what_is_not_there_is_none_or_an_error(path):
    assert not tables.exists(path)
    assert tables.version(path) is None
    for call in (
        tables.read,
        tables.dataset,
        lambda path: tables.compact(path, before=None),
        tables.vacuum,
    ):
        with pytest.raises(FairwayError, match="there is no table"):
            call(path)
    tables.append(path, changes([1]), CHANGES)
    assert tables.exists(path)
    with pytest.raises(FairwayError, match="has no version 77"):
        tables.read(path, version=77)


def test_columns_versions_and_filters_are_chosen(path):
    tables.append(path, changes([1, 2, 3]), CHANGES)
    first = tables.version(path)
    tables.append(path, changes([4], event_us=DAY_US), CHANGES)
    assert tables.read(path, version=first).num_rows == 3
    found = tables.read(
        path,
        columns=["position"],
        filters=[("event_date", "=", dt.date(1970, 1, 1)), ("position", ">", 1)],
    )
    assert found.sort_by("position") == pa.table(
        {"position": pa.chunked_array([[2, 3]])},
        pa.schema([CHANGES.arrow_schema().field("position")]),
    )


def test_commits_of_others_are_seen(path):
    tables.append(path, changes([1]), CHANGES)
    assert positions_of(path) == [1]
    write_deltalake(str(path), tables.fit(changes([2]), CHANGES), mode="append")
    assert positions_of(path) == [1, 2]


def test_a_table_made_again_at_its_place_is_another_table(path):
    tables.append(path, changes([1]), CHANGES, app="engine", version=9)
    path.rename(path.with_name("old"))
    assert not tables.exists(path)
    assert tables.append(path, changes([2]), CHANGES, app="engine", version=0)
    assert positions_of(path) == [2]


def test_a_table_made_again_is_another_one_also_by_the_same_inodes(path):
    """As file systems give the inode of a folder that is gone again: here the folders stay, and their files go."""
    seen = set()
    for number in range(30):
        tables.append(path, changes([number]), CHANGES)
        seen.add((path / "_delta_log").stat().st_ino)
        assert positions_of(path) == [number]
        for file in [each for each in path.rglob("*") if each.is_file()]:
            file.unlink()
    assert len(seen) == 1


@pytest.mark.parametrize("is_all_written", [True, False], ids=["copied", "synced"])
def test_a_table_that_was_brought_back_in_place_is_what_stands_there(
    path, is_all_written
):
    """As `cp -a` writes into the files that are there, or as `rsync -a --delete` leaves what is alike alone."""
    for number in (1, 2):
        tables.append(path, changes([number]), CHANGES)
    kept = path.with_name("kept")
    shutil.copytree(path, kept)
    tables.append(path, changes([3]), CHANGES)
    tables.checkpoint(path)
    assert positions_of(path) == [1, 2, 3]

    for file in [each for each in path.rglob("*") if each.is_file()]:
        there = kept / file.relative_to(path)
        if not there.exists():
            file.unlink()
        elif is_all_written or file.read_bytes() != there.read_bytes():
            shutil.copy2(there, file)
    assert positions_of(path) == [1, 2]
    tables.checkpoint(path)
    tables.append(path, changes([4]), CHANGES)
    assert positions_of(path) == [1, 2, 4]
    rows = DeltaTable(str(path)).to_pyarrow_table()
    assert rows.num_rows == 3


def test_a_table_that_was_brought_back_and_went_another_way_is_what_stands_there(path):
    """Its log is as long as that which this process knows, and begins alike."""
    for number in (1, 2):
        tables.append(path, changes([number]), CHANGES)
    assert positions_of(path) == [1, 2]
    max((path / "_delta_log").glob("*.json")).unlink()
    write_deltalake(str(path), tables.fit(changes([9]), CHANGES), mode="append")
    assert positions_of(path) == [1, 9]


def test_a_handle_finds_its_way_when_the_log_behind_it_was_cleaned(path):
    tables.append(path, changes([0]), CHANGES)
    other = DeltaTable(str(path))
    other.alter.set_table_properties(
        {"delta.logRetentionDuration": "interval 0 seconds"}
    )
    for number in range(1, 50):
        write_deltalake(other, tables.fit(changes([number]), CHANGES), mode="append")
    assert not (path / "_delta_log" / f"{2:020d}.json").exists()
    assert positions_of(path) == list(range(50))
    assert tables.version(path) == other.version()


# --- lock -------------------------------------------------------------------------------------------------------------


def test_the_lock_may_be_nested_and_lies_beside_the_table(path):
    with tables.locked(path), tables.locked(path):
        tables.append(path, changes([1]), CHANGES)
    assert path.with_name(".taxis.lock").exists()
    assert not (path / ".taxis.lock").exists()


def test_the_lock_keeps_other_threads_out(path):
    done = []
    with tables.locked(path):
        thread = threading.Thread(
            target=lambda: done.append(tables.append(path, changes([1]), CHANGES))
        )
        thread.start()
        thread.join(0.3)
        assert done == []
    thread.join(30)
    assert done == [True]


# --- compaction -------------------------------------------------------------------------------------------------------


def files(path: Path) -> list[str]:
    return sorted(pa.table(DeltaTable(str(path)).get_add_actions())["path"].to_pylist())


def test_compaction_joins_closed_days_only_and_changes_no_row(path):
    for number in range(6):
        tables.append(path, changes([number], event_us=(number % 3) * DAY_US), CHANGES)
    before, version = tables.read(path).sort_by("position"), tables.version(path)
    done = tables.compact(path, before=dt.date(1970, 1, 3))
    assert (
        done["partitions"],
        done["files_before"],
        done["files_after"],
        done["rows"],
    ) == (2, 4, 2, 4)
    assert done["bytes_before"] > done["bytes_after"] > 0
    assert tables.read(path).sort_by("position") == before
    assert tables.read(path, version=version).sort_by("position") == before
    assert [name.partition("/")[0] for name in files(path)] == [
        "event_date=1970-01-01",
        "event_date=1970-01-02",
        "event_date=1970-01-03",
        "event_date=1970-01-03",
    ]
    assert matches(CHANGES, path) == []
    assert sum(tables.compact(path, before=dt.date(1970, 1, 3)).values()) == 0


def test_zorder_puts_near_rows_together_once(tmp_path):
    path = tmp_path / "positions"
    places = [(x, y) for x in range(32) for y in range(32)]
    shuffled = sorted(places, key=lambda place: hash((place[1], place[0])))
    rows = fixes(
        list(range(1024)),
        x=[float(x) for x, _ in shuffled],
        y=[float(y) for _, y in shuffled],
    )
    tables.append(path, rows, POSITIONS)
    assert (
        tables.compact(path, before=dt.date(1970, 1, 2), zorder=("x", "y"))[
            "files_after"
        ]
        == 1
    )
    assert (
        sum(
            tables.compact(path, before=dt.date(1970, 1, 2), zorder=("x", "y")).values()
        )
        == 0
    )
    found = pq.read_table(path / files(path)[0], partitioning=None)
    quarters = [found.slice(start, 256) for start in range(0, 1024, 256)]
    for quarter in quarters:
        assert pc.max(quarter["x"]).as_py() - pc.min(quarter["x"]).as_py() == 15
        assert pc.max(quarter["y"]).as_py() - pc.min(quarter["y"]).as_py() == 15
    assert sorted(found["row"].to_pylist()) == list(range(1024))


@pytest.mark.parametrize("names", [["0"], ["0", "1"], [f"{n:03}" for n in range(300)]])
def test_cells_put_near_rows_together_and_change_none(names):
    """Nulls and NaN are rows like others; those of one cell keep their order."""
    rng, n = np.random.default_rng(len(names)), 20_000
    x, y = rng.normal(size=(2, n))
    x[:5], y[3:8] = np.nan, np.inf
    regions = pa.array([*rng.choice(names, n - 1), None])
    rows = pa.table({"region_id": regions, "x": x, "y": y, "n": np.arange(n)})
    put = in_cells(rows, "region_id", ("x", "y"))
    order = put["n"].to_numpy()
    assert np.array_equal(np.sort(order), np.arange(n))
    assert np.array_equal(put["x"].to_numpy(), x[order], equal_nan=True)
    found = put["region_id"].to_pylist()
    assert found == regions.take(pa.array(order)).to_pylist()
    assert found == [*sorted(found[:-1]), None]
    if len(names) == 1:
        wide = np.nanmean(np.abs(np.diff(put["x"].to_numpy()[:-1])))
        assert wide < np.nanmean(np.abs(np.diff(x[8:]))) / 2
    assert in_cells(rows.slice(0, 1), "region_id", ("x", "y")).num_rows == 1
    assert len(in_cells(rows.slice(0, 5), None, ("x",))) == 5, "all of them NaN"


@pytest.mark.spec("S4")
def test_joined_files_of_an_open_day_lie_by_place(tmp_path):
    """A box reads few row groups of them; those that are joined are due again as before."""
    path, contract = tmp_path / "positions" / "s", load_contract("positions")
    rng = np.random.default_rng(4)
    for segment in range(4):
        x, y = rng.uniform(0, 100, (2, 100))
        rows = fixes([*range(100)], segment=[segment] * 100, x=x, y=y)
        tables.append(path, rows, contract)
    before = tables.read(path).sort_by([("segment", "ascending"), ("x", "ascending")])
    done = tables.compact(
        path, before=None, cluster=contract.cluster_by, cells=contract.zorder_by
    )
    assert (done["files_before"], done["files_after"]) == (4, 1)
    now = tables.read(path)
    order = [("segment", "ascending"), ("x", "ascending")]
    assert now.sort_by(order).equals(before)
    steps = np.hypot(*(np.diff(now[name].to_numpy()) for name in "xy"))
    assert steps.mean() < 25, "a tenth of the side, at random it would be half"
    assert tables.compact(path, before=None, cells=contract.zorder_by)["rows"] == 0


def test_compaction_reads_what_other_writers_wrote(tmp_path):
    path = tmp_path / "regions"
    tables.create(path, REGIONS)
    for version in range(3):
        write_deltalake(
            str(path),
            tables.fit(regions("a b/c", version, "01"), REGIONS),
            mode="append",
        )
    done = tables.compact(path, before=None, zorder=("minx", "region_id"))
    assert (done["files_before"], done["files_after"], done["rows"]) == (3, 1, 6)
    assert stored(path) == [("a b/c", "0")] * 3 + [("a b/c", "1")] * 3
    assert DeltaTable(str(path)).to_pyarrow_table().num_rows == 6


def test_files_of_different_attributes_are_joined(tmp_path):
    path = tmp_path / "positions"
    tables.append(path, fixes([0]), POSITIONS)
    tables.append(path, fixes([1], speed=[2.5]), POSITIONS)
    tables.compact(path, before=dt.date(1970, 1, 2), zorder=("x", "y", "object"))
    assert tables.read(path).sort_by("row")["speed"].to_pylist() == [None, 2.5]


def test_large_files_are_left_alone_and_small_ones_fill_files_of_the_target(path):
    noise = pa.array([str(hash((number, "seed"))) for number in range(60_000)])
    for part in range(3):
        rows = noise.slice(part * 20_000, 20_000)
        tables.append(
            path,
            changes(list(range(part * 20_000, part * 20_000 + 20_000)), partner=rows),
            CHANGES,
        )
    tables.append(path, changes([70_000]), CHANGES)
    tables.append(path, changes([70_001]), CHANGES)
    size = max(file.stat().st_size for file in path.glob("event_date=*/*.parquet"))
    assert size > 1 << 17
    done = tables.compact(path, before=dt.date(1970, 1, 2), target_mb=1)
    assert done["rows"] >= 2
    assert (
        max(file.stat().st_size for file in path.glob("event_date=*/*.parquet"))
        < 2 << 20
    )
    assert len(positions_of(path)) == 60_002


@pytest.mark.spec("C5", "S4")
@given(
    st.lists(
        st.lists(st.sampled_from("abcdef"), min_size=1, max_size=40),
        min_size=2,
        max_size=8,
    ),
    st.integers(1, 100),
)
@case([["a"], ["a", "a", "b", "c"], ["b", "c"], ["c", "c"]], 4)
def test_files_of_a_closed_day_are_cut_along_the_regions(tmp_path_factory, commits, kb):
    path = tmp_path_factory.mktemp("table") / f"t{next(numbers)}"
    for number, regions in enumerate(commits):
        rows = list(range(number * 100, number * 100 + len(regions)))
        xs = pa.array([float(row % 7) for row in rows])
        tables.append(path, fixes(rows, region_id=pa.array(regions), x=xs), POSITIONS)
    order = [("row", "ascending")]
    before = tables.read(path).sort_by(order)
    how = {"before": dt.date(1970, 1, 2), "zorder": ("x", "y"), "cluster": "region_id"}
    done = tables.compact(path, **how, target_mb=kb / 1024)
    after = tables.read(path)
    assert (done["rows"], after.sort_by(order)) == (len(before), before)
    held = [
        pq.read_table(path / name, partitioning=None)["region_id"]
        for name in files(path)
    ]
    spans = sorted((pc.min(one).as_py(), pc.max(one).as_py()) for one in held)
    overlaps = [a for a, b in itertools.pairwise(spans) if a[1] > b[0]]
    assert overlaps == [], "a region lies in files that follow each other"
    assert tables.compact(path, **how, target_mb=64)["files_after"] in (0, 1)
    assert sum(tables.compact(path, **how, target_mb=64).values()) == 0


def test_what_is_in_order_is_left_alone_by_who_only_joins(tmp_path):
    path = tmp_path / "positions"
    tables.append(path, fixes([0, 1]), POSITIONS)
    tables.compact(path, before=None, zorder=("x", "y"), cluster="region_id")
    for row in (2, 3):
        tables.append(path, fixes([row]), POSITIONS)
    done = tables.compact(path, before=None, cluster="region_id")
    assert (done["files_before"], done["files_after"]) == (2, 1)
    assert len(files(path)) == 2


@pytest.mark.spec("S4")
@pytest.mark.parametrize("first", ["region_version", "region_group"])
def test_a_table_gains_the_columns_that_its_contract_gained(tmp_path, first):
    path, contract = tmp_path / "layers", load_contract("layers")
    schema = contract.arrow_schema()
    old = pa.schema(list(schema)[: schema.get_field_index(first)])
    DeltaTable.create(
        str(path),
        DeltaSchema.from_arrow(old),
        partition_by=["region_id"],
        configuration={},
    )
    with tables.locked(path):
        tables.create(path, contract)
    assert matches(contract, path) == []
    assert tables.version(path) > 0


def test_without_a_date_there_is_no_closed_day(tmp_path):
    tables.append(tmp_path / "regions", regions("a", 1, "0"), REGIONS)
    with pytest.raises(FairwayError, match="not partitioned by a date"):
        tables.compact(tmp_path / "regions", before=dt.date(1970, 1, 2))


def test_vacuum_deletes_what_no_version_in_reach_needs(path):
    for number in range(3):
        tables.append(path, changes([number]), CHANGES)
    (path / "event_date=1970-01-01" / "part-left-by-a-crash.parquet").write_bytes(
        b"PAR1"
    )
    tables.compact(path, before=dt.date(1970, 1, 2))
    assert tables.vacuum(path) == 0
    assert tables.vacuum(path, retention_h=0) == 4
    assert positions_of(path) == [0, 1, 2]
    assert len(list(path.glob("event_date=*/*.parquet"))) == 1


def test_versions_that_are_kept_read_as_before_and_others_are_refused_by_number(
    tmp_path,
):
    path = tmp_path / "regions"
    for number in range(1, 6):
        tables.replace(path, regions("a", number, f"{number}"), REGIONS)
    newest = tables.version(path)
    kept = {version: stored(path, version=version) for version in (2, 4, newest)}
    assert tables.drop_versions(path, (2, 4), before=FAR_AHEAD, dry=True).files == 2
    assert tables.drop_versions(path, (2, 4), before=FAR_AHEAD).files == 2
    assert tables.drop_versions(path, (2, 4), before=FAR_AHEAD).files == 0
    tables.forget(path)
    assert tables.version(path) == newest, "no version gets another number"
    assert {v: stored(path, version=v) for v in kept} == kept
    for gone in (1, 3):
        assert tables.is_gone(path, gone)
        with pytest.raises(FairwayError, match=rf"version {gone} of .* was purged"):
            tables.read(path, version=gone)
    with pytest.raises(FairwayError, match="has no version 99"):
        tables.read(path, version=99)
    tables.replace(path, regions("a", 6, "6"), REGIONS)
    assert {v: stored(path, version=v) for v in kept} == kept


def test_versions_that_were_the_newest_a_while_ago_stay(tmp_path):
    path = tmp_path / "regions"
    for number in range(1, 4):
        tables.replace(path, regions("a", number, f"{number}"), REGIONS)
    long_ago = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    assert tables.drop_versions(path, (), before=long_ago).files == 0
    assert stored(path, version=1) == [("a", "1")]


@pytest.mark.parametrize("kind", [pa.string(), pa.int64(), pa.timestamp("us", "UTC")])
def test_of_a_list_without_values_no_row_is_in_it_and_every_row_is_not(tmp_path, kind):
    values = ["1", "2"] if kind == pa.string() else pa.array([1, 2]).cast(kind)
    write_deltalake(tmp_path / "t", pa.table({"a": values, "b": [1, 2]}))

    def count(*filters):
        return len(tables.read(tmp_path / "t", filters=list(filters)))

    assert count(("a", "in", [])) == 0
    assert count(("b", "=", 1), ("a", "in", [])) == 0
    assert count(("a", "not in", [])) == 2
    assert count(("b", "=", 1), ("a", "not in", [])) == 1
