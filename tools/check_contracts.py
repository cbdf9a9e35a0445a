"""Reads every data contract as the jobs do; the first error of each is printed with file, line and rule."""

import sys
from pathlib import Path

from st_common.contracts import load_contract, read_stream_contract
from st_common.errors import FairwayError


def main() -> int:
    """Prints what is wrong; gives back 0 when nothing is."""
    names = sorted(
        path.name.removesuffix(".odcs.yaml")
        for path in Path("data_contracts").glob("*.odcs.yaml")
    )
    problems = 0
    for name in names:
        try:
            contract = load_contract(name)
            contract.arrow_schema()
            contract.spark_ddl()
            contract.expectations()
        except FairwayError as error:
            problems += 1
            print(f"error: {error}", file=sys.stderr)
    streams = sorted(Path("data_contracts").glob("**/streams/*.odcs.yaml"))
    for path in streams:
        try:
            read_stream_contract(path, path.name.removesuffix(".odcs.yaml"))
        except FairwayError as error:
            problems += 1
            print(f"error: {error}", file=sys.stderr)
    names += [path.name for path in streams]
    print(f"contracts: {len(names)} checked, {problems} problems")
    return 0 if names and not problems else 1


if __name__ == "__main__":
    sys.exit(main())
