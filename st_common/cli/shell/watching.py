"""Changes of watched queries, told as they are committed."""

import threading
from collections.abc import Callable, Iterator

import pyarrow as pa

from st_common.answers.follow import LAST_SEQ, Follower
from st_common.answers.json_rows import plain
from st_common.answers.outlets import Outlet
from st_common.config.home import Home
from st_common.query.lookup import find

POLL_S = 0.2
_TOLD = 20  # changes of a query at once
_SIGNS = {1: "+", -1: "-", 0: "="}


class Watching:
    """Follows queries in a thread of its own, and tells their changes line by line."""

    def __init__(self, home: Home, tell: Callable[[str], None]) -> None:
        self._home, self._tell = home, tell
        self._watched: dict[str, tuple[Follower, Outlet]] = {}
        self._lock = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="watching")

    @property
    def names(self) -> list[str]:
        """The queries that are watched."""
        return sorted(self._watched)

    def add(self, name: str, *, since: int | None = None) -> str:
        """Watches a query, from a position of its stream's log on or from now on; gives its name as it is declared.

        Raises:
            QueryError: no query was ever registered by that name.
        """
        row = find(self._home, name)
        follower = Follower(
            self._home,
            row.stream,
            query=row.name,
            **({} if since is None else {"after": (since - 1, LAST_SEQ)}),
        )
        if since is None:
            follower.skip()
        with self._lock:
            self._watched[row.name] = follower, Outlet(self._home, row.stream)
        if not self._thread.is_alive() and not self._stop.is_set():
            self._thread.start()
        return row.name

    def drop(self, name: str | None = None) -> list[str]:
        """Watches a query no more, or none; gives those that were watched."""
        with self._lock:
            names = [
                one
                for one in self._watched
                if name is None or one.casefold() == name.casefold()
            ]
            for one in names:
                del self._watched[one]
        return names

    def close(self) -> None:
        """Ends the thread."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join()

    def look(self) -> None:
        """Tells what is new."""
        with self._lock:
            news = [
                (name, outlet.passed(follower.poll()))
                for name, (follower, outlet) in self._watched.items()
            ]
        for name, rows in news:
            for line in lines_of(rows.slice(0, _TOLD)):
                self._tell(line)
            if len(rows) > _TOLD:
                self._tell(f"  {name}: and {len(rows) - _TOLD:,} more changes")

    def _run(self) -> None:
        while not self._stop.wait(POLL_S):
            try:
                self.look()
            except Exception as error:  # noqa: BLE001 - the prompt goes on without it
                self._tell(f"  changes are shown no more: {error}")
                return


def lines_of(rows: pa.Table) -> Iterator[str]:
    """Changes for people, one line each."""
    for row in rows.to_pylist():
        partner = f" / {row['partner']}" if row["partner"] is not None else ""
        value = f"  {row['value']:g}" if row["value"] is not None else ""
        fields = f"  {row['fields']}" if row["fields"] else ""
        at = plain(row["event_ts"])
        yield f"{_SIGNS[row['sign']]} {row['query']}: {row['object']}{partner}{value}  {row['cause']}  {at}{fields}"
