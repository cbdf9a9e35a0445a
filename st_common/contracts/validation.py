"""What a contract must keep besides being YAML: ODCS 3.1, and the rules of ours that make it mean one thing only.

Every check raises at the first place that is wrong. The slug after the line is the rule's name.
"""

import re
from collections.abc import Callable, Iterable
from typing import Any

from st_common.contracts.document import Document, Place, near
from st_common.contracts.kinds import KINDS
from st_common.contracts.quality import OPTIONS, sql_columns
from st_common.contracts.rules import COUNT, TABLE

_API_VERSION = "v3.1.0"
_TABLE: Place = ("schema", 0)
_CUSTOM: dict[str, type] = {"deltaTableProperties": dict, "zOrderBy": list, "extendable": bool}
_SEVERITIES = ("error", "warning", "info")
_METRICS = {"invalidValues": "validValues", "duplicateValues": "properties", "nullValues": None}
_PARTITION_TYPES = ("string", "date", "timestamp", "int", "bigint")
_OPTION_TYPES = {"between": ("bigint", "int", "tinyint", "double"), "length": ("string",), "pattern": ("string",)}
_LEVELS: dict[str, tuple[str, ...]] = {  # what must be there
    "contract": ("version", "apiVersion", "kind", "id", "name", "status", "description", "schema"),
    "description": ("purpose",),
    "table": ("name", "properties"),
    "property": ("name", "logicalType", "physicalType", "required", "description"),
    "quality": ("name", "mustBe", "severity"),
    "custom": ("property", "value"),
}
# Later versions of ODCS brought these; under 3.1 they would silently mean nothing.
_NEWER = {"semanticType", "enum", "map", "synonyms", "context", "contractCreatedTs"}


def validate(document: Document, name: str) -> None:
    """Nothing, when the document is a contract of that name.

    Raises:
        ContractError: names file, line and rule.
    """
    for check in (_keys, _model, _head, _columns, _numbers, _derived, _options, _custom, _quality):
        check(document)
    for place in (("name",), (*_TABLE, "name")):
        value = _at(document, place)
        if value != name:
            raise document.error(place, "name", f"{value!r} must be {name!r}, as the file is named")


def _keys(document: Document) -> None:
    """Keys that ODCS does not know, and keys that must be there."""
    from open_data_contract_standard import model

    kinds: dict[str, Any] = {
        "contract": model.OpenDataContractStandard,
        "description": model.Description,
        "table": model.SchemaObject,
        "property": model.SchemaProperty,
        "quality": model.DataQuality,
        "custom": model.CustomProperty,
    }
    for place, value, level in _mappings(document):
        known = {field.alias or name for name, field in kinds[level].model_fields.items()} - _NEWER
        for key in value:
            if key not in known:
                raise document.error(
                    (*place, str(key)), "unknown-key", f"{key!r} is no key of a {level}", hint=near(key, known)
                )
        for key in _LEVELS[level]:
            if value.get(key) is None:
                raise document.error(place, "missing-key", f"the {level} has no {key}")


def _mappings(document: Document) -> Iterable[tuple[Place, dict[str, Any], str]]:
    """Every mapping of the contract that ODCS gives keys to, with the name of its level; the outer ones first."""
    yield (), document.value, "contract"
    yield ("description",), _mapping(document, ("description",)), "description"
    for place in _items(document, ("schema",)):
        table = _mapping(document, place)
        yield place, table, "table"
        for inner, key, level in _inner(document, place):
            yield inner, _mapping(document, inner), level
            if key == "properties":
                for rule in _items(document, (*inner, "quality")):
                    yield rule, _mapping(document, rule), "quality"


def _inner(document: Document, table: Place) -> Iterable[tuple[Place, str, str]]:
    for key, level in (("properties", "property"), ("quality", "quality"), ("customProperties", "custom")):
        for place in _items(document, (*table, key)):
            yield place, key, level


def _model(document: Document) -> None:
    from open_data_contract_standard.model import OpenDataContractStandard
    from pydantic import ValidationError

    try:
        OpenDataContractStandard.model_validate(document.value)
    except ValidationError as error:
        first = error.errors()[0]
        raise document.error(first["loc"], "odcs", f"{'.'.join(map(str, first['loc']))}: {first['msg']}") from None


def _head(document: Document) -> None:
    for key, wanted in (("apiVersion", _API_VERSION), ("kind", "DataContract")):
        if document.value[key] != wanted:
            raise document.error((key,), "odcs", f"{key} is {document.value[key]!r} instead of {wanted!r}")
    if len(document.value["schema"]) != 1:
        raise document.error(("schema", 1), "one-table", "a contract describes exactly one table")


