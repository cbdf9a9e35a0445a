"""What schemas of OpenAPI 3.0 are made of: types of values, and what puts them together.

Objects say which keys they have and which of these may lack; values with keys of their own (attributes, counts by
reason) are objects of any keys. A test holds real answers against the schemas of all endpoints.
"""

from collections.abc import Mapping
from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
BYTES: Schema = {"type": "string", "format": "binary"}
WHOLE: Schema = {"type": "integer"}
NUMBER: Schema = {"type": "number"}
TRUTH: Schema = {"type": "boolean"}
TIME: Schema = {"type": "string", "format": "date-time"}
ANYTHING: Schema = {"nullable": True}


def or_null(of: Schema) -> Schema:
    """A value, or null."""
    return {**of, "nullable": True}


def a_list(of: Schema) -> Schema:
    """A list of values."""
    return {"type": "array", "items": of}


def by_name(of: Schema) -> Schema:
    """An object of any keys with such values."""
    return {"type": "object", "additionalProperties": of}


def an_object(may: Mapping[str, Schema] | None = None, /, **must: Schema) -> Schema:
    """An object with these keys, and with those of `may` where there is something to say."""
    properties = {**must, **(may or {})}
    needed = {"required": [*must]} if must else {}  # OpenAPI 3.0 takes no empty list
    return {"type": "object", **needed, "properties": properties}


ANY = by_name(ANYTHING)
COUNTS = by_name(WHOLE)
TEXTS = a_list(TEXT)
ROWS = a_list(ANY)
BOX = a_list(NUMBER)
LATE = {"warnings": a_list(ANYTHING)}
"""Of streams many of whose fixes came too late."""
LINKS = a_list(an_object({"title": TEXT, "type": TEXT}, href=TEXT, rel=TEXT))
FEATURE = an_object(
    {"id": TEXT, "bbox": BOX, "links": LINKS},
    type=TEXT,
    geometry=or_null(an_object({"coordinates": a_list({})}, type=TEXT)),
    properties=or_null(ANY),
)
FEATURES = an_object(
    {
        "numberMatched": WHOLE,
        "numberReturned": WHOLE,
        "timeStamp": TIME,
        "links": LINKS,
        "group": TEXT,
        "dimensions": ANYTHING,
    },
    type=TEXT,
    features=a_list(FEATURE),
)
