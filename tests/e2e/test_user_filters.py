"""Classes of users as filters of queries, as an operator names them and a user asks by them (SPEC B11)."""

import json
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from st_common import tables
from st_common.answers.answers import answer
from st_common.answers.changes import stream_changes
from st_common.cli import app
from st_common.config.home import Home
from st_common.operations.alerts import read_alerts
from st_common.server.installation import Installation
from tests.kit.doc_blocks import blocks
from tests.kit.log_writer import bare_log
from tests.kit.server_http import served

CONF = """
[streams.taxis]
format = "csv"
crs = "planar"
time_unit = "s"
max_ahead_s = "off"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
attributes = { load = "double" }
"""
FILTERS = """
[filters.thirds]
class = "tests.kit.user_filters:Thirds"
[filters.loaded]
class = "tests.kit.user_filters:Loaded"
[filters.picky]
class = "tests.kit.user_filters:Picky"
[filters.slow]
class = "tests.e2e.test_user_filters:Slow"
limit_s = 0.3
"""
GOOD = "REGISTER QUERY good AS SELECT * FROM taxis INSIDE (0, 0, 10, 10);"
FIRST = b"id,t,x,y,load\na,1,1,5,1\nb,1,2,5,2\nc,1,4,5,3\n"
LATER = b"id,t,x,y,load\na,3,4,5,2\nd,3,7,5,9\n"
LAYER = """{"type": "FeatureCollection", "features": [
{"type": "Feature", "id": "p", "properties": {"kind": "park"},
 "geometry": {"type": "Polygon", "coordinates": [[[0, 0], [9, 0], [9, 9], [0, 9], [0, 0]]]}}]}"""


class Slow:
    """Never says anything of what the value names; what it says of others it says at once."""

    def filter_tuple(self, element, value):
        while element.object == value:
            time.sleep(0.01)
        return True


class Sleeping:
    """Takes a whole table, and waits in C, where no exception reaches it before it is over."""

    def filter_tuples(self, batch, value):
        time.sleep(float(value))
        return [True] * len(batch)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Home:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF, encoding="utf-8")
    (tmp_path / "conf" / "filters.toml").write_text(FILTERS, encoding="utf-8")
    monkeypatch.setenv("FAIRWAY_HOME", str(tmp_path))
    monkeypatch.delenv("FAIRWAY_CONF", raising=False)
    monkeypatch.chdir(tmp_path)
    return Home(tmp_path)


def fairway(*args: str, code: int = 0):
    done = CliRunner().invoke(app, list(args), prog_name="fairway")
    assert done.exit_code == code, f"{args}: {done.output}{done.stderr}"
    return done


def register(text: str, code: int = 0):
    return fairway("query", "register", "--text", text, code=code)


def append(home: Home, payload: bytes, at: int) -> None:
    bare_log(home.log("taxis")).append(payload, arrival_us=at * 1_000_000)


def answers(home: Home, query: str) -> list[str]:
    return sorted(answer(home, query)["object"].to_pylist())


def asking(using: str) -> str:
    return f"REGISTER QUERY mine AS SELECT * FROM taxis INSIDE (0, 0, 10, 10) USING {using};"


@pytest.mark.spec("B11")
def test_all_filters_of_a_query_must_pass_and_checks_ask_the_same_classes(home):
    register(GOOD + asking("thirds('1'), loaded('1.5')"))
    append(home, FIRST, 2)
    append(home, LATER, 4)
    fairway("run", "taxis", "--until-idle")
    assert answers(home, "good") == ["a", "b", "c", "d"]
    # thirds: no x of 1, 4, 7; loaded: more than 1.5, or a name with an a
    assert answers(home, "mine") == ["b"]
    verified = fairway("verify", "mine").stdout
    assert "WRONG" not in verified
    assert "mine" in verified
    assert "USING" in fairway("query", "show", "mine").stdout
    assert "enter" in fairway("why", "mine", "b").stdout


@pytest.mark.spec("B11")
def test_closed_days_are_processed_and_queries_tried_on_them_by_the_same_classes(home):
    register(GOOD + asking("thirds('1')"))
    append(home, FIRST, 2)
    append(home, b"id,t,x,y,load\nb,200000,4,5,1\n", 200_001)
    fairway("run", "taxis", "--until-idle")
    (home.root / "other.sql").write_text(asking("thirds('0'), picky('none')"))
    asked = ("backtest", "other.sql", "--stream", "taxis", "--json")
    tried = [json.loads(line) for line in fairway(*asked).stdout.splitlines()]
    assert [day["objects"] for day in tried] == [3, 3]
    fairway("reprocess", "taxis")
    visits = tables.read(home.table("visits", "taxis")).to_pylist()
    assert [row["object"] for row in visits if row["query"] == "mine"] == ["b"]
    select = "SELECT * FROM taxis USING thirds('1') AS OF '1970-01-01T12:00Z'"
    shown = fairway("query", "run", "--text", select, "--json").stdout
    assert [json.loads(line)["object"] for line in shown.splitlines()] == ["b"]


