"""BBoxDB's continuous range query q(S, alpha, tau, theta, beta), word by word (SPEC B8, B10)."""

from dataclasses import replace
from typing import Self

from st_common.query.builder.amounts import Amount, metres_of, number_of
from st_common.query.builder.refusing import refuse_unless, text_of_user
from st_common.query.builder.regions import BoxLike, box_of
from st_common.query.builder.step import Step
from st_common.query.comparing import Compare, Kind, Transform
from st_common.query.filters import NEAR, NEAR_M


class RangeSteps(Step):
    """Transformations apply in the order written; of the same way to enlarge the last call counts, filters add up."""

    __slots__ = ()

    def in_space(self, box: BoxLike) -> Self:
        """alpha: only fixes inside this box, as they come, before any transformation."""
        step = "in_space(..)"
        return self._next(step, inside=box_of(box, step))

    def enlarge_factor(self, factor: float) -> Self:
        """An extent e of the fix's box becomes (1 + factor) e."""
        step = "enlarge_factor(..)"
        return self._enlarged(step, "factor", number_of(factor, "a factor", step))

    def enlarge_value(self, value: float) -> Self:
        """The extents of the fix's box grow by a value in coordinates, half on each side."""
        step = "enlarge_value(..)"
        return self._enlarged(step, "value", number_of(value, "a value", step))

    def enlarge_metres(self, metres: Amount) -> Self:
        """The extents of the fix's box grow by metres, or by a text such as "50 ft", half on each side."""
        step = "enlarge_metres(..)"
        return self._enlarged(step, "metres", metres_of(metres, "an enlargement", step))

    def filter_key(self, key: str) -> Self:
        """Only the object of this id passes."""
        step = "filter_key(..)"
        return self._through(
            step, Transform(kind="key", text=text_of_user(key, "a key", step))
        )

    def filter_box(self, box: BoxLike) -> Self:
        """Only what meets this box passes, as the fix's box is by then."""
        step = "filter_box(..)"
        return self._through(step, Transform(kind="box", box=box_of(box, step)))

    def filter(
        self, name: str, value: str | None = None, *, metres: Amount | None = None
    ) -> Self:
        """Only what the filter `name` lets through, given its custom value; `metres` (5) is of `geojson_near` alone."""
        step = "filter(..)"
        custom = text_of_user(value, "a value", step) if value else value
        name = text_of_user(name, "a filter", step)
        amount = NEAR_M if name == NEAR else 0.0
        if metres is not None:
            amount = metres_of(metres, "a distance", step)
        return self._through(
            step, Transform(kind="filter", name=name, text=custom, amount=amount)
        )

    def compare_with(self, box: BoxLike) -> Self:
        """tau: the transformed box of a fix must meet this box."""
        step = "compare_with(..)"
        negative = self.plan.compare is not None and self.plan.compare.negative
        return self._next(
            step, compare=Compare(box=box_of(box, step), negative=negative)
        )

    def positive_matches(self) -> Self:
        """beta: what meets the box of `compare_with` counts, which is so without this."""
        return self._matching("positive_matches()", negative=False)

    def negative_matches(self) -> Self:
        """beta: what does not meet the box of `compare_with` counts."""
        return self._matching("negative_matches()", negative=True)

    def _matching(self, step: str, *, negative: bool) -> Self:
        hint = "compare_with(box) comes first"
        refuse_unless(
            self.plan.compare is not None,
            step,
            "there is nothing to compare with",
            hint,
        )
        assert self.plan.compare is not None  # noqa: S101 - for the type checker: it was refused
        return self._next(step, compare=replace(self.plan.compare, negative=negative))

    def _enlarged(self, step: str, kind: Kind, amount: float) -> Self:
        others = tuple(each for each in self.plan.transforms if each.kind != kind)
        return self._next(
            step, transforms=(*others, Transform(kind=kind, amount=amount))
        )

    def _through(self, step: str, transform: Transform) -> Self:
        return self._next(step, transforms=(*self.plan.transforms, transform))
