"""The examples of docs/query-language.md do what the page says."""

import re
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from st_common.home import Home
from st_common.query.lowering.functions import FUNCTIONS
from st_common.query.plan import Plan
from st_common.query.problem import TextError
from st_common.query.registry import queries, register
from st_common.query.text import parse
from st_common.settings import Columns, StreamSettings

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "query-language.md").read_text(encoding="utf-8")
ATTRIBUTES = {"taxis": {"state": "string", "driver": "string"}, "buses": {"line": "string"}, "ships-dk": {}}
STREAMS = {
    name: StreamSettings(
        name=name, format="csv", columns=Columns(object="id", x="x", y="y"), attributes=ATTRIBUTES[name]
    )
    for name in ATTRIBUTES
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    for name in ("parks", "roads", "stops", "favourites", "reefs"):
        for _ in range(2):  # the first version of a layer is the table without rows
            write_deltalake(home.table("layers", name), pa.table({"fid": ["w1"]}), mode="append")
    return home


@pytest.mark.spec("P4")
def test_the_examples_are_registered_in_the_order_of_the_page(home: Home):
    examples = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) >= 4
    for example in examples:
        register(home, STREAMS, parse(example), owner="reader")
    plans = {row.name: row.plan for row in queries(home)}
    assert {"centre", "the_same_box", "a line, 1", "in_a_park", "near_a_reef", "bunching", "by_hand"} <= set(plans)
    assert "a_box" not in plans
    assert len(plans) == "".join(examples).count("REGISTER QUERY ") - 1
    said = {field.name for field in fields(Plan) for plan in plans.values() if getattr(plan, field.name)}
    assert said == {field.name for field in fields(Plan)}
    assert plans["near_a_reef"].join.distance_m == 926.0
    assert plans["centre"].inside.minx == -8.62


@pytest.mark.spec("P4")
def test_the_wrong_examples_give_the_errors_of_the_page(home: Home):
    pairs = re.findall(r"```sql wrong\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(pairs) == 3
    for wrong, expected in pairs:
        with pytest.raises(TextError) as caught:
            register(home, STREAMS, parse(wrong), owner="reader")
        assert f"{caught.value}\n{caught.value.details}\n" == expected


def test_the_page_lists_every_function():
    listed = re.search(r"\| for \| functions \|\n(.*?)\n\n", PAGE, re.DOTALL)
    assert listed is not None
    assert sorted(re.findall(r"[A-Z0-9_]{2,}", listed[1])) == sorted(FUNCTIONS)
