"""Joins with a layer, and of a stream's last fixes with themselves (SPEC B9, G9)."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Generic, Self, TypeVar

from st_common.query.builder.amounts import Amount, metres_of
from st_common.query.builder.expressions import Given, term
from st_common.query.builder.refusing import name_of, refuse_unless, text_of_user
from st_common.query.builder.step import Step
from st_common.query.grammar.words import quoted
from st_common.query.lowering.condition import OWN_COLUMNS
from st_common.query.pair_columns import other_label
from st_common.query.plan import MOST_NEAREST, How, LayerJoin, PairJoin

_Built = TypeVar("_Built", bound=Step)


@dataclass(frozen=True, slots=True)
class Joining(Generic[_Built]):
    """What a query joins, without the condition; each of its methods gives the builder back."""

    name: str
    is_layer: bool
    _how: How
    _joined: Callable[..., _Built]
    _key: Callable[[str, str], Given]

    def on_intersects(self) -> _Built:
        """A fix, or its enlarged box, meets the feature; its border belongs to it."""
        return self._with_layer("on_intersects()", predicate="intersects")

    def on_within(self) -> _Built:
        """A fix lies within the feature, and not on its border."""
        return self._with_layer("on_within()", predicate="within")

    def on_dwithin(self, distance: Amount) -> _Built:
        """The feature, or the other object, is at most so far: metres, or a text with its unit."""
        step = "on_dwithin(..)"
        far = metres_of(distance, "a distance", step)
        if self.is_layer:
            return self._with_layer(step, predicate="dwithin", distance_m=far)
        pairs = PairJoin(distance_m=far, how=self._how)
        return self._joined(step, join=None, pairs=pairs)

    def on_nearest(self, count: int) -> _Built:
        """The `count` features or other objects nearest to a fix, however far; of equally far ones the first by id."""
        step = "on_nearest(..)"
        nearest = _count_of_nearest(count, step)
        if self.is_layer:
            return self._with_layer(step, predicate="nearest", nearest=nearest)
        pairs = PairJoin(nearest=nearest, how=self._how)
        return self._joined(step, join=None, pairs=pairs)

    def on_equal(self, expression: str, key: str | None = None) -> _Built:
        """A value of the fix equals the feature's `key` (fid, kind or a tag), or the same value of the other object."""
        step = "on_equal(..)"
        left = self._key(expression, step)
        if not self.is_layer:
            refuse_unless(
                key is None,
                step,
                "two objects pair by the same expression",
                "on_equal(expression)",
            )
            pairs = PairJoin(keys=(left.text,), how=self._how)
            return self._joined(step, given=[left], join=None, pairs=pairs)
        hint = 'on_equal("line", "ref"): "fid", "kind" or the name of a tag'
        refuse_unless(key is not None, step, "the feature's key is missing", hint)
        right = text_of_user(key, "a key", step)
        return self._with_layer(
            step, given=[left], predicate="equals", left=left.text, right=right
        )

    def _with_layer(
        self, step: str, *, given: Iterable[Given] = (), **parts: Any
    ) -> _Built:
        refuse_unless(
            self.is_layer,
            step,
            "this needs a layer",
            "join_layer(name) for a layer with the stream's name",
        )
        join = LayerJoin(layer=self.name, how=self._how, **parts)
        return self._joined(step, given=given, join=join, pairs=None)


