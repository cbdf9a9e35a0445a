"""The description of the API in OpenAPI 3.0, made from the endpoints."""

import re
from typing import Any

from st_common.server.endpoint import Endpoint
from st_common.server.endpoints import ENDPOINTS

_VARIES = re.compile(r"{(\w+)}")
_ERROR = {
    "description": "what was wrong, and what to do",
    "content": {
        "application/json": {
            "schema": {
                "type": "object",
                "properties": {
                    "error": {"type": "string"},
                    "hint": {"type": "string"},
                },
            }
        }
    },
}


def description(version: str) -> dict[str, Any]:
    """The API as an OpenAPI document.

    Args:
        version: of the program.
    """
    paths: dict[str, dict[str, Any]] = {}
    for one in ENDPOINTS:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.0.3",
        "info": {"title": "Fairway", "version": version},
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}}
        },
        "security": [{}, {"token": []}],
        "paths": paths,
    }


def _operation(one: Endpoint) -> dict[str, Any]:
    words = re.findall(r"[a-z]+", f"{one.method.lower()} {one.path}")
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in _VARIES.findall(one.path)
    ]
    parameters += [
        {
            "name": param.name,
            "in": "query",
            "description": param.about,
            "schema": {"type": param.kind},
        }
        for param in one.params
    ]
    made: dict[str, Any] = {
        "operationId": "_".join(words),
        "summary": one.about,
        "parameters": parameters,
        "responses": {
            "200": {"description": one.about, "content": {one.gives: {"schema": {}}}},
            "default": _ERROR,
        },
    }
    if one.takes:
        content: dict[str, Any] = {media: {"schema": {}} for media in one.takes}
        made["requestBody"] = {"required": True, "content": content}
    return made
