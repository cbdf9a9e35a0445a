"""AS OF and BETWEEN at the end of a question, FROM at that of a registration: texts as times."""

from datetime import datetime

from sqlglot import exp

from st_common.query.grammar.nodes import Refused, span_of
from st_common.query.past import Beginning, Past, time_written

_HINT = "such as '2024-05-01T12:30:00Z': ISO 8601, UTC where no zone is given"


def past_of(node: exp.Expr | None) -> Past | None:
    """The past that a question is about; None where it says none.

    Raises:
        Refused: a text is no time, or the first time is behind the second.
    """
    if node is None:
        return None
    first, last = node.this, node.expression
    since = _time(first) if first else None
    past = Past(since=since, until=_time(last))
    if past.since is not None and past.since > past.until:
        message = f"{first.this!r} is later than {last.this!r}"
        raise Refused(message, span_of(first), "BETWEEN the earlier AND the later")
    return past


def beginning_of(node: exp.Expr | None) -> Beginning | None:
    """From where on a query knows the log; None where it says nothing.

    Raises:
        Refused: a text is no time.
    """
    if node is None:
        return None
    return Beginning(since=_time(node.this) if node.this else None)


def _time(literal: exp.Expr) -> datetime:
    try:
        return time_written(literal.this)
    except ValueError:
        message = f"{literal.this!r} is no time"
        raise Refused(message, span_of(literal), _HINT) from None
