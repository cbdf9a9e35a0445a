"""Queries that move, count and remember, on a minute and a half of ships around Denmark, against brute force.

Everything goes through the commands. What is expected comes from pandas, shapely and pyproj over the file: no kernel
and no rule of the product. Answers are compared in the middle of the stream, and at its end.
"""

import json
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
import shapely
from pyproj import Geod
from typer.testing import CliRunner

from st_common.cli import app

SILENCE_S, START = 30, 1777161600  # 2026-04-26, midnight
MOMENTS = (25, 47, 70, None)  # seconds after START; None is the end, 97
FERRY, PILOT, FAST, SILENT = "219230000", "265177000", "219024783", "257836890"
DANISH_STRAITS = "POLYGON((12.3 55.2, 13.1 55.3, 12.9 56.2, 12.4 56.1, 12.3 55.2))"
CONF = f"""
[streams.ships]
format = "csv"
time_unit = "s"
max_ahead_s = "off"
silence_s = {SILENCE_S}
engine = "local"
columns = {{ object = "id", event_ts = "t", x = "x", y = "y" }}
attributes = {{ kind = "string", knots = "double" }}
"""
QUERIES = f"""
REGISTER QUERY box_around AS SELECT * FROM ships INSIDE ('M', '{FERRY}', 0.3, 0.15);
REGISTER QUERY circle_around AS SELECT * FROM ships INSIDE ('M', '{PILOT}', 12 km);
REGISTER QUERY around_who_falls_silent AS SELECT * FROM ships INSIDE ('M', '{SILENT}', 20 km);
REGISTER QUERY circle AS SELECT * FROM ships INSIDE CIRCLE (12.62, 56.03, 10 km);
REGISTER QUERY straits AS SELECT * FROM ships INSIDE '{DANISH_STRAITS}';
REGISTER QUERY nearest_under_way AS SELECT * FROM ships WHERE knots > 5 KNN ('M', 7, '{FAST}');
REGISTER QUERY nearest_inside AS
  SELECT * FROM ships WHERE knots < 1 KNN (4, 12.62, 56.03) INSIDE '{DANISH_STRAITS}';
REGISTER QUERY close_to_who_is_under_way AS
  SELECT * FROM ships a JOIN ships b ON ST_DWithin(a, b, 400 m) WHERE a.knots > 8;
REGISTER QUERY kinds AS SELECT kind, COUNT(*) FROM ships INSIDE '{DANISH_STRAITS}' GROUP BY kind;
REGISTER QUERY knots_by_kind AS SELECT kind, MAX(knots) FROM ships WHERE knots > 0 GROUP BY kind;
REGISTER QUERY count_around AS SELECT COUNT(*) FROM ships INSIDE ('M', '{FERRY}', 0.3, 0.15);
REGISTER QUERY which_kinds AS SELECT DISTINCT kind FROM ships INSIDE ('M', '{PILOT}', 12 km);
REGISTER QUERY passed_by AS SELECT COUNT(object) FROM ships INSIDE '{DANISH_STRAITS}' WINDOW 20 s;
REGISTER QUERY passages AS SELECT COUNT(*) FROM ships INSIDE '{DANISH_STRAITS}' WINDOW 20 s;
REGISTER QUERY lately AS SELECT * FROM ships WHERE knots > 15 WINDOW 40 TUPLES;
REGISTER QUERY hesitant AS SELECT * FROM ships WHERE elapsed_s > 12;
"""
GEOD = Geod(ellps="WGS84")
pytestmark = pytest.mark.slow


def ships_of(shared):
    """The fixes of the ships with a place, in the order of the file: id, t, x, y, kind, knots."""
    file = shared / "data" / "ais-denmark" / "aisdk-2026-04-26-first20000.csv"
    rows = pd.read_csv(file, dtype={"MMSI": str})
    rows = rows[
        rows["Type of mobile"].isin(["Class A", "Class B"]) & (rows["Latitude"] <= 90)
    ]
    when = pd.to_datetime(rows["# Timestamp"], format="%d/%m/%Y %H:%M:%S")
    return pd.DataFrame(
        {
            "id": rows["MMSI"],
            "t": (when - pd.Timestamp(0)) // pd.Timedelta(1, "s"),
            "x": rows["Longitude"],
            "y": rows["Latitude"],
            "kind": rows["Ship type"],
            "knots": rows["SOG"],
        }
    ).reset_index(drop=True)


@pytest.fixture(scope="module")
def fairway(shared, tmp_path_factory):
    """A home in which the ships sailed by; a function that runs a command on it, and the fixes that count."""
    root = tmp_path_factory.mktemp("home")
    (root / "conf").mkdir()
    (root / "conf" / "streams.toml").write_text(CONF)
    fixes = ships_of(shared)
    fixes.to_csv(root / "ships.csv", index=False)

    def run(*args):
        found = CliRunner().invoke(
            app, ["--home", str(root), *args], prog_name="fairway"
        )
        assert found.exit_code == 0, found.output
        return found.stdout

    run("query", "register", "--text", QUERIES)
    run("replay", "ships", str(root / "ships.csv"))
    run("run", "ships", "--until-idle")
    used = fixes.drop_duplicates(["id", "t"])
    before = used.groupby("id")["t"].diff()
    return run, used.assign(elapsed_s=before.where(before <= SILENCE_S))


