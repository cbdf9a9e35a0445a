"""The changes of a stream as they stand: what its Delta table has, and what only the local engine's journal has yet."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from st_common import tables
from st_common.answers.outlets import Outlet
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.engine.journal import pending, without_gap
from st_common.history.purged import require_kept
from st_common.query.lookup import find, history
from st_common.tables.handle import opened

_APP = "engine"  # the app transaction whose version is the position up to which an engine has committed


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """The changes of a stream at one moment, in two parts without doubles.

    Attributes:
        stored: one version of the Delta table, not read yet.
        pending: what only the local engine's journal has, behind the table's last commit.
    """

    stored: ds.Dataset
    pending: pa.Table


def parts(home: Home, stream: str) -> Changes:
    """The changes of a stream at one moment, not read yet; both parts are empty when there are none."""
    version, waiting = _moment(home, stream)
    contract, path = load_contract("changes"), home.table("changes", stream)
    stored = (
        ds.dataset(contract.empty_table())
        if version is None
        else tables.dataset(path, version=version, contract=contract)
    )
    return Changes(stored=stored, pending=waiting)


def _moment(home: Home, stream: str) -> tuple[int | None, pa.Table]:
    """The newest version of the table (None without one), and the rows of the journal that it does not have.

    The journal is read before the table. So a commit in between shows in both, and its rows are left out of the journal
    by their position; the other way round they would show in neither.
    """
    contract, batches = load_contract("changes"), pending(home, stream)
    path = home.table("changes", stream)
    table = opened(path)
    stored = None if table is None else table.transaction_version(_APP)
    committed = -1 if stored is None else stored
    waiting = pa.concat_tables(
        [
            contract.empty_table(),
            *(tables.fit(rows, contract) for rows in without_gap(batches, committed)),
        ]
    )
    waiting = waiting.filter(pc.greater(waiting["position"], committed))
    return None if table is None else table.version(), waiting


def stream_changes(
    home: Home,
    stream: str,
    query: str | None = None,
    *,
    since: int | None = None,
    begin: datetime | None = None,
    until: datetime | None = None,
) -> pa.Table:
    """The changes of a stream, or of one query on it, with the columns of the contract `changes`.

    They are read from the table and, behind its commit, from the local engine's journal. Files that can hold nothing
    wanted are not read.

    Args:
        home: where the tables lie.
        stream: the stream.
        query: only changes of this query, by its registered name.
        since: only changes behind this position of the log.
        begin: only changes with event times from then on; with a time zone.
        until: only changes with event times up to then; with a time zone.

    Returns:
        Rows in the order of (position, seq); none when there is no table and no journal. Without `since` those that
        are kept.

    Raises:
        FairwayError: changes behind `since` were purged.
    """
    wanted: list[tuple[str, str, Any]] = [
        ("position", ">", -1 if since is None else since)
    ]
    if begin is not None:
        wanted.append(("event_ts", ">=", begin))
    if until is not None:
        wanted.append(("event_ts", "<=", until))
    if query is not None:
        wanted.append(("query", "=", query))
    require_kept(home, stream, -1 if since is None else since)
    version, waiting = _moment(home, stream)
    parts = [waiting.filter(pq.filters_to_expression(wanted))]
    if version is not None:
        stored = tables.read(
            home.table("changes", stream),
            version=version,
            columns=waiting.schema.names,
            filters=wanted,
            contract=load_contract("changes"),
        )
        parts.append(stored.cast(waiting.schema))
    return pa.concat_tables(parts).sort_by(
        [("position", "ascending"), ("seq", "ascending")]
    )


def passed_changes(
    home: Home,
    query: str | None = None,
    *,
    stream: str | None = None,
    since: int | None = None,
) -> pa.Table:
    """The changes as users see them, of all queries or of one.

    Stream comes after stream, each in the order of (position, seq). Of queries that give a stream of CQL it is what
    that stream has (see `Outlet`).

    Args:
        home: where the tables lie.
        query: only changes of this query, whatever the case of its name.
        stream: only this stream; None: all on which the query is or was.
        since: only changes behind this position, in each stream's own log.

    Raises:
        QueryError: no query was ever registered by that name.
    """
    streams = streams_of(home, query) if stream is None else [stream]
    query = query if query is None else find(home, query).name
    tables = [
        Outlet(home, one).passed(stream_changes(home, one, query, since=since))
        for one in streams
    ]
    return pa.concat_tables([load_contract("changes").empty_table(), *tables])


def streams_of(home: Home, query: str | None) -> list[str]:
    """The streams on which a query is or was; without one all that have changes."""
    if query is None:
        return changed_streams(home)
    return sorted({row.stream for row in history(home, find(home, query).name)})


def changed_streams(home: Home) -> list[str]:
    """The names of the streams that have changes, or a log that may have some; sorted."""
    folders = home.table("changes").glob("[!.]*")  # not what was put aside
    stored = (path.name for path in folders if path.is_dir())
    logged = (path.parent.name for path in (home.root / "streams").glob("*/log"))
    return sorted({*stored, *logged})
