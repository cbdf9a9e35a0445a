"""What happened to every object, and which queries are registered over which versions of their layers.

Events are found from fixes and control rows by running maxima over whole columns, as docs/how-it-works.md says; nothing
here is shared with the engines.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from st_common.capture.control import control_rows
from st_common.capture.log import Log
from st_common.controls.rows import (
    ControlRow,
    Drop,
    Fail,
    Follow,
    LayerVersion,
    Register,
    Registration,
)
from st_common.geometry.space import Space
from st_common.position import position_of
from st_common.query.control import plan_of
from st_common.query.lengths import in_coordinates
from st_common.query.plan import Plan
from st_common.query.replaced_fence import keeps_visits

NEVER = int(np.iinfo(np.int64).min)
LATER = int(np.iinfo(np.int64).max)

FIX, GONE, EXPIRED = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Times:
    """A stream's settings in microseconds; metres are geodesic where `space` is the globe.

    `window_rows` is how many fixes of an object a query with windows keeps.
    """

    lateness_us: int
    silence_us: int | None
    tick_us: int
    space: Space
    window_rows: int = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Clock:
    """The clock right after each row of the log that says something of time, and just before it."""

    position: np.ndarray
    before: np.ndarray
    after: np.ndarray
    ends: np.ndarray  # positions of end marks

    def first_past(self, ts: np.ndarray) -> np.ndarray:
        """The row after which the clock is past (strictly) each time; `LATER` where it is not yet."""
        return np.append(self.position, LATER)[
            np.searchsorted(self.after, ts, side="right")
        ]

    def just_before(self, position: np.ndarray) -> np.ndarray:
        """The clock just before rows of the log."""
        return np.append(self.before, self.now)[
            np.searchsorted(self.position, position)
        ]

    def until(self, position: int) -> "Clock":
        """The clock over the rows before one."""
        rows = self.position < position
        return Clock(
            position=self.position[rows],
            before=self.before[rows],
            after=self.after[rows],
            ends=self.ends[self.ends < position],
        )

    @property
    def now(self) -> int:
        """The clock in the end."""
        return int(self.after[-1]) if len(self.after) else NEVER


def clock_of(fixes: pd.DataFrame, marks: pd.DataFrame, times: Times) -> Clock:
    """The clock over fixes and clock rows (columns `position`, `ts`, `is_end`), each in log order."""
    both = pd.concat(
        [fixes[["position", "ts"]].assign(is_end=False), marks]
    ).sort_values("position", kind="stable")
    ts, is_end = both["ts"].to_numpy(np.int64), both["is_end"].to_numpy(bool)
    if is_end.any() and times.lateness_us:
        highest, highs = NEVER, []
        for end, at in zip(
            is_end.tolist(), ts.tolist(), strict=True
        ):  # an end mark depends on what is before it
            highest = (
                max(highest, at)
                if not end
                else highest + times.lateness_us + 1
                if highest > NEVER
                else highest
            )
            highs.append(highest)
        seen = np.array(highs, np.int64)
    else:
        seen = np.maximum.accumulate(np.where(is_end, NEVER, ts)) if len(ts) else ts
    after = np.where(seen == NEVER, NEVER, seen - times.lateness_us)
    position = both["position"].to_numpy(np.int64)
    return Clock(
        position=position,
        before=np.r_[NEVER, after[:-1]][: len(after)],
        after=after,
        ends=position[is_end],
    )


def seen_events(fixes: pd.DataFrame, clock: Clock, times: Times) -> pd.DataFrame:
    """What `events_of` gives, before fixes that a position filter took out are left out, and without ticks."""
    used = (
        _on_time(fixes, clock)
        if times.lateness_us
        else _newest(fixes, clock, times.silence_us)
    )
    used = used[used["effect"] != LATER].sort_values(["object", "ts"], kind="stable")
    used = used.assign(kind=np.where(used["gone"], GONE, FIX), event=used["ts"])
    if times.silence_us is not None:
        used = pd.concat([used, _expiries(used, clock, times.silence_us)])
        used = used.sort_values(["object", "effect", "event"], kind="stable")
    return used.reset_index(drop=True)


def events_of(fixes: pd.DataFrame, clock: Clock, times: Times) -> pd.DataFrame:
    """Everything that takes effect, sorted by object and order of effect.

    Beside the columns of the fixes: `kind`, `effect` (the row at which it takes effect), `event` (its time), `tick`,
    `due` (the row at which that is judged, `LATER` when it is not yet), `elapsed_s` and what was `before`.
    """
    used = _accepted(seen_events(fixes, clock, times))
    return _with_before(used).assign(**_ticks(used, clock, times))


def _newest(fixes: pd.DataFrame, clock: Clock, silence_us: int | None) -> pd.DataFrame:
    """Without lateness: each fix that is newer than all before it of its object, at its own row.

    One that comes when its object would be silent already does not count.
    """
    if silence_us is not None:
        fixes = fixes[
            fixes["ts"].to_numpy() + silence_us
            >= clock.just_before(fixes["position"].to_numpy())
        ]
    highest = fixes.groupby("object", sort=False)["ts"].cummax()
    before = highest.groupby(fixes["object"], sort=False).shift(fill_value=NEVER)
    newest: pd.DataFrame = fixes[fixes["ts"] > before]
    counting: pd.DataFrame = newest.assign(effect=newest["position"])
    return counting


def _on_time(fixes: pd.DataFrame, clock: Clock) -> pd.DataFrame:
    """With lateness: each fix not behind the clock, once per time, at the row after which the clock is past it."""
    kept = fixes[
        fixes["ts"].to_numpy() >= clock.just_before(fixes["position"].to_numpy())
    ]
    kept = kept.drop_duplicates(["object", "ts"], keep="first")
    counting: pd.DataFrame = kept.assign(
        effect=clock.first_past(kept["ts"].to_numpy(np.int64))
    )
    return counting


def _expiries(used: pd.DataFrame, clock: Clock, silence_us: int) -> pd.DataFrame:
    """One event more where an object was silent for longer, before its next fix or before the log's end."""
    same = (used["object"] == used["object"].shift(-1)).to_numpy()
    following = np.where(same, used["ts"].shift(-1, fill_value=0), LATER)
    following_at = np.where(same, used["effect"].shift(-1, fill_value=0), LATER)
    end = used["ts"].to_numpy(np.int64) + silence_us
    effect = np.maximum(clock.first_past(end), used["effect"].to_numpy(np.int64))
    silent = (
        (used["kind"] == FIX).to_numpy()
        & (effect != LATER)
        & ((following > end) | (following_at > effect))
    )
    expired: pd.DataFrame = used[silent].assign(
        kind=EXPIRED, event=end[silent], effect=effect[silent]
    )
    return expired


