"""Trials: closed days with other queries, or layers in other versions, beside what the stream has."""

import json
from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from jobs.reprocess import main as job
from st_common import tables
from st_common.answers.sql import sql
from st_common.batch.days import whole_days
from st_common.batch.reset import reset
from st_common.batch.trial import Trial, trial_table
from st_common.cli import app
from st_common.config.home import Home
from st_common.config.streams import load_streams
from st_common.controls.reading import rows_of
from st_common.controls.rows import Drop, LayerVersion, Register
from st_common.controls.writing import payload_of
from st_common.engine.run import run
from st_common.errors import ConfigError
from st_common.history.told import begin_of
from st_common.query.area_store import HomeAreas
from st_common.query.plan import LayerJoin, Plan
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.log_writer import bare_log

CONF = """
[streams.trucks]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
max_ahead_s = "off"
engine = "local"
"""
FIXES = """id,t,x,y
a,2024-05-01T08:00:00Z,1,1
b,2024-05-01T09:00:00Z,9,9
a,2024-05-01T12:00:00Z,9,9
b,2024-05-01T13:00:00Z,2,2
z,2024-05-02T12:00:00Z,50,50
"""
DAY = timedelta(days=1)
TIMES = st.datetimes(timezones=st.just(UTC))
JOIN = Plan(stream="trucks", join=LayerJoin(layer="parks", predicate="intersects"))


@pytest.fixture
def home(tmp_path):
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "streams.toml").write_text(CONF)
    home, streams = Home(tmp_path), load_streams(tmp_path / "conf")
    text = "REGISTER QUERY near AS SELECT * FROM trucks INSIDE (0, 0, 5, 5)"
    register(home, streams, parse(text), owner="t")
    bare_log(home.log("trucks")).append(FIXES.encode(), arrival_us=0)
    run(home, streams["trucks"], until_idle=True)
    return home


def again(home, *more):
    words = ["--home", str(home.root), "reprocess", "trucks", "--from", "2024-05-01"]
    return CliRunner().invoke(app, [*words, "--to", "2024-05-02", *more])


def statements(home, text):
    file = home.root / "trial.sql"
    file.write_text(text)
    return "--queries", str(file)


@pytest.mark.spec("C6")
def test_other_queries_have_their_visits_beside_those_of_the_stream(home):
    assert again(home).exit_code == 0
    before = tables.version(home.table("visits", "trucks"))
    text = "REGISTER QUERY far AS SELECT * FROM trucks INSIDE (6, 6, 10, 10)"
    done = again(home, *statements(home, text), "--into", "what-if")
    assert done.exit_code == 0, done.output
    asked = "SELECT query, object, from_ts, to_ts FROM trial_trucks_what_if ORDER BY from_ts"
    at = lambda hour: datetime(2024, 5, 1, hour, tzinfo=UTC)
    assert [tuple(row.values()) for row in sql(home, asked).to_pylist()] == [
        ("far", "b", at(9), at(13)),
        ("far", "a", at(12), datetime(2024, 5, 2, tzinfo=UTC)),
    ]
    assert tables.version(home.table("visits", "trucks")) == before


@pytest.mark.spec("C6")
def test_a_trial_of_the_same_questions_has_the_same_visits(home):
    again(home)
    again(home, "--into", "same")
    both = "SELECT * EXCLUDE (run) FROM visits_trucks WHERE event_date = '2024-05-01'"
    other = "SELECT * EXCLUDE (run) FROM trial_trucks_same"
    assert len(sql(home, other)) == 2
    assert len(sql(home, f"({both}) EXCEPT ({other})")) == 0


def test_the_log_of_a_trial_has_its_queries_and_layers_in_the_place_of_others():
    rows = [
        Register(query="q", version=3, plan=JOIN.to_json(), layer_version=4),
        LayerVersion(layer="parks", version=5),
        LayerVersion(layer="roads", version=2),
        Drop(query="r"),
    ]
    changed = lambda trial: list(
        rows_of(
            trial.changed(payload_of(rows), stream="s", segment=0),
            stream="s",
            segment=0,
        )
    )
    of_layers = changed(Trial(name="t", versions={"parks": 7}))
    assert [row.op for row in of_layers] == ["register", "layer", "drop"]
    assert (of_layers[0].version, of_layers[0].layer_version) == (3, 7)
    assert of_layers[1] == rows[2]
    asked = Trial(name="t", queries={"other": JOIN})
    assert changed(asked) == rows[1:3]


