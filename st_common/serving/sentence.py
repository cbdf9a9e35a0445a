"""One change in a sentence."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from st_common.query.fence import Fence
from st_common.query.incident import Incident
from st_common.query.plan import Plan
from st_common.regions.registry import Area
from st_common.serving.evidence import Fix
from st_common.serving.sentence_fence import Visit, event_sentence
from st_common.serving.sentence_incident import Told, incident_sentence
from st_common.serving.wording import asked, moment, value_of
from st_common.settings import StreamSettings

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
