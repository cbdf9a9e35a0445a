"""Contracts: schemas, tables and rules are what the files say; what is wrong in a file is named with its line."""

import datetime as dt
import json
import re
from importlib import resources
from pathlib import Path

import jsonschema
import pyarrow as pa
import pytest
import yaml
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema

from st_common.contracts import (
    Contract,
    contract_names,
    load_contract,
    matches,
    require_match,
    validation,
)
from st_common.contracts.quality import sql_columns
from st_common.contracts.reading import CHECKED_FILE, checked_text, is_checked
from st_common.errors import ContractError
from st_common.quality.expectations import ArrowRows

pytestmark = pytest.mark.filterwarnings(
    "default::DeprecationWarning"  # of what Great Expectations imports
)

FOLDER = Path(__file__).resolve().parents[2] / "data_contracts"
BAD = FOLDER / "examples" / "bad"
NAMES = [
    "changes",
    "dead_letters",
    "differences",
    "feature_faults",
    "latest",
    "layers",
    "positions",
    "quality",
    "queries",
    "regions",
    "rejects",
    "snapshots",
    "stream_status",
    "visits",
]
UTC = pa.timestamp("us", tz="UTC")


def visits() -> Contract:
    return load_contract("visits", FOLDER / "examples")


def visit_rows(**changed: list) -> pa.Table:
    columns = {
        "day": pa.array([dt.date(2024, 1, 1)] * 2),
        "number": pa.array([1, 2]),
        "entered_ts": pa.array([0, 1], UTC),
        "stayed_s": pa.array([None, 5.0]),
        "place": pa.array(["a", "b"]),
        "kind": pa.array(["park", "shop"]),
    }
    return pa.table(
        columns
        | {
            name: pa.array(values, columns[name].type)
            for name, values in changed.items()
        }
    )


def test_every_table_has_its_contract():
    assert contract_names() == NAMES


@pytest.mark.spec("C8")
@pytest.mark.parametrize(
    "path", sorted(FOLDER.glob("*.odcs.yaml")), ids=lambda path: path.name
)
def test_contracts_keep_the_standards_own_schema(path):
    schema = json.loads(
        (resources.files("open_data_contract_standard") / "schema.json").read_text(
            encoding="utf-8"
        )
    )
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert document["apiVersion"] == "v3.1.0"
    assert list(jsonschema.Draft201909Validator(schema).iter_errors(document)) == []


