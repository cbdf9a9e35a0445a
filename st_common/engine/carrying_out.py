"""Statements carried out by whoever sends them, from a terminal, a program or by HTTP: checks, beginnings, tables."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.engine.backfill import BehindError, backfill_of
from st_common.errors import FairwayError, QueryError
from st_common.query import registry
from st_common.query.control import QueryRow
from st_common.query.derived import roll_forward
from st_common.query.leases import Lease
from st_common.query.registry import Outcome
from st_common.query.text import Statement

_LOG = logging.getLogger(__name__)
_TRIES = 10
"""To follow a log so far that little is left; each leaves less, unless more comes than can be followed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CarriedOut:
    """What statements did.

    Attributes:
        outcome: rows, areas and streams that were written, and what is to be shown.
        late: why the table of queries will follow later; None: it has. Logs have the queries already.
    """

    outcome: Outcome
    late: FairwayError | None


def carry_out(
    home: Home,
    streams: Mapping[str, StreamSettings],
    statements: Sequence[Statement],
    *,
    owner: str,
    before_writing: Callable[[], None] | None = None,
    lease: Lease | None = None,
) -> CarriedOut:
    """Carries out statements in their order, all or none, with what queries know that begin before they are registered.

    Args:
        home: the home folder.
        streams: the settings by name.
        statements: as `parse` gives them.
        owner: who registers.
        before_writing: called when nothing is left to be found out, and nothing is written; what it raises ends it all.
        lease: what the queries hang on that are registered (SPEC P14); None: they stay until somebody drops them.

    Raises:
        TextError: what is wrong with them, with places; nothing is done.
        FairwayError: what a query that begins earlier would know cannot be found; nothing is done.
    """
    if any(one.beginning is not None for one in statements):
        if lease is not None:
            raise QueryError(
                "an ephemeral query begins where it is registered",
                hint="leave FROM out, or register it to stay",
            )
        registry.check(home, streams, statements)  # before minutes are spent
    seeding, tries = None, 0
    while True:
        seeding, tries = backfill_of(home, streams, statements, seeding), tries + 1
        try:
            done = registry.carry_out(
                home,
                streams,
                statements,
                owner=owner,
                seeding=seeding,
                before_writing=before_writing,
                lease=lease,
            )
        except BehindError:
            if tries == _TRIES:
                raise
        else:
            break
    return CarriedOut(outcome=done, late=_rolled_forward(home) if done.rows else None)


def drop(home: Home, name: str) -> tuple[QueryRow, FairwayError | None]:
    """Drops one query; gives its control row, and why the table of queries will follow later.

    Raises:
        QueryError: no such query is registered.
    """
    row = registry.drop(home, name)
    return row, _rolled_forward(home)


def end_leases(home: Home, lease_ids: set[str]) -> None:
    """Drops the queries that hang on leases which have ended (SPEC P14), and says so in the log of the process."""
    for row in registry.end_leases(home, lease_ids):
        _LOG.info("query %s is dropped: its lease has ended", row.name)
    _rolled_forward(home)


def _rolled_forward(home: Home) -> FairwayError | None:
    """Brings the table of queries up to date, for those who read it by other tools; gives what kept it from that."""
    try:
        roll_forward(home)
    except FairwayError as error:
        return error
    return None
