"""Random incidents on the small grid: conditions that hold for some fixes and times, and what ends them."""

from random import Random

from st_common.query.fence import Debounce
from st_common.query.incident import Incident, Worst
from tests.kit.oracle_rows import CONDITIONS, NUMBERS


def draw_incident(rng: Random, *, every: bool) -> Incident:
    """Short ones, for a case has some dozens of fixes; mostly with an end of their own, a gap, a worst value."""
    return Incident(
        lasting=rng.choice(
            (
                Debounce(),
                Debounce(fixes=2),
                Debounce(fixes=3),
                Debounce(seconds=1.0),
                Debounce(fixes=2, seconds=2.0),
            )
        ),
        until=rng.choice(sorted(CONDITIONS)) if rng.random() < 0.5 else None,
        max_gap_s=rng.choice((None, None, 0.5, 1.0, 2.5)),
        every_s=rng.choice((None, 0.5, 1.5, 3.0)) if every else None,
        worst=_draw_worst(rng) if rng.random() < 0.6 else None,
    )


def _draw_worst(rng: Random) -> Worst:
    return Worst(
        function=rng.choice(("max", "min")),
        argument=rng.choice(sorted(NUMBERS)),
        name="worst",
    )
