"""What all steps of the builder have: the plan so far, and the check of each new one."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Self

from st_common.errors import QueryError
from st_common.geometry.space import PLANE
from st_common.query.builder.expressions import Given
from st_common.query.checks import complaints_of_values
from st_common.query.lowering.scope import Scope
from st_common.query.pair_columns import other_label
from st_common.query.plan import Plan
from st_common.query.tree.fusing import plan_of
from st_common.query.tree.growing import changed
from st_common.query.tree.node import complaints_of_tree
from st_common.query.tree.relational import Told


@dataclass(frozen=True, slots=True)
class Step:
    """A query as far as it is built: operators that could be registered, and how expressions call the joined layer.

    `steps` are those that made the parts of the plan, `given` the expressions as they were given to steps, by their
    part of the plan and their canonical text.
    """

    tree: Told
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
        tree = changed(self.tree, parts)
        wrong = chain(
            complaints_of_tree(tree), complaints_of_values(plan_of(tree), PLANE)
        )
        for complaint in wrong:
            raise QueryError(f"{step}: {complaint.message}", hint=complaint.hint)
        return replace(
            self,
            tree=tree,
            alias=self.alias if alias is None else alias,
            steps={**self.steps, **dict.fromkeys(parts, step)},
            given={**self.given, **{(one.part, one.text): one for one in given}},
        )

    @property
    def plan(self) -> Plan:
        """The plan so far."""
        return plan_of(self.tree)

    @property
    def _scope(self) -> Scope:
        """What names in expressions mean; where a join chooses objects, only conditions name what chooses them."""
        plan = self.plan
        if plan.chooses and plan.outer is None:
            return Scope(label=plan.stream, own=frozenset({plan.stream}))
        return self._scope_of_conditions

    @property
    def _scope_of_conditions(self) -> Scope:
        """What names in the condition mean."""
        plan = self.plan
        if plan.outer is not None:
            return Scope(label="rows", own=frozenset({"rows"}), joined="rows")
        own = frozenset({plan.stream})
        if plan.pairs is not None:
            label = other_label(plan.stream)
            return Scope(
                label=plan.stream,
                own=frozenset({plan.stream.casefold()}),
                joined="stream",
                other_label=label,
                other=frozenset({label}),
            )
        if plan.join is None:
            return Scope(label=plan.stream, own=own)
        return Scope(
            label=plan.stream,
            own=own,
            joined="layer",
            other_label=self.alias,
            other=frozenset({self.alias}),
        )
