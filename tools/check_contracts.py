"""Reads every data contract as the jobs do, and checks it; the first error of each is printed with file, line and rule.

Without an error it keeps the sums of the checked ones in data_contracts/checked.json, for processes that read them.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from st_common.contracts import load_contract, read_stream_contract
from st_common.contracts.document import read_document
from st_common.contracts.reading import CHECKED_FILE, checked_text
from st_common.contracts.validation import validate
from st_common.errors import FairwayError

FOLDER = Path("data_contracts")
SUFFIX = ".odcs.yaml"


def main() -> int:
    """Prints what is wrong; gives back 0 when nothing is."""
    tables = sorted(FOLDER.glob(f"*{SUFFIX}"))
    streams = sorted(FOLDER.glob(f"**/streams/*{SUFFIX}"))
    problems = _problems(_check_table, tables) + _problems(_check_stream, streams)
    if not problems:
        (FOLDER / CHECKED_FILE).write_text(checked_text(tables), encoding="utf-8")
    print(f"contracts: {len(tables) + len(streams)} checked, {problems} problems")
    return 0 if tables and not problems else 1


def _problems(check: Callable[[Path, str], None], paths: list[Path]) -> int:
    """How many of some contracts are wrong; says why."""
    problems = 0
    for path in paths:
        try:
            check(path, path.name.removesuffix(SUFFIX))
        except FairwayError as error:
            problems += 1
            print(f"error: {error}", file=sys.stderr)
    return problems


def _check_table(path: Path, name: str) -> None:
    validate(read_document(path), name)
    contract = load_contract(name)
    contract.arrow_schema()
    contract.spark_ddl()
    contract.expectations()


def _check_stream(path: Path, name: str) -> None:
    read_stream_contract(path, name)


if __name__ == "__main__":
    sys.exit(main())
