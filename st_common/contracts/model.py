"""A contract as values, and the schemas that follow from it."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa

from st_common.contracts.kinds import ATTRIBUTE_KINDS, KINDS
from st_common.contracts.quality import column_rules, table_rules
from st_common.contracts.rules import Rule
from st_common.errors import ContractError


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """One column of a table.

    Attributes:
        name: its name.
        type: a name in `KINDS`.
        required: it is never null.
        description: for people.
        derived_from: of a date, the timestamp whose UTC day it is; None for others.
    """

    name: str
    type: str
    required: bool
    description: str = ""
    derived_from: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """What one table promises. `load_contract` makes it; nothing else knows a schema.

    Attributes:
        name: of the table, and of its file.
        version: of the contract.
        purpose: one sentence for people.
        columns: in the table's order.
        partition_by: the columns that name folders, in order.
        cluster_by: the column by whose values rows lie together in a file, and by which files of closed days are cut;
            None: there is none.
        zorder_by: the columns by which closed days are put into Z-order; none: they are not.
        retention_days: how many days rows are kept, by the clock that the table goes by. None: for ever.
        retention_by: the column by which they grow old: the partition's day, or a time. None: they do not.
        properties: Delta's table properties.
        extendable: a stream's attributes may stand behind the columns.
        table: the table as ODCS has it, validated.
        path: its file.
    """

    name: str
    version: str
    purpose: str
    columns: tuple[Column, ...]
    partition_by: tuple[str, ...]
    cluster_by: str | None
    zorder_by: tuple[str, ...]
    retention_days: int | None
    retention_by: str | None
    properties: Mapping[str, str]
    extendable: bool
    table: Mapping[str, Any]
    path: Path

    @property
    def rules(self) -> tuple[Rule, ...]:
        """What is promised about rows: the rules of each column in the table's order, then those of the table.

        DuckDB says which columns those in SQL are about; who reads a contract for its columns does not wait for it.
        """
        of_columns = (column_rules(each) for each in self.table["properties"])
        return (*chain.from_iterable(of_columns), *table_rules(self.table))

    def column(self, name: str) -> Column | None:
        """The column of that name, or None."""
        return next((column for column in self.columns if column.name == name), None)

    def with_attributes(self, extra: Mapping[str, str] | None) -> tuple[Column, ...]:
        """The columns, then a stream's attributes, which may be null.

        Args:
            extra: attributes by name: string, double, long or bool; None or empty: none.

        Raises:
            ContractError: attributes for a contract that is not extendable, of an unknown type or of a taken name.
        """
        if not extra:
            return self.columns
        if not self.extendable:
            raise ContractError(
                f"{self.name} takes no attributes", hint=f"{', '.join(extra)} given"
            )
        for name, kind in extra.items():
            if kind not in ATTRIBUTE_KINDS:
                raise ContractError(
                    f"{self.name}: attribute {name!r}: {kind!r} is none of {', '.join(ATTRIBUTE_KINDS)}"
                )
            if self.column(name):
                raise ContractError(
                    f"{self.name}: attribute {name!r} is a column of the contract"
                )
        return self.columns + tuple(
            Column(name=name, type=ATTRIBUTE_KINDS[kind], required=False)
            for name, kind in extra.items()
        )

    def arrow_schema(self, extra: Mapping[str, str] | None = None) -> pa.Schema:
        """The Arrow schema: timestamps in microseconds UTC, required columns not nullable, attributes last.

        Args:
            extra: as for `with_attributes`.

        Raises:
            ContractError: as `with_attributes`.
        """
        columns = self.with_attributes(extra)
        return pa.schema(
            [
                pa.field(column.name, KINDS[column.type].arrow, not column.required)
                for column in columns
            ]
        )

    def empty_table(self) -> pa.Table:
        """A table of the columns that has no rows."""
        return self.arrow_schema().empty_table()

    def spark_ddl(self, extra: Mapping[str, str] | None = None) -> str:
        """The columns as Spark DDL, for `StructType.fromDDL` and inside CREATE TABLE; names are quoted.

        Args:
            extra: as for `with_attributes`.

        Raises:
            ContractError: as `with_attributes`.
        """
        return ", ".join(
            f"`{column.name}` {column.type.upper()}{' NOT NULL' if column.required else ''}"
            for column in self.with_attributes(extra)
        )

    def expectations(self) -> list[dict[str, Any]]:
        """The rules as Great Expectations on Spark: dicts of type, kwargs, severity and meta (rule, contract).

        Every column's type and every rule of `rules`; `ExpectationConfiguration(**each)` takes them as they are.
        """
        types = [
            Rule(
                name=f"{column.name}_has_type",
                kind="type",
                columns=(column.name,),
                arguments={"type": column.type},
            )
            for column in self.columns
        ]
        return [rule.expectation(self.name) for rule in (*types, *self.rules)]