@pytest.mark.spec("B11")
def test_a_stream_of_the_rows_of_a_query_has_the_same_filters(home):
    register(
        "CREATE STREAM heavy AS SELECT object, x, y, load FROM taxis WHERE load > 1;"
        " REGISTER QUERY mine AS SELECT * FROM heavy USING thirds('1');"
    )
    append(home, FIRST, 2)
    fairway("run", "taxis", "--until-idle")
    fairway("capture", "heavy")
    fairway("run", "heavy", "--until-idle")
    assert answers(home, "mine") == ["b"]


@pytest.mark.spec("B11", "S3")
def test_a_class_that_raises_stops_its_query_alone_and_says_for_which_row(home):
    register(GOOD + asking("picky('d')"))
    append(home, FIRST, 2)
    append(home, LATER, 4)
    fairway("run", "taxis", "--until-idle")
    causes = [
        (row["object"], row["cause"])
        for row in stream_changes(home, "taxis", "mine").to_pylist()
    ]
    assert causes == [(one, "enter") for one in "abc"] + [
        (one, "failed") for one in "abc"
    ]
    assert answers(home, "good") == ["a", "b", "c", "d"]
    (alert,) = [one for one in read_alerts(home) if one.level == "error"]
    assert (
        "filter picky (tests.kit.user_filters:Picky) with 'd' fails: KeyError: 'd' "
        "(object d at 1970-01-01T00:00:03.000000Z, 1 of 5 rows)" in alert.text
    )
    fairway("run", "taxis", "--until-idle")
    assert len([one for one in read_alerts(home) if one.level == "error"]) == 1
    assert "failed" in fairway("query", "list").stdout
    assert "WRONG" not in fairway("verify", "good").stdout


@pytest.mark.spec("B11")
@pytest.mark.parametrize("using", ["slow('b')", "sleeping('1.5')"])
def test_a_class_that_takes_too_long_stops_its_query_and_not_the_stream(home, using):
    with (home.root / "conf" / "filters.toml").open("a") as file:
        file.write(
            '[filters.sleeping]\nclass = "tests.e2e.test_user_filters:Sleeping"\nlimit_s = 0.3\n'
        )
    register(GOOD + asking(using))
    append(home, FIRST, 2)
    began_s = time.monotonic()
    fairway("run", "taxis", "--until-idle")
    assert time.monotonic() - began_s < 4
    assert answers(home, "mine") == []
    assert answers(home, "good") == ["a", "b", "c"]
    (alert,) = [one for one in read_alerts(home) if one.level == "error"]
    assert (
        "takes longer than limit_s = 0.3 for 3 rows, the first object a" in alert.text
    )


@pytest.mark.spec("B11")
def test_a_class_sees_only_what_satisfies_all_else(home):
    register(
        "REGISTER QUERY mine AS SELECT * FROM taxis INSIDE (0, 0, 3, 10) WHERE load > 1"
        " USING picky('a'), picky('c');"
    )
    append(home, FIRST, 2)  # a is too light, c too far away
    fairway("run", "taxis", "--until-idle")
    assert answers(home, "mine") == ["b"]


@pytest.mark.spec("B11")
def test_joins_ask_about_pairs_and_a_class_without_that_is_refused(home):
    (home.root / "parks.geojson").write_text(LAYER, encoding="utf-8")
    fairway("layer", "load", "parks", "parks.geojson", "--crs", "planar")
    join = "SELECT * FROM taxis t JOIN parks p ON ST_Intersects(t, p) USING"
    register(f"REGISTER QUERY mine AS {join} loaded('80'), picky('none');")
    append(home, FIRST, 2)
    fairway("run", "taxis", "--until-idle")
    assert answers(home, "mine") == ["a", "b", "c"]
    assert "WRONG" not in fairway("verify", "mine").stdout
    refused = register(f"REGISTER QUERY other AS {join} slow('x');", code=2)
    assert (
        "has neither filter_join_candidate nor filter_join_candidates" in refused.stderr
    )


@pytest.mark.spec("B11")
def test_a_filter_that_is_not_here_is_named_at_registration_and_at_the_start(home):
    refused = register(asking("thirdz('1')"), code=2)
    assert "unknown filter 'thirdz' (did you mean thirds?)" in refused.stderr
    refused = register(asking("filter('os:system', 'true')"), code=2)
    assert "unknown filter 'os:system'" in refused.stderr
    register(GOOD + asking("thirds('1')"))
    append(home, FIRST, 2)
    file = home.root / "conf" / "filters.toml"
    file.unlink()
    stopped = fairway("run", "taxis", "--until-idle", code=2)
    assert "there is no filter 'thirds' here" in stopped.stderr
    assert "[filters.thirds]" in stopped.stderr
    file.write_text('[filters.thirds]\nclass = "no_such_package.filters:Thirds"\n')
    stopped = fairway("run", "taxis", "--until-idle", code=2)
    assert "class no_such_package.filters:Thirds cannot be loaded" in stopped.stderr
    file.write_text(FILTERS)  # nothing was lost, and nothing made permanent
    fairway("run", "taxis", "--until-idle")
    assert answers(home, "mine") == ["b"]
    assert [one for one in read_alerts(home) if one.level == "error"] == []


