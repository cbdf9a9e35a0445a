"""All machines at once do what one machine does that goes from code to code."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.operators.fence.machine import (
    END,
    IN,
    NEAR,
    OUT,
    Course,
    Rules,
    Standing,
    run,
)
from st_common.operators.state.fixes import NEVER

CODES = st.lists(
    st.tuples(st.sampled_from([END, OUT, NEAR, IN, IN, OUT]), st.integers(1, 3)),
    min_size=1,
    max_size=12,
)
RULE = st.tuples(*[st.integers(1, 3), st.integers(0, 4)] * 2)


def walk(codes, rule):
    """One machine by hand: what happens at each code, and how it stands at last."""
    enter_fixes, enter_us, exit_fixes, exit_us = rule
    since, row, row_since, out = None, 0, None, []
    for code, ts in codes:
        against = OUT if since is not None else IN
        row, row_since = (
            (row + 1, row_since if row else ts) if code == against else (0, None)
        )
        fixes, us = (
            (exit_fixes, exit_us) if since is not None else (enter_fixes, enter_us)
        )
        changes = row >= fixes and row > 0 and ts - row_since >= us
        if since is not None and (changes or code == END):
            out.append(("exit", since))
            since, row, row_since = None, 0, None
        elif since is None and changes:
            since, row, row_since = ts, 0, None
            out.append(("enter", ts))
        else:
            out.append(("in" if since is not None else "out", since))
    return out, (since, row, row_since)


def as_arrays(machines):
    machine = np.repeat(np.arange(len(machines)), [len(codes) for codes, _ in machines])
    code = np.array([code for codes, _ in machines for code, _ in codes])
    ts = np.array([ts for codes, _ in machines for _, ts in codes])
    rules = np.array([rule for _, rule in machines]).T
    return Course(machine=machine, code=code, ts=ts), Rules(
        enter_fixes=rules[0],
        enter_us=rules[1],
        exit_fixes=rules[2],
        exit_us=rules[3],
    )


def timed(codes):
    times = np.cumsum([step for _, step in codes]).tolist()
    return [(code, ts) for (code, _), ts in zip(codes, times, strict=True)]


def words(ran, row):
    if ran.enters[row]:
        return ("enter", int(ran.since[row]))
    if ran.exits[row]:
        return ("exit", int(ran.since[row]))
    return ("in", int(ran.since[row])) if ran.is_in[row] else ("out", None)


@pytest.mark.spec("X3")
@given(st.lists(st.tuples(CODES, RULE), min_size=1, max_size=4), st.integers(1, 11))
def test_machines_at_once_and_in_parts_do_what_one_does_by_itself(drawn, cut):
    machines = [(timed(codes), rule) for codes, rule in drawn]
    expected = [walk(codes, rule) for codes, rule in machines]
    nobody = np.full(len(machines), NEVER)
    stands = Standing(
        since=nobody, against=np.zeros(len(machines), np.int64), against_since=nobody
    )
    told = [[] for _ in machines]
    for part in (slice(0, cut), slice(cut, None)):
        which = [n for n, (codes, _) in enumerate(machines) if codes[part]]
        if not which:
            continue
        mine = [(machines[n][0][part], machines[n][1]) for n in which]
        course, rules = as_arrays(mine)
        before = Standing(
            since=stands.since[which],
            against=stands.against[which],
            against_since=stands.against_since[which],
        )
        ran = run(course, rules, before)
        for row, machine in enumerate(course.machine.tolist()):
            told[which[machine]].append(words(ran, row))
        for name in ("since", "against", "against_since"):
            after = getattr(stands, name).copy()
            after[which] = getattr(ran.after, name)
            stands = Standing(
                **{
                    **{
                        n: getattr(stands, n)
                        for n in ("since", "against", "against_since")
                    },
                    name: after,
                }
            )
    assert told == [lines for lines, _ in expected]
    found = zip(
        stands.since.tolist(),
        stands.against.tolist(),
        stands.against_since.tolist(),
        strict=True,
    )
    assert [
        (s if s != NEVER else None, n, t if t != NEVER else None) for s, n, t in found
    ] == [end for _, end in expected]
