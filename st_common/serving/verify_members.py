"""What the reference says of the fixes of a stream: who is a member, who qualified, with which partners."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import shapely

from st_common import tables
from st_common.geometry.space import Space
from st_common.home import Home
from st_common.query.plan import LayerJoin, Plan
from st_common.reference import members as reference
from st_common.reference.columns import Features, Fixes, objects
from st_common.reference.metric import Ints, Members, Metric, Objects
from st_common.reference.pair_join import Joined
from st_common.serving.verify_expressions import (
    values_beside,
    values_of,
    values_of_pairs,
    values_of_rows,
)

FeaturesOf = Callable[[], Features]
"""The features that a plan joins; never asked for without a join."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """What evaluation needs to know of the stream."""

    attributes: Sequence[str]
    space: Space

    @property
    def metric(self) -> Metric:
        """How places are measured: on the globe in another way than engines do, which leaves doubts."""
        return Metric(is_flat=self.space.is_flat, doubts=not self.space.is_flat)


@dataclass(frozen=True, slots=True)
class _Database:
    """What expressions say of the rows of a frame, by DuckDB."""

    frame: pd.DataFrame
    lookup: Lookup

    def values(self, text: str, rows: Ints, partners: Objects | None = None) -> Objects:
        """See `Expressions.values`."""
        if not len(rows):
            return objects([])
        frame = self.frame.iloc[rows]
        frame = frame if partners is None else frame.assign(partner=partners)
        own, space = self.lookup.attributes, self.lookup.space
        column = values_of(frame, [text], own, space=space)["0"].astype(object)
        return column.where(column.notna(), None).to_numpy(object)

    def texts(self, text: str, rows: Ints, partners: Objects | None = None) -> Objects:
        """See `Expressions.texts`."""
        return self.values(f"CAST({text} AS VARCHAR)", rows, partners)

    def of_pairs(self, text: str, rows: Ints, others: Ints) -> Objects:
        """See `Expressions.of_pairs`."""
        if not len(rows):
            return objects([])
        both = self.frame.iloc[rows], self.frame.iloc[others]
        own, space = self.lookup.attributes, self.lookup.space
        return values_of_pairs(*both, text, own, space=space)

    def of_features(
        self, text: str, rows: Ints, columns: Mapping[str, Objects]
    ) -> Objects:
        """See `Expressions.of_features`."""
        if not len(rows):
            return objects([])
        own, space = self.lookup.attributes, self.lookup.space
        frame = self.frame.iloc[rows]
        return values_beside(frame, columns, text, own, space=space)

    def of_groups(self, text: str, shown: Sequence[Mapping[str, object]]) -> Objects:
        """See `Expressions.of_groups`."""
        return objects(values_of_rows([text], shown)[text])

    def attributes(self, name: str, rows: Ints) -> Objects:
        """See `Expressions.attributes`."""
        for own in self.lookup.attributes:
            if own.lower() == name.lower():
                quoted = own.replace('"', '""')
                return self.texts(f'"{quoted}"', rows)
        return objects([None] * len(rows))


def fixes_of(frame: pd.DataFrame, of: Lookup) -> Fixes:
    """The rows of a frame as the reference reads them."""
    return Fixes(
        ids=frame["object"].to_numpy(object),
        x=frame["x"].to_numpy(float),
        y=frame["y"].to_numpy(float),
        metric=of.metric,
        of=_Database(frame, of),
        rows=np.arange(len(frame)),
    )


def features_of(home: Home, join: LayerJoin, version: int) -> Features:
    """The features of one version of a layer, each once."""
    rows = tables.read(home.table("layers", join.layer), version=version).to_pandas()
    rows = rows[rows["home"]]
    return Features(
        fids=rows["fid"].to_numpy(object),
        kinds=rows["kind"].to_numpy(object),
        tags=[dict(tags) for tags in rows["tags"]],
        shapes=np.asarray(shapely.from_wkb(rows["geometry"].to_numpy())),
    )


def members(
    plan: Plan, frame: pd.DataFrame, features: FeaturesOf, of: Lookup
) -> pd.DataFrame:
    """A row per member: the columns of its fix, `partner` (None without a join) and whether it is `sure`."""
    return _rows(frame, reference.members(plan, fixes_of(frame, of), features))


def partnered(
    plan: Plan, frame: pd.DataFrame, features: FeaturesOf, of: Lookup
) -> pd.DataFrame:
    """The fixes that qualify, each with every partner that it has; all of them with None where none is joined."""
    fixes = fixes_of(frame, of)
    eligible = reference.qualified(plan, fixes)
    return _rows(frame, reference.joined(plan, fixes, eligible, features))


def qualified(plan: Plan, frame: pd.DataFrame, of: Lookup) -> Members:
    """The fixes that are inside the plan's region, get through its steps and satisfy its condition."""
    return reference.qualified(plan, fixes_of(frame, of))


def _rows(frame: pd.DataFrame, pairs: Joined) -> pd.DataFrame:
    return frame.iloc[pairs.row].assign(partner=pairs.partner, sure=pairs.sure)