def _columns(document: Document) -> None:
    seen = set()
    for place, column in _properties(document):
        kind = column["physicalType"]
        if kind not in KINDS:
            raise document.error(
                (*place, "physicalType"),
                "unknown-type",
                f"column {column['name']!r}: {kind!r} is no type",
                hint=near(kind, KINDS),
            )
        if column["logicalType"] != KINDS[kind].logical:
            wanted = f"{kind} is {KINDS[kind].logical}, not {column['logicalType']}"
            raise document.error((*place, "logicalType"), "type-mismatch", f"column {column['name']!r}: {wanted}")
        if column["name"].lower() in seen:  # Spark does not tell letters by case
            raise document.error((*place, "name"), "duplicate-column", f"column {column['name']!r} is there twice")
        seen.add(column["name"].lower())


def _numbers(document: Document) -> None:
    """Partition and key columns: numbered from 1 without holes, never null, of a type that can be one."""
    for flag, position, rule in (
        ("partitioned", "partitionKeyPosition", "partition"),
        ("primaryKey", "primaryKeyPosition", "key"),
    ):
        numbered = [
            (place, column) for place, column in _properties(document) if column.get(flag) or position in column
        ]
        for place, column in numbered:
            named = f"column {column['name']!r}"
            if not (column.get(flag) and position in column):
                raise document.error(place, rule, f"{named}: {flag} and {position} go together")
            if not column["required"]:
                raise document.error((*place, "required"), rule, f"{named} may be null, so it cannot be {flag}")
            if rule == "partition" and column["physicalType"] not in _PARTITION_TYPES:
                raise document.error(
                    (*place, flag), rule, f"{named}: a {column['physicalType']} cannot name a partition"
                )
        order = sorted(column[position] for _, column in numbered)
        for at, (place, column) in enumerate(numbered, start=1):
            if order != list(range(1, len(order) + 1)) and column[position] != at:
                raise document.error(
                    (*place, position), rule, f"{position} {column[position]}: they count from 1 without a hole"
                )


def _derived(document: Document) -> None:
    types = {column["name"]: column["physicalType"] for _, column in _properties(document)}
    for place, column in _properties(document):
        sources = column.get("transformSourceObjects")
        if sources is None and "transformLogic" not in column:
            continue
        at = (*place, "transformSourceObjects")
        if not sources or len(sources) != 1:
            raise document.error(at, "derived", f"column {column['name']!r} needs one transformSourceObjects")
        if sources[0] not in types:
            raise document.error(
                at,
                "unknown-column",
                f"column {column['name']!r} derives from {sources[0]!r}",
                hint=near(sources[0], types),
            )
        if (types[column["name"]], types[sources[0]]) != ("date", "timestamp"):
            raise document.error(at, "derived", f"column {column['name']!r}: only a date derives, from a timestamp")
        if column.get("transformLogic") != f"CAST({sources[0]} AS DATE)":
            raise document.error((*place, "transformLogic"), "derived", f"it must be CAST({sources[0]} AS DATE)")


def _options(document: Document) -> None:
    for place, column in _properties(document):
        options = column.get("logicalTypeOptions", {})
        for key, value in options.items():
            at = (*place, "logicalTypeOptions", key)
            kind = next((kind for kind, keys in OPTIONS.items() if key in keys), None)
            if key == "format":
                continue
            if kind is None or column["physicalType"] not in _OPTION_TYPES[kind]:
                raise document.error(at, "bad-range", f"{key} has no meaning for a {column['physicalType']}")
            if kind == "pattern":
                _pattern(document, at, value)
            elif isinstance(value, bool) or not isinstance(value, int | float):
                raise document.error(at, "bad-range", f"{key} is {value!r}, which is no number")
        low = [options[key] for key in ("minimum", "exclusiveMinimum", "minLength") if key in options]
        high = [options[key] for key in ("maximum", "exclusiveMaximum", "maxLength") if key in options]
        if low and high and max(low) > min(high):
            raise document.error(
                (*place, "logicalTypeOptions"), "bad-range", f"nothing is from {max(low)} to {min(high)}"
            )


def _pattern(document: Document, place: Place, value: object) -> None:
    try:
        re.compile(str(value))
    except re.error as error:
        raise document.error(place, "bad-range", f"{value!r} is no pattern: {error}") from None


