"""Who may ask, how much, and how often: a token, limits of bodies and of requests, and no page of somebody else.

Without a token whoever reaches the address may ask, and that is also every page that a browser on this machine shows:
it can send what a form can send, and by a name of its own that leads to this machine (DNS rebinding) it could even read
the answers. So a request must name this machine by a name of the loopback, and one that a page sends must come from our
own.
"""

import hashlib
import hmac
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TypeVar

from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from st_common.loopback import LOOPBACK
from st_common.server.page.files import is_open
from st_common.server.parameters import TooLargeError
from st_common.server.replies import refusal
from st_common.written import whole_number

_LONGEST_BODY = 16 << 20
_MOST_HOSTS = 10_000
_Value = TypeVar("_Value")


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


_GUESSES, _WINDOW_S = 20, 10.0
_GOOD_S = 600.0


class Guesses:
    """Wrong tokens of each host: behind some of them none is looked at for a while.

        20 wrong ones          none is looked at for 10 s, counted from the first of them that is refused; then 20 more
        a right one before     for ten minutes right ones pass from this host all the while, wrong ones do not

    So nobody is locked out who shares an address with somebody who guesses, if he was there before; and if he was not,
    he waits some seconds.
    """

    def __init__(self) -> None:
        self._wrong: OrderedDict[str, tuple[int, float]] = OrderedDict()
        self._good: OrderedDict[str, float] = OrderedDict()

    def wait_s(self, host: str, now_s: float, *, is_right: bool) -> float | None:
        """How long a host must wait until what it shows is looked at; None: it is looked at now.

        Args:
            host: who asks.
            now_s: the time, of a clock that never steps.
            is_right: whether what it shows is the token.
        """
        count, until_s = self._wrong.get(host, (0, 0.0))
        if count >= _GUESSES and now_s >= until_s > 0:
            count, until_s = 0, 0.0
        if is_right and (count < _GUESSES or now_s < self._good.get(host, -1.0)):
            _keep(self._good, host, now_s + _GOOD_S)
            return None
        if count < _GUESSES:
            _keep(self._wrong, host, (count + 1, 0.0))
            return None
        until_s = until_s or now_s + _WINDOW_S
        _keep(self._wrong, host, (count, until_s))
        return until_s - now_s


def _keep(hosts: OrderedDict[str, _Value], host: str, value: _Value) -> None:
    """Keeps something of a host; who has not been seen for longest is forgotten, when there are too many."""
    hosts[host] = value
    hosts.move_to_end(host)
    if len(hosts) > _MOST_HOSTS:
        hosts.popitem(last=False)


class Guard:
    """Lets requests through that may be made.

    Args:
        app: who answers them.
        token: what each must show, `Authorization: Bearer TOKEN`; None: nothing, where only this machine can ask.
        limits: see there.
        origins: of other pages that may ask, too.
        refused: is told the status of what is refused.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        token: str | None,
        limits: Limits,
        refused: Callable[[int], None],
        origins: Collection[str] = (),
    ) -> None:
        self._app, self._token, self._limits = app, token, limits
        self._origins = frozenset(origins)
        self._count_refused = refused
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()
        self._guesses = Guesses()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers, or lets it be answered."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = dict(scope["headers"])
        refused = self._refused(scope, headers)
        if refused is not None:
            self._count_refused(refused.status_code)
            await refused(scope, receive, send)
            return
        await self._app(scope, _limited(receive, self._limits.body_bytes), send)

    def _refused(
        self, scope: Scope, headers: dict[bytes, bytes]
    ) -> JSONResponse | None:
        """What is answered in place of the app."""
        if self._is_foreign(headers):
            return refusal(
                "this server answers only what asks for it on this machine",
                "use http://127.0.0.1 with its port; for other names serve with --token-env",
                403,
            )
        host = str((scope.get("client") or ("",))[0])
        if not is_open(scope["method"], scope["path"]):
            refused = self._refused_token(host, headers.get(b"authorization"))
            if refused is not None:
                return refused
        length = headers.get(b"content-length", b"0").decode("latin-1")
        if whole_number(length, self._limits.body_bytes) is None:
            hint = f"at most {self._limits.body_bytes} bytes; send it in parts"
            return refusal("the body is too large", hint, 413)
        if not self._has_room(host):
            return refusal(
                "too many requests", "wait a second", 429, {"Retry-After": "1"}
            )
        return None

    def _is_foreign(self, headers: dict[bytes, bytes]) -> bool:
        """Whether a page of somebody else asks, or a name that is not of this machine is asked for.

        With a token neither can do harm: no other page has it.
        """
        if self._token is not None:
            return False
        host = headers.get(b"host", b"").decode("latin-1")
        if _name_of(host) not in LOOPBACK:
            return True
        origin = headers.get(b"origin", f"http://{host}".encode()).decode("latin-1")
        return origin not in (f"http://{host}", *self._origins)

    def _refused_token(self, host: str, shown: bytes | None) -> JSONResponse | None:
        """What is answered to a host that shows no token, a wrong one, or too many of them."""
        if self._token is None:
            return None
        if shown is not None:
            is_right = _is_same(shown, b"Bearer " + self._token.encode())
            wait_s = self._guesses.wait_s(host, time.monotonic(), is_right=is_right)
            if wait_s is not None:
                headers = {"Retry-After": str(max(math.ceil(wait_s), 1))}
                return refusal(
                    "too many wrong tokens", "wait, then try again", 429, headers
                )
            if is_right:
                return None
        headers = {"WWW-Authenticate": "Bearer"}
        return refusal("a token is needed", "Authorization: Bearer TOKEN", 401, headers)

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


def _is_same(shown: bytes, wanted: bytes) -> bool:
    """Whether two texts are the same, in a time that tells neither where they differ nor how long they are."""
    return hmac.compare_digest(
        hashlib.sha256(shown).digest(), hashlib.sha256(wanted).digest()
    )


def _name_of(host: str) -> str:
    """The name in what a request says as its host: without its port, and the brackets of IPv6."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()


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
