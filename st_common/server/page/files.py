"""The files of the page, as they were built: `make setup` puts them into `page_files`."""

from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route
from starlette.staticfiles import StaticFiles

from st_common.config.operations import ServerSettings
from st_common.server.endpoint import Endpoint

INDEX, FILE = "/", "/page/files/{file}"
FOLDER = Path(__file__).resolve().parents[1] / "page_files"
_POLICY = (
    "default-src 'self'",
    "img-src 'self' data: blob:",
    "worker-src 'self' blob:",  # the map draws in a worker
    "object-src 'none'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
)


def headers_of(settings: ServerSettings) -> dict[str, str]:
    """The headers of the page and its files.

    Without tiles of somebody else it asks nobody but its server, and tells nobody where it is from. With them it may
    ask their origin too, and names its own to it: servers of tiles refuse who does not say who asks.
    """
    origin = settings.tile_origin
    tiles = () if origin is None else (f"connect-src 'self' {origin}",)
    return {
        "Content-Security-Policy": "; ".join((*_POLICY, *tiles)),
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer" if origin is None else "strict-origin",
        "Cache-Control": "no-cache",
    }


_NOT_BUILT = """<!doctype html>
<html lang="en">
<title>Fairway</title>
<p>The page is not built. In the checkout, run <code>make setup</code>.</p>
"""


def page_routes() -> list[Route]:
    """The routes of the page's files; each is asked for again by its tag, so that a new one shows at once."""
    return [Route(INDEX, index), Route(FILE.replace("}", ":path}"), file)]


@Endpoint("GET", INDEX, gives="text/html")
async def index(request: Request) -> Response:
    """The page with the map; needs no token."""
    if not (FOLDER / "index.html").is_file():
        return HTMLResponse(_NOT_BUILT, 503, _headers(request))
    return await _given("index.html", request)


@Endpoint("GET", FILE, gives="application/octet-stream")
async def file(request: Request) -> Response:
    """A file of the page; needs no token."""
    return await _given(request.path_params["file"], request)


async def _given(name: str, request: Request) -> Response:
    """A file, or 404 where there is none below the folder, which may appear later."""
    if not FOLDER.is_dir():
        raise HTTPException(404)
    files = StaticFiles(directory=FOLDER, check_dir=False)
    response = await files.get_response(name, request.scope)
    response.headers.update(_headers(request))
    return response


def _headers(request: Request) -> dict[str, str]:
    """The headers by the settings that the server was started with."""
    return headers_of(request.app.state.server.kept.of(ServerSettings))


def is_open(method: str, path: str) -> bool:
    """Whether a request needs no token: a browser asks for the page before anybody can give it one."""
    return method in ("GET", "HEAD") and (
        path == INDEX or path.startswith("/page/files/")
    )
