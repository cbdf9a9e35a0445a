"""Verify compares the places of changes with the fixes, in its own way."""

from datetime import UTC, datetime

import pyarrow.compute as pc
import pytest

from st_common.checks import verify as verifying
from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.query.area_store import HomeAreas
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.archived import run_through
from tests.kit.feeding import stream_with
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("X1")

T0 = round(datetime(2026, 5, 1, tzinfo=UTC).timestamp())
QUERIES = """
REGISTER QUERY now AS SELECT * FROM ships INSIDE (0, 0, 10, 10);
REGISTER QUERY near AS SELECT * FROM ships KNN (2, 5, 5);
REGISTER QUERY pairs AS SELECT * FROM ships a JOIN ships b ON ST_DWithin(a, b, 3 m);
REGISTER QUERY lately AS SELECT * FROM ships INSIDE (0, 0, 10, 10) WINDOW 10 s;
REGISTER QUERY gate AS SELECT * FROM ships INSIDE (0, 0, 10, 10) DETECT ENTER, EXIT, DWELL 5 s;
REGISTER QUERY many AS SELECT COUNT(*) FROM ships INSIDE (0, 0, 10, 10);
"""
FIXES = [
    *(("comes", 0, 30), ("stays", 1, 3), ("comes", 4, 4), ("stays", 9, 5)),
    *(("comes", 12, 7), ("leaves", 13, 8), ("comes", 20, 40), ("leaves", 26, 60)),
    ("comes", 60, 41),  # the others are silent by now
]


@pytest.fixture
def stream() -> StreamSettings:
    return stream_with({"kind": "stdin"}, silence_s=20)


@pytest.fixture
def home(tmp_path, stream) -> Home:
    home = Home(tmp_path)
    said = parse(QUERIES, areas=HomeAreas(home))
    register(home, {"ships": stream}, said, owner="ada")
    log = bare_log(home.log("ships"))
    for name, second, x in FIXES:
        text = f"id,t,x,y\n{name},{T0 + second},{x},5"
        log.append(text.encode(), arrival_us=0)
    run_through(home, stream)
    return home


def test_places_of_every_kind_of_change_are_those_of_fixes(home, stream):
    told = verify(home, stream)
    assert {(one.query, one.misplaced, one.holds) for one in told} == {
        (name, 0, True) for name in ("now", "near", "pairs", "lately", "gate", "many")
    }
    rows = verifying.stream_changes(home, "ships")
    assert pc.any(
        pc.less(rows["fix_ts"], rows["event_ts"])
    ).as_py()  # of who was silent
    placed = rows.filter(rows["x"].is_valid())
    assert set(placed["query"].to_pylist()) == {one.query for one in told} - {"many"}


def test_a_place_that_is_another_is_found(home, stream, monkeypatch):
    rows = verifying.stream_changes(home, "ships").to_pandas()
    for at in rows[rows["x"].notna()].drop_duplicates("query", keep="last").index:
        other = rows.copy()
        other.loc[at, "x"] += 0.25

        class Told:
            def to_pandas(self, other=other):
                return other

        monkeypatch.setattr(verifying, "stream_changes", lambda *_: Told())
        wrong = {one.query: one.misplaced for one in verify(home, stream)}
        assert wrong.pop(rows.loc[at, "query"]) == 1
        assert not any(wrong.values())
