"""Plants small bugs in the core, one at a time, and tells which of them no test notices.

usage: mutants.py [--sample N] [--minutes M] [--seed S] [--at LINE,LINE] [MODULE ..]      (modules as geometry/nearest)

A mutant is a module with one operator, number or condition changed. Nothing is written: a child process gets the
changed module instead of the one in its file, and runs the tests that belong to it until one fails. Of libraries for
this, mutmut copies the tree and has neither sample nor bound in time; cosmic-ray writes into the tree and imports all
anew for each mutant.
"""

import argparse
import ast
import importlib.abc
import importlib.machinery
import importlib.util
import os
import random
import resource
import signal
import sys
import tempfile
import time
import traceback
import types
from pathlib import Path

from mutations import Mutant, mutants_of

ROOT = Path(__file__).resolve().parents[1]
CORE = ("geometry", "operators", "query/order.py")
CPU_S = 200
"""What the tests of a mutant may cost before it counts as one that never ends; the wall clock tells of other work."""
UNIT, LAWS = "tests/unit/test_", "tests/laws/test_"
NEAR = f"{LAWS}degrees.py::test_among_near_places_caches_and_restarts_tell_what_brute_force_tells"
WAYS = f"{LAWS}degrees.py::test_ways_on_the_globe_tell_what_brute_force_tells"
EXTENTS = "test_pairs_are_those_whose_geometries_meet_or_lie_in_each_other"
BY_HAND = (
    "test_boxes_without_width_or_height_are_lines_and_points",
    "test_who_touches_a_region_meets_it",
    "test_who_lies_in_a_region_may_touch_its_border_from_within",
    "test_a_geometry_counts_and_not_the_box_around_it",
)
CACHES = "test_caches_that_stay_in_memory_tell_what_brute_force_tells"
A_KIND = f"{LAWS}ticks.py::test_a_kind_tells_what_brute_force_tells_however_it_is_run"
TESTS: dict[str, tuple[str, ...]] = {
    "geometry/areas": (f"{UNIT}kernels_areas.py", f"{UNIT}areas.py"),
    "geometry/distance": (
        f"{UNIT}geometry_distance.py",
        f"{LAWS}degrees.py",
        f"{LAWS}comparing.py",
    ),
    "geometry/grid": (f"{UNIT}geometry_grid.py", f"{UNIT}kernels_join.py"),
    "geometry/axis": (f"{UNIT}geometry_grid.py", f"{UNIT}kernels_join.py"),
    "geometry/enlarged": (
        f"{LAWS}comparing.py",
        f"{UNIT}comparing.py",
        f"{UNIT}layers_index.py",
    ),
    "geometry/elements": (
        f"{LAWS}extents.py::{EXTENTS}",
        *(f"{UNIT}extents.py::{name}" for name in BY_HAND),
    ),
    "geometry/near": (f"{UNIT}geometry_distance.py", f"{UNIT}layers_index.py"),
    "geometry/group": (f"{UNIT}kernels_group.py", f"{LAWS}ticks.py"),
    "geometry/join": (f"{UNIT}kernels_join.py", f"{LAWS}ticks.py"),
    "geometry": (
        f"{UNIT}kernels_nearest.py",
        f"{UNIT}kernels_join.py",
        f"{LAWS}degrees.py",
        f"{LAWS}ticks.py",
    ),
    "operators/skeleton/anticipat": (
        f"{UNIT}anticipation.py",
        NEAR,
        f"{LAWS}ticks.py::{CACHES}",
    ),
    "operators/travelled": (f"{UNIT}spatial_windows.py", WAYS, f"{A_KIND}[frames]"),
    "operators/fence": (
        f"{UNIT}fence_machine.py",
        f"{UNIT}fences.py",
        f"{UNIT}oracle_fences.py",
        f"{UNIT}areas_followed.py",
        f"{A_KIND}[fences]",
        f"{LAWS}degrees.py::test_fences_on_the_globe_tell_what_brute_force_tells",
    ),
    "operators/incident": (
        f"{UNIT}incidents.py",
        f"{LAWS}incidents.py",
        f"{A_KIND}[incidents]",
    ),
    "operators/fence/moving": (f"{UNIT}moving_fences.py", f"{A_KIND}[moving fences]"),
    "geometry/passing": (f"{UNIT}layers_index.py",),
    "geometry/borders": (
        f"{UNIT}fences.py",
        f"{UNIT}oracle_fences.py",
        f"{A_KIND}[fences]",
        f"{LAWS}degrees.py::test_fences_on_the_globe_tell_what_brute_force_tells",
    ),
    "operators/window": (
        f"{UNIT}oracle_values.py",
        f"{A_KIND}[windows]",
        f"{A_KIND}[counting]",
    ),
    "query/order": (f"{UNIT}query_order.py", f"{UNIT}placing.py"),
    "operators/matching/extents": (f"{LAWS}extents.py",),
    "operators/matching/placing": (f"{UNIT}placing.py", f"{LAWS}step.py"),
    "operators/runtime/reshape": (f"{UNIT}reshape.py",),
    "operators/turn/valid": (f"{UNIT}kernels_valid_until.py", f"{LAWS}ticks.py"),
    "operators/skeleton/kinds": (
        f"{UNIT}kinds_members.py",
        NEAR,
        f"{LAWS}ticks.py::{CACHES}",
    ),
    "operators": (
        f"{LAWS}ticks.py",
        f"{LAWS}step.py",
        f"{LAWS}moving_joins.py",
        f"{LAWS}comparing.py",
    ),
}
"""The tests of a module: of the longest prefix of its name that stands here."""
REWRITTEN = ("-W", "ignore::pytest.PytestAssertRewriteWarning")  # what is warm already
SAID = Path(tempfile.gettempdir()) / f"mutants-{os.getpid()}.txt"
"""What pytest said of the mutant that was tried last."""
WARM = (
    "numpy",
    "pandas",
    "pyarrow.compute",
    "shapely",
    "pyproj",
    "duckdb",
    "deltalake",
    "hypothesis",
    "pytest",
)


