"""Position filters: the stage, the step, the archive and the audit say of each fix what brute force says of it."""

import tempfile
from dataclasses import replace
from pathlib import Path
from random import Random

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common import tables
from st_common.checks.audit import wrongly_filtered
from st_common.checks.verify import verify
from st_common.config.home import Home
from st_common.engine import filter_decisions as tail
from st_common.engine.archive import Archive
from st_common.engine.local import LocalEngine
from st_common.geometry.space import PLANE
from st_common.operators.position_filter.chain import Chain, judged
from st_common.operators.state.limits import REASONS, Limits, limit_columns
from st_common.position import position_of
from st_common.query.plan import Plan
from st_common.regions.registry import Box
from tests.kit import oracle
from tests.kit.effort import tries
from tests.kit.laws import holds
from tests.kit.log_writer import settings_of, write_log
from tests.kit.oracle_walks import filtered
from tests.kit.random_plans import KINDS
from tests.kit.strategies import case_of, cases, courses, filters, segmentations

SECOND_US = 1_000_000


@st.composite
def changed_filters(draw, *, kind=None, rows=40):
    """Cases in which the filter is another one from some rows on, and how they are run."""
    case = draw(cases(kind=kind, rows=rows))
    starts = sorted(draw(st.sets(st.integers(0, len(case.rows)), max_size=4)))
    found = tuple((start, draw(filters())) for start in starts)
    case = replace(case, rules=replace(case.rules, filters=found))
    return case, draw(courses(len(case.rows)))


@pytest.mark.spec("X11", "X1", "X2")
@tries(25)
@given(changed_filters(kind="fixes"))
def test_any_batching_shards_and_restarts_filter_what_brute_force_filters(drawn):
    holds(*drawn)


@pytest.mark.spec("X11", "X1", "P5")
@pytest.mark.parametrize("kind", KINDS)
@tries(2)
@given(data=st.data())
def test_no_kind_of_query_sees_a_filtered_fix(kind, data):
    holds(*data.draw(changed_filters(kind=kind)))


@st.composite
def trips(draw):
    """Fixes of some objects on a small grid, each newer than the one before, with accuracies; and a filter."""
    rng, fixes = Random(draw(st.integers(0, 1 << 48))), []
    for name in "abc"[: draw(st.integers(1, 3))]:
        at_us = 0
        for _ in range(rng.choice((1, 3, 8, 200))):
            at_us += rng.choice((1, 1, 2, 5)) * SECOND_US // 2
            load = rng.choice((None, -1.0, 0.0, 0.5, 2.0, 4.0))
            fixes.append(
                oracle.Fix(
                    position=len(fixes),
                    object=name,
                    event_us=at_us,
                    x=float(rng.randrange(4)),
                    y=float(rng.randrange(3)),
                    attributes={} if load is None else {"load": load},
                )
            )
    return fixes, draw(filters())


def by_brute_force(fixes, by):
    rules, last, said = oracle.Rules(filters=((0, by),)), {}, []
    for fix in fixes:
        found = filtered(fix, last.get(fix.object), rules)
        said.append("accepted" if found is None else found[0])
        if found is None:
            last[fix.object] = fix
    return said


@pytest.mark.spec("X11")
@tries(150)
@given(trips(), st.booleans())
def test_a_chain_says_what_one_fix_after_the_other_says(trip, some_are_known):
    fixes, by = trip
    names = [fix.object for fix in fixes]
    stay = np.array([ord(name) for name in names])
    first = np.r_[True, stay[1:] != stay[:-1]]
    loads = [fix.attributes.get("load", -1.0) for fix in fixes]
    accuracy = np.where(np.array(loads) >= 0, loads, np.nan)
    expected = by_brute_force(fixes, by)
    is_known = first & some_are_known & (np.array(expected) == "accepted")
    columns = limit_columns(((0, _limits(by)),))
    chain = Chain(
        stay=stay,
        ts=np.array([fix.event_us for fix in fixes]),
        x=np.array([fix.x for fix in fixes]),
        y=np.array([fix.y for fix in fixes]),
        span=np.ones(len(fixes), np.int64),
        accuracy_m=np.stack([accuracy, accuracy]),
        limits=columns,
        space=PLANE,
    )
    said, _ = judged(chain, is_known)
    assert [REASONS[number] for number in said] == expected


