"""Queries that end with who asked (SPEC P14): each hangs on a lease, which its client renews while it lives.

    registry/leases.json   {"near_7": {"version": 1, "stream": "taxis", "lease": "9f2c..", "lease_s": 30}}
    leases/9f2c..          an empty file, whose client touches it three times in 30 s

The first is written with the registration, all or none. The engine of the stream looks at the second: where nothing has
touched it for 30 s, by the clock of who looks and while he looked, the query is dropped, as by hand. So a clock that is
set, a machine that slept and an engine that was away end no lease; and a client that says goodbye takes its file away.
"""

import json
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from st_common.config.home import Home
from st_common.errors import QueryError, StateError
from st_common.query.commit import registry_file
from st_common.storage import LocalStorage, make_folder

if TYPE_CHECKING:
    from st_common.query.control import QueryRow

FILE = "leases.json"
DEFAULT_S, LEAST_S, MOST_S = 30.0, 3.0, 86_400.0
RENEWALS = 3
"""In the time of a lease, so that one may come late."""
_ID = re.compile(r"[0-9a-f]{32}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """What queries hang on.

    Attributes:
        id: 32 hexadecimal digits, known to its client alone.
        lease_s: for how long it holds after it was renewed, in seconds.
    """

    id: str
    lease_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Leased:
    """A version of a query that hangs on a lease: which one, and of which stream it is."""

    version: int
    stream: str
    lease: str
    lease_s: float


def begin_lease(home: Home, lease_s: float = DEFAULT_S) -> Lease:
    """A new lease, for a registration that follows at once.

    Raises:
        QueryError: it is shorter than 3 s or longer than a day.
    """
    if not LEAST_S <= lease_s <= MOST_S:
        raise QueryError(
            f"a query cannot be ephemeral with a lease of {lease_s:g} s",
            hint=f"from {LEAST_S:g} s to {MOST_S:,.0f} s",
        )
    folder = _folder(home)
    make_folder(folder)
    lease = Lease(id=secrets.token_hex(16), lease_s=lease_s)
    LocalStorage(folder).put(lease.id, b"", private=True)
    return lease


@contextmanager
def leasing(home: Home, lease_s: float | None) -> Iterator[Lease | None]:
    """A new lease for what the body of a `with` registers, which ends with it where that fails; None: there is none.

    Raises:
        QueryError: as `begin_lease`.
    """
    lease = None if lease_s is None else begin_lease(home, lease_s)
    try:
        yield lease
    except BaseException:
        if lease is not None:
            end_lease(home, lease.id)
        raise


def renew_lease(home: Home, lease_id: str) -> None:
    """Has a lease hold for its whole time from now on.

    Raises:
        QueryError: there is none of this id, or it has ended.
    """
    try:
        os.utime(_path(home, lease_id))
    except FileNotFoundError:
        raise _ended(lease_id) from None


def end_lease(home: Home, lease_id: str) -> None:
    """Ends a lease now; its queries are dropped at the next look of their streams' engines.

    Raises:
        QueryError: there is none of this id.
    """
    try:
        _path(home, lease_id).unlink()
    except FileNotFoundError:
        raise _ended(lease_id) from None


def leased(home: Home) -> dict[str, Leased]:
    """The queries that hung on a lease when somebody last wrote them down, by name; some may be dropped since.

    Raises:
        StateError: the file that says so cannot be read.
    """
    path = registry_file(home, FILE)
    try:
        written = json.loads(path.read_bytes())
        return {name: Leased(**one) for name, one in written.items()}
    except FileNotFoundError:
        return {}
    except (ValueError, TypeError, AttributeError):
        raise StateError(
            f"{path} cannot be read",
            hint="restore it from a copy; without it all queries stay until somebody drops them",
        ) from None


def encoded(
    before: Mapping[str, Leased],
    latest: "Mapping[str, QueryRow]",
    rows: "Mapping[str, QueryRow]",
    lease: Lease,
) -> bytes:
    """The file of the registry after a registration: what still hangs on leases, and what hangs on a new one.

    Args:
        before: what it was.
        latest: the newest row of every name, those that are registered now among them.
        rows: those that register queries with the lease, by name.
        lease: the lease.
    """
    kept = {name: one for name, one in before.items() if _is_live(latest, name, one)}
    new = {
        name: Leased(
            version=row.version,
            stream=row.stream,
            lease=lease.id,
            lease_s=lease.lease_s,
        )
        for name, row in rows.items()
    }
    return _text(kept | new)


def without(before: Mapping[str, Leased], lease_ids: set[str]) -> bytes:
    """The file of the registry once some leases have ended."""
    return _text({n: one for n, one in before.items() if one.lease not in lease_ids})


def hanging(
    before: Mapping[str, Leased], latest: "Mapping[str, QueryRow]", lease_ids: set[str]
) -> list[str]:
    """The names of the queries that are live and hang on leases that ended, and on nothing else since."""
    return [
        name
        for name, one in before.items()
        if one.lease in lease_ids and _is_live(latest, name, one)
    ]


def renewed_ns(home: Home, lease_id: str) -> int | None:
    """When a lease was renewed, by whatever clock; None: its client took it away."""
    try:
        return _path(home, lease_id).stat().st_mtime_ns
    except FileNotFoundError:
        return None


def forget_files(home: Home, lease_ids: set[str]) -> None:
    """Takes the files of leases away that have ended."""
    for one in lease_ids:
        _path(home, one).unlink(missing_ok=True)


def _is_live(latest: "Mapping[str, QueryRow]", name: str, one: Leased) -> bool:
    row = latest.get(name)
    return row is not None and row.live and row.version == one.version


def _text(entries: Mapping[str, Leased]) -> bytes:
    return json.dumps({name: asdict(one) for name, one in entries.items()}).encode()


def _folder(home: Home) -> Path:
    return home.root / "leases"


def _path(home: Home, lease_id: str) -> Path:
    if not _ID.fullmatch(lease_id):
        raise _ended(lease_id)
    return _folder(home) / lease_id


def _ended(lease_id: str) -> QueryError:
    return QueryError(
        f"there is no lease {lease_id!r}, or it has ended",
        hint="register the query again",
    )
