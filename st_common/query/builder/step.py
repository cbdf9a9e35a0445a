"""What all steps of the builder have: the plan so far, and the check of each new one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

from st_common.errors import QueryError
from st_common.query.builder.expressions import Given
from st_common.query.checks import complaints
from st_common.query.lowering.scope import Scope
from st_common.query.plan import Plan
from st_common.settings import Columns, StreamSettings

_ANY = StreamSettings(
    name="any",
    format="csv",
    columns=Columns(object="object", x="x", y="y"),
    crs="planar",
)


@dataclass(frozen=True, slots=True)
class Step:
    """A query as far as it is built: a plan that could be registered, and how expressions call the joined layer.

    `steps` are those that made the parts of the plan, `given` the expressions as they were given to steps, by their
    part of the plan and their canonical text.
    """

    plan: Plan
    alias: str = ""
    steps: Mapping[str, str] = field(default_factory=dict)
    given: Mapping[tuple[str, str], Given] = field(default_factory=dict)

    def _next(
        self,
        step: str,
        *,
        alias: str | None = None,
        given: Iterable[Given] = (),
        **parts: Any,
    ) -> Self:
        """A new builder with these parts of the plan, which fit what is there, and the expressions given for them.

        Raises:
            QueryError: clauses that exclude each other, or one that needs another first.
        """
        plan = replace(self.plan, **parts)
        for complaint in complaints(plan, _ANY):
            raise QueryError(f"{step}: {complaint.message}", hint=complaint.hint)
        return replace(
            self,
            plan=plan,
            alias=self.alias if alias is None else alias,
            steps={**self.steps, **dict.fromkeys(parts, step)},
            given={**self.given, **{(one.part, one.text): one for one in given}},
        )

    @property
    def _scope(self) -> Scope:
        """What names in expressions mean."""
        own = frozenset({self.plan.stream})
        if self.plan.pairs is not None:
            return Scope(
                label=self.plan.stream, own=own, joined="stream", other_label="other"
            )
        if self.plan.join is None:
            return Scope(label=self.plan.stream, own=own)
        return Scope(
            label=self.plan.stream,
            own=own,
            joined="layer",
            other_label=self.alias,
            other=frozenset({self.alias}),
        )