@pytest.mark.parametrize(
    ("options", "wrong"),
    [
        (("--layers", "parks@1"), "are for trials"),
        (("--layers", "parks@1", "--into", "t"), "'parks@1' is no version of a layer"),
        (("--into", "../t"), "is no name for a trial"),
        (("--from", "yesterday"), "from is 'yesterday' (a day such as"),
    ],
)
def test_what_does_not_fit_together_is_refused(home, options, wrong):
    refused = again(home, *options)
    assert refused.exit_code == 2
    assert wrong in refused.output


@pytest.mark.spec("C6")
def test_an_interval_is_the_whole_days_that_it_touches_and_says_so(home):
    done = again(home, "--from", "2024-05-01T10:00Z", "--to", "2024-05-01T14:00+02:00")
    assert done.exit_code == 0
    first, second, *_ = done.output.splitlines()
    assert first == (
        "trucks: 2024-05-01T10:00Z to 2024-05-01T12:00Z lies in 2024-05-01: the whole day"
    )
    assert second.startswith("trucks: 2024-05-01: ")
    refused = again(home, "--from", "2024-05-01T10:00Z", "--to", "2024-05-01T10:00Z")
    assert "there is nothing (the end is not in it)" in refused.output
    refused = again(home, "--from", "2024-05-01T10:00Z", "--to", "2024-05-02T00:01Z")
    assert "2024-05-02 is not closed" in refused.output


@given(TIMES, TIMES)
def test_whole_days_are_the_fewest_that_hold_an_interval(one, other):
    since, until = sorted((one, other))
    if since == until or until > begin_of(date.max):
        with pytest.raises(ConfigError):
            whole_days(since, until)
        return
    days = whole_days(since, until)
    begin, end = begin_of(days.since), begin_of(days.until)
    assert begin <= since < end
    assert since - begin < DAY
    assert timedelta(0) <= end - until < DAY
    assert (days.note == "") == ((begin, end) == (since, until))


def test_a_trial_takes_registrations_on_its_stream_alone(home):
    refused = again(home, *statements(home, "DROP QUERY near"), "--into", "t")
    assert refused.exit_code == 2
    assert "takes registrations on it alone" in refused.output


def test_a_trial_takes_areas_for_its_own_queries(home):
    text = """CREATE AREA yard AS (6, 6, 10, 10);
        REGISTER QUERY far AS SELECT * FROM trucks INSIDE yard"""
    done = again(home, *statements(home, text), "--into", "areas")
    assert done.exit_code == 0, done.output
    assert set(
        sql(home, "SELECT query FROM trial_trucks_areas")["query"].to_pylist()
    ) == {"far"}
    assert HomeAreas(home).named("yard") is None


def test_no_trial_takes_the_table_or_the_view_of_another(tmp_path):
    home = Home(tmp_path)
    assert trial_table(home, "a-b", "c") != trial_table(home, "a", "b-c")
    trial_table(home, "a-b", "c").mkdir(parents=True)
    assert trial_table(home, "a-b", "c").exists()
    with pytest.raises(ConfigError, match="would have the view of the trial in"):
        trial_table(home, "a", "b-c")


@pytest.mark.spec("S3")
def test_a_reset_takes_the_tables_of_trials_with_it(home):
    again(home, "--into", "same")
    assert trial_table(home, "trucks", "same").exists()
    reset(home, "trucks")
    assert not trial_table(home, "trucks", "same").exists()


@pytest.mark.spec("C6")
def test_a_stream_that_fails_stops_no_other_and_the_job_says_so(home, capsys):
    conf = home.root / "conf" / "streams.toml"
    conf.write_text(CONF + CONF.replace("streams.trucks", "streams.open"))
    streams = load_streams(conf.parent)
    bare_log(home.log("open")).append(FIXES.encode(), arrival_us=0)
    run(home, streams["open"], until_idle=True)
    conf.write_text(
        conf.read_text().replace(
            'engine = "local"', 'engine = "local"\nlateness_s = 5', 1
        )
    )
    asked = ["--home", str(home.root), "--from", "2024-05-01", "--to", "2024-05-02"]
    assert job(asked) == 2
    told = capsys.readouterr()
    summary = json.loads(told.out)
    assert [day["fixes"] for day in summary["streams"]["open"]["days"]] == [4]
    assert (summary["open"], list(summary["failed"])) == ([], ["trucks"])
    assert "FAILED: trucks: " in told.err