def _limits(by):
    return Limits(**{name: getattr(by, name) for name in by.__dataclass_fields__})


@st.composite
def archived(draw, geographic=False):
    """A case with one filter for all its rows, how its log is cut, and in how many goes it is archived."""
    case = draw(cases(kind="fixes", layers=False))
    rules = replace(case.rules, filters=((0, draw(filters())),))
    case = replace(case, rules=rules)
    goes = draw(st.lists(st.integers(1, 6), max_size=8))
    return case, draw(segmentations(len(case.rows))), goes


def archive_in_goes(home, stream, goes):
    """Archives the log: in each go one batch of so many segments, by an archive that knows nothing of those before."""
    for segments in goes:
        job = Archive(home, stream)
        job._pace = replace(job._pace, segments=segments)
        job.batch()
    job = Archive(home, stream)
    while job.batch():
        pass


def stored(home):
    path = home.table("positions", "grid")
    rows = tables.read(path) if tables.exists(path) else pa.table({"segment": []})
    return {
        position_of(row["segment"], row["row"]): (
            row["filtered"],
            row["filtered_value"],
        )
        for row in rows.to_pylist()
    }


@pytest.mark.spec("X11", "X6")
@tries(15)
@given(archived(), st.sampled_from([0, 1 << 30]))
def test_the_archive_stores_the_reasons_that_brute_force_gives(drawn, store_bytes):
    case, cut, goes = drawn
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tail, "_RETIRE_BYTES", store_bytes)
        home, stream = Home(Path(folder)), settings_of("grid", case.rules)
        written = write_log(home.log("grid"), case.rows, cut.cuts)
        archive_in_goes(home, stream, goes)
        expected = oracle.judge(written.rows, rules=case.rules)
        fixes = [row for row in written.rows if isinstance(row, oracle.Fix)]
        found = stored(home)
        if case.rules.lateness_us == 0:
            assert found.keys() == {fix.position for fix in fixes}
        else:  # what is held is not there yet, nor what stands behind it in the log
            kept = sorted(fix.position for fix in fixes)
            assert sorted(found) == kept[: len(found)]
        for position, (reason, value) in found.items():
            told = expected.filtered.get(position)
            assert reason == (told and told[0])
            assert told is None or value == pytest.approx(told[1])


@pytest.mark.spec("X11", "X1", "S2")
@tries(8)
@given(archived())
def test_all_answers_and_reasons_hold(drawn):
    case, cut, _ = drawn
    with tempfile.TemporaryDirectory() as folder:
        home, stream = Home(Path(folder)), settings_of("grid", case.rules)
        write_log(home.log("grid"), case.rows, cut.cuts)
        engine = LocalEngine(home, stream)
        while engine.batch():
            engine.store()
        engine.close()
        archive_in_goes(home, stream, [])
        if not tables.exists(home.table("positions", "grid")):
            return
        told = verify(home, stream)
        assert [found.query for found in told if not found.holds] == []
        assert wrongly_filtered(home, stream)[1] == []


@pytest.mark.spec("X11")
@tries(10)
@given(st.integers(0, (1 << 48) - 1), st.data())
def test_on_degrees_metres_are_geodesic(seed, data):
    case, rng, rows = case_of(seed, kind="fixes"), Random(seed), []
    square = Plan(stream="grid", inside=Box(minx=-180, miny=-90, maxx=180, maxy=90))
    for row in case.rows:
        if isinstance(row, oracle.Fix) and not row.gone:
            x, y = rng.choice(((179.9, 1.0), (-179.9, 1.0), (0.0, 89.9), (90.0, 89.9)))
            rows.append(replace(row, x=x, y=y))
        elif "plan" in getattr(row, "row", {}):
            rows.append(replace(row, row={**row.row, "plan": square.to_json()}))
        else:
            rows.append(row)
    by = oracle.Filter(
        max_speed_mps=rng.choice((None, 5_000.0, 20_000.0)),
        min_distance_m=rng.choice((None, 10_000.0, 30_000.0)),
    )
    rules = replace(case.rules, geographic=True, filters=((0, by),))
    case = replace(case, rows=tuple(rows), rules=rules)
    holds(case, data.draw(courses(len(rows), margins=(0.0,), shards=(1, 3))))
