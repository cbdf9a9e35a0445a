"""A mark of the specification stands only on tests that run the product."""

import importlib.util
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def marks():
    """The tool that finds such tests."""
    spec = importlib.util.spec_from_file_location("marks", ROOT / "tools" / "marks.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["marks"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["marks"]


def test_no_mark_stands_on_a_test_of_the_oracle_alone(marks):
    assert marks.unproved(ROOT) == []


PLANTED = """
import pytest
from st_common.query.plan import Plan
from tests.kit.oracle import changes
from st_common.operators.runtime.stages import step


def told(rows):
    return changes(rows)


def through_the_step(rows):
    return step(rows)


@pytest.fixture
def stepped():
    return through_the_step([])


@pytest.mark.spec("X1")
def test_of_the_oracle():
    assert told([Plan()]) == []


@pytest.mark.spec("X1")
@pytest.mark.parametrize("which", [1, 2])
def test_of_the_step(which):
    assert through_the_step([]) == told([])


@pytest.mark.spec("X1")
def test_by_a_fixture(stepped):
    assert stepped == []


def test_without_a_mark():
    assert told([]) == []
"""


def test_a_mark_on_a_test_of_the_oracle_alone_is_found(marks, tmp_path):
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_planted.py").write_text(PLANTED)
    (tmp_path / "st_common").symlink_to(ROOT / "st_common")
    assert marks.unproved(tmp_path) == ["tests/test_planted.py::test_of_the_oracle"]
