"""Who is in a fence by brute force: a machine for each pair of object and feature, event by event (docs/adr/0024).

It shares no code with the engines. Where a distance on degrees is in doubt, so is the visit until the object ends.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import pandas as pd
import shapely

from st_common.query.fence import Debounce, Fence
from st_common.query.plan import LayerJoin, Plan
from st_common.regions.registry import Area, Box, Circle, Corridor
from st_common.serving.verify_events import FIX
from st_common.serving.verify_history import History
from st_common.serving.verify_joins import features_of
from st_common.serving.verify_members import Features, partnered, qualified
from st_common.serving.verify_registered import Registered

_Pair = tuple[str, str | None]
_Partners = Mapping[int, Mapping[str | None, bool]]
"""By the row of a fix the partners that it has, and whether each is beyond doubt."""


@dataclass(slots=True)
class _Machine:
    is_in: bool = False
    row_us: list[int] = field(default_factory=list)  # fixes in a row against that
    in_doubt: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Period:
    """Rows of the log over which plan and features stay the same: what was there before it, and what came then."""

    start: int
    before: pd.DataFrame
    events: pd.DataFrame
    features: Features
    plan: Plan


def who_is_in(query: Registered, fence: Fence, history: History) -> pd.DataFrame:
    """A row per member or doubtful one: `object`, `partner` (None without a join) and whether it is `sure`."""
    machines: dict[_Pair, _Machine] = {}
    for number, period in enumerate(_periods(query, history)):
        fixes = pd.concat([period.before, period.events[period.events["kind"] == FIX]])
        inside = _found(period.plan, fixes, period.features, history)
        fence = period.plan.fence or fence
        near = _near(period.plan, fence, fixes, period.features, history)
        if period.start not in query.kept:
            _begin(machines, period.before, inside, near, anew=number == 0)
        columns = (period.events[name].tolist() for name in ("object", "kind", "ts"))
        rows = period.events.index.tolist()
        for row, name, kind, ts in zip(rows, *columns, strict=True):
            if kind == FIX:
                _take(machines, fence, name, (row, ts), (inside, near))
            else:
                machines = {pair: m for pair, m in machines.items() if pair[0] != name}
    found = [
        (name, partner, machine.is_in and not machine.in_doubt)
        for (name, partner), machine in machines.items()
        if machine.is_in or machine.in_doubt
    ]
    return pd.DataFrame(found, columns=["object", "partner", "sure"])


def _periods(query: Registered, history: History) -> Iterator[_Period]:
    events = history.events.reset_index(drop=True)
    effect = events["effect"].to_numpy()
    versions = query.layers or ((query.position, 0),)
    ends = [*(at for at, _ in versions[1:]), np.iinfo(np.int64).max]
    spans = zip(versions, ends, strict=True)
    for era, ((start, version), end) in enumerate(spans):
        last = events[effect < start].groupby("object", sort=False).tail(1)
        yield _Period(
            start=start,
            before=last[last["kind"] == FIX],
            events=events[(effect > start) & (effect < end)],
            features=_features(query.plan.join, history, version),
            plan=query.plan_in(era),
        )


def _features(join: LayerJoin | None, history: History, version: int) -> Features:
    """The features of a version of the layer; of whom nobody asks without a join."""
    if join is None:
        return lambda _: pd.DataFrame()
    return lambda _: features_of(history.home, join, version)


def _found(
    plan: Plan, fixes: pd.DataFrame, features: Features, history: History
) -> _Partners:
    mask = qualified(plan, fixes, history.of)
    kept = fixes.assign(sure=mask.sure)[mask.maybe]
    rows = partnered(plan, kept, features, history.of)
    found: dict[int, dict[str | None, bool]] = {}
    for row, partner, sure in zip(
        rows.index, rows["partner"], rows["sure"], strict=True
    ):
        found.setdefault(int(row), {})[partner] = bool(sure)
    return found


def _near(
    plan: Plan,
    fence: Fence,
    fixes: pd.DataFrame,
    features: Features,
    history: History,
) -> _Partners:
    """Who is in, or so near that it is not out."""
    by_m = fence.hysteresis_m
    if not by_m:
        return {}
    if plan.join is not None:
        wider = replace(
            plan.join, predicate="dwithin", distance_m=plan.join.distance_m + by_m
        )
        return _found(replace(plan, join=wider), fixes, features, history)
    if isinstance(plan.inside, Circle):
        circle = replace(plan.inside, radius_m=plan.inside.radius_m + by_m)
        return _found(replace(plan, inside=circle), fixes, features, history)
    if isinstance(plan.inside, Corridor):
        wide = replace(plan.inside, width_m=plan.inside.width_m + by_m)
        return _found(replace(plan, inside=wide), fixes, features, history)
    around = LayerJoin(layer="", predicate="dwithin", distance_m=by_m)
    border = pd.DataFrame({"fid": [""], "geometry": [shapely.to_wkb(_shape(plan))]})
    beside = replace(plan, inside=None, join=around)
    found = _found(beside, fixes, lambda _: border, history)
    return {row: {None: sure[""]} for row, sure in found.items()}


def _shape(plan: Plan) -> shapely.Geometry:
    if isinstance(plan.inside, Area):
        return shapely.from_wkt(plan.inside.wkt)
    if isinstance(plan.inside, Box):
        box = plan.inside
        corners = [(x, y) for x in (box.minx, box.maxx) for y in (box.miny, box.maxy)]
        return shapely.MultiPoint(corners).convex_hull
    raise TypeError(f"a fence around {plan.inside!r} is not known")


def _begin(
    machines: dict[_Pair, _Machine],
    before: pd.DataFrame,
    inside: _Partners,
    near: _Partners,
    *,
    anew: bool,
) -> None:
    """At a registration, or at another version of the layer: who is in by the last fix is in, who is out is not."""
    rows = dict(zip(before["object"].tolist(), before.index.tolist(), strict=True))
    for (name, partner), machine in machines.items():
        row = rows[name]
        stays = partner in inside.get(row, {}) or partner in near.get(row, {})
        if machine.is_in and not stays and not anew:
            machine.is_in, machine.row_us = False, []
    for name, row in rows.items():
        for partner, sure in inside.get(row, {}).items():
            machine = machines.setdefault((name, partner), _Machine())
            machine.in_doubt |= not sure
            if not machine.is_in:
                machine.is_in, machine.row_us = True, []


def _take(
    machines: dict[_Pair, _Machine],
    fence: Fence,
    name: str,
    at: tuple[int, int],
    found: tuple[_Partners, _Partners],
) -> None:
    """A fix (its row, its time) moves the machines of its object."""
    row, ts = at
    inside, near = (each.get(row, {}) for each in found)
    known = [partner for other, partner in machines if other == name]
    for partner in {*known, *inside}:
        machine = machines.setdefault((name, partner), _Machine())
        machine.in_doubt |= not inside.get(partner, near.get(partner, True))
        is_out = partner not in inside and partner not in near
        against = is_out if machine.is_in else partner in inside
        machine.row_us = [*machine.row_us, ts] if against else []
        debounce = fence.exit_after if machine.is_in else fence.enter_after
        if against and _is_enough(machine.row_us, debounce):
            machine.is_in, machine.row_us = not machine.is_in, []


def _is_enough(row_us: list[int], debounce: Debounce) -> bool:
    lasts_us = row_us[-1] - row_us[0]
    return len(row_us) >= debounce.fixes and lasts_us >= round(debounce.seconds * 1e6)
