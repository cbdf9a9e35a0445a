"""Writes docs/coverage.md: which row of the specification is proved by which tests.

usage: coverage.py [--check] MARKS.json [MARKS.json ..]

The rows are in docs/spec-rows.csv; which test carries which row comes from `pytest --spec-marks` (tests/conftest.py),
one file for each environment. `--check` writes nothing: it fails when the page is stale, or when a row that is claimed
as done, in full or in part, has no test.
"""

import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path

ROWS = Path("docs/spec-rows.csv")
PAGE = Path("docs/coverage.md")
LATER = "later"
HEAD = """\
# What is proved by what

Written by `make generate` from the marks `@pytest.mark.spec(..)` on tests and from `docs/spec-rows.csv`, not by hand.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One row of the specification."""

    id: str
    title: str
    part: str
    note: str


def read_rows(path: Path = ROWS) -> list[Row]:
    """The rows of the specification, in their order."""
    with path.open(newline="", encoding="utf-8") as source:
        return [Row(**record) for record in csv.DictReader(source)]


def read_marks(paths: list[Path]) -> dict[str, list[str]]:
    """The tests of each row, sorted, from all files together."""
    tests: dict[str, set[str]] = {}
    for path in paths:
        for row, names in json.loads(path.read_text(encoding="utf-8")).items():
            tests.setdefault(row, set()).update(names)
    return {row: sorted(names) for row, names in tests.items()}


def page(rows: list[Row], tests: dict[str, list[str]]) -> str:
    """The page as Markdown; the same rows and tests give the same text."""
    claimed = [row for row in rows if row.part != LATER]
    proved = [row for row in claimed if tests.get(row.id)]
    later = len(rows) - len(claimed)
    lines = [
        HEAD,
        f"{len(proved)} of {len(claimed)} claimed rows carry tests; {later} come later.",
        "",
    ]
    lines += ["| row | what | how far | tests |", "|---|---|---|---|"]
    for row in rows:
        far = f"{row.part}: {row.note}" if row.note else row.part
        lines.append(
            f"| {row.id} | {row.title} | {far} | {len(tests.get(row.id, ())) or '-'} |"
        )
    for row in rows:
        if tests.get(row.id):
            lines += [
                "",
                f"## {row.id} {row.title}",
                "",
                *(f"- `{name}`" for name in tests[row.id]),
            ]
    return "\n".join(lines) + "\n"


def problems_of(rows: list[Row], tests: dict[str, list[str]]) -> list[str]:
    """Why the page cannot be left as it is."""
    bare = [row.id for row in rows if row.part != LATER and not tests.get(row.id)]
    problems = (
        [f"{ROWS}: claimed, but no test carries them: {' '.join(bare)}"] if bare else []
    )
    if not PAGE.exists() or PAGE.read_text(encoding="utf-8") != page(rows, tests):
        problems.append(f"{PAGE} is stale (run: make generate ARGS=coverage)")
    return problems


def main(arguments: list[str]) -> int:
    """Writes the page, or checks it; gives back the exit code."""
    check = "--check" in arguments
    rows = read_rows()
    tests = read_marks(
        [Path(argument) for argument in arguments if argument != "--check"]
    )
    if not check:
        PAGE.write_text(page(rows, tests), encoding="utf-8")
        return 0
    problems = problems_of(rows, tests)
    for problem in problems:
        print(f"error: {problem}", file=sys.stderr)
    print(
        f"coverage: {sum(len(names) for names in tests.values())} marks, {len(problems)} problems"
    )
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