@pytest.fixture(params=MOMENTS, ids=lambda at: "end" if at is None else f"{at}s")
def moment(fairway, request):
    """A moment: a function that gives the answer of a query then, the fixes up to then, and the ships that live."""
    run, used = fairway
    now = START + (97 if request.param is None else request.param)
    at = (
        []
        if request.param is None
        else ["--at", datetime.fromtimestamp(now, UTC).isoformat()]
    )
    past = used[used["t"] <= now]
    last = past.drop_duplicates("id", keep="last")
    # The clock has to be past the end of a silence; at the stream's end nothing moves it on.
    silent = (
        last["t"] + SILENCE_S < now
        if request.param is None
        else last["t"] + SILENCE_S <= now
    )
    assert 50 < silent.sum() < 700 or now < START + SILENCE_S

    def answer(name):
        return [
            json.loads(line)
            for line in run("answer", name, *at, "--format", "jsonl").splitlines()
        ]

    return answer, past, last[~silent].set_index("id"), now


def metres(ships, x, y):
    ones = np.ones(len(ships))
    found = GEOD.inv(ones * x, ones * y, ships["x"].to_numpy(), ships["y"].to_numpy())[
        2
    ]
    return pd.Series(found, ships.index)


def within(far, limit):
    """Who is within a distance; nobody is so near to the border that 0.01 % decide."""
    assert ((far - limit).abs() > limit * 2e-4).all()
    return set(far.index[far <= limit])


def in_straits(ships):
    return np.asarray(
        shapely.intersects(
            shapely.from_wkt(DANISH_STRAITS), shapely.points(ships["x"], ships["y"])
        )
    )


def around(ships, focal, width, height):
    centre = ships.loc[focal]
    near = (ships["x"] - centre["x"]).abs() <= width / 2
    return set(ships.index[near & ((ships["y"] - centre["y"]).abs() <= height / 2)]) - {
        focal
    }


def objects(answer):
    found = [row["object"] for row in answer]
    assert len(found) == len(set(found))
    return set(found)


def values(answer):
    return {row["object"]: row["value"] for row in answer}


@pytest.mark.spec("G4")
def test_regions_that_go_with_a_ship(moment):
    answer, _, ships, _ = moment
    assert objects(answer("box_around")) == around(ships, FERRY, 0.3, 0.15)
    pilot = ships.loc[PILOT]
    found = within(metres(ships, pilot["x"], pilot["y"]), 12_000) - {PILOT}
    assert objects(answer("circle_around")) == found
    assert len(found) > 3


@pytest.mark.spec("G4", "G7")
def test_regions_that_stand_still_lose_who_falls_silent(moment):
    answer, _, ships, _ = moment
    assert objects(answer("circle")) == within(metres(ships, 12.62, 56.03), 10_000)
    assert objects(answer("straits")) == set(ships.index[in_straits(ships)])


@pytest.mark.spec("G7")
def test_a_ship_that_falls_silent_empties_the_answer_around_it(moment):
    answer, _, ships, now = moment
    found = objects(answer("around_who_falls_silent"))
    if SILENT not in ships.index:
        assert now > START + 25
        assert found == set()
        return
    centre = ships.loc[SILENT]
    assert found == within(metres(ships, centre["x"], centre["y"]), 20_000) - {SILENT}
    assert len(found) > 10


@pytest.mark.spec("G5", "P7")
def test_the_nearest_of_those_that_qualify(moment):
    answer, _, ships, _ = moment
    centre = ships.loc[FAST]
    far = (
        metres(ships, centre["x"], centre["y"])
        .drop(FAST)[ships["knots"] > 5]
        .sort_values()
    )
    assert far.iloc[7] - far.iloc[6] > far.iloc[7] * 2e-4
    assert objects(answer("nearest_under_way")) == set(far.index[:7])
    far = metres(ships, 12.62, 56.03)[
        in_straits(ships) & (ships["knots"] < 1)
    ].sort_values()
    assert far.iloc[4] - far.iloc[3] > 1
    assert objects(answer("nearest_inside")) == set(far.index[:4])


@pytest.mark.spec("P7")
def test_a_fence_around_every_ship_under_way(moment):
    answer, _, ships, _ = moment
    expected = {
        (name, other)
        for name, ship in ships[ships["knots"] > 8].iterrows()
        for other in within(metres(ships, ship["x"], ship["y"]), 400) - {name}
    }
    assert {
        (row["object"], row["partner"]) for row in answer("close_to_who_is_under_way")
    } == expected
    assert expected


@pytest.mark.spec("G9", "P5", "P7")
def test_aggregates_follow_what_comes_and_goes(moment):
    answer, _, ships, _ = moment
    assert (
        values(answer("kinds"))
        == ships[in_straits(ships)].groupby("kind").size().to_dict()
    )
    assert (
        values(answer("knots_by_kind"))
        == ships[ships["knots"] > 0].groupby("kind")["knots"].max().to_dict()
    )
    assert values(answer("count_around")) == {"*": len(around(ships, FERRY, 0.3, 0.15))}
    pilot = ships.loc[PILOT]
    members = within(metres(ships, pilot["x"], pilot["y"]), 12_000) - {PILOT}
    assert objects(answer("which_kinds")) == set(ships.loc[list(members), "kind"])


@pytest.mark.spec("P5")
def test_windows_remember_who_left_and_who_fell_silent(moment):
    answer, past, ships, now = moment
    # What is just as old as the window still counts; at the stream's end no later second says otherwise.
    entries = past[in_straits(past) & (past["t"] >= now - 20)]
    assert values(answer("passages")) == {"*": len(entries)}
    assert values(answer("passed_by")) == {"*": entries["id"].nunique()}
    assert objects(answer("lately")) == set(past[past["knots"] > 15].tail(40)["id"])
    hesitant = set(ships.index[ships["elapsed_s"] > 12])
    assert objects(answer("hesitant")) == hesitant != set()


@pytest.mark.spec("X1")
def test_verify_finds_the_same(fairway):
    run, _ = fairway
    assert "holds" in run("verify")