def _accepted(events: pd.DataFrame) -> pd.DataFrame:
    """Without the fixes that a position filter took out, as the table says (`verify_filters` asks whether it is right).

    They kept their objects from being silent. Who is silent then was last where its last accepted fix was; without one
    in the same stay it was never there.
    """
    if not events["is_filtered"].any():
        return events
    count, is_fix = len(events), (events["kind"] == FIX).to_numpy()
    stay = stays_of(events)
    accepted = is_fix & ~events["is_filtered"].to_numpy()
    last = np.maximum.accumulate(np.where(accepted, np.arange(count), -1))
    has_begun = (last >= 0) & (stay[last] == stay)
    is_expiry = (events["kind"] == EXPIRED).to_numpy()
    source = np.where(is_expiry & has_begun, last, np.arange(count))
    own = events[["kind", "event", "effect"]]
    by_last_place: pd.DataFrame = (
        events.iloc[source].reset_index(drop=True).assign(**own)
    )
    kept = accepted | (is_expiry & has_begun) | (events["kind"] == GONE).to_numpy()
    left: pd.DataFrame = by_last_place[kept].reset_index(drop=True)
    return left


def stays_of(events: pd.DataFrame) -> np.ndarray:
    """The number of the stay that each event is of; events are sorted by object and order of effect."""
    ends = (events["kind"] != FIX).shift(fill_value=True)
    begins = (events["object"] != events["object"].shift()) | ends
    stays: np.ndarray = begins.cumsum().to_numpy()
    return stays


def _with_before(events: pd.DataFrame) -> pd.DataFrame:
    """With the two readings before each fix in the same stay; NaN without them.

    They are `before_x`, `before_y` and `elapsed_s`, and of the one before that `earlier_x`, `earlier_y` and
    `before_elapsed_s`, from it to the one before.
    """
    same = (
        (events["object"] == events["object"].shift())
        & (events["kind"].shift() == FIX)
        & (events["kind"] == FIX)
    )
    elapsed_s = ((events["ts"] - events["ts"].shift()) / 1e6).where(same)
    both = same & same.shift(fill_value=False)
    return events.assign(
        before_x=events["x"].shift().where(same),
        before_y=events["y"].shift().where(same),
        elapsed_s=elapsed_s,
        earlier_x=events["x"].shift(2).where(both),
        earlier_y=events["y"].shift(2).where(both),
        before_elapsed_s=elapsed_s.shift().where(both),
    )


