"""Every law tries as much as the profile of hypothesis says, and deep is a thousand cases for all of them."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kit.effort import DEEP, FEWEST
from tests.kit.law_notes import Note, add_note

ROOT = Path(__file__).resolve().parents[2]

TRIED = """
import sys
from hypothesis import settings
settings.register_profile("p", max_examples=int(sys.argv[1]))
settings.load_profile("p")
from tests.kit.effort import tries
print(tries(60).max_examples, tries(1).max_examples)
"""


@pytest.mark.parametrize(("profile", "told"), [(30, "60 1"), (10, "20 1")])
def test_what_a_law_tries_is_in_proportion_to_the_profile(profile, told):
    done = subprocess.run(
        [sys.executable, "-c", TRIED, str(profile)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == told


def test_where_laws_look_further_each_tries_as_many_as_any_other():
    done = subprocess.run(
        [sys.executable, "-c", TRIED, "1000"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "1000 1000"


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


def test_a_run_leaves_out_what_is_done_and_notes_the_rest(tmp_path):
    notes = tmp_path / "notes"
    file = "tests/unit/test_partitioning_sample.py"
    done = f"{file}::test_the_first_elements_and_the_rest_are_the_whole_stream"
    add_note(notes, Note(done, DEEP, 1.0, False))
    options = ["-p", "no:cacheprovider", "-p", "no:xdist", "-m", "hypothesis"]
    told = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *options,
            file,
            "--law-seconds=0",
            f"--law-notes={notes}",
        ],
        cwd=ROOT,
        env=os.environ | {"HYPOTHESIS_PROFILE": "deep"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    _, *tried = map(json.loads, notes.read_text().splitlines())
    assert {note["cases"] for note in tried} == {FEWEST}
    assert done not in {note["law"] for note in tried}
    assert f"{len(tried)} passed" in told
