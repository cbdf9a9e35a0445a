"""Who satisfies a plan, from the last readings of the objects that live: what the reference says of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from st_common.query.plan import Plan
from st_common.reference import members as reference
from st_common.reference.columns import Features, Fixes, objects
from st_common.reference.metric import Ints, Metric, Objects
from tests.kit.oracle_expressions import (
    text_of,
    value_beside,
    value_of,
    value_of_pair,
)
from tests.kit.oracle_outer import EXPRESSIONS
from tests.kit.oracle_readings import Known, Reading
from tests.kit.oracle_rows import Feature, Pair, Rules


@dataclass(frozen=True, slots=True)
class _Meanings:
    """What expressions say of readings, by `oracle_expressions`."""

    readings: Sequence[Reading]

    def values(self, text: str, rows: Ints, partners: Objects | None = None) -> Objects:
        """See `Expressions.values`."""
        others = [None] * len(rows) if partners is None else partners.tolist()
        pairs = zip(rows.tolist(), others, strict=True)
        return objects([value_of(text, self.readings[r], p) for r, p in pairs])

    def texts(self, text: str, rows: Ints, partners: Objects | None = None) -> Objects:
        """See `Expressions.texts`."""
        values = self.values(text, rows, partners)
        return objects([None if one is None else text_of(one) for one in values])

    def of_pairs(self, text: str, rows: Ints, others: Ints) -> Objects:
        """See `Expressions.of_pairs`."""
        pairs = zip(rows.tolist(), others.tolist(), strict=True)
        return objects(
            [value_of_pair(text, self.readings[a], self.readings[b]) for a, b in pairs]
        )

    def of_features(
        self, text: str, rows: Ints, columns: Mapping[str, Objects]
    ) -> Objects:
        """See `Expressions.of_features`."""
        return objects(
            [
                value_beside(
                    text,
                    self.readings[row],
                    {name: values[at] for name, values in columns.items()},
                )
                for at, row in enumerate(rows.tolist())
            ]
        )

    def of_groups(self, text: str, shown: Sequence[Mapping[str, object]]) -> Objects:
        """See `Expressions.of_groups`."""
        return objects([EXPRESSIONS[text](row) for row in shown])

    def attributes(self, name: str, rows: Ints) -> Objects:
        """See `Expressions.attributes`."""
        own = (self.readings[row].fix.attributes.get(name) for row in rows)
        return objects([None if one is None else text_of(one) for one in own])


def fixes_of(readings: Sequence[Reading], rules: Rules) -> Fixes:
    """Readings as the reference reads them."""
    return Fixes(
        ids=objects([one.fix.object for one in readings]),
        x=np.array([one.fix.x for one in readings], float),
        y=np.array([one.fix.y for one in readings], float),
        metric=metric_of(rules),
        of=_Meanings(readings),
        rows=np.arange(len(readings)),
    )


def metric_of(rules: Rules) -> Metric:
    """How a stream's places are measured; the oracle has no doubts."""
    return Metric(is_flat=not rules.geographic)


def features_of(features: Sequence[Feature]) -> Features:
    """Features as the reference reads them."""
    return Features(
        fids=objects([one.fid for one in features]),
        kinds=objects([one.kind for one in features]),
        tags=[one.tags for one in features],
        shapes=objects([one.geometry for one in features]),
    )


def members(
    plan: Plan, known: Known, features: Sequence[Feature], rules: Rules
) -> dict[Pair, Reading]:
    """The pairs that satisfy a plan's operators below window and aggregate, each with the reading of its object."""
    alive = list(known.alive.values())
    answer = reference.members(
        plan, fixes_of(alive, rules), lambda: features_of(features)
    )
    pairs = zip(answer.row.tolist(), answer.partner.tolist(), strict=True)
    return {(alive[row].fix.object, partner): alive[row] for row, partner in pairs}


def partners_of(
    plan: Plan, reading: Reading, features: Sequence[Feature], rules: Rules
) -> list[str | None]:
    """The partners of a fix that qualifies, as it is when it comes: [None] without a join; none if it does not."""
    fixes = fixes_of([reading], rules)
    eligible = reference.qualified(plan, fixes)
    pairs = reference.joined(plan, fixes, eligible, lambda: features_of(features))
    return list(pairs.partner)
