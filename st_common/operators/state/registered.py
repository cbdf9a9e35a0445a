"""The queries of a stream, as a shard knows them."""

import hashlib
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import pyarrow as pa

from st_common.operators.state.codec import from_blob, to_blob
from st_common.operators.state.fixes import NEVER
from st_common.query.plain import plan_text
from st_common.query.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """A query as a shard knows it; its number is its place in `State.queries`, which keeps dropped ones as well.

    Attributes:
        version: counts registrations and replacements of one name.
        layer_version: of the layer that it joins, None without.
        live: not dropped, not replaced, not failed.
        since: the largest event time that the log had when it was registered, in microseconds.
        position: where in the log it was registered, by which queries are ordered; a shard that forgot dropped ones
            numbers the others anew.
        dealt: the shard that judges it at ticks, where that is said; None: the one that its name falls to.
    """

    name: str
    version: int
    plan: Plan
    layer_version: int | None = None
    live: bool = True
    since: int = NEVER
    position: int | None = None
    dealt: int | None = None


_KEPT = 8
_NONE = -1


@dataclass(frozen=True, slots=True)
class Origin:
    """The queries that others were made of: what is behind them is new, and others have the numbers `changed`."""

    queries: "Queries"
    changed: frozenset[int] = frozenset()


class Queries(tuple[Registered, ...]):
    """The queries of a stream, by their numbers, with what was derived of them: columns, texts, compiled operators.

    A batch rarely changes queries, and comparing ten thousand plans would cost more than a small batch. So what is
    derived is kept here, in `derived`, and goes when the queries go. `origin` says what they were made of, for what can
    be derived of that in less time; `forget_origin` lets go of it.

        queries                      derived: {Flags: ..}
        queries.with_more([q])       derived: {}, origin: queries    flags of one query, put behind the others
    """

    derived: dict[Hashable, Any]
    origin: Origin | None

    def __new__(
        cls, queries: Iterable[Registered] = (), origin: Origin | None = None
    ) -> Self:
        """Queries of which nothing is derived yet."""
        made = super().__new__(cls, queries)
        made.derived, made.origin = {}, origin
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Queries alone: what is derived of them can be derived again."""
        return type(self), (tuple(self),)

    def with_more(self, more: Iterable[Registered]) -> "Queries":
        """These queries, and others behind them, numbered on from `len(self)`."""
        return Queries((*self, *more), self._origin_of(()))

    def with_changed(self, changed: Mapping[int, Registered]) -> "Queries":
        """These queries, with others in place of those with some numbers; what is derived of them is found anew.

        Args:
            changed: by number the query that stands there then.
        """
        queries = list(self)
        for number, query in changed.items():
            queries[number] = query
        return Queries(queries, self._origin_of(changed))

    def forget_origin(self) -> None:
        """Lets go of what these queries were made of."""
        self.origin = None

    def _origin_of(self, changed: Iterable[int]) -> Origin | None:
        """What queries made of these are made of: these, or what these were made of when nothing is derived here."""
        if self.derived:
            return Origin(self, frozenset(changed))
        if self.origin is None:
            return None
        first = self.origin.queries
        known = (number for number in changed if number < len(first))
        return Origin(first, self.origin.changed.union(known))


class SharedQueries:
    """Queries by the bytes that they are stored as: shards of one stream, in one process, share theirs.

    The last few are kept; the same bytes give the same queries, with all that is derived of them: a hundred thousand
    plans stand in memory once.
    """

    def __init__(self) -> None:
        self._known: dict[bytes, Queries] = {}  # by the digest of their bytes

    def to_blob(self, queries: Queries) -> bytes:
        """The queries as bytes, for a state that stores them by themselves: they are large and seldom change."""
        blob = to_blob(queries_to_arrays(queries), {}, compressed=True)
        self._remember(hashlib.sha256(blob).digest(), queries)
        return blob

    def from_blob(self, blob: bytes) -> Queries:
        """What `to_blob` gave."""
        digest = hashlib.sha256(blob).digest()
        known = self._known.get(digest)
        if known is None:
            known = queries_from_arrays(from_blob(blob)[0])
        return self._remember(digest, known)

    def _remember(self, digest: bytes, queries: Queries) -> Queries:
        """Those that are known by a digest, which are the newest now."""
        kept = self._known.pop(digest, queries)
        self._known[digest] = kept
        for old in list(self._known)[:-_KEPT]:
            del self._known[old]
        return kept


def queries_to_arrays(queries: Queries) -> dict[str, Any]:
    """The queries as arrays for a blob; kept with them, for a hundred thousand plans take a second."""
    kept: dict[str, Any] | None = queries.derived.get(queries_to_arrays)
    if kept is None:
        kept = queries.derived[queries_to_arrays] = _arrays(queries)
    return kept


def _arrays(queries: Queries) -> dict[str, Any]:
    versions = [-1 if q.layer_version is None else q.layer_version for q in queries]
    return {
        "query_name": pa.array([q.name for q in queries], pa.string()),
        "query_plan": pa.array([plan_text(q.plan) for q in queries], pa.string()),
        "query_version": np.array([q.version for q in queries], np.int64),
        "query_layer": np.array(versions, np.int64),
        "query_live": np.array([q.live for q in queries], np.int8),
        "query_since": np.array([q.since for q in queries], np.int64),
        "query_position": _or_none([q.position for q in queries]),
        "query_dealt": _or_none([q.dealt for q in queries]),
    }


def _or_none(values: Sequence[int | None]) -> np.ndarray:
    """Numbers as int64, with another one for None."""
    return np.array([_NONE if value is None else value for value in values], np.int64)


def positions_of(queries: Queries) -> np.ndarray:
    """By what queries are ordered; int64[queries], rising. Of those whose place is not known it is their number."""
    kept: np.ndarray | None = queries.derived.get(positions_of)
    if kept is None:
        said = _or_none([query.position for query in queries])
        kept = np.where(said == _NONE, np.arange(len(queries)), said)
        queries.derived[positions_of] = kept
    return kept


def queries_from_arrays(arrays: Mapping[str, Any]) -> Queries:
    """The queries that `queries_to_arrays` gave."""
    names = arrays["query_name"].to_pylist()
    # Bytes of before there were such have none.
    none = np.full(len(names), _NONE)
    rows = zip(
        names,
        arrays["query_plan"].to_pylist(),
        arrays["query_version"].tolist(),
        arrays["query_layer"].tolist(),
        arrays["query_live"].tolist(),
        arrays["query_since"].tolist(),
        arrays.get("query_position", none).tolist(),
        arrays.get("query_dealt", none).tolist(),
        strict=True,
    )
    return Queries(
        Registered(
            name=name,
            version=version,
            plan=Plan.from_json(json.loads(plan)),
            live=bool(live),
            since=since,
            layer_version=None if layer < 0 else layer,
            position=None if position == _NONE else position,
            dealt=None if dealt == _NONE else dealt,
        )
        for name, plan, version, layer, live, since, position, dealt in rows
    )
