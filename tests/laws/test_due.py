"""Days that are due: whatever comes late, and however often they are processed, visits are those of all fixes."""

import shutil
import tempfile
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.batch import processed
from st_common.batch.due import due_days
from st_common.batch.folding import fold_here
from st_common.batch.processed import FOLDER, processed_days
from st_common.batch.reprocess import reprocess
from st_common.batch.trial import Trial
from st_common.config.home import Home
from st_common.engine.run import run
from st_common.errors import StorageError
from st_common.log.control import write_clock, write_end
from st_common.operations.days import is_closed
from st_common.query.registry import drop, register
from st_common.query.text import parse
from tests.kit.effort import tries
from tests.kit.grid_days import HOUR_S, T0, histories, segment, settings
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("C6")

DAY = timedelta(days=1)
FIRST = T0.date()
END = FIRST + 3 * DAY
QUERIES = """
REGISTER QUERY places AS SELECT x, y FROM grid INSIDE (0, 5, 10, 10) EMIT EVERY;
REGISTER QUERY values AS SELECT COUNT(*) AS n, AVG(x) AS mean FROM grid INSIDE (0, 0, 10, 5);
REGISTER QUERY left AS SELECT * FROM grid INSIDE (0, 0, 5, 10);
REGISTER QUERY pairs AS SELECT * FROM grid a JOIN grid b ON ST_DWithin(a, b, 3 m);
REGISTER QUERY lately AS SELECT * FROM grid INSIDE (3, 3, 7, 7) WINDOW 3 h;
"""
LATER = "REGISTER QUERY right AS SELECT * FROM grid INSIDE (6, 0, 10, 10);"
CLOSING = ("z", 80 * HOUR_S, 99, 99, False)


def asks(home, stream, text):
    register(home, {stream.name: stream}, parse(text), owner="t")


def arrive(home, stream, fixes):
    """Fixes of which the engine has told, and which are archived."""
    segment(bare_log(home.log(stream.name)), fixes)
    run(home, stream, until_idle=True)


def catch_up(home, stream, **how):
    """Processes the days that are due, and gives them; directly afterwards none is."""
    due = due_days(home, stream)
    if due is not None:
        reprocess(home, stream, due.since, due.until, **how)
        assert due_days(home, stream) is None
    return due


def visits(home, since=FIRST):
    """The visits of closed days from one on, without the names of their runs."""
    path = home.table("visits", "grid")
    rows = tables.read(path).drop_columns(["run"]).to_pylist() if path.exists() else []
    kept = (tuple(row.values()) for row in rows if since <= row["event_date"] < END)
    return sorted(kept, key=repr)


def of_all_days(home, stream, since=FIRST):
    """The visits that all days come to at once, from an empty folder of batch runs."""
    shutil.rmtree(home.stream("grid") / FOLDER)
    shutil.rmtree(home.table("visits", "grid"), ignore_errors=True)
    tables.forget(home.table("visits", "grid"))
    reprocess(home, stream, FIRST, END)
    return visits(home, since)


@tries(4)
@given(histories(), st.booleans(), st.data())
def test_whatever_comes_late_days_that_are_due_bring_visits_to_those_of_all_fixes(
    history, begins_early, data
):
    stream, arriving, cuts = history
    fixes = data.draw(st.permutations(arriving[:-1]))
    # Whatever comes behind it finds all days closed.
    fixes.insert(data.draw(st.integers(0, len(fixes))), arriving[-1])
    with tempfile.TemporaryDirectory() as folder:
        home = Home(Path(folder))
        asks(home, stream, QUERIES)
        for number, (start, end) in enumerate(zip([0, *cuts], cuts, strict=False)):
            arrive(home, stream, fixes[start:end])
            if begins_early and is_closed(home, "grid", FIRST):
                reprocess(home, stream, FIRST, FIRST + DAY)
                begins_early = False
            if data.draw(st.booleans()):
                catch_up(home, stream)
            if number == 0:
                asks(home, stream, LATER)
            if number == 1:
                drop(home, "pairs")
        catch_up(home, stream)
        since = min(processed_days(home, "grid"), default=END)
        caught_up = visits(home, since)
        assert caught_up == of_all_days(home, stream, since)


@pytest.fixture
def grid(tmp_path):
    """A stream of which three days are closed, and processed."""
    home, stream = Home(tmp_path), settings()
    asks(home, stream, QUERIES)
    first = [("a", HOUR_S, 1, 1, False), ("b", 30 * HOUR_S, 2, 2, False)]
    arrive(home, stream, [*first, ("a", 50 * HOUR_S, 9, 9, False), CLOSING])
    reprocess(home, stream, FIRST, END)
    return home, stream


def said(due):
    return due and (due.since, due.until, due.why)


def test_nothing_is_due_of_days_that_were_processed(grid):
    home, stream = grid
    assert due_days(home, stream) is None
    assert list(processed_days(home, "grid")) == [FIRST, FIRST + DAY, FIRST + 2 * DAY]


def test_where_none_was_processed_before_the_newest_closed_day_is_due(grid):
    home, stream = grid
    shutil.rmtree(home.stream("grid") / FOLDER)
    why = "no day was processed before"
    assert said(due_days(home, stream)) == (END - DAY, END, why)
    catch_up(home, stream)
    assert list(processed_days(home, "grid")) == [END - DAY]


