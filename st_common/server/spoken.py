"""Hints as who asks by HTTP can follow them: commands that have a request stand for it."""

import re

_REQUESTS = {
    "query list": "GET /v1/queries",
    "layer list": "GET /v1/layers",
    "streams list": "GET /v1/status",
    "status": "GET /v1/status",
    "changes": "GET /v1/changes/Q",
    "verify": "POST /v1/verify",
}
_COMMAND = re.compile(
    rf"`fairway ({'|'.join(_REQUESTS)})`|\bfairway ({'|'.join(_REQUESTS)})(?=$|[,;)])"
)
_RUN = re.compile(r"`fairway run (\S+)` first")


def by_http(hint: str) -> str:
    """A hint for people at a terminal, for programs: `see fairway query list` becomes `see GET /v1/queries`.

    Commands without a request, such as `fairway streams reset S`, stay: whoever runs the server types them.
    """
    hint = _RUN.sub(
        r"its engine has not read fixes yet: `GET /v1/status` says how \1 is", hint
    )
    return _COMMAND.sub(_request_of, hint)


def _request_of(found_at: re.Match[str]) -> str:
    if found_at[1] is not None:
        return f"`{_REQUESTS[found_at[1]]}`"
    return _REQUESTS[found_at[2]]
