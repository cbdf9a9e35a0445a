"""Server-sent events of a server, read in a thread: each once, and on from the last one after breaks.

What cannot be read as a change is passed over, counted, and logged; the thread goes on.
"""

import json
import logging
import queue
import re
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from st_common.errors import ConfigError, FairwayError, QueryError, TransientError

if TYPE_CHECKING:
    import httpx

_AGAIN_S = 0.5
_SILENT_S = 40.0
"""A server says every 15 s that it lives; who says nothing for so long is connected to anew."""
_MOST = 100_000
_LONGEST = 64 << 20
"""Bytes of a line; who sends more without an end is connected to anew."""
_ENDS = re.compile(rb"\r\n|\r|\n")
_ID = re.compile(r"(.*/)?[0-9]{1,18}/[0-9]{1,10}", re.DOTALL | re.ASCII)
_CHANGE, _END = "change", "end"
_LOG = logging.getLogger(__name__)
_KINDS: dict[int, type[FairwayError]] = {
    400: QueryError,
    401: ConfigError,
    404: QueryError,
    413: ConfigError,
    415: ConfigError,
    422: ConfigError,
    429: TransientError,
    503: TransientError,
}


def raise_for(response: "httpx.Response") -> None:
    """Raises what went wrong; nothing when all is well.

    Raises:
        QueryError: what was asked for is wrong, or does not exist.
        ConfigError: the token is wrong, or a body.
        TransientError: it may pass.
        FairwayError: the server met a defect.
    """
    if response.is_success:
        return
    try:
        told = response.json()
        message, hint = str(told["error"]), str(told.get("hint", ""))
    except (ValueError, KeyError, TypeError):
        message, hint = f"the server answers {response.status_code}", ""
    raise _KINDS.get(response.status_code, FairwayError)(message, hint=hint)


@dataclass(frozen=True, slots=True)
class SentEvent:
    """One event: its kind, its data, and the id behind which to resume; "" where none was said yet."""

    kind: str
    data: str
    id: str


def lines_of(parts: Iterable[bytes]) -> Iterator[bytes]:
    r"""Lines of a text that comes in parts, without their ends: \n, \r, or both; what has no end yet is no line.

    Raises:
        TransientError: one has no end.
    """
    rest = b""
    for part in parts:
        rest += part
        # A \r at the end may have its \n in the next part.
        kept = rest[-1:] if rest.endswith(b"\r") else b""
        *lines, rest = _ENDS.split(rest[: len(rest) - len(kept)])
        yield from lines
        rest += kept
        if len(rest) > _LONGEST:
            raise TransientError("the server sends a line that does not end")


def events_of(lines: Iterable[bytes]) -> Iterator[SentEvent]:
    """Events of the lines of a stream; one that is not ended by an empty line is none.

    A place that is said without data is an event of no kind, for whoever resumes.
    """
    kind, last, is_new = "", "", False
    data: list[str] = []
    for line in lines:
        if not line:
            if data or is_new:
                name = (kind or "message") if data else ""
                yield SentEvent(name, "\n".join(data), last)
            kind, data, is_new = "", [], False
            continue
        name_, _, value_ = line.partition(b":")
        value = value_.removeprefix(b" ").decode("utf-8", "replace")
        if name_ == b"data":
            data.append(value)
        elif name_ == b"event":
            kind = value
        elif name_ == b"id" and _ID.fullmatch(value):
            last, is_new = value, True