def _ticks(events: pd.DataFrame, clock: Clock, times: Times) -> dict[str, np.ndarray]:
    """An end mark makes every tick due in which something happened before it; the open one ends at the last time."""
    effect = events["effect"].to_numpy(np.int64)
    counts = np.maximum(events["event"].to_numpy(np.int64), clock.just_before(effect))
    tick = -(-counts // times.tick_us) * times.tick_us
    due = clock.first_past(tick)
    if len(clock.ends):
        end = np.append(clock.ends, LATER)[np.searchsorted(clock.ends, effect)]
        last_us = clock.just_before(end) + times.lateness_us
        tick = np.where((due >= end) & (end != LATER), np.minimum(tick, last_us), tick)
        due = np.minimum(due, end)
    return {"tick": tick, "due": due}


def alive(events: pd.DataFrame) -> pd.DataFrame:
    """The last event of every object among these, where it is a fix."""
    last: pd.DataFrame = events.groupby("object", sort=False).tail(1)
    return last[last["kind"] == FIX].reset_index(drop=True)


Controls = list[tuple[int, ControlRow]]
"""Positions and control rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A registered query: its newest plan, and how its layer and its area changed.

    `layers` says from which row on it had which version of its layer (0 without one), `plans` with which plan; both
    are empty where nothing but the plan has to be known. `causes` says why each of these rows judged its answer anew.
    `is_seeded`: it began with what came before it (REGISTER .. FROM).
    """

    name: str
    version: int
    plan: Plan
    position: int
    layers: tuple[tuple[int, int], ...] = ()
    plans: tuple[Plan, ...] = ()
    causes: tuple[str, ...] = ()
    kept: frozenset[int] = (
        frozenset()
    )  # rows of `layers` over which visits of a fence go on as they are
    is_seeded: bool = False

    def changed(
        self, at: int, *, version: int | None, plan: Plan, cause: str
    ) -> "Registered":
        """The same from a row on with another version of its layer, or another plan."""
        layers = self.layers or ((self.position, 0),)
        plans = self.plans or (self.plan,)
        now = layers[-1][1] if version is None else version
        return replace(
            self,
            plan=plan,
            layers=(*layers, (at, now)),
            plans=(*plans, plan),
            causes=(*(self.causes or ("registered",)), cause),
        )

    def plan_in(self, era: int) -> Plan:
        """Its plan by the number of the row in `layers`."""
        return self.plans[era] if self.plans else self.plan

    def cause_of(self, era: int) -> str:
        """Why its answer was judged anew at the row of that number in `layers`."""
        return self.causes[era] if self.causes else "registered"


def controls_of(log: Log, end: int) -> Controls:
    """The control rows of a log before a position, each with its own, in their order."""
    rows = [
        (position_of(segment.number, number), row)
        for segment in log.control_segments(0, clocks=True)
        for number, row in enumerate(control_rows(log, segment))
    ]
    return [(position, row) for position, row in rows if position < end]


def registered_by(controls: Controls, unit_m: float) -> dict[str, Registered]:
    """The queries that are registered in the end, by name; `unit_m` is how many metres a unit of the plane is."""
    registered: dict[str, Registered] = {}
    layers: dict[str, int] = {}
    for at, row in controls:
        if isinstance(row, Follow):
            if _is_meant(registered, row):
                plan = in_coordinates(plan_of(row, at), unit_m)
                before = registered[row.query]
                cause = "area" if row.layer is None else "layer"
                registered[row.query] = before.changed(
                    at, version=None, plan=plan, cause=cause
                )
        elif isinstance(row, Registration):
            now = _registered(row, at, layers, unit_m)
            if row.query in registered:
                now = _replaced(registered.pop(row.query), now)
            registered[row.query] = now
        elif isinstance(row, Drop) or (
            isinstance(row, Fail) and _is_meant(registered, row)
        ):
            registered.pop(row.query, None)
        elif isinstance(row, LayerVersion):
            layers[row.layer] = row.version
            registered |= {
                name: _reloaded(query, at, row) for name, query in registered.items()
            }
    return registered


def _registered(
    row: Registration, at: int, layers: Mapping[str, int], unit_m: float
) -> Registered:
    plan, version = in_coordinates(plan_of(row, at), unit_m), None
    if plan.join is not None:
        version = layers.get(plan.join.layer, row.layer_version)
    versions = () if version is None else ((at, version),)
    return Registered(
        name=row.query,
        version=row.version,
        plan=plan,
        position=at,
        layers=versions,
        is_seeded=isinstance(row, Register) and row.seed is not None,
    )


def _replaced(before: Registered, now: Registered) -> Registered:
    """A fence at the same border goes on: it is the one before, with other options from the row of the new one on."""
    versions = [
        each.layers[-1][1] if each.plan.join else None for each in (before, now)
    ]
    if versions[0] != versions[1] or not keeps_visits(before.plan, now.plan):
        return now
    goes_on = before.changed(
        now.position, version=versions[1], plan=now.plan, cause="registered"
    )
    return replace(goes_on, version=now.version, kept=before.kept | {now.position})


def _reloaded(query: Registered, at: int, row: LayerVersion) -> Registered:
    if query.plan.join is None or query.plan.join.layer != row.layer:
        return query
    return query.changed(at, version=row.version, plan=query.plan, cause="layer")


def _is_meant(registered: Mapping[str, Registered], row: Fail | Follow) -> bool:
    """Whether a row is about the version that is registered."""
    return row.query in registered and registered[row.query].version == row.version