def _custom(document: Document) -> None:
    for place in _items(document, (*_TABLE, "customProperties")):
        custom = _mapping(document, place)
        key, at = custom["property"], (*place, "value")
        value: Any = custom["value"]
        if key not in _CUSTOM:
            wrong = f"{key!r} is no custom property"
            raise document.error((*place, "property"), "unknown-key", wrong, hint=near(key, _CUSTOM))
        fits = isinstance(value, _CUSTOM[key])
        if not fits:
            raise document.error(at, "odcs", f"{key} is {value!r}, which is no {_CUSTOM[key].__name__}")
        if key == "zOrderBy":
            _zorder(document, at, value)
        elif key == "deltaTableProperties":
            _delta_properties(document, at, value)


def _zorder(document: Document, place: Place, value: list[Any]) -> None:
    names = [column["name"] for _, column in _properties(document)]
    for index, name in enumerate(value):
        _known_column(document, (*place, index), name, names)


def _delta_properties(document: Document, place: Place, value: dict[str, Any]) -> None:
    for key, text in value.items():
        if not (key.startswith("delta.") and isinstance(text, str)):
            raise document.error((*place, key), "delta-property", f"{key} = {text!r} is no delta.NAME with a string")


def _known_column(document: Document, place: Place, name: object, names: list[str]) -> None:
    if name not in names:
        raise document.error(place, "unknown-column", f"{name!r} is no column of this contract", hint=near(name, names))


def _quality(document: Document) -> None:
    names = [column["name"] for _, column in _properties(document)]
    seen = set()
    for place, rule, level in _mappings(document):
        if level != "quality":
            continue
        if rule["name"] in seen:
            raise document.error((*place, "name"), "bad-rule", f"rule {rule['name']!r} is there twice")
        seen.add(rule["name"])
        if rule["severity"] not in _SEVERITIES:
            raise document.error(
                (*place, "severity"), "bad-rule", f"{rule['severity']!r} is none of {', '.join(_SEVERITIES)}"
            )
        if rule["mustBe"] != 0:
            raise document.error((*place, "mustBe"), "bad-rule", "a rule counts the rows that break it: mustBe is 0")
        check: Callable[..., None] = _sql_rule if rule.get("type") == "sql" else _metric_rule
        check(document, place, rule, names)


def _sql_rule(document: Document, place: Place, rule: dict[str, Any], names: list[str]) -> None:
    from sqlglot.errors import SqlglotError

    query, at = " ".join(str(rule.get("query", "")).split()), (*place, "query")
    if not query.startswith(COUNT) or TABLE not in query:
        raise document.error(at, "bad-rule", f"a query counts the rows that break it: {COUNT}{TABLE} WHERE ...")
    try:
        columns = sql_columns(query)
    except SqlglotError as error:
        raise document.error(at, "bad-rule", f"no SQL: {str(error).splitlines()[0]}") from None
    for name in columns:
        _known_column(document, at, name, names)


def _metric_rule(document: Document, place: Place, rule: dict[str, Any], names: list[str]) -> None:
    metric, at = rule.get("metric"), (*place, "metric")
    if metric not in _METRICS:
        raise document.error(at, "bad-rule", f"metric {metric!r} is not known", hint=near(metric, _METRICS))
    of_column = len(place) > len(_TABLE) + 2
    argument = _METRICS[metric] if metric == "invalidValues" or not of_column else None
    if not of_column and metric != "duplicateValues":
        raise document.error(at, "bad-rule", f"{metric} is a rule of a column")
    given = (rule.get("arguments") or {}).get(argument) if argument else None
    if argument and (not isinstance(given, list) or not given):
        raise document.error(at, "bad-rule", f"{metric} needs arguments with a list {argument}")
    if argument == "properties":
        for name in given or ():
            _known_column(document, (*place, "arguments", "properties"), name, names)


def _properties(document: Document) -> list[tuple[Place, dict[str, Any]]]:
    return [(place, _at(document, place)) for place in _items(document, (*_TABLE, "properties"))]


def _items(document: Document, place: Place) -> list[Place]:
    value = _at(document, place)
    if value is None:
        return []
    if not isinstance(value, list):
        raise document.error(place, "odcs", f"{place[-1]} must be a list")
    return [(*place, index) for index in range(len(value))]


def _mapping(document: Document, place: Place) -> dict[str, Any]:
    value = _at(document, place)
    if not isinstance(value, dict):
        raise document.error(place, "odcs", f"{place[-1]} must be a mapping of keys and values")
    return value


def _at(document: Document, place: Place) -> Any:
    value: Any = document.value
    for key in place:
        if isinstance(value, dict):
            value = value.get(str(key))
        elif isinstance(value, list) and isinstance(key, int) and key < len(value):
            value = value[key]
        else:
            return None
    return value
