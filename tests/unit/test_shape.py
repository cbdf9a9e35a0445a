"""The shape that CONTRIBUTING.md asks for and ruff has no rule for."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LONGEST_MODULE, LONGEST_FUNCTION = 800, 80
MODULES = sorted((ROOT / "st_common").rglob("*.py"))
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def lines_of(function):
    """The lines of a function's body without its docstring; its signature is not counted."""
    body = function.body[ast.get_docstring(function) is not None :]
    return function.end_lineno - body[0].lineno + 1 if body else 0


def long_functions(text):
    nodes = ast.walk(ast.parse(text))
    functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
    return [each.name for each in functions if lines_of(each) > LONGEST_FUNCTION]


def test_no_function_is_longer_than_a_screen():
    longer = {
        str(path.relative_to(ROOT)): names
        for path in MODULES
        if (names := long_functions(path.read_text()))
    }
    assert not longer, f"over {LONGEST_FUNCTION} lines: split them along their ideas"


def test_no_module_is_longer_than_its_limit():
    lines = {
        str(path.relative_to(ROOT)): path.read_text().count("\n") for path in MODULES
    }
    assert not {name: n for name, n in lines.items() if n > LONGEST_MODULE}


def names_given(function):
    """The parameters and the locals of a function."""
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            yield node.arg
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


@pytest.mark.parametrize("folder", ["operators", "query", "reference"])
def test_no_value_is_called_found(folder):
    """The name says that there is a value, and not which."""
    called = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in sorted((ROOT / "st_common" / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, FUNCTIONS) and "found" in names_given(node)
    ]
    assert not called


@pytest.mark.parametrize(
    ("body", "is_long"), [("    x = 1\n" * 80, False), ("    x = 1\n" * 81, True)]
)
def test_a_signature_and_a_docstring_are_not_counted(body, is_long):
    docstring = '    """What it does.\n' + "\n    More.\n" * 40 + '    """\n'
    text = f"def f(\n    *args,\n):\n{docstring}{body}"
    assert long_functions(text) == ["f"] * is_long
