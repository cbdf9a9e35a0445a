"""A layer that is loaded anew: queries inside one of its features go over to the new surface, or fail."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import shapely
from typer.testing import CliRunner

from jobs import load_layer
from st_common.answers.answers import answer
from st_common.answers.changes import stream_changes
from st_common.checks.verify import verify
from st_common.checks.why import why
from st_common.cli import app
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.archive import Archive
from st_common.engine.local import LocalEngine
from st_common.errors import ConfigError
from st_common.geometry.space import GLOBE, PLANE, Space
from st_common.layers.load import load
from st_common.log.log import Log
from st_common.query import commit
from st_common.query.area_store import HomeAreas, areas
from st_common.query.layer_following import follow_layers
from st_common.query.lookup import history, queries
from st_common.query.plan import Plan
from st_common.query.printed import to_text
from st_common.query.problem import TextError
from st_common.query.registry import carry_out
from st_common.query.text import parse
from st_common.regions.registry import Area, region_from_json, region_to_json
from tests.kit.by_hand import fix, log, register
from tests.kit.log_writer import bare_log
from tests.kit.telling import by_both

CONF = Path(__file__).resolve().parents[2] / "conf"
T0 = round(datetime(2026, 5, 1, 12, tzinfo=UTC).timestamp())
pytestmark = pytest.mark.spec("X4", "P4")

OLD, NEW = shapely.box(0, 0, 10, 10), shapely.box(5, 0, 15, 10)
TREES = shapely.box(40, 40, 41, 41)


def stream_of(name: str, crs: str = "planar") -> StreamSettings:
    columns = Columns(object="id", event_ts="t", x="x", y="y")
    return StreamSettings(
        name=name,
        format="csv",
        columns=columns,
        crs=crs,
        time_unit="s",
        max_ahead_s=None,
        engine="local",
    )


STREAMS = {name: stream_of(name) for name in ("taxis", "ships")}


def surface(shape: shapely.Geometry, fid: str = "w1") -> Area:
    wkt = Area.of_wkt(shapely.to_wkt(shape, rounding_precision=-1)).wkt
    return Area(wkt=wkt, layer="parks", fid=fid)


def put(home: Home, space: Space = PLANE, /, **shapes: shapely.Geometry) -> None:
    """Loads the layer `parks` with these features, from a file as users do."""
    features = [
        {
            "type": "Feature",
            "id": fid,
            "properties": {"kind": "park"},
            "geometry": shapely.geometry.mapping(shape),
        }
        for fid, shape in shapes.items()
    ]
    file = home.root / "parks.geojson"
    file.write_text(json.dumps({"type": "FeatureCollection", "features": features}))
    load(home, "parks", file, group="default", conf=CONF, space=space)


def follow(home: Home) -> list[tuple[str, str, int]]:
    rows = follow_layers(home, lambda: STREAMS, now_us=9)
    return [(row.op, row.name, row.version) for row in rows]


def do(home: Home, text: str):
    said = parse(text, areas=HomeAreas(home))
    return carry_out(home, STREAMS, said, owner="ada", now_us=7)


def insides(home: Home) -> dict[str, object]:
    return {row.name: row.plan.inside for row in queries(home) if row.plan}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    put(home, w1=OLD, w2=TREES)
    return home


def test_queries_in_a_feature_go_over_to_its_new_surface_in_their_version(home: Home):
    do(home, "REGISTER QUERY a AS SELECT * FROM taxis INSIDE FEATURE (Parks, 'w1')")
    do(home, "REGISTER QUERY b AS SELECT * FROM ships INSIDE FEATURE (parks, 'w2')")
    do(home, "CREATE AREA park AS FEATURE (parks, 'w1')")
    do(home, "REGISTER QUERY c AS SELECT * FROM ships INSIDE park DETECT ENTER")
    put(home, w1=NEW, w2=TREES)
    assert follow(home) == [("follow", "a", 1), ("follow", "c", 1)]
    new = surface(NEW)
    assert insides(home) == {"a": new, "b": surface(TREES, "w2"), "c": new}
    assert [one.region for one in areas(home)] == [new]
    assert [(row.op, row.layer) for row in history(home, "a")] == [
        ("register", None),
        ("follow", "parks"),
    ]
    assert follow(home) == []
    do(home, "REGISTER QUERY d AS SELECT * FROM taxis INSIDE park")
    assert insides(home)["d"] == new


@pytest.mark.spec("X12")
def test_a_feature_in_and_or_not_follows_its_layer_and_suspends_when_it_is_gone(
    home: Home,
):
    do(home, "CREATE AREA rest AS (NOT FEATURE (parks, 'w1'))")
    do(home, "REGISTER QUERY a AS SELECT * FROM taxis INSIDE ((0, 0, 50, 50) AND rest)")
    do(home, "REGISTER QUERY b AS SELECT * FROM taxis NOT INSIDE FEATURE (parks, 'w2')")
    put(home, w1=NEW, w2=TREES)
    assert follow(home) == [("follow", "a", 1)]
    assert list(insides(home)["a"].leaves())[1:] == [surface(NEW)]
    assert [list(one.region.leaves()) for one in areas(home)] == [[surface(NEW)]]
    assert [(row.op, row.layer) for row in history(home, "a")][1:] == [
        ("follow", "parks")
    ]
    put(home, w1=NEW)
    assert follow(home) == [("fail", "b", 1)]


def test_a_query_whose_feature_is_gone_is_suspended_and_says_why(home: Home):
    do(home, "CREATE AREA park AS FEATURE (parks, 'w1')")
    do(home, "REGISTER QUERY a AS SELECT * FROM taxis INSIDE FEATURE (parks, 'w1')")
    do(home, "REGISTER QUERY b AS SELECT * FROM taxis INSIDE park")
    do(home, "REGISTER QUERY c AS SELECT * FROM taxis INSIDE FEATURE (parks, 'w2')")
    put(home, w1=shapely.LineString([(0, 0), (9, 9)]), w2=NEW)
    assert follow(home) == [("fail", "a", 1), ("fail", "b", 1), ("follow", "c", 1)]
    why_not = "layer parks has no feature 'w1' that covers anything"
    assert [(row.state, row.why) for row in queries(home)] == [
        ("failed", why_not),
        ("failed", why_not),
        ("registered", None),
    ]
    with pytest.raises(TextError, match=f"{why_not}.*loaded anew without it"):
        do(home, "REGISTER QUERY d AS SELECT * FROM taxis INSIDE park")
    put(home, w1=OLD, w2=NEW)
    assert follow(home) == []  # it comes back for new queries alone
    do(home, "REPLACE QUERY a AS SELECT * FROM taxis INSIDE park")
    assert [row.state for row in queries(home)] == [
        "registered",
        "failed",
        "registered",
    ]


@pytest.mark.parametrize(
    "query",
    [
        "SELECT * FROM taxis [RANGE BY FEATURE (parks, 'w1') RATTR SPACE]",
        "SELECT * FROM taxis INSIDE FEATURE (parks, 'w1') EMIT CHANGES WITH VALID UNTIL",
    ],
)
def test_what_cannot_go_on_over_another_surface_begins_anew(home: Home, query: str):
    do(home, f"REGISTER QUERY a AS {query}")
    put(home, w1=NEW)
    assert follow(home) == [("replace", "a", 2)]
    plan = queries(home)[0].plan
    region = plan.inside if plan.frame is None else plan.frame.regions[0]
    assert region == surface(NEW)


def test_what_was_read_before_the_load_and_registered_after_it_has_the_new_surface(
    home: Home,
):
    text = "REGISTER QUERY a AS SELECT * FROM taxis INSIDE FEATURE (parks, 'w1')"
    said = parse(
        f"{text}; CREATE AREA b AS FEATURE (parks, 'w1')", areas=HomeAreas(home)
    )
    put(home, w1=NEW)
    assert follow(home) == []
    carry_out(home, STREAMS, said, owner="ada")
    assert insides(home) == {"a": surface(NEW)}
    assert [one.region for one in areas(home)] == [surface(NEW)]


def test_a_stream_without_settings_is_named_and_all_others_follow(home: Home):
    do(home, "REGISTER QUERY a AS SELECT * FROM taxis INSIDE FEATURE (parks, 'w1')")
    do(home, "REGISTER QUERY b AS SELECT * FROM ships INSIDE FEATURE (parks, 'w1')")
    put(home, w1=NEW)
    with pytest.raises(ConfigError, match="queries of unknown streams: b on ships"):
        follow_layers(home, lambda: {"taxis": STREAMS["taxis"]})
    assert insides(home) == {"a": surface(NEW), "b": surface(OLD)}
    assert follow(home) == [("follow", "b", 1)]


def test_a_surface_that_a_query_cannot_have_suspends_it(home: Home):
    across = shapely.union_all(
        [shapely.box(170, 0, 180, 1), shapely.box(-180, 0, -170, 1)]
    )
    text = "REGISTER QUERY a AS SELECT * FROM taxis INSIDE FEATURE (parks, 'w1')"
    said = parse(f"{text} EMIT CHANGES WITH VALID UNTIL", areas=HomeAreas(home))
    streams = {"taxis": stream_of("taxis", "EPSG:4326")}
    carry_out(home, streams, said, owner="ada")
    put(home, GLOBE, w1=across)
    (row,) = follow_layers(home, lambda: streams)
    assert (row.op, row.name) == ("fail", "a")
    assert "it cannot follow its layer" in row.why


@pytest.mark.parametrize("number", [1, 2])
def test_a_writer_that_dies_half_way_leaves_all_or_nothing(
    home: Home, monkeypatch: pytest.MonkeyPatch, number: int
):
    for name, stream in (("a", "taxis"), ("b", "ships")):
        do(
            home,
            f"REGISTER QUERY {name} AS SELECT * FROM {stream} INSIDE FEATURE (parks, 'w1')",
        )
    put(home, w1=NEW)
    calls, real = 0, Log.append

    def append(self: Log, payload: bytes, **options: object) -> object:
        nonlocal calls
        calls += 1
        if calls == number:
            raise KeyboardInterrupt
        return real(self, payload, **options)

    with monkeypatch.context() as dying:
        dying.setattr(Log, "append", append)
        with pytest.raises(KeyboardInterrupt):
            follow(home)
    assert insides(home) == {"a": surface(NEW), "b": surface(NEW)}
    assert not commit.unfinished(home)
    assert follow(home) == []


def test_a_feature_is_printed_as_one_and_is_the_same_as_json(home: Home):
    plan = Plan(stream="taxis", inside=surface(OLD))
    text = to_text(plan, "q")
    assert text.endswith("INSIDE FEATURE (\"parks\", 'w1')")
    (said,) = parse(text, areas=HomeAreas(home))
    assert said.plan == plan
    assert Plan.from_json(plan.to_json()) == plan
    assert region_from_json(region_to_json(surface(OLD))) == surface(OLD)


SETTINGS = """
[streams.taxis]
format = "csv"
columns = { object = "id", x = "x", y = "y" }
"""


def test_the_command_and_the_job_say_which_queries_followed_and_which_cannot(
    home: Home, capsys: pytest.CaptureFixture
):
    (home.root / "conf").mkdir()
    (home.root / "conf" / "streams.toml").write_text(SETTINGS)
    (home.root / "conf" / "layers.toml").write_text((CONF / "layers.toml").read_text())
    for name, fid in (("a", "w1"), ("b", "w2")):
        text = f"REGISTER QUERY {name} AS SELECT * FROM taxis INSIDE FEATURE (parks, '{fid}')"
        do(home, text)
    put(home, w1=NEW)  # the loader alone tells no query
    places = [f"--home={home.root}", f"--conf={home.root / 'conf'}"]
    file = str(home.root / "parks.geojson")
    assert load_layer.main(["parks", file, "--engine=local", *places]) == 0
    said = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (said["followed"], said["suspended"]) == (["a"], ["b"])
    put(home, w1=OLD)
    said = CliRunner().invoke(app, [*places, "layer", "load", "parks", file])
    assert said.stdout.endswith("other regions for a\n")
    put(home, w2=OLD)
    said = CliRunner().invoke(app, [*places, "layer", "load", "parks", file])
    assert "query a is suspended: layer parks has no feature 'w1'" in said.stderr


@pytest.mark.spec("B15")
def test_a_query_about_a_row_whose_time_has_come_is_suspended_by_maintenance(
    home: Home,
):
    (home.root / "conf").mkdir()
    (home.root / "conf" / "streams.toml").write_text(SETTINGS)
    bridge = "POLYGON ((0 0, 9 0, 9 9, 0 0))"
    for words in (
        ["table", "create", "closed", "--key", "name", "--ttl", "1 ms"],
        ["table", "put", "closed", "name=bridge", "--geometry", bridge],
        [
            "query",
            "register",
            "--text",
            "REGISTER QUERY a AS SELECT * FROM taxis INSIDE FEATURE (closed, 'bridge')",
        ],
        ["maintain"],
    ):
        done = CliRunner().invoke(
            app, [f"--home={home.root}", f"--conf={home.root / 'conf'}", *words]
        )
        assert done.exit_code == 0, done.stderr
    (row,) = queries(home)
    why_not = "layer closed has no feature 'bridge' that covers anything"
    assert (row.state, row.why) == ("failed", why_not)


def at(*rows: tuple[str, int, float]) -> bytes:
    lines = [f"{name},{T0 + second},{x},5" for name, second, x in rows]
    return "\n".join(["id,t,x,y", *lines]).encode()


def run(home: Home, engine: LocalEngine) -> None:
    while engine.batch():
        pass


@pytest.fixture
def judged(home: Home) -> Home:
    """Cars at 3, 7 and 13 when the park goes from 0 .. 10 to 5 .. 15; then the one at 13 goes to 20, and it is gone."""
    park = "INSIDE FEATURE (parks, 'w1')"
    do(
        home,
        f"REGISTER QUERY now AS SELECT * FROM taxis {park};"
        f"REGISTER QUERY many AS SELECT COUNT(*) FROM taxis {park};"
        f"REGISTER QUERY lately AS SELECT * FROM taxis {park} WINDOW 1 hour;"
        f"REGISTER QUERY near AS SELECT * FROM taxis {park} KNN (2, 0, 5);"
        f"REGISTER QUERY gate AS SELECT * FROM taxis {park} DETECT ENTER, EXIT, DWELL 8 s",
    )
    engine = LocalEngine(home, STREAMS["taxis"])
    records = bare_log(home.log("taxis"))
    records.append(at(("c3", 0, 3), ("c7", 1, 7), ("c13", 2, 13)), arrival_us=0)
    run(home, engine)
    put(home, w1=NEW)
    assert len(follow(home)) == 5
    records.append(at(("c13", 6, 20), ("c3", 12, 3)), arrival_us=0)
    run(home, engine)
    engine.close()
    archive = Archive(home, STREAMS["taxis"])
    while archive.batch():
        pass
    return home


def lines(home: Home, query: str) -> list[str]:
    signs = {1: "+", -1: "-", 0: "0"}
    rows = stream_changes(home, "taxis", query).to_pylist()
    return [
        f"{row['event_ts'].second} {signs[row['sign']]}{row['object']} {row['cause']}"
        for row in rows
    ]


@pytest.mark.spec("X3")
def test_who_is_no_longer_in_the_feature_leaves_and_who_is_now_comes(judged: Home):
    assert lines(judged, "now") == [
        *("0 +c3 enter", "1 +c7 enter", "2 +c13 layer", "2 -c3 layer", "6 -c13 leave")
    ]
    assert lines(judged, "gate") == [
        *("0 +c3 enter", "1 +c7 enter", "2 +c13 layer", "2 -c3 layer", "6 -c13 leave"),
        "9 0c7 dwell",
    ]
    assert "2 -c3 layer" in lines(judged, "near")
    for each in verify(judged, STREAMS["taxis"]):
        assert each.holds, each
    assert answer(judged, "now")["object"].to_pylist() == ["c7"]


@pytest.mark.spec("X5")
def test_why_says_that_the_layer_was_loaded_anew(judged: Home):
    gone = why(judged, "now", "c3", stream=STREAMS["taxis"])
    assert "parks was loaded anew, and w1 is another region: " in gone.sentence
    assert "c3 now does not satisfy version 1 of now" in gone.sentence
    assert "inside feature w1 of parks" in gone.sentence
    assert gone.registered.plan.inside == surface(NEW)


@pytest.mark.spec("X1")
def test_members_of_a_query_whose_feature_is_gone_leave_with_the_cause_failed(
    judged: Home,
):
    put(judged, w2=TREES)
    assert {op for op, _, _ in follow(judged)} == {"fail"}
    engine = LocalEngine(judged, STREAMS["taxis"])
    run(judged, engine)
    engine.close()
    assert lines(judged, "now")[-1] == "12 -c7 failed"
    assert len(answer(judged, "now")) == 0


@pytest.mark.spec("X3")
def test_rows_that_follow_an_area_and_a_layer_side_by_side_have_their_own_cause():
    plans = [Plan(stream="cars", inside=surface(shape)) for shape in (OLD, NEW)]
    rows = [register("f", plans[0]), register("g", plans[0]), fix("a", 1, 3, 5)]
    rows.append(register("f", plans[1], op="follow"))
    rows.append(register("g", plans[1], op="follow", layer="parks"))
    told = [(one.query, one.sign, one.cause) for one in by_both(log(*rows))]
    assert told[2:] == [("f", -1, "area"), ("g", -1, "layer")]
