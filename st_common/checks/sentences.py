"""Changes and queries in plain words: one change, one event of a fence, or one row about an incident in a sentence.

Of an event: who was where, how long, and what counted for it (SPEC X3). Of an incident: since when, how long, why it
ended, how bad it was (SPEC X8). The tables at the end have a sentence for each cause.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import singledispatch
from typing import Any

from st_common.config.stream import StreamSettings
from st_common.position import position_of
from st_common.query.explain_fence import in_a_row
from st_common.query.explain_steps import transform_in_words, windows_in_words
from st_common.query.fence import Debounce, Fence
from st_common.query.incident import Incident
from st_common.query.neighbours import GroupNearest, Nearest, Place, ReverseNearest
from st_common.query.plan import LayerJoin, PairJoin, Plan, Window
from st_common.regions.region import Region
from st_common.regions.registry import Area


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """One fix, and where it stands in the log.

    Attributes:
        object: the object's id.
        segment: the segment of the log.
        row: its row in there.
        event_ts: its time, UTC.
        x: longitude, or the first coordinate of the plane.
        y: latitude, or the second one.
        gone: it says that the object has left.
        attributes: by name, those that the stream declares; None where the record had none.
    """

    object: str
    segment: int
    row: int
    event_ts: datetime
    x: float
    y: float
    gone: bool
    attributes: dict[str, Any]

    @property
    def position(self) -> int:
        """Its position in the log."""
        return position_of(self.segment, self.row)


def moment(time: datetime | None) -> str:
    """A time for people: UTC, with fractions of a second only where there are some: `2024-01-01 12:00:00.5 UTC`."""
    if time is None:
        return "an unknown time"
    text = f"{time:%Y-%m-%d %H:%M:%S}"
    return (
        f"{text}.{time.microsecond:06d}".rstrip("0") + " UTC"
        if time.microsecond
        else f"{text} UTC"
    )


_LENGTHS = (("day", 86_400), ("hour", 3600), ("minute", 60))


def lasting(seconds: float) -> str:
    """How long something took, as people say it: 300 s is "5 minutes", 3600 s "1 hour", 90 s stays "90 s"."""
    for name, length in _LENGTHS:
        if seconds >= length and seconds % length == 0:
            count = round(seconds / length)
            return f"{count} {name}{'s' if count > 1 else ''}"
    return f"{seconds:.10g} s"


def asked(plan: Plan) -> str:
    """What a member of the plan's answer is like: "inside the rectangle (0, 0) to (5, 5), where speed > 3"."""
    return ", ".join(_parts(plan)) or "any object of the stream"


def _parts(plan: Plan) -> Iterator[str]:
    clauses = (plan.neighbours, plan.inside, plan.join, plan.pairs)
    yield from (_worded(clause) for clause in clauses if clause is not None)
    for step in plan.transforms:
        yield transform_in_words(step)
    if plan.compare is not None:
        yield f"{'not ' if plan.compare.negative else ''}meeting {plan.compare.box.holds().removeprefix('inside ')}"
    if plan.frame is not None:
        yield f"in {' and in '.join(windows_in_words(plan.frame))}"
    if plan.where is not None:
        yield f"where {plan.where}"
    if plan.window is not None:
        yield _worded(plan.window)


def value_of(plan: Plan) -> str:
    """What the value of an aggregate's row is: "count", "avg of speed"."""
    if plan.aggregate is None:
        return "value"
    if plan.aggregate.function == "avgspd":
        return "average speed"
    values = plan.aggregate.values or (plan.aggregate,)
    return ", ".join(_value_of(value.function, value.argument) for value in values)


def _value_of(function: str, argument: str | None) -> str:
    """One value of a group in words."""
    return f"{function.replace('_', ' ')}{f' of {argument}' if argument else ''}"


@singledispatch
def _worded(part: object) -> str:
    return str(part)


@_worded.register
def _(part: Region) -> str:
    return part.holds()


@_worded.register
def _(part: Place) -> str:
    return f"({part.x:g}, {part.y:g})" if part.focal is None else part.focal


@_worded.register
def _(part: Nearest) -> str:
    return f"among the {part.k} nearest to {_worded(part.place)}"


