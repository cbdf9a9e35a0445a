"""The examples of docs/query-language.md do what the page says."""

import re
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import write_deltalake

from st_common.home import Home
from st_common.query.problem import TextError
from st_common.query.registry import queries, register
from st_common.query.text import parse
from st_common.settings import Columns, StreamSettings

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "query-language.md").read_text(encoding="utf-8")
STREAMS = {
    name: StreamSettings(name=name, format="csv", columns=Columns(object="id", x="x", y="y"))
    for name in ("taxis", "ships-dk")
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    for name in ("parks", "roads", "reefs"):
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
    assert set(plans) == {
        "centre", "the_same_box", "a line, 1", "in_a_park", "in_the_woods", "on_a_road", "near_a_reef"
    }  # fmt: skip
    assert plans["near_a_reef"].join.distance_m == 926.0
    assert plans["centre"].inside.minx == -8.62


@pytest.mark.spec("P4")
def test_the_wrong_examples_give_the_errors_of_the_page(home: Home):
    pairs = re.findall(r"```sql wrong\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(pairs) == 2
    for wrong, expected in pairs:
        with pytest.raises(TextError) as caught:
            register(home, STREAMS, parse(wrong), owner="reader")
        assert f"{caught.value}\n{caught.value.details}\n" == expected
