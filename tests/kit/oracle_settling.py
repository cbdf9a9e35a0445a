"""FOR above the rows of a query: rows count once they were chosen for a while without a break."""

from collections.abc import Mapping
from dataclasses import dataclass

from st_common.query.plan import Plan
from tests.kit.oracle_outer import Told
from tests.kit.oracle_rows import Pair


@dataclass(slots=True)
class Settling:
    """A row that is chosen: since when, as what it was told last, the time of its fix then, and whether it counts."""

    since_us: int
    told: Told
    fix_us: int
    counts: bool = False


def settling_us(plan: Plan) -> int | None:
    """How long rows of a plan are chosen before they count; None where they count at once."""
    seconds = plan.outer.lasting_s if plan.outer is not None else None
    return None if seconds is None else round(seconds * 1e6)


def ripe_at(plan: Plan, row: Settling, tick_us: int) -> int | None:
    """The first tick at which a row counts if it stays; None of one that does, and where rows count at once."""
    settling = settling_us(plan)
    if row.counts or settling is None:
        return None
    return -(-(row.since_us + settling) // tick_us) * tick_us


def remember_settling(
    rows: dict[Pair, Settling],
    chosen: Mapping[Pair, Told],
    fixes_us: Mapping[Pair, int],
    at_us: int,
    counting: set[Pair],
) -> None:
    """Takes on the rows that are chosen now; `fixes_us` are the times of their last fixes."""
    for pair in [*rows]:
        if pair not in chosen:
            del rows[pair]
    for pair, told in chosen.items():
        row = rows.setdefault(pair, Settling(at_us, told, fixes_us[pair]))
        if row.told != told:
            row.told, row.fix_us = told, fixes_us[pair]
        row.counts = pair in counting
