"""Tags of features as keys of groups: by the version of the layer that counts (SPEC X12)."""

import json
from pathlib import Path

import pytest

from st_common.answers.changes import stream_changes
from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.engine.archive import Archive
from st_common.engine.run import run
from st_common.errors import QueryError
from st_common.geometry.space import PLANE
from st_common.layers.load import load
from st_common.query.builder import query
from st_common.query.plan_json import plan_from_json
from st_common.query.registry import register as register_in
from st_common.query.text import TextError, parse, to_text
from tests.kit.by_hand import end, fix, gone, layer, log, register
from tests.kit.laws import run_steps
from tests.kit.log_writer import bare_log
from tests.kit.oracle_rows import Rules
from tests.kit.roads import JOIN, plan_of, road, told_of
from tests.kit.strategies import Case, Segmentation

pytestmark = pytest.mark.spec("X12")
HOW = [
    {},
    {"cuts": (2, 4, 5)},
    {"cuts": (3, 5), "shards": 3, "restarts": frozenset({0})},
]


ROADS = [
    road("1", 0, name="High Street", lanes="2"),
    road("2", 100, name="High Street", lanes="3"),
    road("3", 200, lanes="2"),
]


def said(row):
    return f"{row['object']} {row['value']:g} {row['cause']}"


def told(rows, layers, **how):
    return told_of(rows, layers, said, **how)


@pytest.mark.parametrize("how", HOW)
def test_groups_are_those_of_the_tag_whatever_the_feature(how):
    plan = plan_of(f"SELECT r.name, COUNT(*) {JOIN} GROUP BY r.name")
    rows = [
        layer("roads", 1),
        register("q", plan, layer_version=1),
        fix("a", 1, 1, 0),
        fix("b", 1, 2, 100),
        fix("c", 1, 2, 200),
        fix("b", 3, 2, 201),
        gone("c", 4),
        end(),
    ]
    assert told(rows, {("roads", 1): ROADS}, **how) == [
        "1 +High Street 2 enter",
        "1 +NULL 1 enter",
        "3 -High Street 2 value",
        "3 +High Street 1 value",
        "3 -NULL 1 value",
        "3 +NULL 2 value",
        "4 -NULL 2 value",
        "4 +NULL 1 value",
    ]


@pytest.mark.parametrize("how", HOW)
def test_another_version_of_the_layer_makes_other_groups_of_who_stays(how):
    plan = plan_of(f"SELECT r.name, COUNT(*) {JOIN} GROUP BY r.name")
    renamed = [road("1", 0, name="Low Street"), *ROADS[1:]]
    rows = [
        layer("roads", 1),
        register("q", plan, layer_version=1),
        fix("a", 1, 1, 0),
        fix("b", 1, 2, 100),
        fix("d", 2, 2, 500),
        layer("roads", 2),
        end(),
    ]
    layers = {("roads", 1): ROADS, ("roads", 2): renamed}
    rows = told(rows, layers, **how)
    assert rows[0] == "1 +High Street 2 enter"
    assert sorted(row.rpartition(" ")[0][2:] for row in rows[1:]) == [
        "+High Street 1",
        "+Low Street 1",
        "-High Street 2",
    ]


def test_several_keys_are_of_objects_and_features():
    text = f"SELECT t.kind, r.lanes AS wide, COUNT(*) AS n {JOIN} GROUP BY t.kind, r.lanes HAVING n > 1"
    plan = plan_of(text)
    rows = [
        layer("roads", 1),
        register("q", plan, layer_version=1),
        fix("a", 1, 1, 0, kind="bus"),
        fix("b", 1, 1, 200, kind="bus"),
        fix("c", 1, 2, 100, kind="bus"),
        end(),
    ]
    case = Case(
        rows=tuple(log(*rows)),
        layers={("roads", 1): ROADS},
        rules=Rules(tick_us=1_000_000),
    )
    changes, _, _ = run_steps(case, Segmentation(cuts=(), batches=()))
    (row,) = changes.to_pylist()
    assert (row["object"], json.loads(row["fields"])) == (
        '["bus","2"]',
        {"kind": "bus", "wide": "2", "n": 2},
    )


