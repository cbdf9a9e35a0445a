"""Who may ask, how much, and how often: a token, and limits of bodies and of requests."""

import hmac
import time
from collections import OrderedDict
from dataclasses import dataclass

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from st_common.server.page.files import is_open

_LONGEST_BODY = 16 << 20
_MOST_HOSTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What one host may ask for.

    Attributes:
        body_bytes: of one request.
        requests_per_s: over some time; None: as many as come.
        burst: so many at once.
    """

    body_bytes: int = _LONGEST_BODY - (1 << 20)
    requests_per_s: float | None = None
    burst: int = 1000


class Guard:
    """Lets requests through that may be made.

    Args:
        app: who answers them.
        token: what each must show, `Authorization: Bearer TOKEN`; None: nothing, where only this machine can ask.
        limits: see there.
    """

    def __init__(self, app: ASGIApp, *, token: str | None, limits: Limits) -> None:
        self._app, self._token, self._limits = app, token, limits
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, or lets it be answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        refused = self._refused(scope, headers)
        if refused is not None:
            await refused(scope, receive, send)
            return
        await self._app(scope, _limited(receive, self._limits.body_bytes), send)

    def _refused(
        self, scope: Scope, headers: dict[bytes, bytes]
    ) -> JSONResponse | None:
        """What is answered in place of the app."""
        if headers.get(b"sec-fetch-site") == b"cross-site" and not _only_reads(scope):
            told = {"error": "another site made this request", "hint": "ask from here"}
            return JSONResponse(told, 403)
        is_known = self._is_known(headers.get(b"authorization", b""))
        if not is_known and not is_open(scope["method"], scope["path"]):
            told = {"error": "a token is needed", "hint": "Authorization: Bearer TOKEN"}
            return JSONResponse(told, 401, {"WWW-Authenticate": "Bearer"})
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._limits.body_bytes:
            hint = f"at most {self._limits.body_bytes} bytes; send it in parts"
            return JSONResponse({"error": "the body is too large", "hint": hint}, 413)
        host = (scope.get("client") or ("",))[0]
        if not self._has_room(str(host)):
            told = {"error": "too many requests", "hint": "wait a second"}
            return JSONResponse(told, 429, {"Retry-After": "1"})
        return None

    def _is_known(self, shown: bytes) -> bool:
        if self._token is None:
            return True
        return hmac.compare_digest(shown, b"Bearer " + self._token.encode())

    def _has_room(self, host: str) -> bool:
        """Takes one from the host's bucket, which is filled as time goes by."""
        rate, burst = self._limits.requests_per_s, float(self._limits.burst)
        if rate is None:
            return True
        now_s = time.monotonic()
        left, at_s = self._buckets.pop(host, (burst, now_s))
        left = min(burst, left + (now_s - at_s) * rate)
        has_room = left >= 1
        self._buckets[host] = (left - has_room, now_s)
        if len(self._buckets) > _MOST_HOSTS:
            self._buckets.popitem(last=False)
        return has_room


def _only_reads(scope: Scope) -> bool:
    return scope["method"] in ("GET", "HEAD")


class TooLargeError(Exception):
    """A body whose length was not said is larger than it may be."""


def _limited(receive: Receive, most: int) -> Receive:
    """Receives at most so many bytes of a body."""
    seen = 0

    async def limited() -> Message:
        nonlocal seen
        message = await receive()
        seen += len(message.get("body", b""))
        if seen > most:
            raise TooLargeError
        return message

    return limited
