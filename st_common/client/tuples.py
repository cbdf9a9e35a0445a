"""What a registered query gives: BBoxDB's MultiTuples, each with how the answer changed (SPEC B14)."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from st_common.answers.places import place_of
from st_common.query.plan import Plan
from st_common.query.tuples import Element, Feature


@dataclass(frozen=True, slots=True, kw_only=True)
class MultiTuple:
    """An ordered set of tuples, and what happened to it in the answer (BBoxDB's MultiTuple, SPEC B14).

    One tuple for a range query, the stream's; two for a join, the stream's first, then the feature or the other object.

    Attributes:
        tuples: the tuples; iterating and indexing go to them.
        sign: +1 when it entered the answer, -1 when it left, 0 for a further fix of a member or an event of a fence.
        cause: why, such as `enter`, `leave`, `gone`; see the contract `changes`.
        value: of an aggregate, or what else the query gives with a member; None without.
        event_ts: when it happened, in event time (UTC).
        query_version: the version of the query that was judged.
        layer_version: the version of the layer that was judged; None without one.
        position: its place in the stream's log.
        seq: its number among the changes of that place.
    """

    tuples: tuple[Element | Feature, ...]
    sign: int
    cause: str
    value: float | None
    event_ts: datetime
    query_version: int
    layer_version: int | None
    position: int
    seq: int

    @property
    def element(self) -> Element:
        """The first tuple: the stream's."""
        first = self.tuples[0]
        assert isinstance(first, Element)  # noqa: S101 - so it was made
        return first

    def __iter__(self) -> Iterator[Element | Feature]:
        return iter(self.tuples)

    def __len__(self) -> int:
        return len(self.tuples)

    def __getitem__(self, number: int) -> Element | Feature:
        return self.tuples[number]


def multi_tuple(
    row: Mapping[str, Any], plan: Plan, features: Mapping[str, Feature]
) -> MultiTuple:
    """One row of the table `changes` as a MultiTuple.

    Args:
        row: the row, by column.
        plan: of the query that it is of; says what a partner is.
        features: by fid, those of which kind and tags are known.
    """
    return MultiTuple(
        tuples=(_element(row), *_partner(row, plan, features)),
        sign=row["sign"],
        cause=row["cause"],
        value=row["value"],
        event_ts=row["event_ts"],
        query_version=row["query_version"],
        layer_version=row["layer_version"],
        position=row["position"],
        seq=row["seq"],
    )


def _element(row: Mapping[str, Any]) -> Element:
    x, y = row["x"], row["y"]
    if x is None:
        x, y = place_of(row["fields"]) or (None, None)
    return Element(
        object=row["object"],
        event_ts=row["fix_ts"] or row["event_ts"],
        x=x,
        y=y,
        fields=json.loads(row["fields"]) if row["fields"] else {},
    )


def _partner(
    row: Mapping[str, Any], plan: Plan, features: Mapping[str, Feature]
) -> tuple[()] | tuple[Element | Feature]:
    """The second tuple of a join; the partner of a fix in a window is its own time, which the element has."""
    partner = row["partner"]
    if partner is None or plan.frame is not None:
        return ()
    if plan.join is not None:
        return (features.get(partner) or Feature(fid=partner, layer=plan.join.layer),)
    return (Element(object=partner),)