@pytest.mark.parametrize(
    ("select", "keys"),
    [
        ("r.name, COUNT(*) {} GROUP BY r.name", ('"other.name"',)),
        ("COUNT(*) {} GROUP BY lower(r.name)", ('LOWER("other.name")',)),
        ("DISTINCT r.kind {}", ('"other.kind"',)),
        ("r.fid, COUNT(*) {} GROUP BY r.fid", ("partner",)),
        (
            "r.fid, r.name, t.kind, COUNT(*) AS n {} GROUP BY r.fid, r.name, t.kind",
            ("partner", '"other.name"', "kind"),
        ),
    ],
)
def test_text_and_json_say_the_same(select, keys):
    plan = plan_of(f"SELECT {select.format(JOIN)}")
    assert plan.aggregate.grouped_by == keys
    (again,) = parse(to_text(plan, "q"))
    assert again.plan == plan
    assert plan_from_json(json.dumps(plan.to_json())) == plan


def test_a_builder_says_the_same():
    joined = query("s").join("roads", "r").on_dwithin(5)
    plan = plan_of(f"SELECT r.name, COUNT(*) {JOIN} GROUP BY r.name")
    assert joined.count().group_by("r.name").plan == plan


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"SELECT COUNT(*) {JOIN} GROUP BY t.kind || r.name", "about the object, or"),
        (f"SELECT COUNT(*) {JOIN} GROUP BY r.name WINDOW 1 hour", "a tag and WINDOW"),
        (
            "SELECT COUNT(*) FROM s [RANGE 1 hour] t JOIN roads r ON ST_DWithin(t, r, 5 m) GROUP BY r.name",
            "GROUP BY a feature and a window in brackets",
        ),
    ],
)
def test_what_has_no_feature_of_now_is_refused(text, message):
    with pytest.raises((QueryError, TextError), match=message):
        plan_from_json(json.dumps(plan_of(text).to_json()))


REPO_CONF = Path(__file__).resolve().parents[2] / "conf"
CONF = """
[streams.cars]
format = "csv"
crs = "planar"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
time_unit = "s"
max_ahead_s = "off"
attributes = { speed = "double km/h" }
"""
TEXT = """
REGISTER QUERY by_name AS SELECT r.name, COUNT(*) FROM cars t JOIN roads r ON ST_DWithin(t, r, 5 m) GROUP BY r.name;
REGISTER QUERY fast AS SELECT r.name, r.maxspeed, t.speed FROM cars t JOIN roads r ON ST_DWithin(t, r, 5 m)
  WHERE t.speed > r.maxspeed;
"""


def test_answers_over_a_loaded_layer_are_verified(tmp_path):
    home = Home(tmp_path)
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF)
    streams = load_streams(tmp_path / "conf")
    street = {"name": "High Street", "maxspeed": "50", "kind": "road"}
    put(home, [street, {**street, "maxspeed": "30 mph"}, {"kind": "road"}])
    register_in(home, streams, parse(TEXT), owner="me")
    fixes = b"a,1,1,0,50\nb,1,2,100,49\nc,1,2,200,90\nz,9,0,900,0\n"
    bare_log(home.log("cars")).append(b"id,t,x,y,speed\n" + fixes, arrival_us=1)
    run(home, streams["cars"], until_idle=True)
    archive = Archive(home, streams["cars"])
    while archive.batch():
        pass
    done = verify(home, streams["cars"])
    assert {one.query: (one.members, one.holds, one.checked) for one in done} == {
        "by_name": (2, True, True),
        "fast": (1, True, True),
    }
    (row,) = stream_changes(home, "cars", "fast").to_pylist()
    assert json.loads(row["fields"]) == {
        "name": "High Street",
        "maxspeed": "30 mph",
        "speed": 49.0,
    }


def put(home, tags):
    """Loads the layer `roads`: a line for each of some tags, from a file as users do."""
    features = [
        {
            "type": "Feature",
            "id": f"{at}",
            "properties": properties,
            "geometry": {
                "type": "LineString",
                "coordinates": [[0, 100 * at], [1000, 100 * at]],
            },
        }
        for at, properties in enumerate(tags)
    ]
    file = home.root / "roads.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    load(home, "roads", file, group="default", conf=REPO_CONF, space=PLANE)
