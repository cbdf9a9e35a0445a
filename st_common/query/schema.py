"""The JSON Schema of plans, made from the dataclasses: what they do not say themselves stands in tables here."""

import inspect
import types
import typing
from collections.abc import Sequence
from dataclasses import MISSING, Field, fields, is_dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from st_common.query.lowering.options import MOST_FIXES
from st_common.query.lowering.space import MOST_NEIGHBOURS
from st_common.query.neighbours import GroupNearest, Nearest, ReverseNearest
from st_common.query.plan import MOST_NEAREST, MOST_TOLD, MOST_VALUES, VERSION, Plan
from st_common.regions.region import Region
from st_common.regions.registry import REGIONS

Schema = dict[str, Any]

_TAGGED: dict[type[Any], str] = {
    **{kind: kind.kind for kind in REGIONS},
    Nearest: "nearest",
    ReverseNearest: "reverse",
    GroupNearest: "group",
}
_NAME = r"^[A-Za-z][A-Za-z0-9_-]{0,62}$"
_LONGEST_S = 3.2e9
_MOST_ROWS = 1_000_000_000

_LIMITS: MappingProxyType[str, Schema] = MappingProxyType(
    {
        "Plan.stream": {"pattern": _NAME},
        "Plan.where": {"minLength": 1},
        "LayerJoin.layer": {"pattern": _NAME},
        "LayerJoin.distance_m": {"minimum": 0},
        "LayerJoin.nearest": {"minimum": 1, "maximum": MOST_NEAREST},
        "PairJoin.distance_m": {"minimum": 0},
        "PairJoin.nearest": {"minimum": 1, "maximum": MOST_NEAREST},
        **{
            f"{kind.__name__}.{field}": limit
            for kind in REGIONS
            for field, limit in kind.limits.items()
        },
        "Place.focal": {"minLength": 1},
        "Nearest.k": {"minimum": 1, "maximum": MOST_NEIGHBOURS},
        "GroupNearest.k": {"minimum": 1, "maximum": MOST_NEIGHBOURS},
        "GroupNearest.places": {"minItems": 1},
        "Outer.lasting_s": {"minimum": 1e-6, "maximum": _LONGEST_S},
        "Window.seconds": {"minimum": 1e-6, "maximum": _LONGEST_S},
        "Window.tuples": {"minimum": 1, "maximum": _MOST_ROWS},
        "Extent.amount": {"exclusiveMinimum": 0},
        "Frame.sliding": {"minItems": 1},
        "Frame.regions": {"minItems": 1},
        "Frame.min_step_m": {"minimum": 0},
        "Frame.session_s": {"minimum": 1e-6, "maximum": _LONGEST_S},
        "Transform.amount": {"minimum": 0},
        "Fence.events": {"minItems": 1, "uniqueItems": True},
        "Fence.dwell_s": {"minimum": 1e-6, "maximum": _LONGEST_S},
        "Fence.hysteresis_m": {"minimum": 0},
        "Fence.max_gap_s": {"minimum": 1e-6, "maximum": _LONGEST_S},
        "Incident.until": {"minLength": 1},
        "Incident.max_gap_s": {"minimum": 1e-6, "maximum": _LONGEST_S},
        "Incident.every_s": {"minimum": 1e-6, "maximum": _LONGEST_S},
        "Aggregate.values": {"minItems": 1, "maxItems": MOST_VALUES},
        "Value.name": {"minLength": 1},
        "Top.value": {"minLength": 1},
        "Top.limit": {"minimum": 1, "maximum": MOST_TOLD},
        "Top.having": {"minLength": 1},
        "Value.share": {"minimum": 0, "maximum": 1},
        "Worst.argument": {"minLength": 1},
        "Worst.name": {"minLength": 1},
        "Debounce.fixes": {"minimum": 1, "maximum": MOST_FIXES},
        "Debounce.seconds": {"minimum": 0, "maximum": _LONGEST_S},
    }
)
"""What values a field takes, beside its type."""


def _when(field: str, value: str | list[str], *needed: str) -> Schema:
    """A field that says which others are needed."""
    chosen = {"enum": value} if isinstance(value, list) else {"const": value}
    return {
        "if": {"properties": {field: chosen}, "required": [field]},
        "then": {"required": list(needed)},
    }


