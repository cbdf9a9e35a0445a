"""Changes and queries in plain words: one change, one event of a fence, or one row about an incident in a sentence.

Of an event: who was where, how long, and what counted for it (SPEC X3). Of an incident: since when, how long, why it
ended, how bad it was (SPEC X8).
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import singledispatch
from typing import Any

from st_common.checks.evidence import Fix
from st_common.config.stream import StreamSettings
from st_common.query.explain_fence import in_a_row
from st_common.query.explain_steps import transform_in_words, windows_in_words
from st_common.query.fence import Debounce, Fence
from st_common.query.incident import Incident
from st_common.query.neighbours import GroupNearest, Nearest, Place, ReverseNearest
from st_common.query.plan import LayerJoin, PairJoin, Plan, Window
from st_common.regions.region import Region
from st_common.regions.registry import Area


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
class Visit:
    """What a sentence says of an event of a fence.

    Attributes:
        change: its row of `changes`.
        fence: what the query says about the border.
        who: the object.
        where: the border, "inside the rectangle ..".
        last: the fix that the object was judged by.
        query: the query and its version.
        silence_s: of the stream; None without.
        at_tick: where the border moves, at which tick and where the focal object was; else "".
        ended: who is gone.
    """

    change: Mapping[str, Any]
    fence: Fence
    who: str
    where: str
    last: str
    query: str
    silence_s: float | None
    at_tick: str = ""
    ended: str = "it"

    @property
    def when(self) -> str:
        """The event's own time."""
        return moment(self.change["event_ts"])

    @property
    def lasted(self) -> str:
        """How long the visit was that ended; empty where nobody knows."""
        value = self.change["value"]
        return "" if value is None else f" after {lasting(value)} inside"

    def row(self, debounce: Debounce) -> str:
        """What had to come together before a crossing counted; nothing where one fix is enough."""
        if debounce == Debounce():
            return ""
        return f", after {in_a_row(debounce, 'ticks' if self.at_tick else 'fixes')}"


def event_sentence(visit: Visit) -> str | None:
    """What happened at the border, in one sentence; None for what ends every answer alike, as DROP QUERY does."""
    said = _VISIT_SENTENCES.get(visit.change["cause"])
    return None if said is None else said(visit)


def _visit_enter(visit: Visit) -> str:
    row = visit.row(visit.fence.enter_after)
    return f"{visit.who} came in{visit.at_tick}: {visit.last} was {visit.where}{row} ({visit.query})."


def _visit_leave(visit: Visit) -> str:
    margin = visit.fence.hysteresis_m
    how = f"more than {margin:g} m away from it" if margin else "no more"
    row = visit.row(visit.fence.exit_after)
    out = f"{visit.who} went out{visit.lasted}{visit.at_tick}"
    return f"{out}: {visit.last} was {how}{row} ({visit.query}: {visit.where})."


def _visit_inside(visit: Visit) -> str:
    return f"{visit.who} stayed in at {visit.when}: {visit.last} did not end its visit ({visit.query}: {visit.where})."


def _outside(visit: Visit) -> str:
    return f"{visit.who} was out at {visit.when}: {visit.last} began no visit ({visit.query}: {visit.where})."


def _cross(visit: Visit) -> str:
    return (
        f"{visit.who} crossed: neither {visit.last} nor the one before it was {visit.where}, but the straight line "
        f"between them passes there ({visit.query})."
    )


def _dwell(visit: Visit) -> str:
    value = visit.change["value"]
    stay = lasting(visit.fence.dwell_s or 0.0 if value is None else value)
    return f"{visit.who} has been inside for {stay} at {visit.when} ({visit.query}: {visit.where})."


def _visit_gone(visit: Visit) -> str:
    return f"{visit.who} is out{visit.lasted}: the feed said that {visit.ended} is gone ({visit.query}: {visit.where})."


