"""What a query about the rows of another one must answer: from these rows, whatever found them.

With WINDOW or FOR above them: at which ticks rows were chosen that count, and which these are.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from st_common.checks.archived import History
from st_common.checks.expressions import Lookup, fixes_of, values_of_rows
from st_common.checks.history import LATER, NEVER
from st_common.query.near_columns import DISTANCE, RANK, names_near
from st_common.query.neighbours import Nearest
from st_common.query.outer import sources_of
from st_common.query.pair_columns import names_pair
from st_common.query.plan import Outer, Plan
from st_common.reference import outer as reference
from st_common.reference.aggregate import Shown
from st_common.reference.columns import objects
from st_common.reference.layer_join import shown_beside
from st_common.reference.members import FeaturesOf
from st_common.reference.nearest import nearness
from st_common.reference.pair_join import asks_of_pairs

_ROW = "row"
"""Where a row stands among the others; no column is called so where it is asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerAbove:
    """What an outer query answers: the values of groups by their names, or the places of the rows that it chooses."""

    values: dict[str, Shown] | None
    chosen: list[int]


def rows_of_groups(plan: Plan, values: Mapping[str, Shown]) -> list[dict[str, Any]]:
    """The rows of a plan with an aggregate, whose groups have these values."""
    return [_row_of_group(plan, group, shown) for group, shown in values.items()]


def _row_of_group(plan: Plan, group: str, shown: Shown) -> dict[str, Any]:
    named = shown if isinstance(shown, Mapping) else {}
    values = plan.aggregate.values if plan.aggregate is not None else ()
    only = named[values[0].name] if named and values else shown
    only = float(only) if isinstance(only, int) else only
    own = {"object": group, "value": only}
    return {
        name: named[name] if source == "selected" else own[source]
        for name, source in sources_of(plan).items()
    }


def rows_of_members(
    plan: Plan,
    found: pd.DataFrame,
    others: pd.DataFrame,
    of: Lookup,
    features: FeaturesOf,
) -> list[dict[str, Any]]:
    """The rows of a plan without one: of its members, pairs, or fixes in windows.

    `others` has a row for each object that lives, and so for each partner of `found` that is one, and for the object
    that the plan goes with; `features` are those of the layer that the plan joins.
    """
    texts = dict(plan.columns)
    partners = found["partner"].to_numpy(object)
    own = {"object": found["object"].tolist(), "partner": partners.tolist()}
    columns = {
        name: _selected(texts[name], plan, found, others, of, features)
        if source == "selected"
        else own[source]
        for name, source in sources_of(plan).items()
    }
    return [
        dict(zip(columns, row, strict=True))
        for row in zip(*columns.values(), strict=True)
    ]


def _selected(
    text: str,
    plan: Plan,
    found: pd.DataFrame,
    others: pd.DataFrame,
    of: Lookup,
    features: FeaturesOf,
) -> list[Any]:
    """The values of a selected column.

    Of pairs it may be about both objects, or about the feature; of the nearest, which of them a member is.
    """
    if names_near(text) and isinstance(plan.neighbours, Nearest):
        fixes = fixes_of(found, of)
        rank, far = nearness(plan.neighbours.place, fixes_of(others, of), fixes)
        said = {RANK: objects(rank), DISTANCE: objects(far)}
        return list(fixes.of.of_features(text, fixes.rows, said))
    if plan.join is not None and names_pair(text):
        fixes = fixes_of(found, of)
        partners = found["partner"].to_numpy(object)
        columns = shown_beside(text, fixes, features(), partners)
        return list(fixes.of.of_features(text, fixes.rows, columns))
    if plan.pairs is None or not asks_of_pairs(text):
        fixes = fixes_of(found, of)
        return list(fixes.of.values(text, fixes.rows))
    partners = found["partner"].to_numpy(object)
    # Who has no partner (LEFT JOIN) stands beside nothing: a row of nulls.
    second = others.set_index("object", drop=False).reindex(partners)
    both = pd.concat([found, second], ignore_index=True)
    first = np.arange(len(found))
    return list(fixes_of(both, of).of.of_pairs(text, first, first + len(found)))


