"""What the condition of a pair is about: its first object, the other one, or both; each is tested as soon as can be.

state = 'free' AND "other.state" = 'busy' AND speed_mps > "other.speed_mps"

first     state = 'free'                        who may come first
other     state = 'busy'                        who may be the other one
both      speed_mps > "other.speed_mps"         pairs that are near
"""

from dataclasses import dataclass
from functools import lru_cache

from st_common.query.pair_columns import names_pair
from st_common.query.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Sides:
    """The parts of a condition, each as canonical SQL; `other` in the names of the other object's own columns.

    None where there is no such part. All of them hold of the pairs of which the condition is true, and of no others.
    `beside` is what `other` and `both` say together in the names of the condition: what a fix and a feature are asked.
    """

    first: str | None = None
    other: str | None = None
    both: str | None = None
    beside: str | None = None


@lru_cache(maxsize=4096)
def sides_of(where: str | None) -> Sides:
    """The parts of a condition (canonical SQL, None for none), cut where AND joins them."""
    if where is None or not names_pair(where):
        return Sides(first=where)
    from st_common.query.side_parts import side_parts  # sqlglot is slow to import

    return Sides(**side_parts(where))


def alone(plan: Plan) -> str | None:
    """What the condition of a plan asks of a fix alone, whatever it is joined with; None for nothing."""
    is_joined = plan.pairs is not None or plan.join is not None
    return sides_of(plan.where).first if is_joined else plan.where
