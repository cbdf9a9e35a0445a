"""A webhook: changes are sent by POST, as lines of JSON."""

import contextlib
import logging
import ssl
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from st_common.config.home import Home
from st_common.config.keys import key
from st_common.config.redaction import keep_secret, keep_url, redacted, shown_url
from st_common.config.values import takes
from st_common.delivery.outcome import Failed, Outcome, Refusal, Refused, Taken
from st_common.delivery.remote import RemoteSink, is_local
from st_common.errors import ConfigError

if TYPE_CHECKING:
    import httpx

    from st_common.delivery.message import Messages

LINES = "application/x-ndjson"
_CONNECT_S = 10.0
_TO_BE_TRIED_AGAIN = frozenset(
    {401, 407, 408, 425, 429}
)  # of 400 to 499: not the change is at fault
_DETAILS = 500
_READ = 4096


@takes(
    "an address that begins with `https://` (or `http://`)",
    type="string",
    pattern="^https?://",
)
def _url(value: object) -> str:
    try:
        parts = urlsplit(value if isinstance(value, str) else "")
        port = parts.port
    except ValueError:
        raise ConfigError(f"{shown_url(str(value))!r} is no address") from None
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        shown = shown_url(value) if isinstance(value, str) else value
        raise ConfigError(
            f"{shown!r} must be an address that begins with https:// (or http://)"
        )
    if parts.username is not None or parts.password is not None:
        raise ConfigError(
            "holds a secret", hint="token_env names the environment variable of one"
        )  # and never shown
    keep_url(str(value))
    return str(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSink(RemoteSink):
    """An address that takes HTTP; the secret is a bearer token.

    Attributes:
        url: what gets it by POST: https, or http where no secret goes along.
    """

    kind: ClassVar[str] = "webhook"

    url: str = field(metadata=key(_url))

    def is_private(self) -> bool:
        """See `RemoteSink.is_private`."""
        parts = urlsplit(self.url)
        return parts.scheme == "https" or is_local(parts.hostname)

    def receiver(
        self,
        delivery: str,
        home: Home,  # noqa: ARG002 - the home has no part in it
        *,
        content: str = LINES,
    ) -> "Webhook":
        """See `Sink.receiver`; `content` is the type of what will be sent."""
        return Webhook(self, delivery, self.secret(delivery), content=content)


class Webhook:
    """One address. Answers 200 to 299 acknowledge all changes of a request."""

    def __init__(
        self,
        sink: WebhookSink,
        delivery: str,
        token: str | None,
        *,
        content: str = LINES,
    ) -> None:
        import httpx  # late: other commands do without it

        from st_common.delivery.message import FORMAT

        keep_url(sink.url)
        headers = {
            "Accept-Encoding": "identity",
            "Content-Type": content,
            "Fairway-Delivery": delivery,
            "Fairway-Format": str(FORMAT),
        }
        if token:
            keep_secret(token)
            headers["Authorization"] = f"Bearer {token}"
        logging.getLogger("httpx").setLevel(logging.WARNING)  # below, it logs addresses
        timeout = httpx.Timeout(sink.timeout_s, connect=min(_CONNECT_S, sink.timeout_s))
        trusted = _trusted(sink.ca, delivery)
        try:
            self._client = httpx.Client(
                headers=headers, timeout=timeout, verify=trusted
            )
        except (ImportError, ValueError) as error:  # of a proxy by SOCKS, or no proxy
            raise ConfigError(
                f"delivery {delivery!r}: {error}", hint="look at HTTP_PROXY and others"
            ) from None
        self._url = sink.url

    def send(self, batch: "Messages") -> Outcome:
        """Changes by one POST."""
        return self.post(batch.lines)

    def post(self, lines: Sequence[bytes]) -> Outcome:
        """Lines of JSON by one POST. Redirects are not followed: they would take the secret to another place."""
        import httpx

        body = b"".join(line + b"\n" for line in lines)
        try:
            with self._client.stream("POST", self._url, content=body) as answer:
                return _outcome(answer)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            what = f"{type(error).__name__} at {shown_url(self._url)}"
            return Failed(reason=f"{what}: {_short(str(error))}".rstrip(": "))

    def close(self) -> None:
        """Closes the connection that is kept open between requests."""
        self._client.close()


def _outcome(answer: "httpx.Response") -> Outcome:
    status, said = answer.status_code, _said(answer)
    if 200 <= status < 300:
        return Taken()
    if 400 <= status < 500 and status not in _TO_BE_TRIED_AGAIN:
        return Refused(refusal=Refusal(reason=f"http_{status}", details=said))
    return Failed(reason=said, after_s=_pause(answer.headers.get("Retry-After")))


def _said(answer: "httpx.Response") -> str:
    """The status and the beginning of the body; a body that breaks off changes nothing of what the status says."""
    import httpx

    body = b""
    with contextlib.suppress(httpx.HTTPError):
        body = next(answer.iter_raw(_READ), b"")
    return _short(
        f"{answer.status_code} {answer.reason_phrase}: {body.decode('utf-8', 'replace')}"
    ).rstrip(": ")


def _pause(text: str | None) -> float | None:
    with contextlib.suppress(ValueError):  # a date is allowed too, and seldom sent
        return max(float(text), 0.0) if text else None
    return None


def _short(text: str) -> str:
    """The beginning of what was said, in one line, without secrets: a receiver may repeat what it was sent."""
    return redacted(" ".join(redacted(text)[:_DETAILS].split()))


def _trusted(ca: str | None, delivery: str) -> ssl.SSLContext | bool:
    """The certificates that are trusted: those of a file, or the usual ones."""
    if ca is None:
        return True
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:
        raise ConfigError(
            f"delivery {delivery!r}: ca = {ca!r} holds no certificates: {error.strerror or error}",
            hint="a file of certificates in PEM",
        ) from None
