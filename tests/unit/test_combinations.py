"""The page of what goes together is what the checks say, and what they let through is judged."""

import importlib.util
import sys
from pathlib import Path

import pytest
import shapely

from st_common.query.text import select_of
from tests.kit.by_hand import end, fix, layer, log, register
from tests.kit.laws import run_steps
from tests.kit.oracle_rows import Feature, Rules
from tests.kit.strategies import Case, Segmentation

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location(
        "combinations_page", ROOT / "tools" / "combinations.py"
    )
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # where dataclasses look for their types
    spec.loader.exec_module(module)
    return module


def test_the_page_is_what_the_checks_say(tool):
    page = (ROOT / "docs" / "combinations.md").read_text(encoding="utf-8")
    assert page == tool.page(), "run make generate ARGS=combinations"


def test_forms_are_refused_and_let_through_in_any_order(tool):
    for one, other in tool.pairs():
        is_refused = bool(tool.why_not(one, other))
        assert bool(tool.why_not(other, one)) == is_refused, (one.name, other.name)


@pytest.mark.spec("P7", "X12")
def test_every_pair_that_goes_together_is_judged(tool):
    good = [pair for pair in tool.pairs() if not tool.why_not(*pair)]
    plans = [select_of(tool.statement(tool.together(*pair))).plan for pair in good]
    park = Feature("w", "park", shapely.box(1.2, 1.2, 1.8, 1.8), {})
    rows = [
        layer("parks", 1),
        *(
            register(f"q{n}", plan, layer_version=1 if plan.join else None)
            for n, plan in enumerate(plans)
        ),
        *(
            fix(name, at, 1 + 0.0005 * at + 0.0001 * step, 1.5)
            for at in range(10, 900, 40)
            for name, step in (("car7", 1), ("a", 2), ("b", 3), ("c", 4))
        ),
        end(),
    ]
    case = Case(
        rows=tuple(log(*rows)),
        layers={("parks", 1): [park]},
        rules=Rules(tick_us=20_000_000, geographic=True),
    )
    changes, _, _ = run_steps(case, Segmentation(cuts=(), batches=()))
    told = set(changes["query"].to_pylist())
    silent = [good[n] for n in range(len(plans)) if f"q{n}" not in told]
    assert [tuple(one.name for one in pair) for pair in silent] == []
    assert "failed" not in changes["cause"].to_pylist()
