"""From a contract's file to a `Contract`."""

import difflib
import hashlib
import json
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from st_common.config.environment import contracts_dir
from st_common.contracts.document import Document, read_document
from st_common.contracts.model import Column, Contract
from st_common.contracts.retention import retention_by, retention_days
from st_common.errors import ContractError

CHECKED_FILE = "checked.json"

_SUFFIX = ".odcs.yaml"


def contract_names(folder: Path | None = None) -> list[str]:
    """The names of the contracts in a folder (default: `contracts_dir()`), sorted."""
    return sorted(
        path.name.removesuffix(_SUFFIX)
        for path in (folder or contracts_dir()).glob(f"*{_SUFFIX}")
    )


def load_contract(name: str, folder: Path | None = None) -> Contract:
    """The contract in NAME.odcs.yaml, read and checked once per process.

    Args:
        name: the contract's name, which is that of its table.
        folder: where the file lies; None: `contracts_dir()`.

    Raises:
        ContractError: there is none, or it breaks ODCS 3.1 or a rule of ours; the message names file, line and rule.
    """
    return _load(folder or contracts_dir(), name)


@cache
def _load(folder: Path, name: str) -> Contract:
    path = folder / f"{name}{_SUFFIX}"
    if not path.is_file():
        meant = difflib.get_close_matches(name, contract_names(folder), n=1)
        hint = (
            f"did you mean {meant[0]!r}?"
            if meant
            else "the folder is FAIRWAY_CONTRACTS, or data_contracts"
        )
        raise ContractError(
            f"{path} does not exist: there is no contract {name!r}", hint=hint
        )
    document = read_document(path)
    if not is_checked(path):  # to check it costs a reader more than what it reads
        from st_common.contracts.validation import validate

        validate(document, name)
    return _contract(document)


def _contract(document: Document) -> Contract:
    value = document.value
    table: dict[str, Any] = value["schema"][0]
    properties: list[dict[str, Any]] = table["properties"]
    custom = {
        each["property"]: each["value"] for each in table.get("customProperties", [])
    }
    return Contract(
        name=value["name"],
        version=value["version"],
        purpose=value["description"]["purpose"],
        columns=tuple(_column(each) for each in properties),
        partition_by=in_order(properties, "partitioned", "partitionKeyPosition"),
        cluster_by=custom.get("clusterBy"),
        zorder_by=tuple(custom.get("zOrderBy", ())),
        retention_days=retention_days(document),
        retention_by=retention_by(document),
        properties=custom.get("deltaTableProperties", {}),
        extendable=custom.get("extendable", False),
        table=table,
        path=document.path,
    )


def _column(value: dict[str, Any]) -> Column:
    return Column(
        name=value["name"],
        type=value["physicalType"],
        required=value["required"],
        description=value["description"],
        derived_from=value["transformSourceObjects"][0]
        if "transformSourceObjects" in value
        else None,
    )


def in_order(
    properties: list[dict[str, Any]], flag: str, position: str
) -> tuple[str, ...]:
    """The names of the properties that carry a flag, by the number beside it.

    Args:
        properties: of a contract, as ODCS has them.
        flag: such as `partitioned`.
        position: the key of the number, such as `partitionKeyPosition`.
    """
    flagged = [each for each in properties if each.get(flag)]
    return tuple(
        each["name"] for each in sorted(flagged, key=lambda each: each[position])
    )


# A contract that was found valid as it is need not be checked again by each process that reads it:
# `make check ARGS=contracts` checks all of them and keeps the SHA-256 of each in `checked.json` beside them. One that
# was changed since, or that lies in a folder without such a file, is checked by each process that reads it: slow, and
# never wrong.


def is_checked(path: Path) -> bool:
    """Whether a contract was found valid with the bytes that its file has now."""
    return _kept(path.parent).get(path.name) == _sum_of(path)


def checked_text(paths: Iterable[Path]) -> str:
    """The text of the file that says of contracts in one folder that they are valid, by the names of their files."""
    sums = {path.name: _sum_of(path) for path in sorted(paths)}
    return json.dumps(sums, indent=2) + "\n"


@cache
def _kept(folder: Path) -> dict[str, str]:
    """The sums by the names of files; none where nothing says any."""
    try:
        kept = json.loads((folder / CHECKED_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def _sum_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