@_worded.register
def _(part: ReverseNearest) -> str:
    return f"an object to which none is nearer than {_worded(part.place)}"


@_worded.register
def _(part: GroupNearest) -> str:
    places = ", ".join(map(_worded, part.places))
    return f"among the {part.k} with the least {part.total} of distances to {places}"


@_worded.register
def _(part: LayerJoin) -> str:
    if part.is_outer:
        return f"{_with_feature(part)}, or in none"
    return f"{'not ' if part.how == 'anti' else ''}{_with_feature(part)}"


def _with_feature(part: LayerJoin) -> str:
    if part.nearest is not None:
        alone = replace(part, nearest=None)
        among = "" if part.predicate == "nearest" else f" {_with_feature(alone)}"
        return f"beside the {part.nearest} nearest features of {part.layer}{among}"
    kinds = f" of kind {' or '.join(part.kinds)}" if part.kinds else ""
    if part.predicate == "equals":
        return f"with {part.left} equal to {part.right} of a feature of {part.layer}{kinds}"
    tags = "".join(f" with {name} = {value}" for name, value in part.tags)
    if part.left is not None:
        tags += f" with {part.right} equal to its {part.left}"
    if part.predicate == "dwithin":
        return f"within {part.distance_m:g} m of a feature of {part.layer}{kinds}{tags}"
    border = " and not on its border" if part.predicate == "within" else ""
    return f"in a feature of {part.layer}{kinds}{tags}{border}"


@_worded.register
def _(part: PairJoin) -> str:
    within = f" within {part.distance_m:g} m" if part.distance_m is not None else ""
    same = f" with the same {', '.join(part.keys)}" if part.keys else ""
    who = "no other object" if part.how == "anti" else "another object"
    return f"beside {who}{within}{same}{', or beside none' if part.is_outer else ''}"


@_worded.register
def _(part: Window) -> str:
    return (
        f"in the last {part.seconds:g} s"
        if part.seconds is not None
        else f"among the last {part.tuples} fixes"
    )


def why_filtered(reason: str, value: float) -> str:
    """Why a position filter took a fix out, for people: "speed", 412.0 gives `implausible speed, 412 m/s`.

    Args:
        reason: as in the column `filtered` of `positions`.
        value: as in `filtered_value`: metres, or metres per second.
    """
    return _FILTERED.get(reason, f"{reason}, {{:.4g}}").format(value)


