"""Which tests with a mark of the specification run no product code: what such a mark claims, nothing proves.

The oracle (`tests/kit/oracle*.py`), the driver and the reference that it asks and the plans that it reads are no
product in this sense: a test of them alone says that brute force is right, not that the product is. Found in the text
of the tests: a test runs product code when it, its fixtures or the functions that it calls in its file name something
that comes from a module of the product.
"""

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

PLANS = frozenset(
    f"st_common.query.{name}"
    for name in (
        "plan",
        "neighbours",
        "comparing",
        "fence",
        "incident",
        "frame",
        "terms",
        "areas",
        "problem",
    )
) | {"st_common.record", "st_common.regions.region", "st_common.regions.registry"}
"""What says what is asked for: values without behaviour, shared by oracle and product."""
VALUES = PLANS | {
    "st_common.config.filters",
    "st_common.config.stream",
    "st_common.config.streams",
    "st_common.config.columns",
    "st_common.position",
    "st_common.errors",
    "st_common.config.home",
    "st_common.controls.rows",
    "st_common.controls.reading",
    "st_common.controls.writing",
    "st_common.geometry.space",
}
"""What a module for tests may know besides without bringing the product in."""
PACKAGES = ("fairway", "st_common", "jobs", "dags", "tools", "bench", "demo", "tests")
RUNS = frozenset({"subprocess", "runpy", "importlib"})  # programs are product too
JUDGES = (
    "st_common.reference",
    *(
        f"st_common.checks.{name}"
        for name in ("answers", "history", "nested", "visits")
    ),
)
"""What the product is judged by."""
TREE = "ROOT"  # what looks at the files of the repository looks at the product


@dataclass(slots=True)
class Module:
    """A module of tests: where its names come from, and what its functions name."""

    origins: dict[str, str] = field(default_factory=dict)
    bodies: dict[str, ast.AST] = field(default_factory=dict)


def unproved(root: Path) -> list[str]:
    """The marked tests that run no product code, as node ids, sorted."""
    shared = _conftests(root / "tests")
    found = []
    for path in sorted((root / "tests").rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        module = _module_of(tree)
        for name, body in module.bodies.items():
            if (
                name.startswith("test_")
                and _is_marked(body)
                and not _runs_product(root, module, shared, name)
            ):
                found.append(f"{path.relative_to(root)}::{name}")
    return found


def _conftests(folder: Path) -> Module:
    shared = Module()
    for path in sorted(folder.rglob("conftest.py")):
        module = _module_of(ast.parse(path.read_text(encoding="utf-8")))
        shared.origins |= module.origins
        shared.bodies |= module.bodies
    return shared


def _module_of(tree: ast.Module) -> Module:
    module = Module()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module.origins |= {
                a.asname or a.name: _origin(str(node.module), a.name)
                for a in node.names
            }
        elif isinstance(node, ast.Import):
            module.origins |= {
                (a.asname or a.name).split(".")[0]: a.name for a in node.names
            }
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            module.bodies[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = [
                name.id
                for target in targets
                for name in ast.walk(target)
                if isinstance(name, ast.Name)
            ]
            module.bodies |= dict.fromkeys(names, node)
    return module


def _origin(module: str, name: str) -> str:
    """The module that a name comes from: `from st_common import tables` names a module itself."""
    whole = f"{module}.{name}".replace(".", "/")
    return (
        f"{module}.{name}"
        if Path(f"{whole}.py").exists() or Path(whole).is_dir()
        else module
    )


def _is_marked(body: ast.AST) -> bool:
    decorators = body.decorator_list if isinstance(body, ast.FunctionDef) else []
    return any(
        isinstance(d, ast.Call) and ast.unparse(d.func) == "pytest.mark.spec"
        for d in decorators
    )


def _runs_product(root: Path, module: Module, shared: Module, test: str) -> bool:
    seen: set[str] = set()
    ahead = [test]
    while ahead:
        name = ahead.pop()
        if name in seen:
            continue
        seen.add(name)
        if name == TREE:
            return True
        for place in (module, shared):
            if is_product(root, place.origins.get(name, "")):
                return True
            if name in place.bodies:
                ahead += _names_in(place.bodies[name])
    return False


def _names_in(body: ast.AST) -> Iterator[str]:
    """All names in a function, the fixtures that it asks for, and those that it asks for by a mark."""
    for node in ast.walk(body):
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.arg):
            yield node.arg
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and node.value.isidentifier()
        ):
            yield node.value


def is_product(root: Path, origin: str, known: dict[str, bool] = {}) -> bool:  # noqa: B006 - remembers
    """Whether a module is product, or is one for tests that brings product in."""
    if origin in RUNS:
        return True
    if origin.split(".", maxsplit=1)[0] not in PACKAGES or origin in PLANS:
        return False
    if origin.startswith(JUDGES):
        return False
    if not origin.startswith("tests.kit"):
        return True
    if origin not in known:
        known[origin] = False  # of a circle
        path = root / f"{origin.replace('.', '/')}.py"
        tree = (
            ast.parse(path.read_text(encoding="utf-8"))
            if path.exists()
            else ast.parse("")
        )
        origins: Mapping[str, str] = _module_of(tree).origins
        known[origin] = any(
            is_product(root, each) for each in origins.values() if each not in VALUES
        )
    return known[origin]
