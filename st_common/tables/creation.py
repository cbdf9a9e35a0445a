"""Tables made from their contracts, and kept to them."""

from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable, Field, Schema

from st_common.contracts import Contract, require_match
from st_common.errors import ContractError
from st_common.storage import make_folder
from st_common.tables.durable import sync_before, sync_log
from st_common.tables.foreign import require_kept, require_writable
from st_common.tables.handle import beginning, forget, newest, required
from st_common.tables.shape import attributes, gained

_checked: set[tuple[str, str]] = (
    set()
)  # tables that were compared with their contract in this process


def create(path: Path, contract: Contract, extra: dict[str, str] | None = None) -> None:
    """Makes an empty table from its contract; one that is there is compared with the contract and kept.

    Call it inside `locked(path)`.

    Args:
        path: the table's folder.
        contract: columns, partitions and properties.
        extra: the attributes of a stream by name, with their types as the stream declares them.

    Raises:
        ContractError: a table is there and differs from the contract.
        TableError: another program has made of it what is not written here.
    """
    made(path, contract, contract.arrow_schema(extra))


def note(path: Path, contract: Contract, name: str, said: str) -> None:
    """Writes a property of one's own into a table, which is made when it is absent; `properties` gives it.

    Call it inside `locked(path)`.

    Args:
        path: the table's folder.
        contract: of the table.
        name: of the property, with a point in it: those without one are Delta's.
        said: its value.
    """
    table = made(path, contract, contract.arrow_schema())
    sync_before(path)
    table.alter.set_table_properties({name: said}, raise_if_not_exists=False)
    sync_log(path)
    forget(path)


def made(path: Path, contract: Contract, schema: pa.Schema) -> DeltaTable:
    """The newest version of a table, made or given new attributes if need be, so that rows of `schema` fit in.

    Call it inside `locked(path)`. In each process the table is compared with its contract once.

    Args:
        path: the table's folder.
        contract: columns, partitions and properties.
        schema: of rows as `fit` gives them.

    Raises:
        ContractError: the table differs from the contract, or holds an attribute of `schema` as another type.
    """
    table = newest(path)
    if table is None:
        make_folder(path)
        with beginning():
            table = DeltaTable.create(
                str(path),
                Schema.from_arrow(schema),
                mode="error",
                partition_by=list(contract.partition_by),
                name=contract.name,
                description=contract.purpose,
                configuration=dict(contract.properties),
            )
        sync_log(path)
    elif (str(path), contract.name) not in _checked:
        sync_before(path)
        _keep(path, table, contract)
    _checked.add((str(path), contract.name))
    return _widened(path, table, contract, schema) if contract.extendable else table


def _keep(path: Path, table: DeltaTable, contract: Contract) -> None:
    """Brings the table's properties to what the contract says now; anything else that differs is an error."""
    require_writable(path, table, takes_out=False)
    configuration = table.metadata().configuration
    changed = {
        key: value
        for key, value in contract.properties.items()
        if configuration.get(key) != value
    }
    if changed:
        table.alter.set_table_properties(changed)
        sync_log(path)
    _add_optional(path, table, contract)
    require_match(contract, path)


def _add_optional(path: Path, table: DeltaTable, contract: Contract) -> None:
    """Gives a table of an older version of its contract the columns that may be null and that it does not have yet.

    They are added behind all others, so a contract may gain them only there, and one that takes attributes never.
    """
    fields = gained(pa.schema(table.schema().to_arrow()), contract)
    require_kept(path, table, fields)
    if fields:
        table.alter.add_columns([Field.from_arrow(field) for field in fields])
        sync_log(path)


def _widened(
    path: Path, table: DeltaTable, contract: Contract, schema: pa.Schema
) -> DeltaTable:
    stored = attributes(pa.schema(table.schema().to_arrow()), contract)
    wanted = attributes(schema, contract)
    for name, kind in wanted.items():
        if stored.get(name, kind) != kind:
            raise ContractError(
                f"{path}: attribute {name!r} is {kind}, but the table holds it as {stored[name]}",
                hint="give the attribute another name",
            )
    added = [name for name in wanted if name not in stored]
    if not added:
        return table
    sync_before(path)
    table.alter.add_columns([Field.from_arrow(schema.field(name)) for name in added])
    sync_log(path)
    return required(path)
