"""Rows of a table against the contract of the table."""

from pathlib import Path
from typing import Any

from st_common import tables
from st_common.contracts import load_contract, matches
from st_common.quality.engines import LOCAL, Engine
from st_common.quality.expectations import validate
from st_common.quality.finding import Finding


def check_table(
    path: Path,
    contract_name: str,
    label: str,
    filters: list[tuple[str, str, Any]] | None = None,
    engine: Engine = LOCAL,
) -> list[Finding]:
    """Whether a table is as its contract promises: its schema, then every rule on its rows.

    Args:
        path: the table's folder.
        contract_name: its contract.
        label: what the findings call the table.
        filters: (column, operator, value), which rows are looked at; None: all.
        engine: reads and judges the rows.

    Returns:
        The findings; none when there is no table.
    """
    if not tables.exists(path):
        return []

    contract = load_contract(contract_name)

    rows = engine.rows(path, contract, filters or [], label)
    rules = validate(contract, rows, table=label)
    return [_schema_finding(path, contract_name, label), *rules]


def _schema_finding(path: Path, contract_name: str, label: str) -> Finding:
    """Whether columns, types and partitions of a table are those of its contract.

    Args:
        path: the table's folder.
        contract_name: its contract.
        label: what the finding calls the table.
    """
    differences = matches(load_contract(contract_name), path, is_older=True)
    return Finding(
        table=label,
        rule="schema_is_as_promised",
        severity="error",
        passed=not differences,
        observed=float(len(differences)),
        expected="columns, types and partitions are those of the contract",
        rows=0,
        details="; ".join(differences),
    )
