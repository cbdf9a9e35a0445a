"""The application: requests to endpoints, in threads; fixes and changes in the event loop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from st_common.config.operations import ServerSettings, operations_of
from st_common.decode.gzipped import MAGIC
from st_common.server import reads
from st_common.server.apart import Apart
from st_common.server.asked import (
    Asked,
    Kept,
    LongError,
    known_query,
    known_stream,
    read_params,
)
from st_common.server.bodies import unpacked
from st_common.server.changes import EventsReply, Hubs, after_position
from st_common.server.endpoint import Endpoint, Lane
from st_common.server.endpoints import ENDPOINTS
from st_common.server.event_text import place_of_id
from st_common.server.guard import Guard, Limits, TooLargeError
from st_common.server.http_metrics import HttpMetrics
from st_common.server.intake import ClosedError, Intakes
from st_common.server.ogc import OPENAPI
from st_common.server.openapi import description
from st_common.server.page import files
from st_common.server.place import Place
from st_common.server.replies import error_reply, value_reply

_REST_S = 20
_THREADS: dict[Lane, int] = {
    "": 8,
    "live": 2,
    "page": 2,
    "tiles": 1,
    "queries": 2,
}
_UNVERSIONED = {
    one.path.split("/")[2] for one in ENDPOINTS if one.path.startswith("/v1/")
}
"""How addresses began before they had a version: whoever asks for one learns what it is called now."""
_HEADERS_ELSEWHERE = (
    *("Authorization", "Content-Type", "Idempotency-Key"),
    *("If-None-Match", "Last-Event-ID"),
)
_Answer = Callable[[Asked], Any]


class Server:
    """What a running application knows: its place, who listens, what is on its way into logs."""

    def __init__(self, place: Place, *, version: str) -> None:
        self.place, self._version = place, version
        self.hubs = Hubs(place.home)
        self.http = HttpMetrics(self.hubs)
        self.intakes: Intakes | None = None
        self.apart = Apart(place)
        self.kept = Kept()
        self._lanes = {
            name: ThreadPoolExecutor(threads, thread_name_prefix=name or "reads")
            for name, threads in _THREADS.items()
        }
        self._metrics: Any = None

    @contextlib.asynccontextmanager
    async def lifespan(self, _app: Starlette) -> AsyncIterator[None]:
        """Takes fixes while it runs; what has come is stored at the end."""
        self.intakes = Intakes(self.place)
        resting = asyncio.create_task(self._rest())
        try:
            yield
        finally:
            resting.cancel()
            self.kept.close()
            for lane in self._lanes.values():
                lane.shutdown(wait=False, cancel_futures=True)
            await self.intakes.close()
            await self.apart.close()

    async def _rest(self) -> None:
        """Lets go of what nobody asks for any more, now and then."""
        while True:
            await asyncio.sleep(_REST_S)
            await asyncio.to_thread(self.kept.rest)
            await self.apart.rest()

    async def run(self, one: Endpoint, asked: Asked, request: Request) -> Response:
        """Carries out a request in a thread of its lane, or in a process of its own."""
        assert one.run is not None  # noqa: S101 - all others are carried out in the loop
        kind = one.kind_of(asked)
        if kind is None:
            loop, lane = asyncio.get_running_loop(), self._lanes[one.lane]
            try:
                return await loop.run_in_executor(lane, one.run, asked)
            except LongError:
                assert one.apart_if_long is not None  # noqa: S101 - others raise none
                kind = one.apart_if_long
        given, is_gone = dict(request.query_params), request.is_disconnected
        return await self.apart.answer(one, kind, asked, given, is_gone)

    async def put_fixes(self, asked: Asked) -> Response:
        """Stores fixes of a stream."""
        stream = await run_in_threadpool(known_stream, asked, asked.path["stream"])
        key = asked.headers.get("idempotency-key")
        packing = asked.headers.get("content-encoding", "").strip().lower()
        if asked.body.startswith(MAGIC):
            body = await asyncio.to_thread(unpacked, asked.body, packing)
        else:
            body = unpacked(asked.body, packing)
        is_live = asked.params.get("live", True)
        while True:
            assert self.intakes is not None  # noqa: S101 - requests come while it runs
            intake = await self.intakes.of(stream)
            try:
                stored = await intake.put(body, asked.media, key, is_live=is_live)
            except ClosedError:
                continue
            warning = intake.warning
            told = {} if warning is None else {"warning": warning}
            return value_reply({**stored.shown, **told}, 202)

    async def follow_query(self, asked: Asked) -> Response:
        """The changes of one query as events."""
        from st_common.query.lookup import find

        name = await run_in_threadpool(known_query, asked)
        row = await run_in_threadpool(find, self.place.home, name)
        return await self._events(asked, row.stream, name)

    async def follow_stream(self, asked: Asked) -> Response:
        """The changes of all queries on a stream as events."""
        stream = await run_in_threadpool(known_stream, asked, asked.path["stream"])
        return await self._events(asked, stream.name, None)

    async def _events(self, asked: Asked, stream: str, query: str | None) -> Response:
        last, since = asked.headers.get("last-event-id"), asked.params.get("since")
        after = None if since is None else after_position(since)
        if last:
            after = place_of_id(last)
        hub = self.hubs.of(stream)
        return EventsReply(hub, await hub.join(query, after))

    async def status(self, asked: Asked) -> Response:
        """Each stream, and how those are served who listen."""
        told = await run_in_threadpool(reads.status, asked)
        hubs = self.hubs.status()
        for one in hubs:
            one["error"] = one["error"] and self.place.hidden(one["error"])
        return value_reply({**told, "listeners": hubs})

    async def metrics(self, _asked: Asked) -> Response:
        """Metrics of the installation, and how many listen."""
        from prometheus_client import generate_latest

        text = await run_in_threadpool(lambda: generate_latest(self._registry()))
        return PlainTextResponse(text + self.http.text())

    def _registry(self) -> Any:
        from st_common.answers.metrics import Metrics, registry_of
        from st_common.delivery.settings import wanted

        if self._metrics is None:
            place = self.place
            self._metrics = registry_of(
                Metrics(
                    home=place.home,
                    streams=place.streams,
                    deliveries=lambda: wanted(place.conf, place.streams()),
                )
            )
        return self._metrics

    def absent(self, request: Request, error: Exception) -> Response:
        """An address that there is not."""
        status = getattr(error, "status_code", 404)
        self.http.count("-", "unknown", status)
        path = request.url.path
        is_old = path.split("/")[1] in _UNVERSIONED
        told = {
            "error": f"there is no {request.method} {path}",
            "hint": f"it is /v1{path} now"
            if is_old
            else "/v1/openapi.json has all addresses",
        }
        return JSONResponse(told, status)

    async def describe(self, _asked: Asked) -> Response:
        """The API."""
        return JSONResponse(description(self._version), media_type=OPENAPI)


def application(
    place: Place,
    *,
    version: str,
    token: str | None = None,
    limits: Limits | None = None,
) -> Starlette:
    """The application for a home.

    Args:
        place: where it works.
        version: of the program.
        token: what every request must show; None: nothing.
        limits: of bodies and requests.
    """
    server = Server(place, version=version)
    in_loop: dict[tuple[str, str], _Answer] = {
        ("POST", "/v1/streams/{stream}/fixes"): server.put_fixes,
        ("GET", "/v1/streams/{stream}/changes"): server.follow_stream,
        ("GET", "/v1/changes/{query}"): server.follow_query,
        ("GET", "/metrics"): server.metrics,
        ("GET", "/v1/status"): server.status,
        ("GET", "/v1/openapi.json"): server.describe,
    }
    routes = [
        Route(
            _any_text(one.path),
            _endpoint(server, one, in_loop.get((one.method, one.path))),
            methods=[one.method],
        )
        for one in ENDPOINTS
        if one.path not in (files.INDEX, files.FILE)
    ]
    app = Starlette(
        routes=[*files.page_routes(files.FOLDER), *routes],
        lifespan=server.lifespan,
        exception_handlers={404: server.absent, 405: server.absent},
    )
    origins = operations_of(place.conf, "server", ServerSettings).cors_origins
    app.add_middleware(
        Guard,
        token=token,
        origins=origins,
        limits=limits or Limits(),
        refused=partial(server.http.count, "-", "refused"),
    )
    if origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=origins,
            allow_methods=("GET", "POST", "PUT", "DELETE"),
            allow_headers=_HEADERS_ELSEWHERE,
            allow_private_network=True,  # from a page of the internet to one's own machine
            expose_headers=("Retry-After",),
        )
    app.state.server = server
    return app


def _any_text(path: str) -> str:
    """An address whose last part may have slashes: ids of features and of objects do."""
    for name in ("feature", "object"):
        path = path.replace(f"{{{name}}}", f"{{{name}:path}}")
    return path


def _endpoint(server: Server, one: Endpoint, in_loop: _Answer | None) -> Any:
    """What answers requests to an endpoint, and counts them."""

    async def answered(request: Request) -> Response:
        with server.http.timed(one.method, one.path):
            reply = await _answer(server, one, in_loop, request)
        server.http.count(one.method, one.path, reply.status_code)
        return reply

    return answered


async def _answer(
    server: Server, one: Endpoint, in_loop: _Answer | None, request: Request
) -> Response:
    """The answer to a request, or what was wrong with it."""
    try:
        asked = await _asked(server, one, request)
        if in_loop is not None:
            reply: Response = await in_loop(asked)
            return reply
        return await server.run(one, asked, request)
    except TooLargeError:
        told = {"error": "the body is too large", "hint": "send it in parts"}
        return JSONResponse(told, 413)
    except Exception as error:  # noqa: BLE001 - each is told, and the server goes on
        return error_reply(server.place, error)


async def _asked(server: Server, one: Endpoint, request: Request) -> Asked:
    """A request as endpoints have it.

    Raises:
        FairwayError: a parameter is unknown or wrong.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return Asked(
        place=server.place,
        path={name: str(value) for name, value in request.path_params.items()},
        params=read_params(dict(request.query_params), one.params),
        body=await request.body() if one.takes else b"",
        media=media,
        base=str(request.base_url).rstrip("/"),
        headers={name.lower(): value for name, value in request.headers.items()},
        kept=server.kept,
    )
