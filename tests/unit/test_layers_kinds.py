"""Kinds by tags: the first rule that matches."""

from pathlib import Path

import pytest

from st_common.errors import ConfigError
from st_common.layers.kinds import Kinds, Rule, load_kinds

CONF = Path(__file__).resolve().parents[2] / "conf"
RULES = Kinds(
    (
        Rule(
            kind="forest",
            geometry="area",
            tags=(("landuse", "forest"), ("natural", "wood")),
        ),
        Rule(kind="green", geometry="area", tags=(("landuse", None),)),
        Rule(kind="road", geometry="line", tags=(("highway", None),)),
    )
)


@pytest.mark.parametrize(
    ("tags", "geometry", "kind"),
    [
        ({"natural": "wood"}, "area", "forest"),
        ({"landuse": "forest"}, "area", "forest"),
        ({"landuse": "grass"}, "area", "green"),
        ({"landuse": "forest"}, "line", None),
        ({"highway": "path", "landuse": "grass"}, "line", "road"),
        ({"highway": "path", "landuse": "grass"}, "area", "green"),
        ({}, "area", None),
    ],
)
def test_the_first_rule_of_the_geometry_that_matches_names_the_kind(
    tags, geometry, kind
):
    assert RULES.of(tags, geometry) == kind


def test_without_its_rule_a_feature_falls_to_the_next_one():
    assert RULES.only(["green"]).of({"landuse": "forest"}, "area") == "green"
    assert RULES.only(None) is RULES
    with pytest.raises(ConfigError, match=r"no kind 'fores'.*did you mean 'forest'"):
        RULES.only(["fores"])


def test_the_delivered_rules_name_the_kinds_of_a_city():
    kinds = load_kinds(CONF)
    names = {rule.kind for rule in kinds.rules}
    assert {"road", "forest", "park", "building", "water", "stop"} <= names
    assert kinds.of({"highway": "bus_stop"}, "point") == "stop"
    assert kinds.of({"highway": "bus_stop"}, "line") == "road"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[kinds.a]\ngeometry='blob'\ntags=['x']",
            "kind 'a': geometry = 'blob' is none of area, line",
        ),
        (
            "[kinds.a]\ngeometry='area'\ntags=[]",
            r"kind 'a': tags = \[\] must be a list",
        ),
        ("[kinds.a]\ngeometry='area'\ntags=['']", "has an empty tag"),
        ("[kinds.a]\ngeometry='area'", "kind 'a': tags is missing"),
        (
            "[kinds.a]\ngeometry='area'\ntag=['x']",
            "unknown key 'tag'.*did you mean 'tags'",
        ),
        ("[kind.a]\ngeometry='area'", "unknown key 'kind'.*did you mean 'kinds'"),
        ("[kinds]\na=1", "kind 'a': 1 is no table"),
        ("", "names no kinds"),
        ("[kinds", "cannot be read: Expected"),
    ],
)
def test_a_wrong_file_of_rules_is_an_error_that_names_the_place(
    tmp_path, text, message
):
    (tmp_path / "layers.toml").write_text(text)
    with pytest.raises(ConfigError, match=message):
        load_kinds(tmp_path)


def test_a_folder_without_rules_has_those_that_came_with_the_package(tmp_path):
    assert load_kinds(tmp_path) == load_kinds(CONF)


def test_a_folder_that_somebody_named_and_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere cannot be read"):
        load_kinds(tmp_path / "nowhere")
