"""What queries would have told, by days, beside an older version, as table and as a page."""

import csv
import io
import re

import pytest
from typer.testing import CliRunner

from st_common.cli import app
from tests.kit.ran_home import ran_home

pytestmark = pytest.mark.spec("X10")

CONF = """
[streams.trucks]
format = "csv"
columns = { object = "id", event_ts = "t", x = "x", y = "y" }
crs = "planar"
max_ahead_s = "off"
engine = "local"
"""
# <b> is in until the second day, c comes on the second day, further out.
FIXES = """id,t,x,y
a,2024-05-01T08:00:00Z,1,1
<b>,2024-05-01T09:00:00Z,2,2
a,2024-05-01T12:00:00Z,50,50
a,2024-05-01T20:00:00Z,1,1
a,2024-05-01T22:00:00Z,50,50
<b>,2024-05-02T06:00:00Z,50,50
c,2024-05-02T10:00:00Z,8,8
c,2024-05-02T11:00:00Z,50,50
z,2024-05-03T12:00:00Z,50,50
"""
NEAR = "REGISTER QUERY near AS SELECT * FROM trucks INSIDE (0, 0, 5, 5);"
WIDE = "REGISTER QUERY near AS SELECT * FROM trucks INSIDE (0, 0, 9, 9);"
FAR = 'REGISTER QUERY "<i>far" AS SELECT * FROM trucks INSIDE (40, 40, 60, 60);'


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    return ran_home(tmp_path_factory.mktemp("past"), CONF, "trucks", FIXES)


def tried(home, text, *more, old=None):
    file = home.root / "new.sql"
    file.write_text(text)
    if old is not None:
        (home.root / "old.sql").write_text(old)
        more = (*more, "--against", str(home.root / "old.sql"))
    words = ["--home", str(home.root), "backtest", str(file), "--stream", "trucks"]
    return CliRunner().invoke(app, [*words, *more])


def rows(done):
    assert done.exit_code == 0, done.output
    return list(csv.DictReader(io.StringIO(done.stdout)))


def test_days_have_their_visits_objects_and_hours(home):
    assert [
        (row["event_date"], row["told"], row["visits"], row["objects"], row["hours"])
        for row in rows(tried(home, NEAR, "--format", "csv"))
    ] == [
        ("2024-05-01", "5", "3", "2", "21.0"),  # 4 + 2 of a, 15 of b
        ("2024-05-02", "1", "0", "1", "6.0"),
    ]


def test_two_versions_are_compared_stay_by_stay(home):
    done = tried(home, WIDE + FAR, "--format", "csv", old=NEAR)
    names = (
        "event_date",
        "query",
        "visits",
        "visits_old",
        "same",
        "only_new",
        "only_old",
    )
    assert [tuple(row[name] for name in names) for row in rows(done)] == [
        ("2024-05-01", "<i>far", "2", "", "", "", ""),
        ("2024-05-01", "near", "3", "3", "3", "0", "0"),
        ("2024-05-02", "<i>far", "2", "", "", "", ""),
        ("2024-05-02", "near", "1", "0", "1", "1", "0"),
    ]


def test_people_see_days_and_totals(home):
    done = tried(home, NEAR, old=WIDE)
    assert done.exit_code == 0, done.output
    days, totals = done.stdout.split("\n\n")
    assert days.splitlines()[0].split()[:3] == ["event_date", "query", "told"]
    head, near = totals.strip().splitlines()
    total = dict(zip(head.split(), near.split(), strict=True))
    assert total["visits"] == "3"
    assert (total["visits_old"], total["objects_old"]) == ("4", "3")
    assert (total["same"], total["only_new"], total["only_old"]) == ("4", "0", "1")
    assert "9 fixes" not in done.stderr
    assert "8 fixes of 2 days from 2024-05-01 on" in done.stderr


def test_the_page_is_whole_by_itself_and_escapes_names(home):
    path = home.root / "page.html"
    done = tried(home, WIDE + FAR, "--report", str(path), old=NEAR)
    assert done.exit_code == 0, done.output
    text = path.read_text()
    assert "&lt;i&gt;far" in text
    assert "<i>far" not in text
    assert "&lt;b&gt;" in text
    assert re.findall(r"(?:src|href)=|url\(|https?:|@import", text) == []
    assert "only new" in text
    assert "2024-05-02T10:00:00Z" in text


def test_nothing_is_written(home):
    tried(home, NEAR)  # its statements stand in a file of the home
    before = sorted(str(path) for path in home.root.rglob("*") if path.is_file())
    assert tried(home, NEAR).exit_code == 0
    after = sorted(str(path) for path in home.root.rglob("*") if path.is_file())
    assert after == before


def test_fewer_days_begin_later_and_know_nothing_of_those_before(home):
    (row,) = rows(tried(home, NEAR, "--days", "1", "--format", "csv"))
    assert (row["event_date"], row["visits"], row["objects"]) == (
        "2024-05-02",
        "0",
        "0",
    )


def test_what_is_no_registration_on_the_stream_is_refused(home):
    for text in ("DROP QUERY near", "SELECT * FROM trucks"):
        done = tried(home, text)
        assert done.exit_code == 2
        assert "takes registrations on it alone" in done.output