@pytest.mark.parametrize(
    "path",
    sorted(BAD.glob("*.odcs.yaml")),
    ids=lambda path: path.name.partition(".")[0],
)
def test_a_wrong_contract_is_named_with_file_line_and_rule(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    line, rule = next(
        (number, found[1])
        for number, text in enumerate(lines, 1)
        if (found := re.search(r"# <- (\S+)$", text))
    )
    with pytest.raises(ContractError) as error:
        load_contract(path.name.removesuffix(".odcs.yaml"), BAD)
    assert error.value.message.startswith(f"{path}:{line}: {rule}: ")


def kept_as_checked(folder: Path, text: str) -> None:
    """A folder with the contract `visits` and a file that says that it was checked with this text."""
    path = folder / "visits.odcs.yaml"
    path.write_text(text, encoding="utf-8")
    (folder / CHECKED_FILE).write_text(checked_text([path]), encoding="utf-8")


def test_a_contract_is_checked_again_once_its_file_has_changed(tmp_path):
    good = (FOLDER / "examples" / "visits.odcs.yaml").read_text(encoding="utf-8")
    wrong = good.replace("description:", "descripton:", 1)
    kept_as_checked(tmp_path, good)
    assert is_checked(tmp_path / "visits.odcs.yaml")
    (tmp_path / "visits.odcs.yaml").write_text(wrong, encoding="utf-8")
    with pytest.raises(ContractError, match="unknown-key: 'descripton'"):
        load_contract("visits", tmp_path)


def test_a_contract_that_was_checked_as_it_is_is_not_checked_again(
    tmp_path, monkeypatch
):
    def refuse(*_: object) -> None:
        raise AssertionError

    monkeypatch.setattr(validation, "validate", refuse)
    good = (FOLDER / "examples" / "visits.odcs.yaml").read_text(encoding="utf-8")
    kept_as_checked(tmp_path, good)
    assert load_contract("visits", tmp_path).name == "visits"


@pytest.mark.parametrize("damaged", ["", "{", "[]", '{"visits.odcs.yaml": "0"}'])
def test_a_damaged_list_of_checked_contracts_says_nothing(tmp_path, damaged):
    wrong = (BAD / "unknown_key.odcs.yaml").read_text(encoding="utf-8")
    (tmp_path / "unknown_key.odcs.yaml").write_text(wrong, encoding="utf-8")
    (tmp_path / CHECKED_FILE).write_text(damaged, encoding="utf-8")
    with pytest.raises(ContractError, match="unknown-key"):
        load_contract("unknown_key", tmp_path)


def test_every_contract_of_a_table_is_known_to_be_valid():
    """After a change `make check ARGS=contracts` checks them, and keeps their sums."""
    kept = (FOLDER / CHECKED_FILE).read_text(encoding="utf-8")
    assert kept == checked_text(FOLDER.glob("*.odcs.yaml"))


def test_an_unknown_contract_is_an_error_with_a_hint():
    with pytest.raises(ContractError, match="did you mean 'changes'"):
        load_contract("chages")


def test_a_misspelt_key_is_answered_with_the_right_one():
    with pytest.raises(ContractError, match="did you mean 'required'"):
        load_contract("unknown_key", BAD)


def test_another_folder_may_hold_the_contracts(monkeypatch):
    monkeypatch.setenv("FAIRWAY_CONTRACTS", str(FOLDER / "examples"))
    assert contract_names() == ["visits"]
    assert load_contract("visits").name == "visits"


def test_the_changes_table_is_as_it_is_promised_to_readers():
    assert load_contract("changes").arrow_schema() == pa.schema(
        [
            pa.field("event_date", pa.date32(), nullable=False),
            pa.field("position", pa.int64(), nullable=False),
            pa.field("seq", pa.int32(), nullable=False),
            pa.field("event_ts", UTC, nullable=False),
            pa.field("fix_ts", UTC),
            pa.field("query_version", pa.int32(), nullable=False),
            pa.field("layer_version", pa.int64()),
            pa.field("sign", pa.int8(), nullable=False),
            pa.field("value", pa.float64()),
            pa.field("query", pa.string(), nullable=False),
            pa.field("object", pa.string(), nullable=False),
            pa.field("partner", pa.string()),
            pa.field("cause", pa.string(), nullable=False),
            pa.field("fields", pa.string()),
            pa.field("x", pa.float64()),
            pa.field("y", pa.float64()),
        ]
    )


def test_partitions_come_in_the_order_of_their_numbers():
    partitions = {name: load_contract(name).partition_by for name in NAMES}
    assert partitions == {
        "changes": ("event_date",),
        "dead_letters": ("refused_date",),
        "differences": ("event_date",),
        "feature_faults": ("layer",),
        "latest": (),
        "layers": ("region_id",),
        "positions": ("event_date",),
        "quality": ("date",),
        "queries": (),
        "regions": ("group",),
        "rejects": ("ingest_date",),
        "snapshots": ("snapshot_ts",),
        "stream_status": ("date",),
        "visits": ("event_date",),
    }


def test_attributes_stand_behind_the_contracts_columns_and_may_be_null():
    contract = load_contract("positions")
    schema = contract.arrow_schema(
        {"speed": "double", "line": "string", "seats": "long", "open": "bool"}
    )
    assert schema.names[: len(contract.columns)] == [
        column.name for column in contract.columns
    ]
    assert list(schema)[len(contract.columns) :] == [
        pa.field("speed", pa.float64()),
        pa.field("line", pa.string()),
        pa.field("seats", pa.int64()),
        pa.field("open", pa.bool_()),
    ]


@pytest.mark.parametrize(
    ("name", "extra"),
    [
        ("changes", {"a": "double"}),
        ("positions", {"a": "float"}),
        ("positions", {"x": "double"}),
    ],
)
def test_attributes_that_cannot_be_are_errors(name, extra):
    with pytest.raises(ContractError):
        load_contract(name).arrow_schema(extra)


def test_spark_ddl_quotes_names_and_says_what_must_be_there():
    assert visits().spark_ddl({"note": "string"}) == (
        "`day` DATE NOT NULL, `number` BIGINT NOT NULL, `entered_ts` TIMESTAMP NOT NULL, `stayed_s` DOUBLE, "
        "`place` STRING NOT NULL, `kind` STRING NOT NULL, `note` STRING"
    )


# --- rules ------------------------------------------------------------------------------------------------------------


def broken(contract: Contract, rows: pa.Table) -> dict[str, float | None]:
    """By how many rows each rule is broken that does not hold."""
    found = ArrowRows(lambda columns: rows.select(columns) if columns else rows)
    _, judged = found.judge(contract.name, contract.rules)
    return {name: one.broken for name, one in judged.items() if not one.passed}


def failing(rows: pa.Table) -> dict[str, float | None]:
    return broken(visits(), rows)


@pytest.mark.spec("C8")
def test_good_rows_break_no_rule():
    assert failing(visit_rows()) == {}


@pytest.mark.spec("C8")
@pytest.mark.parametrize(
    ("changed", "broken"),
    [
        ({"place": [None, "b"]}, {"place_is_there": 1}),
        ({"place": ["", "b"]}, {"place_length": 1}),
        ({"place": ["x" * 41, "b"]}, {"place_length": 1}),
        ({"number": [-1, 2]}, {"number_between": 1}),
        ({"number": [2, 2]}, {"key_is_unique": 2}),
        ({"stayed_s": [0.0, 86400.0]}, {"stayed_s_between": 1, "short_in_shops": 1}),
        ({"kind": ["zoo", "shop"]}, {"kind_is_known": 1}),
        ({"kind": ["Shop's", "'"]}, {"kind_is_known": 2, "kind_pattern": 2}),
        ({"place": ["a", "a"], "entered_ts": [1, 1]}, {"one_visit_at_a_time": 2}),
    ],
)
def test_bad_rows_break_the_rule_that_is_about_them(changed, broken):
    assert failing(visit_rows(**changed)) == broken


def test_rules_know_how_much_they_weigh_and_what_they_look_at():
    checks = {rule.name: rule for rule in visits().rules}
    assert checks["place_is_there"].severity == "error"
    assert checks["kind_is_known"].severity == "warning"
    assert checks["short_in_shops"].severity == "info"
    assert checks["short_in_shops"].columns == ("kind", "stayed_s")
    assert checks["one_visit_at_a_time"].columns == ("place", "entered_ts")
    assert checks["short_in_shops"].expected == "Nobody stays a day in a shop."
    assert checks["stayed_s_between"].expected == "stayed_s > 0 and stayed_s <= 86400"


def test_expectations_are_the_rules_and_the_types():
    expectations = visits().expectations()
    json.dumps(expectations)
    rules = [
        each["meta"]["rule"]
        for each in expectations
        if each["type"] != "expect_column_values_to_be_of_type"
    ]
    assert rules == [rule.name for rule in visits().rules]
    kwargs = {each["meta"]["rule"]: each["kwargs"] for each in expectations}
    assert kwargs["stayed_s_has_type"] == {"column": "stayed_s", "type_": "DoubleType"}
    assert kwargs["stayed_s_between"] == {
        "column": "stayed_s",
        "min_value": 0,
        "strict_min": True,
        "max_value": 86400,
    }
    assert kwargs["kind_is_known"] == {"column": "kind", "value_set": ["park", "shop"]}
    assert kwargs["one_visit_at_a_time"] == {"column_list": ["place", "entered_ts"]}
    assert kwargs["short_in_shops"]["unexpected_rows_query"].startswith(
        "SELECT * FROM {batch} WHERE kind = 'shop'"
    )


@pytest.mark.parametrize("name", NAMES)
def test_every_rule_of_every_table_runs_on_an_empty_table(name):
    contract = load_contract(name)
    assert broken(contract, contract.arrow_schema().empty_table()) == {}


def broken_by(table: str, name: str, rows: pa.Table) -> float | None:
    """How many rows break one rule of a table."""
    rules = [rule for rule in load_contract(table).rules if rule.name == name]
    return ArrowRows(rows.select).judge(table, rules)[1][name].broken


def test_a_position_is_finite_unless_its_object_is_gone():
    rows = pa.table(
        {
            "x": [1.0, float("nan"), float("inf"), float("nan")],
            "y": [0.0] * 4,
            "gone": [False] * 3 + [True],
        }
    )
    assert broken_by("positions", "place_is_finite", rows) == 2


def test_a_feature_has_one_home():
    """By each put of it: `d` was put twice, and is home once by each."""
    rows = pa.table(
        {
            "fid": ["a", "a", "b", "c", "c", "d", "d"],
            "home": [True, False, False, True, True, True, True],
            "put_number": [0, 0, 0, 7, 7, 0, 9],
        }
    )
    assert broken_by("layers", "one_home_per_feature", rows) == 2


# --- matching ---------------------------------------------------------------------------------------------------------


def test_a_schema_matches_however_arrow_holds_its_texts():
    schema = visits().arrow_schema()
    for texts in (
        pa.large_string(),
        pa.string_view(),
        pa.dictionary(pa.int32(), pa.string()),
    ):
        assert matches(visits(), schema.set(4, pa.field("place", texts))) == []


@pytest.mark.parametrize(
    ("schema", "difference"),
    [
        (lambda s: s.remove(4), "column 'place' is missing"),
        (
            lambda s: s.set(1, pa.field("number", pa.int32())),
            "column 'number' is int instead of bigint",
        ),
        (
            lambda s: s.set(2, pa.field("entered_ts", pa.timestamp("ms"))),
            "is timestamp[ms] instead of timestamp",
        ),
        (
            lambda s: s.append(pa.field("who", pa.int8())),
            "attribute 'who' is int8, which no stream can declare",
        ),
        (
            lambda s: pa.schema([s[1], s[0], *list(s)[2:]]),
            "columns are in the order (number, day,",
        ),
        (lambda s: pa.schema([*s, s[0]]), "column 'day' is there twice"),
    ],
)
def test_what_differs_in_a_schema_is_named(schema, difference):
    found = matches(visits(), schema(visits().arrow_schema()))
    assert len(found) == 1
    assert difference in found[0]


def test_a_column_too_many_is_a_difference_where_attributes_are_not_allowed():
    schema = (
        load_contract("changes").arrow_schema().append(pa.field("speed", pa.float64()))
    )
    assert matches(load_contract("changes"), schema) == [
        "column 'speed' is not in the contract"
    ]


def test_what_differs_in_a_table_is_named_and_refused(tmp_path):
    schema = (
        visits()
        .arrow_schema()
        .set(3, pa.field("stayed_s", pa.float64(), nullable=False))
    )
    DeltaTable.create(
        str(tmp_path / "t"), DeltaSchema.from_arrow(schema), partition_by=["kind"]
    )
    assert matches(visits(), tmp_path / "t") == [
        "column 'stayed_s' must not be null, against the contract",
        "partitioned by (kind) instead of (day)",
        "property delta.checkpointInterval is None instead of '20'",
    ]
    with pytest.raises(
        ContractError, match=r"partitioned by \(kind\) instead of \(day\)"
    ):
        require_match(visits(), tmp_path / "t")
    assert matches(visits(), tmp_path / "none") == [
        f"{tmp_path / 'none'} is no Delta table"
    ]


def test_the_columns_of_a_rules_sql_come_in_order_without_those_that_it_makes():
    query = """SELECT count(*) FROM (
        SELECT place, sum(stayed) FILTER (WHERE kind = 'a') AS total FROM ${table} AS visits
        GROUP BY place HAVING total > 3 AND max(visits.entered) < min("left")) AS bad"""
    assert sql_columns(query) == ("place", "stayed", "kind", "entered", "left")
    with pytest.raises(ValueError, match="syntax error"):
        sql_columns("SELECT count(* FROM ${table}")
    with pytest.raises(ValueError, match="Only SELECT"):
        sql_columns("DELETE FROM ${table}")
