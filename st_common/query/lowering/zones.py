"""AT TIME ZONE: what the clocks of a zone show at a time, which is UTC like all times of streams.

    event_ts AT TIME ZONE 'Europe/Berlin'      what is written
    event_ts AT TIME ZONE 'UTC' AT TIME ZONE 'Europe/Berlin'      the same in plans: SQL of a time without a zone

SQL reads the first of a time without a zone the other way around, as what a clock in Berlin showed. Plans have the
second, which DuckDB and PostgreSQL read as we do; whoever writes that means it.
"""

from sqlglot import exp

from st_common.query.grammar.nodes import Refused, Span, span_of
from st_common.times import why_no_zone, zones_near

UTC = "UTC"
_SHIFTS = ("+", "-")


def check_zone(node: exp.Expr, span: Span) -> None:
    """Checks the zone, and writes into the tree that the time before it is in UTC.

    Args:
        node: an `exp.AtTimeZone`, with a text as its zone.
        span: where it stands.

    Raises:
        Refused: no zone is called so, or the time is a local one already.
    """
    zone, at_zone = node.args["zone"].this, span_of(node.args["zone"])
    if zone.startswith(_SHIFTS):
        hint = "'Europe/Berlin'; 'Etc/GMT-1' is an hour ahead of UTC all year"
        message = (
            f"{zone!r} is a difference to UTC: AT TIME ZONE takes the name of a zone"
        )
        raise Refused(message, at_zone, hint)
    if why_no_zone(zone) is not None:
        near = " or ".join(map(repr, zones_near(zone)))
        hint = f"did you mean {near}?" if near else "such as 'Europe/Berlin'"
        raise Refused(f"unknown time zone {zone!r}", at_zone, hint)
    if _is_utc_before(node):
        return
    time = node.this
    if _is_in_utc(time):
        return
    if time.find(exp.AtTimeZone) is not None:
        message = "this is what clocks show already: AT TIME ZONE is of a time in UTC"
        raise Refused(message, span, "event_ts AT TIME ZONE 'Europe/Berlin', once")
    utc = exp.Literal.string(UTC)
    node.set("this", exp.AtTimeZone(this=time, zone=utc))


def _is_utc_before(node: exp.Expr) -> bool:
    """Whether a node is the first of a plan's two."""
    return _is_in_utc(node) and isinstance(node.parent, exp.AtTimeZone)


def _is_in_utc(time: exp.Expr) -> bool:
    """Whether a time says itself that it is in UTC: AT TIME ZONE stands behind it."""
    return (
        isinstance(time, exp.AtTimeZone)
        and time.args["zone"].this == UTC
        and time.this.find(exp.AtTimeZone) is None
    )
