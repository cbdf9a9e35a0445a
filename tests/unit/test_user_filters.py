"""How long filters of users may take, and what a class of one may be (SPEC B11)."""

import json
import time

import pytest

from st_common.config.filters import FilterSettings, filter_method
from st_common.errors import ConfigError
from st_common.operators.expressions.filters.users import (
    OverrunError,
    UserFilter,
    declared_filters,
    user_filter,
)

HERE = "tests.unit.test_user_filters"


class Alone:
    def filter_tuple(self, _element, _value):
        return True


class Broken:
    def __init__(self):
        raise RuntimeError("no licence")


def of(name, **options):
    return FilterSettings(name="mine", class_=f"{HERE}:{name}", **options)


@pytest.mark.spec("B11")
def test_what_takes_too_long_is_ended_and_not_asked_again_for_a_while():
    by, calls = UserFilter(of("Alone", limit_s=0.1)), []

    def endless():
        calls.append(1)
        while True:
            calls.append(time.monotonic())

    for _ in range(3):
        with pytest.raises(OverrunError):
            by.limited(endless, "x")
    assert calls.count(1) == 1
    time.sleep(0.2)
    count = len(calls)
    time.sleep(0.1)
    assert len(calls) == count, "its thread goes on"
    assert by.limited(lambda: 7, "y") == 7  # another value is another question


@pytest.mark.spec("B11")
def test_what_a_class_raises_comes_out_of_its_thread():
    by = UserFilter(of("Alone"))
    with pytest.raises(ZeroDivisionError):
        by.limited(lambda: 1 // 0, None)
    with pytest.raises(MemoryError):
        by.limited(lambda: (_ for _ in ()).throw(MemoryError()), None)


@pytest.mark.spec("B11")
@pytest.mark.parametrize(
    ("name", "joins", "said"),
    [
        ("Nothing", False, "cannot be loaded: AttributeError"),
        ("Broken", False, "cannot be loaded: RuntimeError: no licence"),
        ("Alone", True, "neither filter_join_candidate nor filter_join_candidates"),
    ],
)
def test_a_class_that_cannot_be_asked_is_named_with_what_to_do(name, joins, said):
    with pytest.raises(ConfigError, match=said) as raised:
        filter_method(of(name), joins=joins)
    assert "mine" in raised.value.message
    assert raised.value.hint


@pytest.mark.spec("B11")
def test_filters_are_known_where_settings_declare_them_and_nowhere_else():
    with declared_filters({"mine": of("Alone")}):
        assert user_filter("mine").settings.class_ == f"{HERE}:Alone"
    with pytest.raises(ConfigError, match="there is no filter 'mine' here"):
        user_filter("mine")


@pytest.mark.spec("B12")
def test_near_and_strict_look_at_the_fix_and_not_at_its_box():
    import shapely

    from st_common.query.comparing import Transform
    from st_common.query.plan import LayerJoin, Plan
    from tests.kit.oracle import Feature
    from tests.unit.test_comparing import matched

    road = Feature(
        "w1", "road", shapely.LineString([(0, 0), (100, 0)]), {"bridge": "yes"}
    )
    places = [(50, 0), (50, 5), (50, 5.5), (50, 40)]

    def found(*steps):
        (pairs,) = matched(
            [
                Plan(
                    stream="s",
                    transforms=(Transform(kind="metres", amount=20.0), *steps),
                    join=LayerJoin(layer="l", predicate="intersects"),
                )
            ],
            places,
            features=[road],
        )
        return [place for place, _ in pairs]

    def step(name, text=None, amount=0.0):
        return Transform(kind="filter", name=name, text=text, amount=amount)

    assert found() == [0, 1, 2]
    assert found(step("geojson_near", amount=5.0)) == [0, 1]
    assert found(step("geojson_near", "bridge:yes", amount=5.5)) == [0, 1, 2]
    assert found(step("geojson_near", "bridge:no", amount=5.5)) == []
    assert found(step("geojson_strict")) == [0]
    assert found(step("geojson_strict", "bridge:yes")) == [0]


@pytest.mark.spec("B12")
def test_a_distance_is_said_and_printed_and_of_one_filter_alone():
    from st_common.errors import QueryError
    from st_common.query.plan_json import plan_from_json
    from st_common.query.printed import select_text
    from st_common.query.text import parse

    join = "SELECT * FROM s JOIN r ON ST_Intersects(s, r)"
    for said, metres in (("'a:b'", 5), ("'a:b', 10 m", 10), ("2 km", 2000)):
        text = f"REGISTER QUERY q AS {join} USING filter('geojson_near', {said});"
        plan = parse(text)[0].plan
        assert [step.amount for step in plan.transforms] == [metres]
        again = parse(f"REGISTER QUERY q AS {select_text(plan)};")[0].plan
        assert again.transforms == plan.transforms
        steps = {"v": 3, "stream": "s", "transforms": [plan.to_json()["transforms"][0]]}
        assert plan_from_json(json.dumps(steps)).transforms == plan.transforms
    steps["transforms"][0]["name"] = "geojson_strict"
    with pytest.raises(QueryError, match="takes no distance"):
        plan_from_json(json.dumps(steps))
