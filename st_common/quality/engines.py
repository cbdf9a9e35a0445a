"""Where the rows of a check are read, judged and replaced: in this process, or on Spark (`st_common.spark.quality`)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

import pyarrow as pa

from st_common import tables
from st_common.contracts import Contract
from st_common.contracts.judging import Rows
from st_common.quality.expectations import ArrowRows

Filters = list[tuple[str, str, Any]]
_T = TypeVar("_T")


class Engine(Protocol):
    """Reads tables and judges their rows; what it gives is the same on each."""

    def rows(
        self, path: Path, contract: Contract, filters: Filters, label: str
    ) -> Rows:
        """Rows of a table that there is.

        Args:
            path: the table's folder.
            contract: its contract; what that has gained since the table was made is null.
            filters: (column, operator, value) that must all hold; = and the comparisons.
            label: what the findings call the table, for people who watch.
        """

    def each_part(
        self,
        path: Path,
        columns: Sequence[str],
        filters: Filters,
        work: Callable[[pa.Table], _T],
        *,
        label: str,
        whole: bool = False,
    ) -> list[_T]:
        """What a function gives for each part of a table's rows, in no order; at least one, if only of no rows.

        Args:
            path: the table's folder.
            columns: which ones it needs, in their order.
            filters: as for `rows`.
            work: what it is given and gives can be sent to another machine; its rows are in no order.
            label: what the findings call the table.
            whole: there is one part, with all rows.

        Raises:
            FairwayError: as `work` does.
        """

    def replace(
        self, path: Path, rows: pa.Table, contract: Contract, *, predicate: str
    ) -> None:
        """Puts rows in the place of those that keep a predicate, in one commit; see `tables.replace`."""


class _Local:
    """Tables in this process, by Arrow and delta-rs."""

    def rows(
        self,
        path: Path,
        contract: Contract,
        filters: Filters,
        label: str,  # noqa: ARG002 - nobody watches
    ) -> ArrowRows:
        def read(columns: tuple[str, ...]) -> pa.Table:
            return tables.read(
                path, columns=list(columns), filters=filters, contract=contract
            )

        return ArrowRows(read)

    def each_part(
        self,
        path: Path,
        columns: Sequence[str],
        filters: Filters,
        work: Callable[[pa.Table], _T],
        *,
        label: str,  # noqa: ARG002 - as above
        whole: bool = False,  # noqa: ARG002 - there is one part anyway
    ) -> list[_T]:
        return [work(tables.read(path, columns=list(columns), filters=filters))]

    def replace(
        self, path: Path, rows: pa.Table, contract: Contract, *, predicate: str
    ) -> None:
        tables.replace(path, rows, contract, predicate=predicate)


LOCAL: Engine = _Local()