_RULES: MappingProxyType[str, Schema] = MappingProxyType(
    {
        "Window": {"minProperties": 1, "maxProperties": 1},
        "Place": {"anyOf": [{"not": {"required": ["focal"]}}, {"maxProperties": 1}]},
        "PairJoin": {
            "anyOf": [
                {"required": [name]} for name in ("distance_m", "keys", "nearest")
            ]
        },
        "Frame": {
            "anyOf": [
                {"required": [name]} for name in ("sliding", "regions", "session_s")
            ],
            "not": {"required": ["session_s", "sliding"]},
        },
        "LayerJoin": {
            "allOf": [
                _when("predicate", "equals", "left", "right"),
                _when("predicate", "nearest", "nearest"),
            ],
            "dependentRequired": {"left": ["right"], "right": ["left"]},
        },
        "Area": {"dependentRequired": {"layer": ["fid"], "fid": ["layer"]}},
        "Aggregate": {
            "allOf": [
                _when("function", ["sum", "avg", "min", "max"], "argument"),
                _when("function", "distinct", "group"),
                _when("function", "several", "values"),
            ],
            "dependentSchemas": {
                part: {"properties": {"function": {"const": "several"}}}
                for part in ("values", "keys", "top")
            },
        },
        "Value": {
            "allOf": [
                _when("function", ["sum", "avg", "min", "max"], "argument"),
                _when("function", ["stddev", "var", "median"], "argument"),
                _when("function", ["first", "last", "collect"], "argument"),
                _when("function", "quantile", "argument", "share"),
            ],
            "dependentSchemas": {
                "share": {"properties": {"function": {"const": "quantile"}}}
            },
        },
        "Fence": {
            "if": {"properties": {"events": {"contains": {"const": "dwell"}}}},
            "then": {"required": ["dwell_s"]},
            "dependentSchemas": {
                "dwell_s": {"properties": {"events": {"contains": {"const": "dwell"}}}}
            },
        },
        "Transform": {
            "allOf": [
                _when("kind", "key", "text"),
                _when("kind", "box", "box"),
                _when("kind", "filter", "name"),
            ]
        },
    }
)
"""What fields of a record belong together."""


@cache
def plan_schema() -> Schema:
    """The schema (JSON Schema, draft 2020-12) of what `Plan.to_json` writes, in the present version."""
    records: dict[str, Schema] = {}
    plan = _record(Plan, records)
    plan["properties"] = {
        "v": {"const": VERSION, "description": "The version of this format."},
        **plan["properties"],
    }
    plan["required"] = ["v", *plan["required"]]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": f"urn:fairway:plan:{VERSION}",
        "title": f"A plan of a continuous query, version {VERSION}",
        **plan,
        "$defs": dict(sorted(records.items())),
    }


def _record(kind: type[Any], records: dict[str, Schema]) -> Schema:
    """A dataclass as an object; what has a default may be missing."""
    hints = get_type_hints(kind)
    properties: Schema = {}
    for field in (field for field in fields(kind) if field.compare):
        schema = _schema(hints[field.name], records)
        properties[field.name] = {
            **schema,
            **_LIMITS.get(f"{kind.__name__}.{field.name}", {}),
        }
    return {
        "description": " ".join((inspect.getdoc(kind) or "").split()),
        "type": "object",
        "properties": properties,
        "required": [field.name for field in fields(kind) if _must_be_given(field)],
        "additionalProperties": False,
        **_RULES.get(kind.__name__, {}),
    }


def _must_be_given(field: Field[Any]) -> bool:
    return field.default is MISSING and field.default_factory is MISSING


def _schema(hint: Any, records: dict[str, Schema]) -> Schema:
    """A type as a schema; records get a definition of their own."""
    if hint is Region:
        return _one_of("Region", REGIONS, records)
    if is_dataclass(hint):
        return _named(typing.cast("type[Any]", hint), records)
    origin, parts = get_origin(hint), get_args(hint)
    if origin is Literal:
        return {"enum": list(parts)}
    if origin is tuple:
        return _array(parts, records)
    if origin in (types.UnionType, typing.Union):
        given = [part for part in parts if part is not type(None)]
        several = len(given) > 1
        return (
            _one_of("Neighbours", given, records)
            if several
            else _schema(given[0], records)
        )
    return {
        "type": {str: "string", float: "number", int: "integer", bool: "boolean"}[hint]
    }


def _named(kind: type[Any], records: dict[str, Schema]) -> Schema:
    if kind.__name__ not in records:
        records[kind.__name__] = {}  # for records that hold their own kind
        records[kind.__name__] = _record(kind, records)
    return {"$ref": f"#/$defs/{kind.__name__}"}


def _array(parts: tuple[Any, ...], records: dict[str, Schema]) -> Schema:
    if parts[1:] == (...,):
        return {"type": "array", "items": _schema(parts[0], records)}
    items = [_schema(part, records) for part in parts]
    return {
        "type": "array",
        "prefixItems": items,
        "items": False,
        "minItems": len(parts),
    }


def _one_of(
    name: str, parts: Sequence[type[Any]], records: dict[str, Schema]
) -> Schema:
    """Several records that `kind` tells apart, under one name."""
    if name in records:
        return {"$ref": f"#/$defs/{name}"}
    records[name] = {}  # for records that hold such ones
    records[name] = {
        "type": "object",
        "required": ["kind"],
        "properties": {"kind": {"enum": [_TAGGED[part] for part in parts]}},
        "allOf": [
            {
                "if": {"properties": {"kind": {"const": _TAGGED[part]}}},
                "then": _tagged(part, records),
            }
            for part in parts
        ],
    }
    return {"$ref": f"#/$defs/{name}"}


def _tagged(kind: type[Any], records: dict[str, Schema]) -> Schema:
    record = _record(kind, records)
    return {
        **record,
        "properties": {"kind": {"const": _TAGGED[kind]}, **record["properties"]},
    }
