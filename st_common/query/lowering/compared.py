"""Numbers with units beside columns whose unit every stream has."""

from collections.abc import Sequence

from sqlglot import exp

from st_common.config.units import WHAT, Domain
from st_common.query import near_columns
from st_common.query.grammar.nodes import Refused, span_of
from st_common.query.pair_columns import BORDER, DISTANCE, own_name, plain_name

_ACCELERATION = "acceleration_mps2"
MEASURE = "measure"
"""In the meta of a number that has a unit."""
_MEASURES: dict[str, Domain] = {
    "speed_mps": "speed",
    "elapsed_s": "time",
    DISTANCE: "space",
    BORDER: "space",
    near_columns.DISTANCE: "space",
}


def check_units(node: exp.Expr) -> None:
    """A number with a unit beside a column whose unit is known."""
    sides = [
        side.this if isinstance(side, exp.Neg) else side
        for side in node.iter_expressions()
    ]
    names = [side.name.lower() for side in sides if isinstance(side, exp.Column)]
    columns = [own_name(name) or name for name in names]
    if _ACCELERATION in columns:
        _refuse_units(sides)
    measured = next((name for name in columns if name in _MEASURES), "")
    wanted = _MEASURES.get(measured)
    for side in sides if wanted is not None else ():
        given = side.meta.get(MEASURE) if isinstance(side, exp.Literal) else None
        if given is not None and wanted is not None and given.domain != wanted:
            message = f"expected {WHAT[wanted]}, not {WHAT[given.domain]}"
            raise Refused(
                message, span_of(side), f"{plain_name(measured)} is {WHAT[wanted]}"
            )


def _refuse_units(sides: Sequence[exp.Expr]) -> None:
    """No unit is one of accelerations."""
    for side in sides:
        if isinstance(side, exp.Literal) and MEASURE in side.meta:
            message = f"a number with a unit beside {_ACCELERATION}"
            hint = f"metres per second squared are a number alone: {_ACCELERATION} < -3"
            raise Refused(message, span_of(side), hint)
