"""The answer of a plan below windows and aggregates, by brute force over the last fixes of all that live."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from st_common.geometry.space import Space
from st_common.query.plan import Plan
from st_common.serving.verify_comparing import stepped
from st_common.serving.verify_expressions import is_true
from st_common.serving.verify_joins import with_features, with_objects
from st_common.serving.verify_places import Members, certain, inside, nearest

Features = Callable[[Plan], pd.DataFrame]
"""The features that a plan joins; never asked for without a join."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """What evaluation needs to know of the stream."""

    attributes: Sequence[str]
    space: Space


def members(
    plan: Plan, frame: pd.DataFrame, features: Features, of: Lookup
) -> pd.DataFrame:
    """A row per member: the columns of its fix, `partner` (None without a join) and whether it is `sure`."""
    here = set(frame["object"])
    if not len(frame) or any(focal not in here for focal in plan.focals):
        return frame.iloc[:0].assign(partner=None, sure=True)
    eligible = qualified(plan, frame, of) & certain(
        ~frame["object"].isin(plan.focals).to_numpy()
    )
    if plan.neighbours is not None:
        eligible = nearest(plan.neighbours, frame, eligible, space=of.space)
    if plan.pairs is not None:
        found = with_objects(plan.pairs, frame, eligible, of.attributes, space=of.space)
        return frame.iloc[found.row].assign(partner=found.partner, sure=found.sure)
    return partnered(
        plan,
        frame[eligible.maybe].assign(sure=eligible.sure[eligible.maybe]),
        features,
        of,
    )


def partnered(
    plan: Plan, frame: pd.DataFrame, features: Features, of: Lookup
) -> pd.DataFrame:
    """The rows, each with every partner that it has; all of them with None where the plan joins no layer."""
    if plan.join is None:
        return frame.assign(partner=None)
    found = with_features(plan, frame, features(plan), of.attributes, space=of.space)
    sure = frame["sure"].to_numpy(bool)[found.row] & found.sure
    return frame.iloc[found.row].assign(partner=found.partner, sure=sure)


def qualified(plan: Plan, frame: pd.DataFrame, of: Lookup) -> Members:
    """The fixes that are inside the plan's region, get through its steps and satisfy its condition."""
    found = certain(np.ones(len(frame), bool))
    if plan.inside is not None:
        found &= inside(plan.inside, frame, space=of.space)
    if plan.transforms or plan.compare is not None:
        found &= stepped(plan, frame, of.attributes, space=of.space).members
    if plan.where is not None and len(frame):
        found &= certain(is_true(frame, plan.where, of.attributes, space=of.space))
    return found
