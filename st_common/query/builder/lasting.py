"""FOR and UNTIL: a condition that holds for some time is an incident (SPEC X8)."""

from typing import Literal, Self, get_args

from st_common.errors import QueryError
from st_common.query.builder.amounts import Amount, duration_of
from st_common.query.builder.expressions import Given, condition, term
from st_common.query.builder.fencing import InARow, debounce_of
from st_common.query.builder.refusing import refuse_unless, text_of_user
from st_common.query.builder.step import Step
from st_common.query.incident import Extreme, Incident, Worst, name_of_worst

WorstOf = tuple[Literal["max", "min"], str] | tuple[Literal["max", "min"], str, str]
"""The greatest or the least of an expression, and perhaps a name for it."""
_PART = "incident"


class LastingSteps(Step):
    """Incidents of a condition: `where(..)`, `inside(..)` or a join comes first."""

    __slots__ = ()

    def lasting(
        self,
        lasting: InARow,
        *,
        until: str | None = None,
        max_gap: Amount | None = None,
        every: Amount | None = None,
        worst: WorstOf | None = None,
    ) -> Self:
        """FOR: `where("speed > 50").lasting("30 s", until="speed < 40", worst=("max", "speed"))`.

        After `rows()`: rows count once they were there for so long, a time alone.

        Args:
            lasting: for how long fixes in a row satisfy the condition: "30 s", "3 fixes" (or 3), or both: (3, "30 s").
            until: the condition that ends an incident; without it the first fix that does not satisfy the other one.
            max_gap: two fixes that are further apart in time end it; a number is seconds.
            every: tells that it goes on, at most once in such a time; `emit_every()` tells it with each fix.
            worst: the worst value of an incident: ("max", "speed"), or ("min", "fuel", "lowest") to call it so.

        Raises:
            QueryError: an amount or an expression that is none, no condition, or another step that FOR excludes.
        """
        step = "lasting(..)"
        if self.plan.outer is not None:
            return self._of_rows(lasting, step, (until, max_gap, every, worst))
        ending = None if until is None else self._ending(until, step)
        least, value = self._worst(worst, step)
        incident = Incident(
            lasting=debounce_of(lasting, step),
            until=None if ending is None else ending.text,
            max_gap_s=None if max_gap is None else duration_of(max_gap, "a gap", step),
            every_s=None if every is None else duration_of(every, "an interval", step),
            worst=least,
        )
        given = [one for one in (value, ending) if one is not None]
        emit = self.plan.emit if every is None else "every"
        return self._next(step, given=given, incident=incident, emit=emit)

    def _of_rows(self, lasting: InARow, step: str, others: tuple[object, ...]) -> Self:
        """Rows that were there for a while."""
        message = "above rows it is a time alone, such as 5 min"
        refuse_unless(not any(one is not None for one in others), step, message)
        if isinstance(lasting, tuple):
            raise QueryError(f"{step}: {message}")
        amount = float(lasting) if isinstance(lasting, int) else lasting
        return self._next(step, lasting_s=duration_of(amount, "FOR", step))

    def _ending(self, until: str, step: str) -> Given:
        return condition(until, self._scope, step, part=_PART)

    def _worst(
        self, worst: WorstOf | None, step: str
    ) -> tuple[Worst | None, Given | None]:
        """The worst value, and its expression."""
        if worst is None:
            return None, None
        function, text, *names = worst
        known = get_args(Extreme)
        message = f"expected one of {', '.join(known)}, not {function!r}"
        refuse_unless(function in known, step, message)
        value = term(text, self._scope, step, part=_PART, needs="number")
        name = name_of_worst(function, value.text)
        if names:
            name = text_of_user(names[0], "the name of a value", step)
        return Worst(function=function, argument=value.text, name=name), value
