"""The table in docs/query-language.md of how WHERE, hysteresis, CROSS, OUTSIDE and incidents meet, row by row."""

import re
from collections import defaultdict
from pathlib import Path

import pytest

from st_common.query.text import parse
from tests.kit.by_hand import end, fix, log, register
from tests.kit.laws import run_steps, told, told_by_oracle
from tests.kit.oracle import Rules, judge
from tests.kit.strategies import Case, Segmentation

PAGE = Path("docs/query-language.md").read_text(encoding="utf-8")
TABLE = PAGE.split("**What meets what.**")[1].split("\n\n")[1]
ROWS = [
    [cell.strip() for cell in line.strip("|").split(" | ")]
    for line in TABLE.splitlines()[2:]
]


def query(cell):
    clauses = re.match("`(.*?)`", cell)[1]
    inside = "INSIDE (0, 0, 10, 10)" if "DETECT" in clauses else ""
    (statement,) = parse(f"REGISTER QUERY f AS SELECT * FROM cars {inside} {clauses}")
    return register("f", statement.plan)


def fixes(cell):
    of_each = (map(float, text.split()) for text in re.findall("`(.*?)`", cell))
    return [fix("a", at, x, 5.0, load=load) for at, x, load in of_each]


def events(cell):
    of_second = (part.split(" ", 1) for part in cell.split("; "))
    return {int(second): sorted(names.split(", ")) for second, names in of_second}


@pytest.mark.spec("X3", "X8")
@pytest.mark.parametrize(("asked", "drive", "emitted"), ROWS)
def test_each_row_of_the_table_is_what_happens(asked, drive, emitted):
    silence_us = 5_000_000 if "silent for 5 s" in asked else None
    rules = Rules(silence_us=silence_us)
    rows = tuple(log(query(asked), *fixes(drive), end()))
    case = Case(rows=rows, layers={}, rules=rules)
    cuts = Segmentation(cuts=tuple(range(1, len(rows))), batches=())
    changes, _, order = run_steps(case, cuts)
    lines = told(changes, order)
    assert lines == told_by_oracle(judge(rows, layers={}, rules=rules).changes)
    happened = defaultdict(list)
    for line in lines:
        happened[line[8] // 1_000_000].append(line[7])
    assert {at: sorted(names) for at, names in happened.items()} == events(emitted)


@pytest.mark.spec("W7")
def test_a_speed_does_not_count_the_way_over_a_silence():
    (statement,) = parse(
        "REGISTER QUERY f AS SELECT AVGSPD(*) FROM cars [RANGE '1 hour']"
    )
    rows = (fix("a", 1, 0, 5), fix("a", 2, 10, 5), fix("a", 30, 290, 5))
    rows = tuple(log(register("f", statement.plan), *rows, end()))
    values = []
    for silence_us in (None, 5_000_000):
        case = Case(rows=rows, layers={}, rules=Rules(silence_us=silence_us))
        changes, _, order = run_steps(case, Segmentation(cuts=(1, 2, 3), batches=()))
        values.append([line[10] for line in told(changes, order)][-1])
    assert values == pytest.approx([290 / 3600, 10 / 3600], abs=1e-6)
