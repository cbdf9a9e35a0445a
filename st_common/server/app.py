"""The application: requests to endpoints, in threads; fixes and changes in the event loop."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from prometheus_client import generate_latest
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route

from st_common.config.operations import ServerSettings, operations_of
from st_common.config.parameters import Parameter
from st_common.config.values import flag, whole
from st_common.decode.gzipped import MAGIC
from st_common.server import reads
from st_common.server.bodies import MEDIA, unpacked
from st_common.server.changes import EventsReply, Hubs, after_position
from st_common.server.endpoint import Endpoint, Lane
from st_common.server.endpoints import ENDPOINTS
from st_common.server.event_text import place_of_id
from st_common.server.guard import Guard, Limits
from st_common.server.http_metrics import HttpMetrics
from st_common.server.installation import Installation
from st_common.server.intake import ClosedError, Intakes
from st_common.server.ogc import OPENAPI
from st_common.server.openapi import description
from st_common.server.page import files
from st_common.server.parameters import (
    Kept,
    LongError,
    Parameters,
    known_query,
    known_stream,
    read_params,
)
from st_common.server.replies import error_reply, refusal, value_reply
from st_common.server.schemas import (
    ANY,
    COUNTS,
    LATE,
    NUMBER,
    ROWS,
    TEXT,
    TIME,
    WHOLE,
    Schema,
    a_list,
    an_object,
    or_null,
)
from st_common.server.worker_processes import Apart

_REST_S = 20
_GONE = 499
"""The status that is counted where a client leaves before its request has come."""
_THREADS: dict[Lane, int] = {
    "": 8,
    "live": 2,
    "page": 2,
    "tiles": 1,
    "queries": 2,
}
_SINCE = Parameter("since", whole(least=0), "from behind this position on")
_EVENTS = "text/event-stream"
_HEADERS_ELSEWHERE = (
    *("Authorization", "Content-Type", "Idempotency-Key"),
    *("If-None-Match", "Last-Event-ID"),
)


class Server:
    """What a running application knows: its place, who listens, what is on its way into logs."""

    def __init__(self, place: Installation, *, version: str) -> None:
        self.place, self.version = place, version
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

    async def run(self, one: Endpoint, asked: Parameters, request: Request) -> Response:
        """Carries out a request in the event loop, in a thread of its lane, or in a process of its own."""
        if one.is_in_loop:
            reply: Response = await one.run(self, asked)
            return reply
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

    def registry(self) -> Any:
        """Where the metrics of the installation are."""
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
        hint = (
            f"it is /v1{path} now" if is_old else "/v1/openapi.json has all addresses"
        )
        return refusal(f"there is no {request.method} {path}", hint, status)


_REJECT = an_object(
    {"line": WHOLE, "column": WHOLE, "offset": WHOLE, "raw": TEXT},
    record=WHOLE,
    reason=TEXT,
)
_POSTED = an_object(
    {
        "reasons": COUNTS,
        "rejects": a_list(_REJECT),
        "position": or_null(WHOLE),
        "without_position": WHOLE,
        "warning": TEXT,
        "hint": TEXT,
    },
    records=WHOLE,
    accepted=WHOLE,
    rejected=WHOLE,
)
_REFUSED = an_object(
    {"hint": TEXT, "reasons": COUNTS, "rejects": a_list(_REJECT)},
    error=TEXT,
    records=WHOLE,
    accepted=WHOLE,
    rejected=WHOLE,
)
_ENGINE: Mapping[str, Schema] = {
    "position": or_null(WHOLE),
    "pid": or_null(WHOLE),
    "host": or_null(TEXT),
    "beat_age_s": or_null(NUMBER),
    "beat_us": or_null(WHOLE),
    "engine": TEXT,
    "clock": or_null(TIME),
    "clock_us": or_null(WHOLE),
    "fixes": WHOLE,
    "rejects": WHOLE,
    "late": WHOLE,
    "double": WHOLE,
    "cut": WHOLE,
    "changes": WHOLE,
    "nulled": COUNTS,
    "filtered_out": COUNTS,
    "filtered": COUNTS,
    "caches": ANY,
    "workers": a_list(ANY),
}
"""What the engine of a stream has said of itself; nothing before it has run."""
_STREAM = an_object(
    {**_ENGINE, **LATE},
    stream=TEXT,
    as_of=TIME,
    state=TEXT,
    health=TEXT,
    why=or_null(TEXT),
    segments=WHOLE,
    segments_done=WHOLE,
    lag_segments=or_null(WHOLE),
    lag_s=or_null(NUMBER),
    archive_lag_s=or_null(NUMBER),
    sources=a_list(ANY),
)


@Endpoint(
    "POST",
    "/v1/streams/{stream}/fixes",
    {202: _POSTED, 422: _REFUSED},
    takes=MEDIA,
    params=(
        Parameter(
            "live",
            flag,
            "false: they are of the past, and time does not go on after them",
            default=True,
        ),
    ),
)
async def put_fixes(server: Server, asked: Parameters) -> Response:
    """Puts fixes into a stream; 202 once they are durable, with how many were accepted and rejected."""
    stream = await run_in_threadpool(known_stream, asked, asked.path["stream"])
    key = asked.headers.get("idempotency-key")
    packing = asked.headers.get("content-encoding", "").strip().lower()
    if asked.body.startswith(MAGIC):
        body = await asyncio.to_thread(unpacked, asked.body, packing)
    else:
        body = unpacked(asked.body, packing)
    is_live = asked.params["live"]
    while True:
        assert server.intakes is not None  # noqa: S101 - requests come while it runs
        intake = await server.intakes.of(stream)
        try:
            stored = await intake.put(body, asked.media, key, is_live=is_live)
        except ClosedError:
            continue
        warning = intake.warning
        told = {} if warning is None else {"warning": warning}
        return value_reply({**stored.shown, **told}, 202)


@Endpoint("GET", "/v1/changes/{query}", params=(_SINCE,), gives=_EVENTS)
async def follow_query(server: Server, asked: Parameters) -> Response:
    """The changes of a query, as they happen; Last-Event-ID goes on behind a change."""
    from st_common.query.lookup import find

    name = await run_in_threadpool(known_query, asked)
    row = await run_in_threadpool(find, server.place.home, name)
    return await _events(server, asked, row.stream, name)


@Endpoint("GET", "/v1/streams/{stream}/changes", params=(_SINCE,), gives=_EVENTS)
async def follow_stream(server: Server, asked: Parameters) -> Response:
    """The changes of all queries on a stream, as they happen."""
    stream = await run_in_threadpool(known_stream, asked, asked.path["stream"])
    return await _events(server, asked, stream.name, None)


async def _events(
    server: Server, asked: Parameters, stream: str, query: str | None
) -> Response:
    last, since = asked.headers.get("last-event-id"), asked.params.get("since")
    after = None if since is None else after_position(since)
    if last:
        after = place_of_id(last)
    hub = server.hubs.of(stream)
    return EventsReply(hub, await hub.join(query, after))


@Endpoint(
    "GET",
    "/v1/status",
    an_object(
        streams=a_list(_STREAM),
        broken_streams=ANY,
        settings_error=or_null(TEXT),
        listeners=a_list(
            an_object(
                stream=TEXT,
                listeners=WHOLE,
                age_s=or_null(NUMBER),
                failures=WHOLE,
                error=or_null(TEXT),
                dropped=COUNTS,
            )
        ),
    ),
)
async def status(server: Server, asked: Parameters) -> Response:
    """Each stream: its state, how far it is, its sources."""
    told = await run_in_threadpool(reads.status, asked)
    hubs = server.hubs.status()
    for one in hubs:
        one["error"] = one["error"] and server.place.hidden(one["error"])
    return value_reply({**told, "listeners": hubs})


@Endpoint("GET", "/metrics", gives="text/plain")
async def metrics(server: Server, _asked: Parameters) -> Response:
    """Metrics, as Prometheus reads them."""
    text = await run_in_threadpool(lambda: generate_latest(server.registry()))
    return PlainTextResponse(text + server.http.text())


@Endpoint(
    "GET",
    "/v1/openapi.json",
    an_object(
        {"components": ANY, "security": ROWS},
        openapi=TEXT,
        info=ANY,
        paths=ANY,
    ),
    gives=OPENAPI,
)
async def describe(server: Server, _asked: Parameters) -> Response:
    """This description of the API."""
    told = description(server.version, [one for one in ENDPOINTS if one.is_public])
    return JSONResponse(told, media_type=OPENAPI)


_UNVERSIONED = {
    one.path.split("/")[2] for one in ENDPOINTS if one.path.startswith("/v1/")
}
"""How addresses began before they had a version: whoever asks for one learns what it is called now."""


def application(
    place: Installation,
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
    routes = [
        Route(_any_text(one.path), _answering(server, one), methods=[one.method])
        for one in ENDPOINTS
        if one.path not in (files.INDEX, files.FILE)
    ]
    app = Starlette(
        routes=[*files.page_routes(), *routes],
        lifespan=server.lifespan,
        exception_handlers={404: server.absent, 405: server.absent},
    )
    settings = operations_of(place.conf, "server", ServerSettings)
    server.kept.keep(settings)
    origins = settings.cors_origins
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


def _answering(server: Server, one: Endpoint) -> Any:
    """What answers requests to an endpoint, or says what was wrong with them, and counts them."""

    async def answered(request: Request) -> Response:
        with server.http.timed(one.method, one.path):
            try:
                reply = await server.run(
                    one, await _asked(server, one, request), request
                )
            except ClientDisconnect:  # nobody reads a reply
                reply = Response(status_code=_GONE)
            except Exception as error:  # noqa: BLE001 - each is told, and the server goes on
                reply = error_reply(server.place, error)
        server.http.count(one.method, one.path, reply.status_code)
        return reply

    return answered


async def _asked(server: Server, one: Endpoint, request: Request) -> Parameters:
    """A request as endpoints have it.

    Raises:
        FairwayError: a parameter is unknown or wrong.
    """
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    return Parameters(
        place=server.place,
        path=request.path_params,
        params=read_params(dict(request.query_params), one.params),
        body=await request.body() if one.takes else b"",
        media=media,
        base=str(request.base_url).rstrip("/"),
        headers=request.headers,
        kept=server.kept,
    )
