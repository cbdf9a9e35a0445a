"""The small bugs of which a module is given one at a time: what can be changed in its code, for tools/mutants.py."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass

SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.And: ast.Or,
    ast.Or: ast.And,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.Invert: ast.UAdd,
    ast.USub: ast.UAdd,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
NAMES = {
    "minimum": "maximum",
    "maximum": "minimum",
    "sin": "cos",
    "cos": "sin",
    "any": "all",
    "all": "any",
    "union1d": "intersect1d",
    "isinf": "isfinite",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """A change of a module: where, what was there, what is there now; `apply` makes it in the tree, and undoes it."""

    module: str
    line: int
    what: str
    apply: Callable[[], Callable[[], None]]


def mutants_of(module: str, tree: ast.Module) -> Iterator[Mutant]:
    """All mutants of a module, in the order of its lines; annotations, defaults and errors stay as they are."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef):
            for statement in function.body:
                yield from _of_node(module, statement)


def _of_node(module: str, node: ast.AST) -> Iterator[Mutant]:
    if isinstance(node, ast.FunctionDef | ast.Raise | ast.Assert):
        return
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "msg"):
            continue
        for at, child in enumerate(value if isinstance(value, list) else [value]):
            if isinstance(child, ast.AST):
                place = (node, field, at if isinstance(value, list) else None)
                yield from _changed(module, node, place, child)
                yield from _of_node(module, child)


Place = tuple[ast.AST, str, int | None]


def _changed(
    module: str, node: ast.AST, place: Place, child: ast.AST
) -> Iterator[Mutant]:
    line = getattr(child, "lineno", getattr(node, "lineno", 0))
    for new in _variants(child):
        ast.copy_location(new, child if hasattr(child, "lineno") else node)
        what = f"{ast.unparse(node) if not isinstance(node, ast.stmt) else ast.unparse(child)}"
        yield Mutant(
            module,
            line,
            f"{_told(child)} -> {_told(new)} in  {what[:90]}",
            _planter(place, new),
        )


def _told(node: ast.AST) -> str:
    return type(node).__name__ if type(node) in SWAPS else ast.unparse(node)[:40]


def _variants(node: ast.AST) -> Iterator[ast.AST]:
    if type(node) in SWAPS:
        yield SWAPS[type(node)]()
    elif isinstance(node, ast.Constant) and isinstance(node.value, bool):
        yield ast.Constant(value=not node.value)
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield ast.Constant(value=node.value + 1)
    elif isinstance(node, ast.Attribute) and node.attr in NAMES:
        yield ast.Attribute(value=node.value, attr=NAMES[node.attr], ctx=node.ctx)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(test=node.test, body=node.orelse, orelse=node.body)
    elif isinstance(node, ast.Call):
        yield from _other_calls(node)


def _other_calls(call: ast.Call) -> Iterator[ast.Call]:
    """The other way round of `where`, the other side of a search."""
    if (
        isinstance(call.func, ast.Attribute)
        and call.func.attr == "where"
        and len(call.args) == 3
    ):
        yield ast.Call(
            func=call.func,
            args=[call.args[0], call.args[2], call.args[1]],
            keywords=call.keywords,
        )
    others = [keyword for keyword in call.keywords if keyword.arg != "side"]
    if len(others) < len(call.keywords):
        yield ast.Call(func=call.func, args=call.args, keywords=others)


def _planter(place: Place, new: ast.AST) -> Callable[[], Callable[[], None]]:
    node, field, at = place

    def plant() -> Callable[[], None]:
        if at is None:
            old = getattr(node, field)
            setattr(node, field, new)
            return lambda: setattr(node, field, old)
        values = getattr(node, field)
        old, values[at] = values[at], new
        return lambda: values.__setitem__(at, old)

    return plant
