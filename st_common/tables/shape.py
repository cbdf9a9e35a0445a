"""Rows in the shape that a contract promises."""

import datetime as dt

import pyarrow as pa
import pyarrow.compute as pc

from st_common.contracts import Column, Contract
from st_common.contracts.kinds import ATTRIBUTE_KINDS, kind_of
from st_common.errors import ContractError

_EPOCH = dt.date(1970, 1, 1)
_FIRST_DAY, _LAST_DAY = (dt.date.min - _EPOCH).days, (dt.date.max - _EPOCH).days


def with_date(data: pa.Table, contract: Contract) -> pa.Table:
    """The rows with the contract's derived dates, each the UTC day of its timestamp; a date that is there is replaced.

        event_ts 2024-01-01T23:59:59Z   ->   event_date 2024-01-01

    Args:
        data: rows; a timestamp may be an int64 of microseconds. Without the timestamp's column no date is added.
        contract: says which date is derived from which column.

    Raises:
        ContractError: a time is outside of the years 1 to 9999, for which no partition can be named.
    """
    for column in contract.columns:
        if column.derived_from is None or column.derived_from not in data.column_names:
            continue
        source = data.column(column.derived_from)
        dates = (
            source.cast(pa.int64()).cast(pa.timestamp("us")).cast(pa.date32())
        )  # without a zone: UTC's wall clock
        _check_years(contract, column, dates)
        if column.name in data.column_names:
            data = data.drop_columns([column.name])
        data = data.append_column(column.name, dates)
    return data


def _check_years(contract: Contract, column: Column, dates: pa.ChunkedArray) -> None:
    days = pc.min_max(dates.cast(pa.int32())).as_py()
    if (
        days["min"] is not None
        and not _FIRST_DAY <= days["min"] <= days["max"] <= _LAST_DAY
    ):
        raise ContractError(
            f"{contract.name}: {column.derived_from!r} holds a time outside of the years 1 to 9999",
            hint="such a record is a reject",
        )


def fit(data: pa.Table, contract: Contract) -> pa.Table:
    """The rows as the contract's columns in its order, cast without loss, then attributes in the order of `data`.

    Args:
        data: rows; columns that may be null may be left out, and derived dates need not be there.
        contract: what columns must be; where it is extendable, others are a stream's attributes.

    Raises:
        ContractError: a column is missing, unknown, does not fit its type, or holds nulls that it must not.
    """
    data = with_date(data, contract)
    known = {column.name for column in contract.columns}
    extra = {
        name: _attribute(contract, data.schema.field(name))
        for name in data.column_names
        if name not in known
    }
    schema = contract.arrow_schema(extra)
    columns = [_fitted(data, contract, field) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


def gained(stored: pa.Schema, contract: Contract) -> list[pa.Field]:
    """The columns that a contract has gained since a table was made: they may be null, and stand behind all others.

    Args:
        stored: the columns of the table.
        contract: one that takes attributes gains none: such a column could be an attribute's.
    """
    if contract.extendable:
        return []
    fields = contract.arrow_schema()
    return [one for one in fields if one.nullable and one.name not in stored.names]


def attributes(data: pa.Schema, contract: Contract) -> dict[str, str]:
    """The columns of a schema that the contract does not have, by name, with their types as a stream declares them.

    Raises:
        ContractError: the contract is not extendable, or no stream can declare the type of a column.
    """
    return {
        field.name: _attribute(contract, field)
        for field in data
        if contract.column(field.name) is None
    }


def _attribute(contract: Contract, field: pa.Field) -> str:
    kind = kind_of(field.type)
    attribute = next(
        (name for name, stored in ATTRIBUTE_KINDS.items() if stored == kind), None
    )
    if not contract.extendable:
        raise ContractError(
            f"{contract.name}: column {field.name!r} is not in the contract",
            hint=f"see {contract.path}",
        )
    if attribute is None:
        raise ContractError(
            f"{contract.name}: attribute {field.name!r} is {field.type}, which no stream can declare"
        )
    return attribute


def _fitted(data: pa.Table, contract: Contract, field: pa.Field) -> pa.ChunkedArray:
    if field.name not in data.column_names:
        if not field.nullable:
            raise ContractError(
                f"{contract.name}: column {field.name!r} is missing",
                hint=f"see {contract.path}",
            )
        return pa.chunked_array([pa.nulls(len(data), field.type)])
    column = data.column(field.name)
    if column.null_count and not field.nullable:
        raise ContractError(
            f"{contract.name}: column {field.name!r} holds {column.null_count} nulls, against the contract"
        )
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise ContractError(
            f"{contract.name}: column {field.name!r} is no {kind_of(field.type)}: {error}"
        ) from None
