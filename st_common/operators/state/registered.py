"""The queries of a stream, as a shard knows them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
    """

    name: str
    version: int
    plan: Plan
    layer_version: int | None = None
    live: bool = True
    since: int = NEVER


Queries = tuple[Registered, ...]

_KEPT = 8
_known: dict[bytes, Queries] = {}  # by the digest of their bytes
_texts: list[tuple[Queries, dict[str, Any]]] = []


def queries_to_blob(queries: Queries) -> bytes:
    """The queries as bytes, for a state that stores them by themselves: they are large and seldom change."""
    blob = to_blob(queries_to_arrays(queries), {}, compressed=True)
    _remember(hashlib.sha256(blob).digest(), queries)
    return blob


def queries_from_blob(blob: bytes) -> Queries:
    """The queries that `queries_to_blob` gave.

    The same bytes give the same tuple, for shards of one stream share their queries: a hundred thousand plans stand in
    memory once.
    """
    digest = hashlib.sha256(blob).digest()
    found = _known.get(digest)
    return _remember(
        digest, queries_from_arrays(from_blob(blob)[0]) if found is None else found
    )


def _remember(digest: bytes, queries: Queries) -> Queries:
    """Those that are known by a digest, which are the newest now."""
    kept = _known.pop(digest, queries)
    _known[digest] = kept
    for old in list(_known)[:-_KEPT]:
        del _known[old]
    return kept


def queries_to_arrays(queries: Queries) -> dict[str, Any]:
    """The queries as arrays for a blob; kept for the tuple seen last, for a hundred thousand plans take a second."""
    for known, arrays in _texts:
        if known is queries:
            return arrays
    versions = [-1 if q.layer_version is None else q.layer_version for q in queries]
    arrays = {
        "query_name": pa.array([q.name for q in queries], pa.string()),
        "query_plan": pa.array([plan_text(q.plan) for q in queries], pa.string()),
        "query_version": np.array([q.version for q in queries], np.int64),
        "query_layer": np.array(versions, np.int64),
        "query_live": np.array([q.live for q in queries], np.int8),
        "query_since": np.array([q.since for q in queries], np.int64),
    }
    _texts.insert(0, (queries, arrays))
    del _texts[4:]
    return arrays


def queries_from_arrays(arrays: Mapping[str, Any]) -> Queries:
    """The queries that `queries_to_arrays` gave."""
    rows = zip(
        arrays["query_name"].to_pylist(),
        arrays["query_plan"].to_pylist(),
        arrays["query_version"].tolist(),
        arrays["query_layer"].tolist(),
        arrays["query_live"].tolist(),
        arrays["query_since"].tolist(),
        strict=True,
    )
    return tuple(
        Registered(
            name=name,
            version=version,
            plan=Plan.from_json(json.loads(plan)),
            live=bool(live),
            since=since,
            layer_version=None if layer < 0 else layer,
        )
        for name, plan, version, layer, live, since in rows
    )
