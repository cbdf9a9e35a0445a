"""Several values of each group, and what answers are grouped by (SPEC G9)."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Self

from st_common.query.builder.expressions import (
    Given,
    condition_of_groups,
    term,
    value,
)
from st_common.query.builder.refusing import refuse_unless, text_of_user
from st_common.query.builder.step import Step
from st_common.query.plan import Aggregate, Top, Value, asks_ways
from st_common.query.several import name_of_key, name_of_value, wrong_in_top

Column = str | tuple[str, str]
"""An expression, or a name and an expression."""


class GroupingSteps(Step):
    """Values and keys have names, by which changes show them, and queries about the rows ask for them."""

    __slots__ = ()

    def aggregate(self, *values: Column, **named: str) -> Self:
        """Several values of each group: `aggregate("count(*)", v="avg(speed_mps)")`; they replace what was counted.

        A value without a name is called as it is written. Changes show all of them in `fields`. An average speed,
        `avgspd(*)`, and a length of a way, `travelled(*)`, are of each object: without keys it is the object.
        """
        step = "aggregate(..)"
        chosen, given = list[Value](), list[Given]()
        for name, text in _named((*values, *named.items()), step):
            one, terms = value(text, self._scope, step, name=name)
            chosen.append(one)
            given += terms
        refuse_unless(bool(chosen), step, "expected a value", "aggregate(n='count(*)')")
        before = (self.plan.outer or self.plan).aggregate
        keys = () if before is None else _keys_of(before)
        made = Aggregate(function="several", values=tuple(chosen), keys=keys)
        if asks_ways(made) and not keys:
            made = replace(made, keys=(("object", "object"),))
        return self._grouping(step, made, given)

    def group_by(self, *expressions: Column, **named: str) -> Self:
        """Values for each value of an expression, or of several: `group_by("line", floor="round(z)")`.

        `layer.fid` is the feature joined with. One expression without a name, of one value, names the group; else
        changes show all of them in `fields` as well.
        """
        step = "group_by(..)"
        before = (self.plan.outer or self.plan).aggregate
        hint = "count(), sum(..), aggregate(..) and the like come first"
        can_group = before is not None and before.function not in ("distinct", "avgspd")
        refuse_unless(can_group, step, "GROUP BY needs an aggregate", hint)
        pairs = _named((*expressions, *named.items()), step)
        refuse_unless(bool(pairs), step, "expected an expression", 'group_by("line")')
        given = [self._group(text, step) for _, text in pairs]
        aggregate = before or Aggregate(function="count")
        is_one = aggregate.function != "several" and len(pairs) == 1 and not pairs[0][0]
        if is_one:
            grouped = replace(aggregate, group=given[0].text)
            return self._next(step, given=given, aggregate=grouped)
        keys = [
            (name or _own_name(one), one.text)
            for (name, _), one in zip(pairs, given, strict=True)
        ]
        made = replace(_as_several(aggregate), keys=tuple(keys))
        return self._grouping(step, made, given)

    def top(
        self,
        limit: int,
        by: str,
        *,
        per: str = "",
        least: bool = False,
        having: str = "",
    ) -> Self:
        """Only the groups with the greatest values, or the least: `top(3, "n")`, `top(1, "avg(speed)", per="line")`.

        What was counted and grouped before stays; `by` is the name of a value, `per` that of a key: then so many groups
        of each of its values. With `having`, a condition on numbers and keys, they are chosen among the groups of which
        it holds: `top(3, "n", having="avg(speed) > 2")`.
        """
        step = "top(..)"
        before = (self.plan.outer or self.plan).aggregate
        hint = "count(), aggregate(..), and group_by(..) come first"
        can_order = before is not None and before.function not in ("distinct", "avgspd")
        refuse_unless(can_order, step, "ORDER BY needs an aggregate", hint)
        counted = replace(before or Aggregate(function="count"), top=None)
        several = replace(_as_several(counted), keys=_keys_of(counted))
        top = Top(value=by, limit=limit, descending=not least, per=per or None)
        made = replace(several, top=top)
        if having:
            asked = condition_of_groups(having, made, self._scope, step)
            made = replace(several, top=replace(top, having=asked))
        wrong = wrong_in_top(made)
        refuse_unless(
            not wrong, step, wrong, "top(3, 'n') behind aggregate(n='count(*)')"
        )
        return self._grouping(step, made, ())

    def _among_groups(self, text: str, step: str) -> Self:
        """Only the groups of rows of which a condition holds."""
        before = None if self.plan.outer is None else self.plan.outer.aggregate
        hint = "count(), aggregate(..), and group_by(..) come first"
        refuse_unless(before is not None, step, "HAVING needs an aggregate", hint)
        counted = replace(before or Aggregate(function="count"), top=None)
        several = replace(_as_several(counted), keys=_keys_of(counted))
        made = replace(several, top=Top())
        asked = condition_of_groups(text, made, self._scope, step)
        chosen = replace(several, top=Top(having=asked))
        wrong = wrong_in_top(chosen)
        refuse_unless(not wrong, step, wrong, "group_by(..) comes first")
        return self._grouping(step, chosen, ())

    def _grouping(self, step: str, made: Aggregate, given: Iterable[Given]) -> Self:
        """The step that has several values, whose names are different in any case."""
        names = [name for name, _ in made.keys] + [one.name for one in made.values]
        counts = Counter(name.casefold() for name in names)
        for name in names:
            is_only = counts[name.casefold()] == 1
            message = f"two columns are called {name!r}"
            refuse_unless(is_only, step, message, "give one another name")
        return self._next(step, given=given, aggregate=made)

    def _group(self, expression: str, step: str) -> Given:
        group = term(expression, self._scope, step, part="group", partner=True)
        of_rows = self.plan.outer is not None
        alone = (
            of_rows
            or group.text == "partner"
            or all(name != "partner" for name, _ in group.term.columns)
        )
        refuse_unless(
            alone,
            step,
            "the feature stands alone in a group",
            f"{self._scope.other_label}.fid",
        )
        return group


def _named(columns: Sequence[Column], step: str) -> list[tuple[str, str]]:
    """Names, empty where none is given, and texts."""
    return [
        (text_of_user(one[0], "the name of a column", step), one[1])
        if isinstance(one, tuple)
        else ("", one)
        for one in columns
    ]


def _own_name(key: Given) -> str:
    is_feature = key.text == "partner" and key.term.text != key.source
    return "fid" if is_feature else name_of_key(key.text)


def _keys_of(aggregate: Aggregate) -> tuple[tuple[str, str], ...]:
    """The keys of what was counted before."""
    if aggregate.function in ("distinct", "avgspd", "several"):
        return aggregate.keys
    return tuple((name_of_key(text), text) for text in aggregate.grouped_by)


def _as_several(aggregate: Aggregate) -> Aggregate:
    """The same value as one of several."""
    if aggregate.function == "several":
        return aggregate
    name = name_of_value(aggregate.function, aggregate.argument)
    only = Value(name=name, function=aggregate.function, argument=aggregate.argument)  # type: ignore[arg-type] # no distinct ones, no speeds
    return Aggregate(function="several", values=(only,))
