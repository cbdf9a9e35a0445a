"""Refuses what a form does not have: Airflow takes any further value of a run and hands it to nobody."""

import re
from collections.abc import Awaitable, Callable, Collection
from typing import Any

import httpx
from starlette.middleware.base import BaseHTTPMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from st_common.airflow.form import refusal, unknown_values

TAG = "fairway"

_TRIGGER = re.compile(r"(.*/api/v2)/dags/([^/]+)/dagRuns")
_BACKFILL = re.compile(r"(.*/api/v2)/backfills(?:/dry_run)?")


class FormGuard(BaseHTTPMiddleware):
    """Answers 400 to a trigger, or a backfill, of a DAG of ours with a value that its form does not have.

    What the form has is asked of Airflow itself, for whoever triggers: who may not see a DAG is told so by Airflow.
    """

    async def dispatch(
        self, request: Request, call_next: Callable[[Request], Awaitable[Response]]
    ) -> Response:
        """Looks at the request before Airflow does."""
        asked = await _asked(request)
        if asked is not None:
            api, dag, given = asked
            known = await _known(request, f"{api}/dags/{dag}/details")
            unknown = unknown_values(given, known) if known is not None else []
            if unknown:
                detail = refusal(dag, unknown, known or ())
                return JSONResponse({"detail": detail}, status_code=400)
        return await call_next(request)


async def _known(request: Request, path: str) -> Collection[str] | None:
    """The names in a DAG's form; None when it is none of ours, or Airflow does not show it."""
    identity = {
        name: value
        for name, value in request.headers.items()
        if name in ("authorization", "cookie")
    }
    transport = httpx.ASGITransport(app=request.app)
    base = str(request.base_url)
    async with httpx.AsyncClient(transport=transport, base_url=base) as client:
        answer = await client.get(path, headers=identity)
    if answer.status_code != httpx.codes.OK:
        return None
    dag = answer.json()
    ours = TAG in {tag["name"] for tag in dag.get("tags") or ()}
    return set(dag.get("params") or {}) if ours else None


async def _asked(request: Request) -> tuple[str, str, Any] | None:
    """The start of the API's paths, the DAG and the values of a trigger or backfill that has any; else None."""
    path = request.url.path
    if request.method != "POST":
        return None
    trigger, backfill = _TRIGGER.fullmatch(path), _BACKFILL.fullmatch(path)
    match = trigger or backfill
    if match is None:
        return None
    try:
        body = await request.json()
    except ValueError:
        return None
    if not isinstance(body, dict):
        return None
    dag = trigger[2] if trigger else body.get("dag_id")
    given = body.get("conf" if trigger else "dag_run_conf")
    return (match[1], dag, given) if dag and isinstance(given, dict) else None
