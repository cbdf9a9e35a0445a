"""The shape of the code in figures: how much a line holds, how much is said about it, how far knowledge is spread.

.venv/bin/python tools/shape.py
"""

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "st_common"
FOLDERS = ("", "operators", "query", "geometry", "engine", "answers", "log")
STRUCTS = (
    "st_common.operators.state.state:State",
    "st_common.operators.state.delta:Delta",
    "st_common.query.plan:Plan",
)
_NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
    tokenize.ENCODING,
}
_SECTIONS = re.compile(
    r"^\s*(Args|Returns|Yields|Raises|Example|Examples):", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What some modules look like; `docs` are the docstrings of public functions and classes."""

    modules: int
    lines: int
    longest: int
    tokens_per_line: float
    comments_per_100: float
    docs: int
    words_per_doc: float
    sectioned: float
    imports: int
    longest_function: int
    flags: int


def shape_of(paths: Sequence[Path]) -> Shape:
    """The shape of modules; lines are those that hold code, and statements are counted in functions."""
    texts = [path.read_text(encoding="utf-8") for path in paths]
    trees = [ast.parse(text) for text in texts]
    found = [_tokens(text) for text in texts]
    docs = [doc for tree in trees for doc in _docs(tree)]
    lines = sum(lines for _, lines, _ in found)
    return Shape(
        modules=len(paths),
        lines=lines,
        longest=max(text.count("\n") for text in texts),
        tokens_per_line=sum(tokens for tokens, _, _ in found) / lines,
        comments_per_100=100 * sum(comments for _, _, comments in found) / lines,
        docs=len(docs),
        words_per_doc=sum(len(doc.split()) for doc in docs) / max(len(docs), 1),
        sectioned=sum(bool(_SECTIONS.search(doc)) for doc in docs) / max(len(docs), 1),
        imports=sum(_imports(tree) for tree in trees),
        longest_function=max(
            (_statements(each) for tree in trees for each in _functions(tree)),
            default=0,
        ),
        flags=sum(_flags(each) for tree in trees for each in _functions(tree)),
    )


def _tokens(text: str) -> tuple[int, int, int]:
    """How many tokens of code, lines with code, and comments a module has; docstrings are no code."""
    tokens, lines, comments = 0, set[int](), 0
    starts = {1} if text.lstrip().startswith('"""') else set[int]()
    before = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            comments += 1
        is_doc = token.type == tokenize.STRING and before in {
            tokenize.NEWLINE,
            tokenize.INDENT,
        }
        if token.type not in _NO_CODE and not is_doc:
            tokens += 1
            lines.add(token.start[0])
        if token.type not in {tokenize.COMMENT, tokenize.NL, tokenize.DEDENT}:
            before = token.type
    return tokens, max(len(lines | starts), 1), comments


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _docs(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            doc = ast.get_docstring(node)
            if doc is not None and not node.name.startswith("_"):
                yield doc


def _imports(tree: ast.Module) -> int:
    """How many modules of the package a module imports."""
    names = {
        node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module is not None
    }
    return sum(name.startswith("st_common") for name in names)


def _statements(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """The statements of a function, without its docstring and those of functions in it."""
    count = -1 if ast.get_docstring(function) is not None else 0
    inner = {id(each) for own in function.body for each in _inner(own)}
    for node in ast.walk(function):
        if (
            isinstance(node, ast.stmt)
            and node is not function
            and id(node) not in inner
        ):
            count += 1
    return count


def _inner(statement: ast.stmt) -> Iterator[ast.AST]:
    for node in ast.walk(statement):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from (each for each in ast.walk(node) if each is not node)


def _flags(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """How many parameters of a function are booleans: each is a function that is two."""
    arguments = [*function.args.args, *function.args.kwonlyargs]
    return sum(
        isinstance(each.annotation, ast.Name) and each.annotation.id == "bool"
        for each in arguments
    )


def struct_sizes() -> dict[str, int]:
    """How many fields the structs have that everything goes through."""
    sizes = {}
    for place in STRUCTS:
        module, name = place.split(":")
        struct = getattr(import_module(module), name)
        assert is_dataclass(struct)  # noqa: S101 - a program of our own
        sizes[name] = len(fields(struct))
    return sizes


def rows() -> Iterator[tuple[str, ...]]:
    """The table, a row a folder."""
    yield (
        "folder",
        "modules",
        "longest",
        "tokens a line",
        "comments / 100 lines",
        "words a docstring",
        "with arguments or results",
        "imports a module",
        "statements of the longest function",
        "boolean parameters",
    )
    for folder in FOLDERS:
        shape = shape_of(sorted((PACKAGE / folder).rglob("*.py")))
        yield (
            f"st_common/{folder}".rstrip("/"),
            str(shape.modules),
            str(shape.longest),
            f"{shape.tokens_per_line:.1f}",
            f"{shape.comments_per_100:.1f}",
            f"{shape.words_per_doc:.0f}",
            f"{shape.sectioned:.0%}",
            f"{shape.imports / shape.modules:.1f}",
            str(shape.longest_function),
            str(shape.flags),
        )


def main() -> None:
    """Prints the figures."""
    table = list(rows())
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    for number, row in enumerate(table):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        sys.stdout.write(f"| {' | '.join(cells)} |\n")
        if number == 0:
            sys.stdout.write(f"|{'|'.join('-' * (width + 2) for width in widths)}|\n")
    sizes = ", ".join(f"{name} {count}" for name, count in struct_sizes().items())
    sys.stdout.write(f"fields: {sizes}\n")


if __name__ == "__main__":
    main()
