"""What caches cost stands where a user looks: at the end of a run, in `status`, in `explain` (SPEC G6)."""

import pytest

STREAMS = """[streams.cars]
format = "csv"
crs = "planar"
engine = "local"
time_unit = "s"
max_ahead_s = "off"
max_speed_mps = 1
silence_s = 3
{more}
columns = {{object = "id", event_ts = "t", x = "x", y = "y"}}
"""
AROUND = "REGISTER QUERY around AS SELECT * FROM cars INSIDE ('M', 'f', 20, 20)"
STANDING = "REGISTER QUERY standing AS SELECT * FROM cars INSIDE (0, 0, 10, 10)"
ROWS = "id,t,x,y\nf,1,0,0\nnear,1,9,0\nfar,1,99,0\nf,2,98,0\nf,3,98.5,0\n"


@pytest.fixture
def fairway(tmp_path, command_line):
    (tmp_path / "rows.csv").write_text(ROWS)

    def run(*words):
        return command_line(*words).stdout

    def ready(more=""):
        (tmp_path / "conf" / "streams.toml").write_text(STREAMS.format(more=more))
        for text in (AROUND, STANDING):
            run("query", "register", "--text", text)
        run("replay", "cars", str(tmp_path / "rows.csv"))
        return run

    return ready


def line(text, start):
    return next(one for one in text.splitlines() if one.startswith(start))


@pytest.mark.spec("G6")
def test_without_refills_the_misses_and_the_overhead_are_told_by_kind(fairway):
    run = fairway("cache_refills = false")
    ended = run("run", "cars", "--until-idle")
    assert "members that a cache lacked 1" in line(ended, "queries: ")
    told = line(ended, "cars: caches of moving boxes: ")
    # a box of 20 by 20, 3 wider on each side; of the objects in caches half are members, focal ones left out
    assert "0 refills, 1 miss, 1.69 times the area" in told
    assert line(run("status"), "cars: caches") == told
    explained = line(run("explain", "around"), "caches ")
    assert explained == f"caches    {told.removeprefix('cars: caches ')}"
    assert "caches" not in run("explain", "standing")
    assert [row.split()[0] for row in run("answer", "around").splitlines()[1:]] == [
        "far"
    ]


@pytest.mark.spec("G6")
def test_with_refills_there_are_no_misses_and_runs_add_up(fairway):
    run = fairway()
    assert "caches of moving boxes: 1 refill, 0 misses" in run(
        "run", "cars", "--until-idle"
    )
    run("run", "cars", "--until-idle")
    assert "caches of moving boxes: 1 refill, 0 misses" in run("status")


@pytest.mark.spec("G6")
def test_without_caches_nothing_is_said_of_them(fairway):
    run = fairway("cache_share = 0")
    run("run", "cars", "--until-idle")
    assert "caches" not in run("status")
    assert "caches" not in run("explain", "around")