_FILTERED = {
    "accuracy": "its place is known to {:.4g} m only",
    "speed": "implausible speed, {:.6g} m/s",
    "distance": "it had moved {:.4g} m only",
    "within_accuracy": "it had moved {:.4g} m, less than the accuracies of both fixes",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """The other objects that a change has to do with; their fixes are None where none is known.

    Attributes:
        focals: the objects that the query goes with, each with its fix at the tick.
        newcomers: those that came when this object left the nearest ones.
    """

    focals: Mapping[str, Fix | None]
    newcomers: Mapping[str, Fix | None]


_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """A change with all that words need of it; of a fence or of incidents `value` is how many seconds it lasted."""

    change: Mapping[str, Any]
    plan: Plan | None
    fix: Fix | None
    others: Others
    silence_s: float | None

    @property
    def who(self) -> str:
        partner = self.change["partner"]
        if self.plan is not None and self.plan.frame is not None:
            return f"A fix of {self.change['object']} ({moment(self.change['fix_ts'])})"
        return f"{self.change['object']}{f' with {partner}' if partner is not None else ''}"

    @property
    def query(self) -> str:
        return f"version {self.change['query_version']} of {self.change['query']}"

    @property
    def asked(self) -> str:
        return "" if self.plan is None else asked(self.plan)

    @property
    def criteria(self) -> str:
        return f" ({self.asked})" if self.asked else ""

    @property
    def about(self) -> str:
        """Which query it is of, and what that asks, in brackets at the end of a sentence."""
        return f"({self.query}: {self.asked})."

    @property
    def when(self) -> str:
        """The event's own time."""
        return moment(self.change["event_ts"])

    @property
    def last(self) -> str:
        """The fix that the object was judged by."""
        ts = moment(self.change["fix_ts"])
        if self.fix is None or self.fix.gone:
            return f"its fix of {ts}"
        return f"its fix of {ts} at ({self.fix.x:.10g}, {self.fix.y:.10g})"

    @property
    def by_ticks(self) -> bool:
        return self.plan is not None and self.plan.by_ticks

    @property
    def at_tick(self) -> str:
        """At which tick, and where the focal objects were; empty for a query that is judged fix by fix."""
        if not self.by_ticks:
            return ""
        places = [
            f"{name} at ({fix.x:.10g}, {fix.y:.10g}) since {moment(fix.event_ts)}"
            for name, fix in self.others.focals.items()
            if fix is not None and not fix.gone
        ]
        return f" at the tick of {self.when}{', with ' + ' and '.join(places) if places else ''}"

    @property
    def instead(self) -> str:
        """Who came among the nearest in its place, as a further half of a sentence."""
        named = [
            name if fix is None else f"{name} at ({fix.x:.10g}, {fix.y:.10g})"
            for name, fix in self.others.newcomers.items()
        ]
        rest = len(named) - _MOST_NAMED
        more = f" and {rest} more" if rest > 0 else ""
        came = " and ".join(named[:_MOST_NAMED])
        return f"; in its place came {came}{more}" if named else ""

    @property
    def ended(self) -> str | None:
        """Who is gone: the object, else the first focal object whose last record says so."""
        own = str(self.change["object"])
        if not self.by_ticks or (self.fix is not None and self.fix.gone):
            return own
        focals = self.others.focals.items()
        gone = (name for name, fix in focals if fix is not None and fix.gone)
        has_frame = self.plan is not None and self.plan.frame is not None
        return next(gone, own if has_frame else None)

    @property
    def silence(self) -> str:
        return "too long" if self.silence_s is None else lasting(self.silence_s)

    # -- of fences ----------------------------------------------------------------------------------------------------

    @property
    def fence(self) -> Fence:
        assert self.plan is not None  # noqa: S101 - for the type: only such plans are asked
        assert self.plan.fence is not None  # noqa: S101 - likewise
        return self.plan.fence

    @property
    def after(self) -> str:
        """How long the visit was that ended; empty where nobody knows."""
        value = self.change["value"]
        return "" if value is None else f" after {lasting(value)} inside"

    def row(self, debounce: Debounce) -> str:
        """What had to come together before a crossing counted; nothing where one fix is enough."""
        if debounce == Debounce():
            return ""
        return f", after {in_a_row(debounce, 'ticks' if self.at_tick else 'fixes')}"

    @property
    def how_out(self) -> str:
        margin = self.fence.hysteresis_m
        return f"more than {margin:g} m away from it" if margin else "no more"

    @property
    def stayed(self) -> str:
        value = self.change["value"]
        return lasting(self.fence.dwell_s or 0.0 if value is None else value)

    # -- of incidents -------------------------------------------------------------------------------------------------

    @property
    def incident(self) -> Incident:
        assert self.plan is not None  # noqa: S101 - for the type: only such plans are asked
        assert self.plan.incident is not None  # noqa: S101 - likewise
        return self.plan.incident

    @property
    def since(self) -> str:
        """When it began."""
        event: datetime = self.change["event_ts"]
        return moment(event - timedelta(seconds=self.change["value"] or 0.0))

    @property
    def worst(self) -> str:
        """Its worst value, as the end of a sentence; empty where none was asked for."""
        worst, fields = self.incident.worst, self.change["fields"]
        if worst is None or fields is None:
            return ""
        value = json.loads(fields)[worst.name]
        said = "not known" if value is None else f"{value:.10g}"
        return f", {worst.name} was {said}"

    def over(self, why: str) -> str:
        """That an incident ended, and why."""
        lasted = lasting(self.change["value"] or 0.0)
        incident = f"The incident of {self.who} since {self.since}"
        return f"{incident} ended after {lasted}: {why}{self.worst} {self.about}"


def sentence(
    change: Mapping[str, Any],
    plan: Plan | None,
    fix: Fix | None,
    others: Others,
    stream: StreamSettings | None,
) -> str:
    """Why a change happened, in one sentence (SPEC X5).

    Args:
        change: a row of `changes`.
        plan: of the query's version that was judged; None when no log knows it.
        fix: that the object was judged by; None when it is not archived.
        others: the objects that the query goes with, and those that came when this one left.
        stream: for its silence; None when no settings are at hand.
    """
    case = _Case(
        change=change,
        plan=plan,
        fix=fix,
        others=others,
        silence_s=stream.silence_s if stream is not None else None,
    )
    own: Mapping[str, Callable[[_Case], str]] = {}
    if plan is not None and plan.aggregate is not None:
        return _of_group(case, plan)
    if plan is not None and plan.fence is not None:
        own = _OF_VISITS
    elif plan is not None and plan.incident is not None:
        own = _OF_INCIDENTS
    elif plan is not None and plan.frame is not None:
        own = _OF_ROWS
    return {**_OF_MEMBERS, **own}[change["cause"]](case)


def _of_group(case: _Case, plan: Plan) -> str:
    """An aggregate's row: of the whole answer or of one group."""
    change = case.change
    group, cause = change["object"], change["cause"]
    of_group = "" if group == "*" else f" for the group {group}"
    what = f"{value_of(plan)} of {case.query}{of_group}"
    value = "" if change["value"] is None else f" {change['value']:.10g}"
    if plan.aggregate is not None and plan.aggregate.function == "several":
        value = f" {change['fields']}"
    is_now, at = change["sign"] > 0, case.at_tick
    if cause == "value":
        return f"The {what}{' became' if is_now else ' was'}{value}{'' if is_now else ' until then'}{at}."
    if is_now:
        return f"The {what} is there{' with' + value if value else ''}{at or ' since ' + case.when}."
    reason = _ENDED.get(cause, "nothing is left that counts")
    return f"The {what} is no more{at or ' since ' + case.when}: {reason}."


_ENDED = {
    "dropped": "the query was dropped",
    "replaced": "the query was replaced",
    "failed": "the query could not be judged any more",
}


def _loaded(case: _Case) -> str:
    """Which layer was loaded anew: the one that is joined, or the one that has the region as a feature."""
    plan, version = case.plan, case.change["layer_version"]
    if plan is not None and plan.join is not None and version is not None:
        return f"{plan.join.layer} was loaded anew (version {version})"
    region = plan.inside if plan is not None else None
    leaves = () if region is None else tuple(region.leaves())
    areas = [leaf for leaf in leaves if isinstance(leaf, Area)]
    features = {area.feature for area in areas if area.feature is not None}
    if len(features) == 1:
        layer, fid = features.pop()
        return f"{layer} was loaded anew, and {fid} is another region"
    return "the layer was loaded anew"


def _now(case: _Case, *, is_in: bool) -> str:
    now = "satisfies" if is_in else "does not satisfy"
    return f"with {case.last} {case.who} now {now}"


def _silent(case: _Case) -> str:
    who = "it, or what the query goes with," if case.by_ticks else case.change["object"]
    after = "too long" if case.silence_s is None else f"{case.silence_s:g} s"
    return f"{who} said nothing for {after} after {case.last}"


_OF_MEMBERS: Mapping[str, Callable[[_Case], str]] = {
    "registered": lambda c: (
        f"{c.who} was there when {c.query} was registered: {c.last} was its last one, "
        f"and it satisfied the query{c.criteria}."
    ),
    "backfilled": lambda c: (
        f"{c.who} was in the answer when {c.query} was registered with what came before it{c.criteria}."
    ),
    "enter": lambda c: (
        f"{c.who} came into the answer{c.at_tick}: with {c.last} it satisfies {c.query}{c.criteria}."
    ),
    "leave": lambda c: (
        f"{c.who} left the answer{c.at_tick}: with {c.last} it satisfies {c.query} no more{c.criteria}{c.instead}."
    ),
    "inside": lambda c: (
        f"{c.who} stayed in the answer of {c.query}{c.at_tick}, with {c.last}{c.criteria}."
    ),
    "gone": lambda c: (
        f"{c.who} left the answer of {c.query}{c.at_tick}: the feed said that "
        f"{c.ended or 'an object that the answer depends on'} is gone."
    ),
    "expired": lambda c: (
        f"{c.who} left the answer of {c.query} at {c.when}: {_silent(c)}."
    ),
    "aged": lambda c: (
        f"{c.who} left the answer of {c.query}{c.at_tick}: none of its fixes counts any more{c.criteria}."
    ),
    "value": lambda c: (
        f"The value of {c.who} in the answer of {c.query} changed{c.at_tick}."
    ),
    "dropped": lambda c: (
        f"{c.who} left the answer because {c.query} was dropped at {c.when}."
    ),
    "failed": lambda c: (
        f"{c.who} left the answer because {c.query} could not be judged any more from {c.when} on; "
        f"fairway query show {c.query} says why."
    ),
    "replaced": lambda c: (
        f"{c.who} left the answer because {c.query} was replaced by a newer version at {c.when}."
    ),
    "layer": lambda c: (
        f"{_loaded(c)}: {_now(c, is_in=c.change['sign'] > 0)} {c.query}{c.criteria}."
    ),
    "area": lambda c: (
        f"the area that {c.query} names became another region at {c.when}: "
        f"{_now(c, is_in=c.change['sign'] >= 0)} it{c.criteria}."
    ),
}

_OF_ROWS: Mapping[str, Callable[[_Case], str]] = {
    "enter": lambda c: (
        f"{c.who} came into the answer of {c.query}{c.at_tick}{c.criteria}."
    ),
    "aged": lambda c: (
        f"{c.who} left the answer of {c.query}{c.at_tick}: it lies in the windows no more{c.criteria}."
    ),
    "leave": lambda c: (
        f"{c.who} left the answer of {c.query}{c.at_tick}: {c.change['object']} itself counts no more{c.criteria}."
    ),
}
"""Of a query with CQL's windows, whose members are fixes."""

_OF_VISITS: Mapping[str, Callable[[_Case], str]] = {
    "enter": lambda c: (
        f"{c.who} came in{c.at_tick}: {c.last} was {c.asked}{c.row(c.fence.enter_after)} ({c.query})."
    ),
    "leave": lambda c: (
        f"{c.who} went out{c.after}{c.at_tick}: {c.last} was {c.how_out}{c.row(c.fence.exit_after)} {c.about}"
    ),
    "inside": lambda c: (
        f"{c.who} stayed in at {c.when}: {c.last} did not end its visit {c.about}"
    ),
    "outside": lambda c: (
        f"{c.who} was out at {c.when}: {c.last} began no visit {c.about}"
    ),
    "cross": lambda c: (
        f"{c.who} crossed: neither {c.last} nor the one before it was {c.asked}, but the straight line "
        f"between them passes there ({c.query})."
    ),
    "dwell": lambda c: f"{c.who} has been inside for {c.stayed} at {c.when} {c.about}",
    "gone": lambda c: (
        f"{c.who} is out{c.after}: the feed said that "
        f"{(c.ended or 'an object that it depends on') if c.by_ticks else 'it'} is gone {c.about}"
    ),
    "expired": lambda c: (
        f"{c.who} is out{c.after}: {'it, or what the fence goes with,' if c.by_ticks else 'it'} said nothing for "
        f"{c.silence} after {c.last} ({c.query})."
    ),
}
"""Of a fence; what ends every answer alike, as DROP QUERY does, has the words of members."""

_OF_INCIDENTS: Mapping[str, Callable[[_Case], str]] = {
    "started": lambda c: (
        f"{c.who} began an incident at {c.since}, {c.asked}; {c.last} confirmed it "
        f"after {in_a_row(c.incident.lasting)}{c.worst} ({c.query})."
    ),
    "ongoing": lambda c: (
        f"The incident of {c.who} since {c.since} went on with {c.last}, after "
        f"{lasting(c.change['value'] or 0.0)}{c.worst} {c.about}"
    ),
    "ended": lambda c: c.over(
        f"{c.last} was so no more"
        if c.incident.until is None
        else f"of {c.last} {c.incident.until} was true"
    ),
    "gap": lambda c: c.over(
        f"no fix came within {lasting(c.incident.max_gap_s or 0.0)} of {c.last}"
    ),
    "gone": lambda c: c.over("the feed said that it is gone"),
    "expired": lambda c: c.over(f"it said nothing for {c.silence} after {c.last}"),
}
