"""What is released: its name, its metadata, which Pythons it runs on, and what it leaves out."""

import re
import tomllib
from importlib.metadata import metadata, requires, version
from pathlib import Path

import pytest

from tools.lock import PYTHONS

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


@pytest.mark.spec("S12")
def test_the_distribution_has_a_name_of_its_own_and_says_what_it_is():
    told = metadata("fairway-streams")
    assert version("fairway-streams") == PROJECT["version"]
    assert told["License-Expression"] == "Apache-2.0"
    assert told["Author"] == "Fairway developers"
    assert len(told["Summary"]) > 20
    assert told["Keywords"]
    assert told["Description-Content-Type"] == "text/markdown"
    assert told["Requires-Python"] == ">=3.11"


@pytest.mark.spec("S12")
def test_each_python_that_is_named_is_tried_by_a_lock_of_its_own():
    classifiers = metadata("fairway-streams").get_all("Classifier")
    named = re.findall(r"Python :: (3\.\d+)$", "\n".join(classifiers), re.MULTILINE)
    assert named == list(PYTHONS)
    for one in PYTHONS:
        lock = (ROOT / "requirements" / f"local-{one}.lock").read_text()
        assert "--hash=sha256:" in lock
        assert "pyspark" not in lock
        assert not re.search(r"://|^--index", lock, re.MULTILINE)


@pytest.mark.spec("S12")
def test_no_page_nor_setting_calls_it_by_the_name_of_somebody_else():
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("**/*.md")]
    sources = [
        *(ROOT / "st_common").rglob("*.py"),
        *(ROOT / "requirements").glob("*.in"),
    ]
    for path in (*pages, *sources):
        if "adr" not in path.parts:
            assert not re.search(
                r"fairway\[\w+\]|install fairway\b(?!_|-)|\bfairway-\d+\.\d",
                path.read_text(),
            ), path


def test_a_core_library_is_wanted_by_no_extra_and_no_library_twice():
    wanted = [re.split(r"[ ;<>=\[]", one)[0] for one in requires("fairway-streams")]
    assert len(wanted) == len(set(wanted))
