"""Which nodes of an expression compare values with each other."""

from sqlglot import exp

COMPARING = (
    exp.EQ,
    exp.NEQ,
    exp.GT,
    exp.GTE,
    exp.LT,
    exp.LTE,
    exp.NullSafeEQ,
    exp.NullSafeNEQ,
    exp.In,
    exp.Between,
)
"""Those of any values. `LIKE` and `IS`, which ask of texts and of null, are not among them."""
