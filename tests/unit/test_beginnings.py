"""What `query register` says of fixes that lie before a query in its log."""

import pytest

STREAMS = """[streams.cars]
format = "csv"
crs = "planar"
engine = "local"
time_unit = "s"
max_ahead_s = "off"
columns = {object = "id", event_ts = "t", x = "x", y = "y"}
"""
BOX = "REGISTER QUERY box AS SELECT * FROM cars INSIDE (0, 0, 9, 9);"
HOUR = "REGISTER QUERY lately AS SELECT * FROM cars INSIDE (0, 0, 9, 9) WINDOW 1 hour;"
WAY = "REGISTER QUERY way AS SELECT AVGSPD(*) FROM cars [RANGE BY 5 km RATTR SPACE];"


@pytest.fixture
def fairway(tmp_path, command_line):
    (tmp_path / "conf" / "streams.toml").write_text(STREAMS)

    def run(*words):
        return command_line(*words).stderr

    run.home = tmp_path
    return run


def replay(fairway, first, count):
    rows = "".join(f"a,{n},1,1\n" for n in range(first, first + count))
    (fairway.home / "rows.csv").write_text(f"id,t,x,y\n{rows}bad,,,\n")
    fairway("replay", "cars", str(fairway.home / "rows.csv"), "--no-end")


@pytest.mark.spec("P4")
def test_a_query_on_an_empty_stream_is_told_nothing(fairway):
    assert "lie before" not in fairway("query", "register", "--text", BOX + HOUR)


@pytest.mark.spec("P4", "W4")
@pytest.mark.parametrize("ran", [False, True], ids=("never run", "run"))
def test_windows_are_told_what_they_do_not_see_and_others_what_they_start_from(
    fairway, ran
):
    replay(fairway, 0, 1500)
    if ran:
        fairway("run", "cars", "--until-idle")
    replay(fairway, 2000, 33)
    said = fairway("query", "register", "--text", BOX + HOUR + WAY)
    assert (
        "note: 1,533 fixes of cars lie before lately, way and are not seen: windows begin with the next fix"
        in said
    )
    assert (
        "note: 1,533 fixes of cars lie before box, which starts from the last fix of each object; "
        "`fairway query run` asks about the time before" in said
    )


@pytest.mark.spec("P4")
def test_an_engine_that_is_past_the_registration_already_takes_nothing_from_the_count(
    fairway, monkeypatch
):
    from st_common.answers.beginnings import beginnings
    from st_common.config.home import Home
    from st_common.config.streams import load_streams
    from st_common.query.lookup import queries

    replay(fairway, 0, 10)
    fairway("query", "register", "--text", BOX)
    replay(fairway, 20, 5)
    fairway("run", "cars", "--until-idle")
    home = Home(fairway.home / "home")
    (one,) = beginnings(home, load_streams(fairway.home / "conf"), queries(home))
    assert (one.fixes, one.uncounted, one.seeing, one.blind) == (10, 0, ("box",), ())


@pytest.mark.spec("P4")
def test_what_is_too_much_to_count_is_said_in_segments(fairway, monkeypatch):
    monkeypatch.setattr("st_common.answers.beginnings._MOST_SEGMENTS", 1)
    for first in (0, 100, 200):
        replay(fairway, first, 10)
    said = fairway("query", "register", "--text", BOX)
    assert (
        "10 fixes and those of 2 segments that nobody has counted yet of cars lie before box"
        in said
    )


@pytest.mark.spec("P4", "X4")
def test_a_query_that_follows_an_area_begins_nowhere(fairway):
    area = "AREA here AS (0, 0, 9, 9);"
    named = "REGISTER QUERY named AS SELECT * FROM cars INSIDE here;"
    fairway("query", "register", "--text", f"CREATE {area}{named}")
    replay(fairway, 0, 100)
    other = f"CREATE OR REPLACE {area}".replace("9, 9", "8, 8")
    assert "lie before" not in fairway("query", "register", "--text", other)
