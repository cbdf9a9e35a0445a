"""Renews the leases of a client's ephemeral queries while the client lives (SPEC P14)."""

import threading
import time
from collections.abc import Callable
from contextlib import suppress

from st_common.errors import FairwayError, QueryError
from st_common.query.leases import DEFAULT_S, RENEWALS, Lease


def lease_s(ephemeral: bool | float) -> float | None:  # noqa: FBT001 - how `register` takes it
    """For how long a lease is to hold, in seconds, by what `register` was given; None: the query stays."""
    if ephemeral is False:
        return None
    return DEFAULT_S if ephemeral is True else float(ephemeral)


class LeaseKeeper:
    """Renews leases by a thread that ends with its process, three times in the time of each.

    Args:
        renew: renews the lease of an id; a `QueryError` says that it has ended.
        end: ends it.
    """

    def __init__(
        self, renew: Callable[[str], None], end: Callable[[str], None]
    ) -> None:
        self._renew, self._end = renew, end
        self._due: dict[str, tuple[float, float]] = {}
        """By lease when it is to be renewed next, and how often, in seconds of the monotonic clock."""
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    def keep(self, lease: Lease) -> None:
        """Renews a lease from now on."""
        each_s = lease.lease_s / RENEWALS
        with self._changed:
            self._due[lease.id] = time.monotonic() + each_s, each_s
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name="fairway-leases", daemon=True
                )
                self._thread.start()
            self._changed.notify()

    def end(self, lease_id: str) -> None:
        """Ends a lease, so that its queries are dropped; nothing where it has ended."""
        with self._changed:
            if self._due.pop(lease_id, None) is None:
                return
            self._changed.notify()
        with suppress(FairwayError):  # it ends by itself, later
            self._end(lease_id)

    def close(self) -> None:
        """Ends all leases."""
        for one in list(self._due):
            self.end(one)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._due:
                    self._thread = None
                    return
                lease_id = min(self._due, key=lambda one: self._due[one][0])
                due_s, each_s = self._due[lease_id]
                if (left_s := due_s - time.monotonic()) > 0:
                    self._changed.wait(left_s)
                    continue
                self._due[lease_id] = time.monotonic() + each_s, each_s
            try:
                self._renew(lease_id)
            except QueryError:
                with self._changed:  # it has ended: somebody else may say why
                    self._due.pop(lease_id, None)
            except FairwayError:
                continue  # the server may be away for a while