def _visit_expired(visit: Visit) -> str:
    silent = "it, or what the fence goes with," if visit.at_tick else "it"
    silence = "too long" if visit.silence_s is None else lasting(visit.silence_s)
    return f"{visit.who} is out{visit.lasted}: {silent} said nothing for {silence} after {visit.last} ({visit.query})."


_VISIT_SENTENCES: dict[str, Callable[[Visit], str]] = {
    "enter": _visit_enter,
    "leave": _visit_leave,
    "inside": _visit_inside,
    "outside": _outside,
    "cross": _cross,
    "dwell": _dwell,
    "gone": _visit_gone,
    "expired": _visit_expired,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What a sentence says of a row about an incident.

    Attributes:
        change: the row of `changes`; its `value` is how many seconds the incident had lasted.
        incident: what the query says about incidents.
        who: the object.
        condition: what begins one, "where speed > 50".
        last: the fix that the object was judged by.
        query: the query and its version.
        silence_s: of the stream; None without.
    """

    change: Mapping[str, Any]
    incident: Incident
    who: str
    condition: str
    last: str
    query: str
    silence_s: float | None

    @property
    def lasted(self) -> str:
        """How long it had lasted."""
        return lasting(self.change["value"] or 0.0)

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


def incident_sentence(told: Told) -> str | None:
    """What happened, in one sentence; None for what ends every answer alike, as DROP QUERY does."""
    said = _INCIDENT_SENTENCES.get(told.change["cause"])
    return None if said is None else said(told)


def _started(told: Told) -> str:
    return (
        f"{told.who} began an incident at {told.since}, {told.condition}; {told.last} confirmed it "
        f"after {in_a_row(told.incident.lasting)}{told.worst} ({told.query})."
    )


def _ongoing(told: Told) -> str:
    return (
        f"The incident of {told.who} since {told.since} went on with {told.last}, after {told.lasted}{told.worst} "
        f"({told.query}: {told.condition})."
    )


def _incident_ended(told: Told) -> str:
    until = told.incident.until
    return _end(
        told,
        f"{told.last} was so no more"
        if until is None
        else f"of {told.last} {until} was true",
    )


def _gap(told: Told) -> str:
    gap = lasting(told.incident.max_gap_s or 0.0)
    return _end(told, f"no fix came within {gap} of {told.last}")


def _incident_gone(told: Told) -> str:
    return _end(told, "the feed said that it is gone")


def _incident_expired(told: Told) -> str:
    silence = "too long" if told.silence_s is None else lasting(told.silence_s)
    return _end(told, f"it said nothing for {silence} after {told.last}")


def _end(told: Told, why: str) -> str:
    return (
        f"The incident of {told.who} since {told.since} ended after {told.lasted}: {why}{told.worst} "
        f"({told.query}: {told.condition})."
    )


_INCIDENT_SENTENCES: dict[str, Callable[[Told], str]] = {
    "started": _started,
    "ongoing": _ongoing,
    "ended": _incident_ended,
    "gap": _gap,
    "gone": _incident_gone,
    "expired": _incident_expired,
}


_MOST_NAMED = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Others:
    """The other objects that a change has to do with; their fixes are None where none is known.

    Attributes:
        focals: the objects that the query goes with, each with its fix at the tick.
        newcomers: those that came when this object left the nearest ones.
    """

    focals: Mapping[str, Fix | None]
    newcomers: Mapping[str, Fix | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    change: Mapping[str, Any]
    plan: Plan | None
    fix: Fix | None
    others: Others
    silence_s: float | None

    @property
    def focals(self) -> Mapping[str, Fix | None]:
        """The objects that the query goes with."""
        return self.others.focals

    @property
    def instead(self) -> str:
        """Who came among the nearest in its place, as a further half of a sentence."""
        came = list(self.others.newcomers.items())
        if not came:
            return ""
        named = [
            name if fix is None else f"{name} at ({fix.x:.10g}, {fix.y:.10g})"
            for name, fix in came
        ]
        more = (
            f" and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
        )
        return f"; in its place came {' and '.join(named[:_MOST_NAMED])}{more}"

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
    def criteria(self) -> str:
        return "" if self.plan is None else f" ({asked(self.plan)})"

    @property
    def when(self) -> str:
        return moment(self.change["event_ts"])

    @property
    def last(self) -> str:
        """The fix that the object was judged by."""
        ts = moment(self.change["fix_ts"])
        if self.fix is None or self.fix.gone:
            return f"its fix of {ts}"
        return f"its fix of {ts} at ({self.fix.x:.10g}, {self.fix.y:.10g})"

    @property
    def at_tick(self) -> str:
        """At which tick, and where the focal objects were; empty for a query that is judged fix by fix."""
        if self.plan is None or not self.plan.by_ticks:
            return ""
        places = [
            f"{name} at ({fix.x:.10g}, {fix.y:.10g}) since {moment(fix.event_ts)}"
            for name, fix in self.focals.items()
            if fix is not None and not fix.gone
        ]
        return f" at the tick of {self.when}{', with ' + ' and '.join(places) if places else ''}"


def _visit(case: _Case, plan: Plan, fence: Fence) -> Visit:
    """The event of a fence, with what words need of it."""
    ended = _ended(case) or "an object that it depends on" if plan.by_ticks else "it"
    return Visit(
        change=case.change,
        fence=fence,
        who=case.who,
        where=asked(plan),
        last=case.last,
        query=case.query,
        silence_s=case.silence_s,
        at_tick=case.at_tick,
        ended=ended,
    )


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
    if plan is not None and plan.aggregate is not None:
        return _aggregate(case, plan)
    if plan is not None and plan.fence is not None:
        said = event_sentence(_visit(case, plan, plan.fence))
        if said is not None:
            return said
    if plan is not None and plan.incident is not None:
        said_of = incident_sentence(_told(case, plan, plan.incident))
        if said_of is not None:
            return said_of
    if plan is not None and plan.frame is not None and change["cause"] in _FRAMED:
        return _FRAMED[change["cause"]](case)
    return _SENTENCES[change["cause"]](case)


def _told(case: _Case, plan: Plan, incident: Incident) -> Told:
    """What a sentence says of an incident."""
    return Told(
        change=case.change,
        incident=incident,
        who=case.who,
        condition=asked(plan),
        last=case.last,
        query=case.query,
        silence_s=case.silence_s,
    )


def _aggregate(case: _Case, plan: Plan) -> str:
    """An aggregate's row: of the whole answer or of one group."""
    group = case.change["object"]
    what = f"{value_of(plan)} of {case.query}" + (
        "" if group == "*" else f" for the group {group}"
    )
    value = "" if case.change["value"] is None else f" {case.change['value']:.10g}"
    if plan.aggregate is not None and plan.aggregate.function == "several":
        value = f" {case.change['fields']}"
    now = case.change["sign"] > 0
    if case.change["cause"] == "value":
        return f"The {what}{' became' if now else ' was'}{value}{'' if now else ' until then'}{case.at_tick}."
    if now:
        return f"The {what} is there{' with' + value if value else ''}{case.at_tick or ' since ' + case.when}."
    ended = {
        "dropped": "the query was dropped",
        "replaced": "the query was replaced",
        "failed": "the query could not be judged any more",
    }
    reason = ended.get(case.change["cause"], "nothing is left that counts")
    return f"The {what} is no more{case.at_tick or ' since ' + case.when}: {reason}."


def _registered(case: _Case) -> str:
    return (
        f"{case.who} was there when {case.query} was registered: {case.last} was its last one, "
        f"and it satisfied the query{case.criteria}."
    )


def _backfilled(case: _Case) -> str:
    return f"{case.who} was in the answer when {case.query} was registered with what came before it{case.criteria}."


def _enter(case: _Case) -> str:
    return f"{case.who} came into the answer{case.at_tick}: with {case.last} it satisfies {case.query}{case.criteria}."


def _leave(case: _Case) -> str:
    return (
        f"{case.who} left the answer{case.at_tick}: with {case.last} it satisfies {case.query} no more{case.criteria}"
        f"{case.instead}."
    )


def _inside(case: _Case) -> str:
    return f"{case.who} stayed in the answer of {case.query}{case.at_tick}, with {case.last}{case.criteria}."


def _gone(case: _Case) -> str:
    who = _ended(case) or "an object that the answer depends on"
    return f"{case.who} left the answer of {case.query}{case.at_tick}: the feed said that {who} is gone."


def _ended(case: _Case) -> str | None:
    """Who is gone: the object, else the first focal object whose last record says so."""
    if (
        case.plan is None
        or not case.plan.by_ticks
        or (case.fix is not None and case.fix.gone)
    ):
        return str(case.change["object"])
    focal = next(
        (name for name, fix in case.focals.items() if fix is not None and fix.gone),
        None,
    )
    return focal or (
        str(case.change["object"]) if case.plan.frame is not None else None
    )


def _expired(case: _Case) -> str:
    after = (
        f" for {case.silence_s:g} s" if case.silence_s is not None else " for too long"
    )
    who = (
        case.change["object"]
        if case.plan is None or not case.plan.by_ticks
        else "it, or what the query goes with,"
    )
    return f"{case.who} left the answer of {case.query} at {case.when}: {who} said nothing{after} after {case.last}."


def _aged(case: _Case) -> str:
    left = f"{case.who} left the answer of {case.query}{case.at_tick}"
    return f"{left}: none of its fixes counts any more{case.criteria}."


def _value(case: _Case) -> str:
    return (
        f"The value of {case.who} in the answer of {case.query} changed{case.at_tick}."
    )


def _failed(case: _Case) -> str:
    return (
        f"{case.who} left the answer because {case.query} could not be judged any more from {case.when} on; "
        f"fairway query show {case.query} says why."
    )


def _dropped(case: _Case) -> str:
    return (
        f"{case.who} left the answer because {case.query} was dropped at {case.when}."
    )


def _replaced(case: _Case) -> str:
    return f"{case.who} left the answer because {case.query} was replaced by a newer version at {case.when}."


def _area(case: _Case) -> str:
    now = "satisfies" if case.change["sign"] >= 0 else "does not satisfy"
    return (
        f"the area that {case.query} names became another region at {case.when}: with {case.last} {case.who} now "
        f"{now} it{case.criteria}."
    )


def _layer(case: _Case) -> str:
    now = "satisfies" if case.change["sign"] > 0 else "does not satisfy"
    return (
        f"{_loaded(case)}: with {case.last} {case.who} now {now} "
        f"{case.query}{case.criteria}."
    )


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


def _framed_enter(case: _Case) -> str:
    return (
        f"{case.who} came into the answer of {case.query}{case.at_tick}{case.criteria}."
    )


def _framed_aged(case: _Case) -> str:
    return f"{case.who} left the answer of {case.query}{case.at_tick}: it lies in the windows no more{case.criteria}."


def _framed_leave(case: _Case) -> str:
    who = case.change["object"]
    return f"{case.who} left the answer of {case.query}{case.at_tick}: {who} itself counts no more{case.criteria}."


_FRAMED: dict[str, Callable[[_Case], str]] = {
    "enter": _framed_enter,
    "aged": _framed_aged,
    "leave": _framed_leave,
}
"""Of a query with CQL's windows, whose members are fixes."""

_SENTENCES: dict[str, Callable[[_Case], str]] = {
    "registered": _registered,
    "backfilled": _backfilled,
    "enter": _enter,
    "leave": _leave,
    "inside": _inside,
    "gone": _gone,
    "expired": _expired,
    "aged": _aged,
    "value": _value,
    "dropped": _dropped,
    "failed": _failed,
    "replaced": _replaced,
    "layer": _layer,
    "area": _area,
}