def answer_above(outer: Outer, rows: Sequence[Mapping[str, Any]]) -> AnswerAbove:
    """What an outer query answers about rows; they all have the same columns."""
    aggregate = outer.aggregate
    if aggregate is not None and aggregate.group is not None:
        # The names of groups are the texts that SQL makes of them.
        aggregate = replace(aggregate, group=_as_text(aggregate.group))
    if aggregate is not None:
        keys = tuple((name, _as_text(text)) for name, text in aggregate.keys)
        aggregate = replace(aggregate, keys=keys)
    asked = replace(outer, aggregate=aggregate)
    known = values_of_rows(asked.expressions, rows)
    placed = {place: {**row, _ROW: place} for place, row in enumerate(rows)}

    def value(text: str, row: reference.Row) -> Any:
        # Different objects are counted by the column that every row has.
        return known[text][row[_ROW]] if text in known else row[text]

    chosen = sorted(reference.chosen(asked, placed, value))
    values = None
    if aggregate is not None:
        of_rows = [placed[place] for place in chosen]
        values = reference.groups(aggregate, of_rows, value, _of_groups)
    return AnswerAbove(values=values, chosen=chosen)


def _as_text(text: str) -> str:
    return f"CAST({text} AS VARCHAR)"


def _of_groups(text: str, shown: Sequence[Mapping[str, object]]) -> list[Any]:
    return values_of_rows([text], shown)[text]


_MOST = 300
"""How many ticks are looked at: each costs as much as the answer of now."""

Rows = dict[tuple[Any, ...], dict[str, Any]]


def moments_of(since: int, outer: Outer, history: History) -> list[History] | None:
    """What had happened when rows were chosen that may count still, in order, without now; None for too many moments.

    A row that was chosen at a tick leaves at the next one, and is gone once the clock has passed the first tick after
    the window from then on. Before the first tick rows are those of when the query was registered.

    Args:
        since: the position at which that was.
        outer: what is asked of the rows.
        history: all that happened.
    """
    events, tick_us = history.events, history.times.tick_us
    judged = events[(events["due"] != LATER) & (events["due"] > since)]
    ticks = np.unique(judged["tick"].to_numpy(np.int64))
    seconds = outer.window.seconds if outer.window is not None else None
    if seconds is None or not len(ticks):
        return []
    gone = (ticks + round(seconds * 1e6)) // tick_us * tick_us + tick_us
    counts = gone > history.last_tick
    before = ticks[:-1][counts[1:]].tolist()
    if len(before) > _MOST:
        return None
    first = [history.before(since + 1, NEVER)] if counts[0] else []
    return [*first, *(history.before(0, tick + 1) for tick in before)]


def moments_since(
    since: int, lasting_s: float, history: History
) -> list[History] | None:
    """What had happened at the ticks at which a row must have been chosen to count now, in order, without now.

    Args:
        since: the position at which the query was registered.
        lasting_s: for how long rows are chosen before they count.
        history: all that happened.

    Returns:
        None for too many moments, and where what was chosen at the registration may count already.
    """
    events, tick_us = history.events, history.times.tick_us
    judged = events[(events["due"] != LATER) & (events["due"] > since)]
    ticks = np.unique(judged["tick"].to_numpy(np.int64))
    counts = -(-(ticks + round(lasting_s * 1e6)) // tick_us) * tick_us
    passed = np.flatnonzero(counts <= history.last_tick)
    needed = ticks[passed.max() :].tolist() if len(passed) else []
    if not needed or len(needed) > _MOST:
        return None
    return [history.before(0, tick + 1) for tick in needed[:-1]]


def chosen_of(outer: Outer, rows: Rows) -> list[tuple[Any, ...]]:
    """The names of the rows that satisfy the condition."""
    chosen = answer_above(Outer(where=outer.where), list(rows.values())).chosen
    names = list(rows)
    return [names[place] for place in chosen]
