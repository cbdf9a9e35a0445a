"""Verify after days of history were deleted: it says what it could not check, and goes on finding what is wrong."""

from datetime import UTC, datetime
from pathlib import Path

import pytest
from deltalake import DeltaTable

from st_common.checks import verify as verifying
from st_common.checks.verify import verify
from st_common.config.columns import Columns
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.query.area_store import HomeAreas
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.archived import run_through
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("X1")

T0 = round(datetime(2026, 5, 1, tzinfo=UTC).timestamp())
DAY_S = 86_400
COLUMNS = Columns(object="id", event_ts="t", x="x", y="y")
QUERIES = """
REGISTER QUERY now AS SELECT * FROM cars INSIDE (0, 0, 10, 10);
REGISTER QUERY until AS SELECT * FROM cars INSIDE (0, 0, 10, 10) EMIT CHANGES WITH VALID UNTIL;
REGISTER QUERY many AS SELECT COUNT(*) FROM cars INSIDE (0, 0, 10, 10) GROUP BY object;
REGISTER QUERY gate AS SELECT * FROM cars INSIDE (0, 0, 10, 10) DETECT ENTER, EXIT;
"""
FIXES = (
    *(("early", 0, 3), ("left", 0, 3), ("comes", 0, 30)),  # the first day
    *(("left", DAY_S, 30), ("comes", DAY_S, 3), ("comes", DAY_S + 9, 4)),  # the second
)
EARLIER = "event_date < '2026-05-02'"


@pytest.fixture
def stream() -> StreamSettings:
    return StreamSettings(
        name="cars",
        format="csv",
        columns=COLUMNS,
        crs="planar",
        time_unit="s",
        max_ahead_s=None,
        engine="local",
    )


@pytest.fixture
def home(tmp_path: Path, stream: StreamSettings) -> Home:
    home = Home(tmp_path)
    said = parse(QUERIES, areas=HomeAreas(home))
    register(home, {"cars": stream}, said, owner="ada")
    lines = [f"{name},{T0 + second},{x},5" for name, second, x in FIXES]
    text = "\n".join(["id,t,x,y", *lines, f"clock,{T0 + DAY_S + 20},99,5"])
    bare_log(home.log("cars")).append(text.encode(), arrival_us=0)
    run_through(home, stream)
    return home


def verdicts(home: Home, stream: StreamSettings) -> dict[str, tuple[bool, str]]:
    return {one.query: (one.holds, one.unchecked) for one in verify(home, stream)}


def test_members_of_deleted_days_are_not_checked_and_all_others_are(
    home: Home, stream: StreamSettings, monkeypatch: pytest.MonkeyPatch
):
    assert set(verdicts(home, stream).values()) == {(True, "")}
    DeltaTable(home.table("changes", "cars")).delete(EARLIER)
    of = "of days of which the changes were deleted"
    assert verdicts(home, stream) == {
        "now": (True, f"1 member {of}"),
        "until": (True, f"1 member {of}"),
        "many": (True, f"1 group {of}"),
        "gate": (True, f"2 events {of}"),
    }
    left = verifying.stream_changes(home, "cars")
    for number, row in enumerate(left.to_pylist()):
        without = left.filter([at != number for at in range(len(left))])
        monkeypatch.setattr(verifying, "stream_changes", lambda *_, of=without: of)
        holds, _ = verdicts(home, stream)[row["query"]]
        is_end = row["sign"] < 0 and row["query"] != "gate"
        assert holds == is_end  # an end that is lost too leaves nothing


def test_without_the_fixes_of_deleted_days_nothing_is_checked(
    home: Home, stream: StreamSettings
):
    DeltaTable(home.table("positions", "cars")).delete(EARLIER)
    told = verify(home, stream)
    assert len(told) == 4
    assert not any(one.checked for one in told)
    assert {one.unchecked for one in told} == {
        "days of the fixes that it follows from were deleted"
    }
