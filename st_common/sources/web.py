"""Feeds that are asked for again and again by HTTP, and WebSockets that tell by themselves."""

import asyncio
import io
import logging
import zlib
from collections.abc import AsyncGenerator, Mapping
from typing import TYPE_CHECKING

from st_common.decode.gzipped import GzipSource
from st_common.errors import ConfigError, TransientError
from st_common.sources.arrival import Arrival
from st_common.sources.framing import of_document, of_message
from st_common.sources.source import Resume, Source

if TYPE_CHECKING:
    import httpx

_EVERY_S = 10.0
_LARGEST = 256 << 20
_NOT_MODIFIED, _OK = 304, 200
_FINAL = (400, 401, 403, 405, 410)
"""Answers that will be the same next time, where the feed has never answered otherwise."""


class Http(Source):
    """A document that is asked for every few seconds; what has not changed since is not stored again.

    A feed that is not there (404), refuses or is broken is asked again, with longer and longer pauses: it may be about
    to be replaced. One that refuses from the beginning never will answer, and ends the capture.
    """

    has_answered = False

    async def arrivals(self, places: Resume) -> AsyncGenerator[Arrival]:
        """See `Source.arrivals`."""
        import httpx

        logging.getLogger("httpx").setLevel(logging.WARNING)  # below, it logs addresses
        settings, headers = self.settings, self._headers()
        seen: int | None = None
        async with httpx.AsyncClient(
            timeout=settings.timeout_s, follow_redirects=True
        ) as client:
            while True:
                try:
                    answer, content = await _asked(client, settings.url or "", headers)
                except httpx.InvalidURL as error:
                    wrong = f"{settings.url} is no address: {error}"
                    raise ConfigError(wrong, hint="look at url") from None
                except httpx.HTTPError as error:
                    what = str(error) or type(error).__name__
                    raise TransientError(f"{settings.url}: {what}") from None
                body = self._body(answer.status_code, content)
                if body is not None and zlib.crc32(body) != seen:
                    seen = zlib.crc32(body)
                    for arrival in of_document(body, self.stream):
                        yield arrival
                headers |= _conditions(answer.headers)
                await asyncio.sleep(settings.every_s or _EVERY_S)

    def _headers(self) -> dict[str, str]:
        secret, packed = self.secret(), {"Accept-Encoding": "gzip"}
        return packed | ({"Authorization": f"Bearer {secret}"} if secret else {})

    def _body(self, status: int, content: bytes) -> bytes | None:
        """What was answered; None where it is what it was before."""
        if status in _FINAL and not self.has_answered:
            raise ConfigError(
                f"{self.settings.url} answers {status}, and will do so again",
                hint="look at url, and at token_env",
            )
        if status not in (_OK, _NOT_MODIFIED):
            raise TransientError(f"{self.settings.url} answers {status}")
        self.has_answered = True
        if status == _NOT_MODIFIED:
            return None
        if not content:
            raise TransientError(f"{self.settings.url} answers nothing")
        return content


async def _asked(
    client: "httpx.AsyncClient", url: str, headers: Mapping[str, str]
) -> "tuple[httpx.Response, bytes]":
    """What is answered, and its bytes, of which no more are taken or unpacked than a document may have.

    Raises:
        TransientError: they are too many, or packed by something else than gzip.
    """
    async with client.stream("GET", url, headers=dict(headers)) as answer:
        if not answer.is_success:
            return answer, b""
        content = bytearray()
        async for piece in answer.aiter_raw():
            content += piece
            if len(content) > _LARGEST:
                raise TransientError(f"{url} answers more than {_LARGEST} bytes")
    packing = answer.headers.get("content-encoding", "identity").strip().lower()
    if packing == "identity":
        return answer, bytes(content)
    if packing not in ("gzip", "x-gzip"):
        raise TransientError(f"{url} answers what is packed by {packing}, not by gzip")
    return answer, _unpacked(bytes(content), url)


def _unpacked(packed: bytes, url: str) -> bytes:
    """What an answer holds that is packed by gzip."""
    source = GzipSource(io.BytesIO(packed), url)
    try:
        content = source.read(_LARGEST + 1)
    except ConfigError as error:
        raise TransientError(error.message) from None
    if source.broken:
        raise TransientError(f"{url} answers gzip that is broken")
    if len(content) > _LARGEST:
        raise TransientError(f"{url} answers more than {_LARGEST} bytes")
    return content


def _conditions(headers: Mapping[str, str]) -> dict[str, str]:
    """What asks for the next document only if it is another one."""
    conditions = {
        "If-None-Match": headers.get("etag"),
        "If-Modified-Since": headers.get("last-modified"),
    }
    return {name: value for name, value in conditions.items() if value}


class WebSocket(Source):
    """Messages of a WebSocket, after a greeting where the feed wants one."""

    def check(self) -> None:
        """No header."""
        self.refuse_header()

    async def arrivals(self, places: Resume) -> AsyncGenerator[Arrival]:
        """See `Source.arrivals`."""
        from websockets.asyncio.client import connect
        from websockets.exceptions import WebSocketException

        secret = self.secret()
        headers = {"Authorization": f"Bearer {secret}"} if secret else None
        try:
            async with connect(
                self.settings.url or "", additional_headers=headers, max_size=_LARGEST
            ) as socket:
                if self.settings.hello is not None:
                    await socket.send(self.settings.hello)
                async for message in socket:
                    data = message.encode() if isinstance(message, str) else message
                    for arrival in of_message(data, self.stream):
                        yield arrival
        except WebSocketException as error:
            raise TransientError(f"{self.settings.url}: {error}") from None