def test_no_day_before_the_first_fix_is_due(tmp_path):
    home, stream = Home(tmp_path), settings()
    asks(home, stream, QUERIES)
    assert due_days(home, stream) is None
    arrive(home, stream, [("a", HOUR_S, 1, 1, False)])
    assert due_days(home, stream) is None, "the day of the first fix is open"


def test_late_fixes_make_their_day_due_and_all_behind_it(grid):
    home, stream = grid
    late = [("a", 31 * HOUR_S, 7, 7, False), ("b", 60 * HOUR_S, 7, 7, False)]
    arrive(home, stream, [*late, ("c", 32 * HOUR_S, 1, 1, False)])
    why = f"3 late fixes came for {FIRST + DAY} and later days"
    assert said(due_days(home, stream)) == (FIRST + DAY, END, why)
    catch_up(home, stream)
    caught_up = visits(home)
    assert caught_up == of_all_days(home, stream)


def test_fixes_of_days_before_the_first_that_was_processed_make_that_due(grid):
    home, stream = grid
    arrive(home, stream, [("a", -30 * HOUR_S, 2, 2, False)])
    why = f"1 late fix came for days before {FIRST}"
    assert said(catch_up(home, stream)) == (FIRST, END, why)


def test_a_day_that_closed_since_and_those_that_were_missed_are_due(grid):
    home, stream = grid
    arrive(home, stream, [("z", 130 * HOUR_S, 99, 99, False)])
    why = f"2 days from {END} on were not processed before"
    assert said(catch_up(home, stream)) == (END, END + 2 * DAY, why)


def test_a_day_between_others_that_was_left_out_is_due_with_those_behind_it(grid):
    home, stream = grid
    shutil.rmtree(home.stream("grid") / FOLDER)
    for day in (FIRST, END - DAY):
        reprocess(home, stream, day, day + DAY)
    why = f"{FIRST + DAY} was not processed before"
    assert said(catch_up(home, stream)) == (FIRST + DAY, END, why)


def test_a_trial_makes_no_day_processed(grid):
    home, stream = grid
    before = processed_days(home, "grid")
    arrive(home, stream, [("a", 31 * HOUR_S, 7, 7, False)])
    reprocess(home, stream, FIRST, END, Trial(name="other"))
    assert processed_days(home, "grid") == before
    assert due_days(home, stream) is not None


def test_a_fix_that_comes_while_its_day_is_read_makes_it_due_again(grid):
    home, stream = grid
    arrive(home, stream, [("a", 2 * HOUR_S, 7, 7, False)])
    late = [("b", 33 * HOUR_S, 3, 3, False), ("a", 3 * HOUR_S, 3, 3, False)]

    def fold(interval, state):
        folded = fold_here(interval, state)
        if late:
            arrive(home, stream, [late.pop()])  # of the day that was just read
        return folded

    due = due_days(home, stream)
    reprocess(home, stream, due.since, due.until, fold=fold)
    assert said(due_days(home, stream))[:2] == (FIRST, END)
    catch_up(home, stream)
    caught_up = visits(home)
    assert caught_up == of_all_days(home, stream)


def test_a_run_that_ends_between_tables_and_record_leaves_its_day_due(grid):
    home, stream = grid
    arrive(home, stream, [("a", 31 * HOUR_S, 7, 7, False)])
    due, before = due_days(home, stream), processed_days(home, "grid")

    def full(*_):
        raise StorageError("the disk is full")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(processed, "write_record", full)
        with pytest.raises(StorageError):
            reprocess(home, stream, due.since, due.until)
    assert processed_days(home, "grid") == before
    assert due_days(home, stream) == due
    days = reprocess(home, stream, due.since, due.until).days
    assert [day.replaced for day in days] == [False, True], "the first has its rows"
    assert due_days(home, stream) is None
    caught_up = visits(home)
    assert caught_up == of_all_days(home, stream)


def test_a_record_that_was_damaged_counts_as_none(grid):
    home, stream = grid
    (home.stream("grid") / FOLDER / processed.FILE).write_bytes(b'{"days":')
    assert said(catch_up(home, stream))[:2] == (END - DAY, END)


@pytest.mark.parametrize("closes", ["end", "clock"])
def test_what_is_asked_of_a_day_without_later_fixes_makes_it_due_while_it_has_not_passed(
    tmp_path, closes
):
    home, stream = Home(tmp_path), settings()
    asks(home, stream, QUERIES)
    log, fixes = bare_log(home.log("grid")), [("a", HOUR_S, 8, 1, False)]
    segment(log, fixes)

    def close():
        if closes == "end":
            write_end(log, arrival_us=0)
        else:
            midnight_us = round((T0 + DAY).timestamp() * 1e6)
            write_clock(log, midnight_us, arrival_us=0)
        run(home, stream, until_idle=True)

    close()
    assert said(catch_up(home, stream))[:2] == (FIRST, FIRST + DAY)
    asks(home, stream, LATER)
    close()
    due = catch_up(home, stream)
    why = f"queries came or went on {FIRST} since"
    wanted = (FIRST, FIRST + DAY, why) if closes == "end" else None
    assert said(due) == wanted
    rows = tables.read(home.table("visits", "grid"), columns=["query"])
    assert ("right" in rows["query"].to_pylist()) == (closes == "end")