class HttpEvents:
    """Changes of one address as they come.

    Args:
        client: of the server; each has connections of its own.
        path: the address.
        since: the position behind which they begin; None: with those from now on.

    Attributes:
        unreadable: events that were no changes as this version knows them; they were passed over.
    """

    def __init__(self, client: "httpx.Client", path: str, since: int | None) -> None:
        self._client, self._path, self._since = client, path, since
        self._given: queue.Queue[dict[str, Any] | FairwayError] = queue.Queue(_MOST)
        self._last: str | None = None
        self.unreadable = 0
        self._is_over, self._was_connected = threading.Event(), False
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
                    self._give(change)
            except (httpx.HTTPError, httpx.StreamError, OSError):
                pass  # the server ends, or is away: it is asked again
            except Exception as error:  # noqa: BLE001 - whoever waits is told, and not left alone
                may_pass = isinstance(error, TransientError) and self._was_connected
                if not may_pass:
                    self._give(_said(error))
                    return
            self._is_over.wait(_AGAIN_S)

    def _give(self, what: dict[str, Any] | FairwayError) -> None:
        """Waits for room, until nobody reads any more."""
        while not self._is_over.is_set():
            with suppress(queue.Full):
                self._given.put(what, timeout=_AGAIN_S)
                return

    def _connected(self) -> Iterator[dict[str, Any]]:
        """Changes until the connection ends."""
        headers = {} if self._last is None else {"Last-Event-ID": self._last}
        begins = self._last is None and self._since is not None
        params = {"since": str(self._since)} if begins else {}
        timeout = self._client.timeout.read and _SILENT_S
        with self._client.stream(
            "GET", self._path, params=params, headers=headers, timeout=timeout
        ) as response:
            if response.status_code != 200:
                response.read()
                raise_for(response)
            self._response, self._was_connected = response, True
            for one in events_of(lines_of(response.iter_bytes())):
                change = self._change(one)
                if change is not None:
                    yield change
                if one.id:
                    self._last = one.id

    def _change(self, one: SentEvent) -> dict[str, Any] | None:
        """The change that an event is; None: it is none."""
        if one.kind == _END:
            _LOG.warning("%s: the server ended the events: %s", self._path, one.data)
        if one.kind in ("", _END):
            return None
        try:
            if one.kind != _CHANGE:
                raise ValueError("an event of another kind")  # noqa: TRY301 - it is passed over as others are
            return row_of(json.loads(one.data))
        except (
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            RecursionError,
        ) as error:
            self.unreadable += 1
            count = self.unreadable
            if not count & (count - 1):  # the first, the second, the fourth, ..
                _LOG.warning(
                    "%s: event %r of kind %r cannot be read and is passed over (%s: %s), %d by now",
                    self._path,
                    one.id,
                    one.kind,
                    type(error).__name__,
                    error,
                    count,
                )
            return None


def _said(error: Exception) -> FairwayError:
    if isinstance(error, FairwayError):
        return error
    return FairwayError(f"events cannot be read: {type(error).__name__}: {error}")


_NEEDED: Mapping[str, type | tuple[type, ...]] = {
    "query": str,
    "query_version": int,
    "object": str,
    "sign": int,
    "cause": str,
    "position": int,
    "seq": int,
}
_OTHERS = ("layer_version", "partner", "event_ts", "fix_ts", "value", "fields")


def row_of(event: Any) -> dict[str, Any]:
    """What an event says, as the columns of a change have it.

    Raises:
        ValueError: it is no change.
    """
    if not isinstance(event, dict):
        raise ValueError("it is no JSON object")  # noqa: TRY004 - it is what came that is wrong
    for name, kind in _NEEDED.items():
        if not isinstance(event.get(name), kind) or isinstance(event[name], bool):
            raise ValueError(f"{name} is {event.get(name)!r:.50}")  # noqa: TRY004 - as above
    absent = [name for name in _OTHERS if name not in event]
    if absent or event["event_ts"] is None:
        raise ValueError(f"it has no {(absent or ['event_ts'])[0]}")
    # A server of a version before places says none.
    row = {"x": None, "y": None, **event}
    for name in ("event_ts", "fix_ts"):
        row[name] = None if row[name] is None else datetime.fromisoformat(row[name])
    row["fields"] = None if row["fields"] is None else json.dumps(row["fields"])
    return row
