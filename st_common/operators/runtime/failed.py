"""Which queries cannot be judged any more, given what failed while a step ran (SPEC S3)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from st_common.operators.expressions.comparing import steps_of
from st_common.operators.expressions.failures import Key
from st_common.operators.state.registered import Queries, Registered
from st_common.query.plan_expressions import expressions_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """A version of a query that cannot be judged any more, and why, in words for people."""

    query: str
    version: int
    why: str


def failed_queries(queries: Queries, noted: Mapping[Key, str]) -> tuple[Failure, ...]:
    """The live queries that use what was noted, each once, in the order of registration.

    Args:
        queries: all queries of the stream.
        noted: by what failed, why (see `failures.noting`).
    """
    if not noted:
        return ()
    failures = (
        (one, next((noted[key] for key in _keys(one) if key in noted), None))
        for one in queries
        if one.live
    )
    return tuple(
        Failure(query=one.name, version=one.version, why=why)
        for one, why in failures
        if why is not None
    )


def _keys(query: Registered) -> Iterator[Key]:
    yield from (("expression", text) for _, text in expressions_of(query.plan))
    yield from (
        ("filter", one.name, one.text or "") for one in steps_of(query.plan).filters
    )
    outer = query.plan.outer
    for text in () if outer is None else outer.expressions:
        yield "expression", text
    if query.plan.join is not None:
        yield ("layer", query.plan.join.layer, str(query.layer_version))
