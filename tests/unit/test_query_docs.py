"""The examples of docs/query-language.md do what the page says."""

import re
from dataclasses import fields
from pathlib import Path

import pyarrow as pa
import pytest
import shapely

from st_common import tables
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.contracts import load_contract
from st_common.query.area_store import HomeAreas
from st_common.query.fence import Debounce, Fence
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.lookup import queries
from st_common.query.lowering.functions import FUNCTIONS
from st_common.query.plan import Plan
from st_common.query.problem import TextError
from st_common.query.registry import Outcome, carry_out, check
from st_common.query.text import parse
from st_common.regions.registry import MovingCircle

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "query-language.md").read_text(
    encoding="utf-8"
)
PAGE_OF_OTHERS = Path(__file__).resolve().parents[2] / "docs" / "coming-from.md"
ATTRIBUTES = {
    "taxis": {"state": "string", "driver": "string"},
    "buses": {"line": "string"},
    "trucks": {"type": "string"},
    "ships-dk": {},
}
GROUPS = {"buses": "metro", "roads": "metro", "ships-dk": "sea", "reefs": "sea"}
STREAMS = {
    name: StreamSettings(
        name=name,
        format="csv",
        columns=Columns(object="id", x="x", y="y"),
        attributes=ATTRIBUTES[name],
        group=GROUPS.get(name, "default"),
    )
    for name in ATTRIBUTES
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home, contract = Home(tmp_path), load_contract("layers")
    for name in ("parks", "roads", "stops", "favourites", "reefs", "routes"):
        row = {
            "region_id": "0",
            "minx": -8.62,
            "miny": 41.14,
            "maxx": -8.61,
            "maxy": 41.15,
            "home": True,
            "fid": "w1",
            "kind": "park",
            "tags": [("name", "a"), ("line:ref", "b")],
            "geometry": shapely.to_wkb(shapely.box(-8.62, 41.14, -8.61, 41.15)),
            "region_group": GROUPS.get(name, "default"),
        }
        rows = pa.Table.from_pylist([row], schema=contract.arrow_schema())
        tables.replace(home.table("layers", name), rows, contract)
    return home


def done(home: Home, text: str) -> Outcome:
    return carry_out(
        home,
        STREAMS,
        parse(text, areas=HomeAreas(home, lambda: STREAMS)),
        owner="reader",
    )


@pytest.mark.spec("P4")
def test_the_examples_are_registered_in_the_order_of_the_page(home: Home):
    examples = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
    assert len(examples) >= 4
    outcomes = [done(home, example) for example in examples]
    plans = {row.name: row.plan for row in queries(home)}
    assert {
        "centre",
        "the_same_box",
        "a line, 1",
        "in_a_park",
        "near_a_reef",
        "bunching",
        "by_hand",
    } <= set(plans)
    assert "a_box" not in plans
    text = "".join(examples)
    created = text.count("CREATE STREAM ")
    assert len(plans) == text.count("REGISTER QUERY ") + created - 1
    said = {
        field.name
        for field in fields(Plan)
        for plan in plans.values()
        if getattr(plan, field.name)
    }
    assert said == {field.name for field in fields(Plan)}
    assert plans["near_a_reef"].join.distance_m == 926.0
    assert plans["centre"].inside.minx == -8.62
    assert plans["depot"].fence == Fence(
        events=("enter", "exit", "dwell"),
        dwell_s=300.0,
        enter_after=Debounce(fixes=2),
        exit_after=Debounce(fixes=2),
        hysteresis_m=50.0,
    )
    assert plans["near_me"].inside == MovingCircle(focal="car7", radius_m=500.0)
    assert plans["city_park"].inside is not None
    assert {type(each).__name__ for one in outcomes for each in one.shown} == {
        "Asked",
        "ShownAreas",
        "ShownQueries",
        "ShownStreams",
        "ShownTables",
        "Explained",
    }
    assert {"'Truck'", "'mytruck'"} <= {
        word for one in outcomes for each in one.notices for word in str(each).split()
    }


@pytest.mark.spec("P4", "W2", "W3", "W6", "W7")
def test_the_windows_of_the_page_are_what_it_says(home: Home):
    for example in re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL):
        done(home, example)
    plans = {row.name: row.plan for row in queries(home)}
    km50, km10 = (
        Extent(by="space", amount=50_000.0),
        Extent(by="space", amount=10_000.0),
    )
    assert (
        plans["every_10_km"].frame
        == plans["each_10_km"].frame
        == Frame(sliding=(Sliding(range=km50, slide=km10),))
    )
    assert plans["last_5_km"].frame.sliding[0].slide is None
    hour, ten = Extent(by="time", amount=3600.0), Extent(by="time", amount=600.0)
    assert plans["last_hour"].frame == Frame(sliding=(Sliding(range=hour, slide=ten),))
    assert plans["trail"].frame.regions == (plans["in_town"].inside,)
    assert [name for name, _ in plans["trail"].columns] == ["x", "y", "event_ts"]
    by_way = plans["hourly_by_way"].frame
    assert (by_way.full, by_way.min_step_m, by_way.origin_s) == (
        True,
        10.0,
        1_767_225_600.0,
    )
    assert [plans[name].emit for name in ("came", "went", "each_10_km")] == [
        "istream",
        "dstream",
        "rstream",
    ]


@pytest.mark.spec("P4")
def test_the_wrong_examples_give_the_errors_of_the_page(home: Home):
    pairs = re.findall(r"```sql wrong\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL)
    assert len(pairs) == 5
    for wrong, expected in pairs:
        with pytest.raises(TextError) as caught:
            done(home, wrong)
        assert f"{caught.value}\n{caught.value.details}\n" == expected


@pytest.mark.spec("X10")
def test_the_examples_that_know_what_came_before_are_right_for_their_streams(
    home: Home,
):
    examples = re.findall(r"```sql from\n(.*?)```", PAGE, re.DOTALL)
    statements = [one for example in examples for one in parse(example)]
    assert [one.beginning is not None for one in statements] == [True, True]
    assert check(home, STREAMS, statements) == ()


def test_the_page_lists_every_function():
    listed = re.search(r"\| for \| functions \|\n(.*?)\n\n", PAGE, re.DOTALL)
    assert listed is not None
    assert sorted(re.findall(r"[A-Z0-9_]{2,}", listed[1])) == sorted(FUNCTIONS)


@pytest.mark.spec("P4")
def test_what_people_write_elsewhere_can_be_said(home: Home):
    page = PAGE_OF_OTHERS.read_text(encoding="utf-8")
    examples = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    asked = sum(len(done(home, example).shown) for example in examples)
    named = set(re.findall(r"REGISTER QUERY (\w+)", "".join(examples)))
    assert {row.name for row in queries(home)} == named
    assert asked == 2
    spoken_of = re.findall(r": `(\w+)`(?: above)? \|$", page, re.MULTILINE)
    assert set(spoken_of) <= named
