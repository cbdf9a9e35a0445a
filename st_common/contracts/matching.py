"""Whether a schema or a table is what its contract says."""

from pathlib import Path

import pyarrow as pa

from st_common.contracts.kinds import ATTRIBUTE_KINDS, kind_of
from st_common.contracts.model import Column, Contract
from st_common.errors import ContractError


def matches(
    contract: Contract, given: pa.Schema | Path | str, *, is_older: bool = False
) -> list[str]:
    """The differences between a contract and a schema or table, each in words; empty when there are none.

    Of a schema names, order and types are compared. Of a table besides: which columns may be null, partitioning,
    properties. A table without a Delta log is one difference. Attributes of an extendable contract stand last, may be
    null and have one of the types that a stream can declare.

    Args:
        contract: what is promised.
        given: an Arrow schema, or the folder of a Delta table.
        is_older: columns that may be null may be missing from a table, as from one that was written before its contract
            gained them; the next write adds them.
    """
    if isinstance(given, pa.Schema):
        return _columns(contract, given, nulls=False)
    from deltalake import DeltaTable
    from deltalake.exceptions import TableNotFoundError

    try:
        table = DeltaTable(str(given))
    except TableNotFoundError:
        return [f"{given} is no Delta table"]
    metadata = table.metadata()
    schema = pa.schema(table.schema().to_arrow())
    differences = _columns(contract, schema, nulls=True, is_older=is_older)
    if tuple(metadata.partition_columns) != contract.partition_by:
        differences.append(
            f"partitioned by {_names(metadata.partition_columns)} instead of {_names(contract.partition_by)}"
        )
    for key, value in contract.properties.items():
        if metadata.configuration.get(key) != value:
            differences.append(
                f"property {key} is {metadata.configuration.get(key)!r} instead of {value!r}"
            )
    return differences


def require_match(contract: Contract, given: pa.Schema | Path | str) -> None:
    """Makes sure that a schema or table is what its contract says; see `matches`.

    Raises:
        ContractError: names the table or schema and every difference.
    """
    differences = matches(contract, given)
    if differences:
        what = "schema" if isinstance(given, pa.Schema) else str(given)
        raise ContractError(
            f"{what} differs from contract {contract.name!r}: {'; '.join(differences)}",
            hint=f"see {contract.path}",
        )


def _columns(
    contract: Contract, schema: pa.Schema, *, nulls: bool, is_older: bool = False
) -> list[str]:
    wanted = [
        column.name
        for column in contract.columns
        if column.required or not is_older or column.name in schema.names
    ]
    differences = [
        f"column {name!r} is missing" for name in wanted if name not in schema.names
    ]
    for column in contract.columns:
        if schema.names.count(column.name) == 1:
            differences += _column(column, schema.field(column.name), nulls=nulls)
    differences += [
        text
        for field in schema
        if field.name not in wanted
        for text in _extra(contract, field, nulls=nulls)
    ]
    # Where columns are missing the order says nothing more.
    if not differences and schema.names[: len(wanted)] != wanted:
        differences.append(
            f"columns are in the order {_names(schema.names)} instead of {_names(wanted)}"
        )
    return differences + [
        f"column {name!r} is there twice"
        for name in wanted
        if schema.names.count(name) > 1
    ]


def _column(column: Column, field: pa.Field, *, nulls: bool) -> list[str]:
    differences = []
    if kind_of(field.type) != column.type:
        kind = kind_of(field.type) or field.type
        differences.append(f"column {column.name!r} is {kind} instead of {column.type}")
    if nulls and field.nullable == column.required:
        differences.append(
            f"column {column.name!r} {'may' if field.nullable else 'must not'} be null, against the contract"
        )
    return differences


def _extra(contract: Contract, field: pa.Field, *, nulls: bool) -> list[str]:
    if not contract.extendable:
        return [f"column {field.name!r} is not in the contract"]
    if kind_of(field.type) not in ATTRIBUTE_KINDS.values():
        return [
            f"attribute {field.name!r} is {field.type}, which no stream can declare"
        ]
    return (
        [f"attribute {field.name!r} must not be null"]
        if nulls and not field.nullable
        else []
    )


def _names(names: list[str] | tuple[str, ...]) -> str:
    return f"({', '.join(names)})"
