"""What a contract must keep besides being YAML: ODCS 3.1, and the rules of ours that make it mean one thing only.

Every check raises at the first place that is wrong. The slug after the line is the rule's name.
"""

from collections.abc import Mapping
from typing import Any

from st_common.contracts.document import Document, Place, near
from st_common.contracts.places import (
    TABLE_AT,
    check_column,
    mappings_of,
    properties_of,
)
from st_common.contracts.retention import check_retention
from st_common.contracts.validation_columns import check_columns
from st_common.contracts.validation_quality import check_quality

_API_VERSION = "v3.1.0"
_CUSTOM: dict[str, type] = {
    "deltaTableProperties": dict,
    "clusterBy": str,
    "zOrderBy": list,
    "extendable": bool,
}
_ANY: dict[str, tuple[str, ...]] = {  # what must be there, whatever the contract is of
    "contract": (
        "version",
        "apiVersion",
        "kind",
        "id",
        "name",
        "status",
        "description",
        "schema",
    ),
    "description": ("purpose",),
}
_LEVELS: dict[str, tuple[str, ...]] = {  # what must be there of a table
    "table": ("name", "properties"),
    "property": ("name", "logicalType", "physicalType", "required", "description"),
    "quality": ("name", "mustBe", "severity"),
    "custom": ("property", "value"),
    "sla": ("property", "value", "unit", "element"),
}
# Later versions of ODCS brought these; under 3.1 they would silently mean nothing.
_NEWER = {"semanticType", "enum", "map", "synonyms", "context", "contractCreatedTs"}


def validate(document: Document, name: str) -> None:
    """Makes sure that a document is the contract of a table: ODCS 3.1, and our own rules.

    Args:
        document: what the file says.
        name: the name that the contract must have, that of its file.

    Raises:
        ContractError: names file, line and rule.
    """
    check_standard(document, name, _LEVELS)
    for check in (check_columns, _custom, check_retention, check_quality):
        check(document)


def check_standard(
    document: Document, name: str, levels: Mapping[str, tuple[str, ...]]
) -> None:
    """Makes sure that a document keeps ODCS 3.1, describes one thing, and is named as its file.

    Args:
        document: what the file says.
        name: the name that it must have.
        levels: which keys must be there, by level: `table`, `property`, ..; those of the contract itself are the same
            for all.

    Raises:
        ContractError: names file, line and rule.
    """
    _check_keys(document, {**_ANY, **levels})
    _check_model(document)
    _check_head(document)
    for place in (("name",), (*TABLE_AT, "name")):
        value = document.at(place)
        if value != name:
            raise document.error(
                place, "name", f"{value!r} must be {name!r}, as the file is named"
            )


def _check_keys(document: Document, levels: Mapping[str, tuple[str, ...]]) -> None:
    """Keys that ODCS does not know, and keys that must be there."""
    from open_data_contract_standard import model

    kinds: dict[str, Any] = {
        "contract": model.OpenDataContractStandard,
        "description": model.Description,
        "table": model.SchemaObject,
        "property": model.SchemaProperty,
        "quality": model.DataQuality,
        "custom": model.CustomProperty,
        "sla": model.ServiceLevelAgreementProperty,
    }
    for place, value, level in mappings_of(document):
        known = {
            field.alias or name for name, field in kinds[level].model_fields.items()
        } - _NEWER
        for key in value:
            if key not in known:
                raise document.error(
                    (*place, str(key)),
                    "unknown-key",
                    f"{key!r} is no key of a {level}",
                    hint=near(key, known),
                )
        for key in levels.get(level, ()):
            if value.get(key) is None:
                raise document.error(place, "missing-key", f"the {level} has no {key}")


def _check_model(document: Document) -> None:
    from open_data_contract_standard.model import OpenDataContractStandard
    from pydantic import ValidationError

    try:
        OpenDataContractStandard.model_validate(document.value)
    except ValidationError as error:
        first = error.errors()[0]
        raise document.error(
            first["loc"], "odcs", f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
        ) from None


def _check_head(document: Document) -> None:
    for key, wanted in (("apiVersion", _API_VERSION), ("kind", "DataContract")):
        if document.value[key] != wanted:
            raise document.error(
                (key,),
                "odcs",
                f"{key} is {document.value[key]!r} instead of {wanted!r}",
            )
    if len(document.value["schema"]) != 1:
        raise document.error(
            ("schema", 1), "one-table", "a contract describes exactly one table"
        )


def _custom(document: Document) -> None:
    for place in document.items((*TABLE_AT, "customProperties")):
        custom = document.mapping(place)
        key, at = custom["property"], (*place, "value")
        value: Any = custom["value"]
        if key not in _CUSTOM:
            wrong = f"{key!r} is no custom property"
            raise document.error(
                (*place, "property"), "unknown-key", wrong, hint=near(key, _CUSTOM)
            )
        fits = isinstance(value, _CUSTOM[key])
        if not fits:
            raise document.error(
                at, "odcs", f"{key} is {value!r}, which is no {_CUSTOM[key].__name__}"
            )
        if key == "clusterBy":
            check_column(document, at, value, _column_names(document))
        elif key == "zOrderBy":
            _zorder(document, at, value)
        elif key == "deltaTableProperties":
            _delta_properties(document, at, value)


def _zorder(document: Document, place: Place, value: list[Any]) -> None:
    for index, name in enumerate(value):
        check_column(document, (*place, index), name, _column_names(document))


def _column_names(document: Document) -> list[str]:
    return [column["name"] for _, column in properties_of(document)]


def _delta_properties(document: Document, place: Place, value: dict[str, Any]) -> None:
    for key, text in value.items():
        if not (key.startswith("delta.") and isinstance(text, str)):
            raise document.error(
                (*place, key),
                "delta-property",
                f"{key} = {text!r} is no delta.NAME with a string",
            )
