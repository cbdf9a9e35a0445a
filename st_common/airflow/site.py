"""Our pages in Airflow's API server, for whoever is logged in: an overview, reports, and the way to the live page."""

import time
from pathlib import Path
from typing import Any

from airflow.api_fastapi.core_api.security import GetUserDep
from fastapi import FastAPI, HTTPException
from fastapi.responses import (
    FileResponse,
    HTMLResponse,
    RedirectResponse,
    Response,
)

from st_common.airflow.links import address_of
from st_common.airflow.live_page import answers, page_url
from st_common.airflow.overview import overview
from st_common.answers.templates import templates_in
from st_common.config.environment import home_dir
from st_common.config.home import Home
from st_common.errors import ConfigError

PREFIX = "/fairway"
_PAGES = Path(__file__).with_name("pages")
_HEADERS = {
    # The pages need nothing from anywhere else, and nobody else may frame them. A report holds its map's worker.
    "Content-Security-Policy": "default-src 'self'; style-src 'unsafe-inline'; "
    "script-src 'unsafe-inline' blob: data:; worker-src blob: data:; connect-src blob: data:; "
    "img-src 'self' blob: data:; frame-ancestors 'self'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
_KINDS = {".html": "text/html", ".json": "application/json"}

site = FastAPI(title="Fairway", docs_url=None, redoc_url=None, openapi_url=None)


@site.get("/")
def show_overview(user: GetUserDep) -> HTMLResponse:  # noqa: ARG001 - who is not logged in is refused
    """How streams are, the newest alerts, and links to the reports."""
    content = overview(_home(), now_us=time.time_ns() // 1000)
    text = templates_in(_PAGES).get_template("overview.html").render(shown=content)
    return HTMLResponse(text, headers=_HEADERS)


@site.get("/reports/{path:path}")
def show_report(path: str, user: GetUserDep) -> FileResponse:  # noqa: ARG001 - who is not logged in is refused
    """A report of the home; 404 for whatever is none."""
    folder = _home().reports.resolve()
    file = (folder / path).resolve()
    kind = _KINDS.get(file.suffix)
    if kind is None or not file.is_relative_to(folder) or not file.is_file():
        raise HTTPException(404, "there is no such report")
    return FileResponse(file, media_type=kind, headers=_HEADERS)


@site.get("/page")
def show_page(user: GetUserDep) -> Response:  # noqa: ARG001 - who is not logged in is refused
    """The live page of the home, where it is served; else what is the matter, with 503."""
    try:
        url = page_url()
    except ConfigError as error:
        return _absent(str(error))
    if not answers(url):
        return _absent(f"No server of Fairway answers at {url}.")
    return RedirectResponse(f"{url}/", 303, headers={"Cache-Control": "no-store"})


def _absent(said: str) -> Response:
    text = templates_in(_PAGES).get_template("absent.html").render(said=said)
    return HTMLResponse(text, 503, headers=_HEADERS)


def _home() -> Home:
    try:
        return Home(home_dir())
    except ConfigError as error:
        raise HTTPException(503, f"{error}") from None


def views() -> list[dict[str, Any]]:
    """The entries in Airflow's navigation: the overview, and below Browse the live page in a new window."""
    overview_ = {
        "name": "Fairway",
        "href": f"{PREFIX.strip('/')}/",
        "destination": "nav",
        "url_route": PREFIX.strip("/"),
    }
    # At the top level Airflow makes buttons without effect of addresses that are to open in a window of their own.
    page = {"name": "Fairway page", "href": address_of("page"), "category": "browse"}
    return [overview_, {**page, "destination": "nav"}]
