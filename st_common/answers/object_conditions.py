"""Of which objects a condition of the language holds, by their last fixes: the WHERE of a SELECT, by itself."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace

import pyarrow as pa

from st_common.answers.fix_values import with_values
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.errors import QueryError
from st_common.operators.expressions.evaluation import masks
from st_common.query.area_store import HomeAreas
from st_common.query.areas import Areas
from st_common.query.binding import bound, columns_of
from st_common.query.fix_columns import BUILTINS
from st_common.query.grammar.words import quoted
from st_common.query.plan import Plan
from st_common.query.problem import TextError
from st_common.query.registry import fitted
from st_common.query.text import select_of

_OF_ONE_FIX = ("object", "event_ts", "x", "y")


def condition_of(
    home: Home,
    streams: Mapping[str, StreamSettings],
    stream: str,
    text: str,
    *,
    areas: Areas | None = None,
) -> str:
    """A condition over attributes, `object`, `event_ts`, `x` and `y` as the operators evaluate it.

    Args:
        home: where named areas lie.
        streams: the settings by name.
        stream: whose objects.
        text: what stands behind WHERE, such as `speed > 5 AND kind = 'bus'`.
        areas: what it may name; None: the areas of the home.

    Raises:
        QueryError: it is no condition, names what the stream does not have, or what needs an object's fix before; a
            TextError where the language can show the place.
    """
    select = f"SELECT * FROM {quoted(stream)} WHERE\n{text}"  # noqa: S608 - of our language, which our parser reads
    with _in_own_lines():
        statement = select_of(select, areas=areas or HomeAreas(home))
        ((known,), _) = fitted(home, streams, [statement])
    plan = known.plan
    if plan is None or plan != Plan(stream=plan.stream, where=plan.where):
        raise QueryError(
            f"{text!r} is more than a condition over attributes",
            hint="such as speed > 5 AND kind = 'bus'; a rectangle and the nearest are asked for beside it",
        )
    condition = str(plan.where)
    _require_one_fix(streams[stream], condition)
    return condition


@contextmanager
def _in_own_lines() -> Iterator[None]:
    """Lets errors count lines from that of the condition on, which is the second of the statement."""
    try:
        yield
    except TextError as error:
        problems = [replace(one, line=one.line - 1) for one in error.problems]
        raise TextError(problems) from None


def _require_one_fix(stream: StreamSettings, condition: str) -> None:
    """Refuses what is measured against an object's fix before, which nobody reads here."""
    columns = columns_of(stream.attributes)
    one_fix = [each for each in columns if each[0] not in BUILTINS]
    one_fix += [each for each in columns if each[0] in _OF_ONE_FIX]
    (binding,) = bound([condition], tuple(one_fix))
    if binding.error:
        against = ", ".join(name for name in BUILTINS if name not in _OF_ONE_FIX)
        raise QueryError(
            f"{condition} is about an object's fix before, and only last fixes are read",
            hint=f"leave out {against}, or register a query",
        )


def holding(
    home: Home, stream: StreamSettings, rows: pa.Table, condition: str
) -> pa.Table:
    """Those of some objects of which a condition holds; not where it has no value.

    Args:
        home: where the fixes lie.
        stream: the stream.
        rows: last fixes: `position`, `object`, `event_ts`, `x`, `y`.
        condition: as `condition_of` gives it.

    Raises:
        QueryError: it cannot be evaluated.
    """
    valued = with_values(home, stream, rows)
    at = valued.schema.get_field_index("event_ts")
    stamps = valued["event_ts"].cast(pa.timestamp("us", "UTC")).cast(pa.timestamp("us"))
    readings = valued.set_column(at, "event_ts", stamps)
    return rows.filter(pa.array(masks([condition], readings)[0]))