class JoinSteps(Step):
    """A query joins one layer, or its own stream."""

    __slots__ = ()

    def join(self, name: str, alias: str | None = None) -> Joining[Self]:
        """The layer of this name, or the other objects of the stream when it is the stream's own name."""
        step = "join(..)"
        if name_of(name, "layer", step).casefold() == self.plan.stream.casefold():
            label = other_label(self.plan.stream)
            return self._joining(self.plan.stream, label, is_layer=False)
        return self.join_layer(name, alias)

    def join_layer(self, name: str, alias: str | None = None) -> Joining[Self]:
        """The layer of this name, also when the stream is called the same; expressions call it `alias`."""
        step = "join(..)"
        layer = name_of(name, "layer", step)
        label = alias or _label(layer, self.plan.stream)
        refuse_unless(
            label.casefold() != self.plan.stream.casefold(),
            step,
            f"two things are called {label!r}",
            "give the layer an alias",
        )
        return self._joining(layer, label, is_layer=True)

    def left_join(self, layer: str, alias: str | None = None) -> Joining[Self]:
        """The features of a layer, and objects without one, whose partner is null.

        Conditions on the feature say which ones are joined with, and drop no object.
        """
        return replace(self.join_layer(layer, alias), _how="left")

    def left_join_others(self) -> Joining[Self]:
        """The other objects of the stream, and objects without one, whose partner is null; see `left_join`."""
        return replace(self.join(self.plan.stream), _how="left")

    def exists(self, layer: str, alias: str | None = None) -> Joining[Self]:
        """Only objects for which the layer has a feature, each once; conditions call the feature `alias`."""
        return replace(self.join_layer(layer, alias), _how="semi")

    def not_exists(self, layer: str, alias: str | None = None) -> Joining[Self]:
        """Only objects for which the layer has no feature; conditions call a feature `alias`."""
        return replace(self.join_layer(layer, alias), _how="anti")

    def exists_other(self) -> Joining[Self]:
        """Only objects for which the stream has another one, each once; conditions call that one `other`."""
        return replace(self.join(self.plan.stream), _how="semi")

    def not_exists_other(self) -> Joining[Self]:
        """Only objects for which the stream has no other one; conditions call such a one `other`."""
        return replace(self.join(self.plan.stream), _how="anti")

    def kinds(self, *kinds: str) -> Self:
        """Only features of these kinds."""
        step = "kinds(..)"
        wanted = tuple(text_of_user(kind, "a kind", step) for kind in kinds)
        refuse_unless(bool(wanted), step, "expected at least one kind")
        return self._next(step, join=replace(self._layer(step), kinds=wanted))

    def fid(self, value: str) -> Self:
        """Only the feature that is called so."""
        step = "fid(..)"
        pair = "fid", text_of_user(value, "the id of a feature", step)
        join = self._layer(step)
        return self._next(step, join=replace(join, tags=(*join.tags, pair)))

    def tag(self, name: str, value: str) -> Self:
        """Only features whose tag `name` has this value; several tags must all fit."""
        step = "tag(..)"
        key = text_of_user(name, "the name of a tag", step)
        refuse_unless(
            key not in OWN_COLUMNS,
            step,
            f"{key!r} is no tag",
            "kinds(..) chooses features by their kind, fid(..) one by its id",
        )
        pair = key, text_of_user(value, "the value of a tag", step) if value else ""
        join = self._layer(step)
        return self._next(step, join=replace(join, tags=(*join.tags, pair)))

    def and_equal(self, expression: str, key: str | None = None) -> Self:
        """Pairs must also agree in this value; with a layer it is equal to the feature's `key` (fid, kind or a tag)."""
        step = "and_equal(..)"
        if self.plan.join is not None:
            return self._also_by_key(self.plan.join, expression, key, step)
        pairs = self.plan.pairs
        hint = "join(the stream's own name).on_dwithin(..) comes first"
        refuse_unless(
            pairs is not None, step, "the stream is not joined with itself", hint
        )
        before = pairs or PairJoin()
        key_of_both = self._pair_key(expression, step)
        keys = (*before.keys, key_of_both.text)
        return self._next(step, given=[key_of_both], pairs=replace(before, keys=keys))

    def and_nearest(self, count: int) -> Self:
        """Only the `count` nearest others of each object, of those that pair and of which the condition holds.

        With a layer the nearest features, of those that are within the distance or have the key.
        """
        step = "and_nearest(..)"
        if self.plan.join is not None:
            nearest = _count_of_nearest(count, step)
            return self._next(step, join=replace(self.plan.join, nearest=nearest))
        pairs = self.plan.pairs
        hint = "join(the stream's own name).on_dwithin(..) comes first"
        refuse_unless(
            pairs is not None, step, "the stream is not joined with itself", hint
        )
        joined = replace(pairs or PairJoin(), nearest=_count_of_nearest(count, step))
        return self._next(step, pairs=joined)

    def _also_by_key(
        self, join: LayerJoin, expression: str, key: str | None, step: str
    ) -> Self:
        hint = 'on_dwithin("50 m").and_equal("line", "ref")'
        refuse_unless(join.left is None, step, "the join has a key already", hint)
        right = text_of_user(key, "the feature's key", step)
        left = self._layer_key(expression, step)
        joined = replace(join, left=left.text, right=right)
        return self._next(step, given=[left], join=joined)

    def _joining(self, name: str, label: str, *, is_layer: bool) -> Joining[Self]:
        key = self._layer_key if is_layer else self._pair_key
        return Joining(name, is_layer, "inner", partial(self._next, alias=label), key)

    def _layer(self, step: str) -> LayerJoin:
        join = self.plan.join
        hint = 'join("forests").on_intersects() comes first'
        refuse_unless(join is not None, step, "the query joins no layer", hint)
        return join or LayerJoin(layer="", predicate="intersects")

    def _layer_key(self, expression: str, step: str) -> Given:
        return term(expression, self._scope, step, part="join", needs="text")

    def _pair_key(self, expression: str, step: str) -> Given:
        key = term(expression, self._scope, step, part="pairs")
        hint = f"such as {quoted('line')}"
        refuse_unless(
            bool(key.term.columns), step, "expected a column of the stream", hint
        )
        return key


def _count_of_nearest(count: int, step: str) -> int:
    message = f"expected a whole number from 1 to {MOST_NEAREST:,}"
    refuse_unless(1 <= count <= MOST_NEAREST, step, message, "such as 2")
    return count


def _label(layer: str, stream: str) -> str:
    """What expressions call a layer without an alias: its name, unless that is the stream's."""
    if layer.casefold() != stream.casefold():
        return layer
    return "features" if stream.casefold() != "features" else "features_"
