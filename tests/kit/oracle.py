"""The right answer: `st_common.checks` walks the rows of a law's log, and `st_common.reference` says what is meant.

It shares nothing with the engines: no step, no kernel, no decoder. What happens when, and what answers follow, is what
`fairway verify` asks too. What SQL means, what a fix says of its object, what is told beside an answer is found here:

    oracle_rows         what is read, what is said, and what follows from the fix before
    oracle_expressions  SQL and what it means
    oracle_history      the rows as a history: filters, features, which fixes are late or double
    oracle_walks        what fences, incidents and queries that are judged fix by fix tell
    oracle_ticks        what queries at ticks tell: their answers at one moment after the other
    oracle              all queries of a log
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from st_common.checks.history import LATER, Registered, lives_of
from tests.kit.oracle_history import Past, past_of
from tests.kit.oracle_rows import (
    Change,
    Control,
    Feature,
    Filter,
    Fix,
    Layers,
    Outcome,
    Row,
    Rules,
    distance_m,
)
from tests.kit.oracle_ticks import Ticks
from tests.kit.oracle_walks import Events, Fixes, Walk

__all__ = [
    "Change",
    "Control",
    "Feature",
    "Filter",
    "Fix",
    "Layers",
    "Outcome",
    "Row",
    "Rules",
    "agree",
    "answer",
    "changes",
    "distance_m",
    "fold",
    "judge",
]

Answer = dict[tuple[str, str, str | None], float | None]
"""(query, object, partner) that hold; with the value of an aggregate's group, None for all others."""


def judge(
    rows: Iterable[Row], *, layers: Layers | None = None, rules: Rules | None = None
) -> Outcome:
    """The changes of the rows, which are in log order, and the counts of late, double and used fixes.

    `seq` counts the changes of one position from 0, in the order of event time, kind (expiry, fix, tick), object, sign
    (all -, all +, all 0), registration of the query, partner; ids in the order of their text, no partner first. A
    query that is replaced counts as registered anew.

    Raises:
        KeyError: a query joins a layer and nobody named a version of it, or `layers` does not hold that version; an
            expression is not in `oracle_expressions`.
    """
    past = past_of(rows, layers or {}, rules or Rules())
    told = [placed for walk in _walks(past) for placed in walk.told]
    told.sort(key=lambda placed: (placed[1].position, placed[0]))
    seq: Counter[int] = Counter()
    numbered = []
    for _, change in told:
        numbered.append(replace(change, seq=seq[change.position]))
        seq[change.position] += 1
    return Outcome(
        changes=numbered,
        filtered=dict(past.filtered),
        late=past.late,
        double=past.double,
        used=past.used,
    )


def _walks(past: Past) -> list[Walk]:
    """All queries that ever were registered, walked to their ends."""
    walks = [_walk_of(query, past) for query in lives_of(past.controls, 1.0)]
    for walk in walks:
        walk.go()
    return walks


def _walk_of(query: Registered, past: Past) -> Walk:
    if query.plan.tells_events:
        return Events(query, past)
    return Ticks(query, past) if query.plan.by_ticks else Fixes(query, past)


def changes(
    rows: Iterable[Row], *, layers: Layers | None = None, rules: Rules | None = None
) -> list[Change]:
    """The changes alone of `judge`."""
    return judge(rows, layers=layers, rules=rules).changes


def answer(
    rows: Iterable[Row],
    *,
    upto: int | None = None,
    layers: Layers | None = None,
    rules: Rules | None = None,
) -> Answer:
    """What holds after the rows up to position `upto`, both included (None: after all rows).

    Found anew from the last fixes of all living objects, not by folding changes, so that the two check each other.
    A query at ticks holds what it held at the last one that was due, or when it was registered; nothing before that
    was judged, which is when the stream has a time.
    """
    known = (row for row in rows if upto is None or row.position <= upto)
    held: Answer = {}
    for walk in _walks(past_of(known, layers or {}, rules or Rules())):
        if walk.query.end == LATER:
            name = walk.query.name
            held |= {(name, *pair): value for pair, value in walk.held().items()}
    return held


def fold(rows: Iterable[Change]) -> Answer:
    """The answers that changes add up to, by (position, seq), each with the value of its last +.

    Raises:
        AssertionError: a + for a member, a - or 0 for what is none, or a - that takes back another value than was told:
            no order of changes may do that.
    """
    answer: Answer = {}
    rows = sorted(rows, key=lambda row: (row.position, row.seq))
    signed = {(row.query, row.query_version) for row in rows if row.sign}
    for change in rows:
        key = (change.query, change.object, change.partner)
        version = change.query, change.query_version
        if change.sign == 0 and (version not in signed or change.cause in _EVENTS):
            continue
        if (key in answer) != (change.sign <= 0):
            raise AssertionError(f"{change} does not follow from what is before it")
        if change.sign > 0:
            # How long an incident has lasted goes on: what ends it tells another value.
            answer[key] = None if change.cause == "started" else change.value
        elif change.sign < 0 and _differs(answer.pop(key), change.value):
            raise AssertionError(f"{change} takes back what was not told")
    return answer


def _differs(told: float | None, taken_back: float | None) -> bool:
    """Whether a value is taken back that was not told; of a visit the + has none."""
    return None not in (told, taken_back) and told != taken_back


_EVENTS = ("outside", "cross", "dwell")  # of fences: they say nothing of an answer


def agree(folded: Answer, held: Answer) -> bool:
    """Whether a fold says what an `answer` says; values count where they are those of aggregates."""
    return folded.keys() == held.keys() and all(
        folded[key] == value for key, value in held.items() if value is not None
    )
