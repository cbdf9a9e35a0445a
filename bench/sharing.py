"""What each form of query costs by the number of queries: CPU of a round and memory, each in a process of its own.

usage: python -m bench.sharing [--queries 10 100 1000 10000] [--objects 10000] [--forms FORM ..] [--timeout-s 300]

All objects report in each round. `-` stands where a run did not end in time.
"""

import argparse
import json
import subprocess
import sys
from typing import Any

from bench.forms import CARS
from bench.oldenburg import ROOT
from bench.rounds import about
from bench.text_forms import ALL_FORMS


def case(form: str, queries: int, objects: int, timeout_s: float) -> dict[str, Any]:
    """One form with so many queries; without figures when it did not end in time."""
    command = [
        sys.executable,
        "-m",
        "bench.ticks",
        "--what",
        form,
        "--queries",
        str(queries),
        "--objects",
        str(objects),
    ]
    try:
        done = subprocess.run(
            command, cwd=ROOT, check=True, capture_output=True, timeout=timeout_s
        )
    except subprocess.TimeoutExpired:
        return {"what": form, "queries": queries}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def main() -> None:
    """Runs all forms and prints them as JSON."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--queries", type=int, nargs="+", default=[10, 100, 1000, 10000]
    )
    parser.add_argument("--forms", nargs="+", default=list(ALL_FORMS))
    parser.add_argument("--objects", type=int, default=CARS)
    parser.add_argument("--timeout-s", type=float, default=300.0)
    args = parser.parse_args()
    cases = [
        case(form, queries, args.objects, args.timeout_s)
        for form in args.forms
        for queries in args.queries
    ]
    print(
        json.dumps(
            {
                "what": "forms of queries",
                "objects": args.objects,
                "cases": cases,
                **about(),
            }
        )
    )


if __name__ == "__main__":
    main()
