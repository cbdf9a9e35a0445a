"""docs/coverage.md says which rows are proved, the same way each time, and nothing can claim a row without a test."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOL = ROOT / "tools" / "coverage.py"
ROWS = """id,title,part,note
A1,First,full,
A2,Second,in part,only the half of it
A3,Third,later,
"""


@pytest.fixture
def place(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "spec-rows.csv").write_text(ROWS)
    (tmp_path / "one.json").write_text(json.dumps({"A1": ["t.py::b", "t.py::a"]}))
    (tmp_path / "two.json").write_text(
        json.dumps({"A1": ["t.py::a"], "A2": ["u.py::c"]})
    )
    return tmp_path


def coverage(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, TOOL, *arguments],
        cwd=place,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_the_page_lists_tests_of_all_environments_once_and_in_order(place: Path):
    assert coverage(place, "one.json", "two.json").returncode == 0
    page = (place / "docs" / "coverage.md").read_text()
    assert "2 of 2 claimed rows carry tests; 1 come later." in page
    assert "| A1 | First | full | 2 |" in page
    assert "| A2 | Second | in part: only the half of it | 1 |" in page
    assert "| A3 | Third | later | - |" in page
    assert "## A1 First\n\n- `t.py::a`\n- `t.py::b`\n\n## A2" in page
    assert coverage(place, "two.json", "one.json").returncode == 0
    assert (place / "docs" / "coverage.md").read_text() == page


def test_a_stale_page_is_refused(place: Path):
    coverage(place, "one.json", "two.json")
    assert coverage(place, "--check", "one.json", "two.json").returncode == 0
    (place / "one.json").write_text(json.dumps({"A1": ["t.py::a"]}))
    done = coverage(place, "--check", "one.json", "two.json")
    assert done.returncode == 1
    assert "stale" in done.stderr


def test_a_claim_without_a_test_is_refused(place: Path):
    coverage(place, "one.json")
    done = coverage(place, "--check", "one.json")
    assert done.returncode == 1
    assert "no test carries them: A2" in done.stderr


def test_every_row_is_there_once_and_says_how_far_it_is_done():
    spec = importlib.util.spec_from_file_location("coverage_page", TOOL)
    module = importlib.util.module_from_spec(spec)
    sys.modules["coverage_page"] = module
    spec.loader.exec_module(module)
    rows = module.read_rows(ROOT / "docs" / "spec-rows.csv")
    assert len({row.id for row in rows}) == len(rows)
    assert {row.part for row in rows} <= {"full", "in part", "later"}
    assert all(bool(row.note) == (row.part == "in part") for row in rows)
