"""WINDOW above the rows of a query: rows that were chosen count on for a while after they left."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from st_common.query.plan import Plan
from tests.kit.oracle_outer import Told
from tests.kit.oracle_rows import Pair


@dataclass(slots=True)
class Lately:
    """A row as it was told last; when it left, and the time of its fix then, None while it is chosen."""

    told: Told
    left_us: int | None = None
    fix_us: int | None = None


def lasting_us(plan: Plan) -> int | None:
    """How long rows of a plan count on; None where they go at once."""
    window = plan.outer.window if plan.outer is not None else None
    return (
        None
        if window is None or window.seconds is None
        else round(window.seconds * 1e6)
    )


def age_of(plan: Plan, row: Lately, tick_us: int) -> int | None:
    """The first tick at which a row that has left is too old; None of one that has not."""
    lasting = lasting_us(plan)
    if row.left_us is None or lasting is None:
        return None
    return ((row.left_us + lasting) // tick_us + 1) * tick_us


def lasting_rows(
    lately: Mapping[Pair, Lately], aged: Collection[Pair]
) -> dict[Pair, Told]:
    """The rows that were chosen and are not too old."""
    return {pair: row.told for pair, row in lately.items() if pair not in aged}


def remember_rows(
    lately: dict[Pair, Lately],
    chosen: Mapping[Pair, Told],
    fixes_us: Mapping[Pair, int],
    at_us: int,
    aged: Collection[Pair],
) -> None:
    """Takes on the rows that are chosen now; `fixes_us` are the times of the last fixes of all others."""
    for pair in [*lately]:
        if pair in chosen:
            continue
        if pair in aged:
            del lately[pair]
        elif lately[pair].left_us is None:
            lately[pair].left_us, lately[pair].fix_us = at_us, fixes_us[pair]
    for pair, told in chosen.items():
        lately[pair] = Lately(told=told)