class _Planted(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives one module with other code than its file has."""

    def __init__(self, name: str, code: types.CodeType) -> None:
        self.name, self.code = name, code

    def find_spec(
        self,
        fullname: str,
        path: object,  # noqa: ARG002 - the importer's signature
        target: object = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        return (
            importlib.util.spec_from_loader(fullname, self)
            if fullname == self.name
            else None
        )

    def exec_module(self, module: types.ModuleType) -> None:
        exec(self.code, module.__dict__)  # noqa: S102 - the mutant itself


def tests_of(module: str) -> tuple[str, ...]:
    """The tests that belong to a module."""
    return TESTS[
        max((prefix for prefix in TESTS if module.startswith(prefix)), key=len)
    ]


def unused_prefixes() -> list[str]:
    """The prefixes of `TESTS` that no module begins with: its tests would never be asked."""
    modules = modules_of([])
    return [
        prefix
        for prefix in TESTS
        if not any(module.startswith(prefix) for module in modules)
    ]


def run(module: str, code: types.CodeType | None) -> str:
    """Runs the tests of a module in a child, with other code for it; says how it ended: passed, failed, late."""
    child = os.fork()
    if child == 0:
        ended = _tested(module, code)
        sys.stdout.flush()
        os._exit(ended)
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
        return "late"
    return "passed" if status == 0 else "failed"


def _tested(module: str, code: types.CodeType | None) -> int:
    """In the child: pytest's exit code, 70 when it did not get so far."""
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_S, CPU_S))
    quiet = os.open(SAID, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    try:
        import pytest

        if code is not None:
            sys.meta_path.insert(
                0, _Planted(f"st_common.{module.replace('/', '.')}", code)
            )
        return int(
            pytest.main(
                [
                    "-x",
                    "-q",
                    "--timeout=0",
                    "-p",
                    "no:cacheprovider",
                    *REWRITTEN,
                    *tests_of(module),
                ]
            )
        )
    except BaseException:  # noqa: BLE001 - whatever it is, the mutant was noticed
        traceback.print_exc(file=sys.stdout)
        return 70


def modules_of(wanted: list[str]) -> list[str]:
    """The names of the modules of the core that are meant: all of them, or those that begin as is wanted."""
    modules = [
        str(path.relative_to(ROOT / "st_common").with_suffix(""))
        for part in CORE
        for path in sorted(
            (ROOT / "st_common").glob(
                part if part.endswith(".py") else f"{part}/**/*.py"
            )
        )
        if path.name != "__init__.py"
    ]
    return [
        name
        for name in modules
        if not wanted or any(name.startswith(begin) for begin in wanted)
    ]


def main(arguments: list[str]) -> int:
    """Tries mutants until there are no more or the time is over; gives back 1 when some survived."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*")
    parser.add_argument(
        "--sample", type=int, default=40, help="how many mutants, by chance (0: all)"
    )
    parser.add_argument("--minutes", type=float, default=20.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--at", default="", help="only mutants of these lines")
    args = parser.parse_args(arguments)
    os.chdir(ROOT)
    sys.path.insert(0, str(ROOT))
    if unused := unused_prefixes():
        print(f"error: no module begins with {', '.join(unused)}; mend TESTS")
        return 2
    os.environ |= {"HYPOTHESIS_PROFILE": "mutants"}
    for name in WARM:
        importlib.import_module(name)
    trees = {
        name: ast.parse((ROOT / "st_common" / f"{name}.py").read_text())
        for name in modules_of(args.modules)
    }
    lines = {int(line) for line in args.at.split(",") if line}
    found = [
        m
        for name, tree in trees.items()
        for m in mutants_of(name, tree)
        if not lines or m.line in lines
    ]
    if args.sample and args.sample < len(found):
        found = random.Random(args.seed).sample(found, args.sample)  # noqa: S311 - to be repeated
    return _try_all(found, trees, until_s=time.monotonic() + 60 * args.minutes)


def _try_all(
    found: list[Mutant], trees: dict[str, ast.Module], *, until_s: float
) -> int:
    counts = {"failed": 0, "late": 0, "passed": 0}
    for sound in sorted(
        {tests_of(mutant.module): mutant.module for mutant in found}.values()
    ):
        if run(sound, None) != "passed":
            print(
                f"{SAID.read_text()}\nerror: the tests of {sound} fail without a mutant"
            )
            return 2
    for mutant in found:
        if time.monotonic() > until_s:
            print(f"time is over: {len(found) - sum(counts.values())} were not tried")
            break
        undo = mutant.apply()
        code = compile(
            ast.fix_missing_locations(trees[mutant.module]),
            f"<{mutant.module}>",
            "exec",
        )
        undo()
        ended = run(mutant.module, code)
        counts[ended] += 1
        if ended == "passed":
            print(
                f"survived: st_common/{mutant.module}.py:{mutant.line}: {mutant.what}",
                flush=True,
            )
    print(
        f"{sum(counts.values())} mutants: {counts['failed']} noticed, {counts['late']} never ended, "
        f"{counts['passed']} survived"
    )
    return 1 if counts["passed"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
