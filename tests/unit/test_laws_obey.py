"""Every law tries as much as the profile of hypothesis says, and deep is deep for all of them."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

TRIED = """
import sys
from hypothesis import settings
settings.register_profile("p", max_examples=int(sys.argv[1]))
settings.load_profile("p")
from st_common.testing.effort import tries
print(tries(60).max_examples, tries(1).max_examples)
"""


@pytest.mark.parametrize(
    ("profile", "told"), [(30, "60 1"), (1000, "2000 33"), (10, "20 1")]
)
def test_what_a_law_tries_is_in_proportion_to_the_profile(profile, told):
    done = subprocess.run(
        [sys.executable, "-c", TRIED, str(profile)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == told


def test_no_law_has_a_number_of_examples_of_its_own():
    own = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted((ROOT / "tests").rglob("test_*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if re.search(r"max_examples\s*=|derandomize\s*=", line)
        and path != Path(__file__).resolve()
    ]
    assert own == []


def collected(**environment):
    """Which profile the tests' configuration loads, as pytest's header says it."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("CI", "HYPOTHESIS_PROFILE")
    }
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-p",
            "no:cacheprovider",
            "tests/unit/test_laws_obey.py",
        ],
        cwd=ROOT,
        env=kept | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return re.search(r"laws: profile (\w+)", done.stdout)[1]


@pytest.mark.parametrize(
    ("environment", "profile"),
    [
        ({}, "quick"),
        ({"CI": "true"}, "ci"),
        ({"CI": "true", "HYPOTHESIS_PROFILE": "random"}, "random"),
    ],
)
def test_ci_tries_the_same_cases_each_time_unless_it_is_told_otherwise(
    environment, profile
):
    assert collected(**environment) == profile