@pytest.mark.spec("B11")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[filters.key]\nclass = "a:B"', "one of Fairway's own"),
        ('[filters.Upper]\nclass = "a:B"', "no name of a filter"),
        ('[filters.a]\nclass = "a.B"', "must be the path of a class"),
        ('[filters.a]\nclass = "a:B"\nlimit_s = 0', "must be above 0"),
        ('[filters.a]\nclas = "a:B"', "did you mean"),
        ("[filters]\na = 1", "must be a table"),
        ("[filter.a]", "filter"),
    ],
)
def test_a_file_of_filters_that_is_wrong_is_refused_with_its_place(home, text, said):
    (home.root / "conf" / "filters.toml").write_text(text, encoding="utf-8")
    refused = fairway("streams", "list", code=2)
    assert "filters.toml" in refused.stderr
    assert said in refused.stderr


@pytest.mark.spec("B11")
def test_strangers_name_filters_and_never_classes(home, monkeypatch):
    """A module's name is an unknown filter, and a value is a text and nothing else."""
    select = "SELECT * FROM taxis USING filter('{}', 'os:system')"
    module = "tests.kit.user_filters:Thirds"
    # Registrations are understood in a process of their own.
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    with served(Installation(home=home, conf=home.root / "conf")) as client:
        for name in (module, "os:system", "../thirds", "", "Thirds"):
            answer = client.put("/v1/queries/q", content=select.format(name))
            assert answer.status_code == 400, answer.text
            assert "Traceback" not in answer.text
        told = client.put("/v1/queries/q", content=select.format("picky"))
        assert told.status_code < 300, told.text
    append(home, FIRST, 2)
    fairway("run", "taxis", "--until-idle")
    assert answers(home, "q") == ["a", "b", "c"]


PACKAGE = """
class Odd:
    def filter_tuple(self, element, value):
        return element.x % 2 == 1
"""


@pytest.mark.spec("B11")
def test_an_installed_package_brings_a_filter_by_its_entry_point(
    home, tmp_path, monkeypatch
):
    from st_common.config import filters

    site = tmp_path / "site"
    about = site / "odd_filter-1.0.dist-info"
    about.mkdir(parents=True)
    (site / "odd_filter.py").write_text(PACKAGE, encoding="utf-8")
    about.joinpath("METADATA").write_text("Name: odd-filter\nVersion: 1.0\n")
    about.joinpath("entry_points.txt").write_text(
        "[fairway.filters]\nodd = odd_filter:Odd\nkey = odd_filter:Odd\n"
    )
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    filters._installed.cache_clear()
    try:
        register(asking("odd('')"))
        append(home, FIRST, 2)
        fairway("run", "taxis", "--until-idle")
    finally:
        filters._installed.cache_clear()
    assert answers(home, "mine") == ["a"]


@pytest.mark.spec("B11")
def test_the_filters_of_the_documentation_run_as_they_stand_there(
    home, tmp_path, monkeypatch
):
    page = Path(__file__).parents[2] / "docs/query-language.md"
    texts = {block.kind: block.text for block in blocks(page)}
    package = tmp_path / "site" / "my_package"
    package.mkdir(parents=True)
    (package / "__init__.py").touch()
    (package / "filters.py").write_text(texts["python filters"], encoding="utf-8")
    (home.root / "conf" / "filters.toml").write_text(texts["toml filters"])
    streams = CONF.replace('"double"', '"double", on_bridge = "string"')
    (home.root / "conf" / "streams.toml").write_text(streams)
    monkeypatch.setattr(sys, "path", [str(package.parent), *sys.path])
    register(texts["sql filters"])
    lines = "id,t,x,y,load,on_bridge\na,1,1,1,9,yes\nb,1,1,1,9,no\nc,1,1,1,7,yes\n"
    append(home, lines.encode(), 2)
    fairway("run", "taxis", "--until-idle")
    assert answers(home, "heavy_on_bridges") == ["a"]
    assert "WRONG" not in fairway("verify", "heavy_on_bridges").stdout
    heavy = "REGISTER QUERY q AS SELECT * FROM taxis t JOIN parks p ON ST_Intersects(t, p) USING"
    (home.root / "parks.geojson").write_text(
        LAYER.replace('"kind"', '"bridge": "yes", "kind"')
    )
    fairway("layer", "load", "parks", "parks.geojson", "--crs", "planar")
    assert "heavy" in register(f"{heavy} heavy('1');", code=2).stderr
    register(f"{heavy} bridges('yes');")
    fairway("run", "taxis", "--until-idle")
    assert answers(home, "q") == ["a", "b", "c"]
