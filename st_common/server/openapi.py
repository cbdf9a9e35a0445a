"""The description of the API in OpenAPI 3.0, made from the endpoints."""

import re
from collections.abc import Iterable
from typing import Any

from st_common.config.parameters import Parameter
from st_common.server.endpoint import Endpoint
from st_common.server.schemas import BYTES, TEXT, an_object

_VARIES = re.compile(r"{(\w+)}")
_ERROR = {
    "description": "what was wrong, and what to do",
    "content": {"application/json": {"schema": an_object({"hint": TEXT}, error=TEXT)}},
}
_REFUSED = "nothing of it could be read, and nothing is stored"


def description(version: str, endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """The API as an OpenAPI document.

    Args:
        version: of the program.
        endpoints: what it describes.
    """
    paths: dict[str, dict[str, Any]] = {}
    for one in endpoints:
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
            "required": param.is_required,
            "description": param.sentence,
            "style": "form",
            "explode": False,
            "schema": _schema_of(param),
        }
        for param in one.params
    ]
    made: dict[str, Any] = {
        "operationId": "_".join(words),
        "summary": one.about,
        "parameters": parameters,
        "responses": {**_answers(one), "default": _ERROR},
    }
    if one.takes:
        content = {media: {"schema": _body_of(one, media)} for media in one.takes}
        made["requestBody"] = {"required": True, "content": content}
    return made


def _schema_of(one: Parameter) -> dict[str, Any]:
    default = {} if one.default is None else {"default": one.default}
    return {**one.type.schema, **default}


def _body_of(one: Endpoint, media: str) -> dict[str, Any]:
    """What a body may be: a text; as JSON, where it has keys beside the text, an object."""
    schema: dict[str, Any] = {"type": "string"}
    if media != "application/json" or not one.keys:
        return schema
    said = {
        key.name: {"description": key.sentence, **_schema_of(key)} for key in one.keys
    }
    properties = {"text": schema, **said}
    return {"type": "object", "properties": properties, "required": ["text"]}


def _answers(one: Endpoint) -> dict[str, Any]:
    """What an endpoint answers, by status."""
    answers = one.answers or (TEXT if one.gives.startswith("text/") else BYTES)
    by_status = {200: answers} if "type" in answers else answers
    return {
        str(status): {
            "description": _REFUSED if status == 422 else one.about,
            "content": {one.gives: {"schema": schema}},
        }
        for status, schema in by_status.items()
    }
