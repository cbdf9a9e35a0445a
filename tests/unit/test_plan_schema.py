"""The published JSON Schema of plans, and what people are told about plans that do not fit it."""

import importlib.util
import json
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from st_common.errors import QueryError
from st_common.query.plan import VERSION, Plan
from st_common.query.plan_json import plan_from_json

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "data_contracts" / "plan.schema.json"


def test_the_published_schema_is_what_the_dataclasses_say():
    spec = importlib.util.spec_from_file_location(
        "plan_schema", ROOT / "tools" / "plan_schema.py"
    )
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert FILE.read_text(encoding="utf-8") == tool.rendered(), (
        "run python tools/plan_schema.py"
    )


def test_the_schema_is_one_of_its_draft_and_names_its_version():
    schema = json.loads(FILE.read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    assert schema["$schema"].endswith("draft/2020-12/schema")
    assert schema["properties"]["v"]["const"] == VERSION == 3
    assert Plan(stream="s").to_json()["v"] == VERSION


def plan(**parts: object) -> str:
    return json.dumps({"v": 3, "stream": "ships", **parts})


@pytest.mark.spec("B14")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("{", "line 1, column 2: this is no JSON"),
        ("[]", "$: [] is not of type 'object'"),
        ('{"v": 3}', "$: 'stream' is a required property"),
        ('{"v": 2, "stream": "ships"}', "$.v: this is version 2 of a plan, not 3"),
        (
            '{"v": 3, "stream": "ships", "stream": "s"}',
            "'stream' stands twice in one object",
        ),
        ('{"v": 3, "stream": "ships", "where": NaN}', "NaN is no number in JSON"),
        (plan(wher="x > 1"), "$: unknown part 'wher' (did you mean where?)"),
        (plan(inside={"kind": "bx"}), "$.inside.kind: 'bx' is not one of ['box',"),
        (
            plan(inside={"kind": "circle", "x": 1, "y": 2}),
            "$.inside: 'radius_m' is a required property",
        ),
        (
            plan(inside={"kind": "circle", "x": "1", "y": 2, "radius_m": -3}),
            "$.inside.radius_m: -3 is less than",
        ),
        (
            plan(inside={"kind": "circle", "x": "1", "y": 2, "radius_m": -3}),
            "$.inside.x: '1' is not of type 'number'",
        ),
        (
            plan(inside={"kind": "area", "wkt": "POLYGON ((0 0, 1 1"}),
            "$.inside: inside(..): this is no WKT",
        ),
        (
            plan(frame={"sliding": [{"range": {"by": "space", "amount": 0}}]}),
            "$.frame.sliding[0].range.amount: 0 is",
        ),
        (plan(frame={"full": True}), "$.frame: "),
        (
            plan(transforms=[{"kind": "key", "text": "a"}, {"kind": "key"}]),
            "$.transforms[1]: 'text' is a required",
        ),
        (
            plan(transforms=[{"kind": "filter", "name": "key"}]),
            "filter 'key': it needs the id of an object",
        ),
        (
            plan(neighbours={"kind": "nearest", "k": 1.5, "place": {"focal": "a"}}),
            "$.neighbours.k: 1.5 is not of type",
        ),
        (plan(window={"seconds": 1, "tuples": 2}), "$.window: "),
        (plan(columns=[["a"]]), "$.columns[0]: ['a'] is too short"),
        (
            plan(join={"layer": "l", "predicate": "equals", "left": "a"}),
            "$.join: 'right' is a required property",
        ),
        (plan(where="sped( x) > 1"), "$.where: where(..):1:1: unknown function SPED"),
        (
            plan(where="x > 1; DROP QUERY a"),
            "$.where: where(..):1:6: an expression has no ';'",
        ),
        (
            plan(valid_until=True),
            "$.valid_until: valid_until(): WITH VALID UNTIL needs INSIDE",
        ),
        (
            plan(aggregate={"function": "avgspd"}),
            "$.aggregate: average_speed(): AVGSPD needs a window",
        ),
    ],
)
def test_what_is_wrong_is_told_with_its_place(text: str, says: str):
    with pytest.raises(QueryError) as caught:
        plan_from_json(text)
    assert says in str(caught.value)


def test_a_plan_is_brought_to_its_canonical_form():
    written = plan(
        inside={"kind": "box", "minx": 5, "miny": 6, "maxx": 1, "maxy": 2},
        where="lower(line)='a'  and 1<x",
        join={"layer": "parks", "predicate": "intersects", "kinds": ["b", "a", "b"]},
    )
    assert plan_from_json(written).to_json() == {
        "v": 3,
        "stream": "ships",
        "inside": {"kind": "box", "minx": 1.0, "miny": 2.0, "maxx": 5.0, "maxy": 6.0},
        "join": {"layer": "parks", "predicate": "intersects", "kinds": ("a", "b")},
        "where": "LOWER(line) = 'a' AND 1 < x",
    }
