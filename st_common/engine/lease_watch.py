"""Drops queries whose leases have ended, for the engine of their stream (SPEC P14)."""

import time
from dataclasses import dataclass, field

from st_common.config.home import Home
from st_common.query.leases import Leased, leased, renewed_ns

LOOK_S = 1.0
"""Between two looks."""


@dataclass
class LeaseWatch:
    """Looks at the leases of a stream's queries.

    Args:
        home: the home folder.
        stream: the name of the stream.
    """

    home: Home
    stream: str
    _seen: dict[str, tuple[int, float]] = field(default_factory=dict)
    _next_s: float = 0.0

    def look(self) -> None:
        """Drops the queries whose leases have ended; at most once a second, and nothing where there is no lease."""
        now_s = time.monotonic()
        if now_s < self._next_s:
            return
        self._next_s = now_s + LOOK_S
        own = {
            one.lease: one for one in leased(self.home).values() if self._is_own(one)
        }
        if ended := {one.lease for one in own.values() if self._has_ended(one, now_s)}:
            from st_common.engine.carrying_out import end_leases  # slow to import

            end_leases(self.home, ended)
        self._seen = {one: seen for one, seen in self._seen.items() if one in own}

    def _is_own(self, one: Leased) -> bool:
        return one.stream == self.stream

    def _has_ended(self, one: Leased, now_s: float) -> bool:
        """Whether a lease was taken away, or not renewed in its time as long as this has looked."""
        touched_ns = renewed_ns(self.home, one.lease)
        if touched_ns is None:
            return True
        before_ns, since_s = self._seen.get(one.lease, (None, now_s))
        if before_ns != touched_ns:
            self._seen[one.lease] = touched_ns, now_s
            return False
        return now_s - since_s > one.lease_s
