"""A format is one module and one line: nobody else names one, and an unknown one is refused by its name."""

import ast
from dataclasses import replace
from pathlib import Path

import pytest

import st_common
from st_common.config.columns import Columns
from st_common.config.stream import StreamSettings
from st_common.decode import decode
from st_common.errors import ConfigError, LogError
from st_common.formats.registry import FORMATS
from st_common.log.record_settings import reading_of, with_reading
from st_common.replay.chunks import chunks

CARS = StreamSettings(
    name="cars", format="csv", columns=Columns(object="id", x="x", y="y")
)
NEWER = replace(CARS, format="papyrus")


def comparisons_with_formats(path: Path) -> list[int]:
    """The lines of a module that compare something called `format` with the name of a format."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    lines = []
    for node in ast.walk(tree):
        if not isinstance(node, ast.Compare):
            continue
        asked = any(
            isinstance(part, ast.Attribute) and part.attr == "format"
            for part in ast.walk(node)
        )
        named = any(
            isinstance(part, ast.Constant) and part.value in FORMATS
            for part in ast.walk(node)
        )
        if asked and named:
            lines.append(node.lineno)
    return lines


def test_no_module_asks_whether_a_stream_has_a_certain_format():
    package = Path(st_common.__file__).parent
    asking = {
        path.name: lines
        for path in package.rglob("*.py")
        if (lines := comparisons_with_formats(path))
    }
    assert asking == {}


def test_the_search_for_such_modules_sees_one(tmp_path):
    module = tmp_path / "module.py"
    module.write_text('if stream.format == "csv":\n    pass\n', encoding="utf-8")
    assert comparisons_with_formats(module) == [1]


def test_a_log_of_a_format_that_is_not_known_is_refused_by_its_name():
    with pytest.raises(LogError, match="no format 'papyrus' is known"):
        with_reading(CARS, reading_of(NEWER), where="segment 7")


def test_nothing_is_cut_or_decoded_by_a_format_that_is_not_known(tmp_path):
    with pytest.raises(ConfigError, match="papyrus"):
        decode(b"a,1,2\n", NEWER, arrival_us=0)
    empty = tmp_path / "empty"
    empty.touch()
    with empty.open("rb") as source, pytest.raises(ConfigError, match="papyrus"):
        next(chunks(source, NEWER, size=100))
