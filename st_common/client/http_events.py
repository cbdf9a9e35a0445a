"""Server-sent events of a server, read in a thread: each once, and on from the last one after breaks."""

import json
import queue
import threading
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from st_common.errors import FairwayError

if TYPE_CHECKING:
    import httpx

_AGAIN_S = 0.5
_SILENT_S = 40.0
"""A server says every 15 s that it lives; who says nothing for so long is connected to anew."""
_MOST = 100_000


class HttpEvents:
    """Changes of one address as they come.

    Args:
        client: of the server; each has connections of its own.
        path: the address.
        since: the position behind which they begin; None: with those from now on.
    """

    def __init__(self, client: "httpx.Client", path: str, since: int | None) -> None:
        self._client, self._path, self._since = client, path, since
        self._given: queue.Queue[dict[str, Any] | FairwayError] = queue.Queue(_MOST)
        self._last: str | None = None
        self._is_over = threading.Event()
        self._response: httpx.Response | None = None
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def next(self, timeout_s: float) -> dict[str, Any] | None:
        """The next change as columns, its times as datetimes and `fields` as JSON; None: none came in this time.

        Raises:
            FairwayError: the server refuses.
        """
        try:
            value = self._given.get(timeout=max(timeout_s, 0.0) or 0.001)
        except queue.Empty:
            return None
        if isinstance(value, FairwayError):
            raise value
        return value

    def close(self) -> None:
        """Listens no more."""
        self._is_over.set()
        response = self._response
        if response is not None:
            with suppress(Exception):  # the thread may be about to close it as well
                response.close()

    def _read(self) -> None:
        import httpx

        while not self._is_over.is_set():
            try:
                for change in self._connected():
                    self._given.put(change)
            except FairwayError as error:
                self._given.put(error)
                return
            except (httpx.HTTPError, httpx.StreamError, OSError):
                pass  # the server ends, or is away: it is asked again
            self._is_over.wait(_AGAIN_S)

    def _connected(self) -> Iterator[dict[str, Any]]:
        """Changes until the connection ends."""
        from st_common.client.http_errors import raise_for

        headers = {} if self._last is None else {"Last-Event-ID": self._last}
        begins = self._last is None and self._since is not None
        params = {"since": str(self._since)} if begins else {}
        timeout = self._client.timeout.read and _SILENT_S
        with self._client.stream(
            "GET", self._path, params=params, headers=headers, timeout=timeout
        ) as response:
            self._response = response
            if response.status_code != 200:
                response.read()
                raise_for(response)
            known = ""
            for line in response.iter_lines():
                name, _, value = line.partition(": ")
                if name == "id":
                    known = value
                elif name == "data" and known:
                    self._last = known
                    yield row_of(json.loads(value))


def row_of(event: Mapping[str, Any]) -> dict[str, Any]:
    """What an event says, as the columns of a change have it."""
    # A server of a version before places says none.
    row = {"x": None, "y": None, **event}
    for name in ("event_ts", "fix_ts"):
        row[name] = None if row[name] is None else datetime.fromisoformat(row[name])
    row["fields"] = None if row["fields"] is None else json.dumps(row["fields"])
    return row
