"""What is derived of the queries of a shard is kept with them, and with nothing else."""

import ast
import pickle
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import TypeGuard

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.operators.expressions.remembered import Remembered
from st_common.operators.runtime.compiling import compiled, order_now
from st_common.operators.runtime.idle import known_fixes
from st_common.operators.state.registered import (
    Queries,
    Registered,
    SharedQueries,
    queries_to_arrays,
)
from st_common.operators.state.settings import Settings
from st_common.operators.state.state import State
from st_common.operators.turn.flags import Flags, flags_of
from st_common.query.plan import Aggregate, Plan, Window
from tests.kit.effort import tries

ROOT = Path(__file__).resolve().parents[2]
PLANS = (
    Plan(stream="s"),
    Plan(stream="s", where="speed > 5", emit="every"),
    Plan(stream="s", window=Window(seconds=5.0)),
    Plan(stream="s", aggregate=Aggregate(function="count")),
)
registered = st.builds(
    Registered,
    name=st.sampled_from("abc"),
    version=st.integers(1, 3),
    plan=st.sampled_from(PLANS),
    since=st.integers(0, 9),
    live=st.booleans(),
)
asked = st.booleans()
changes = st.lists(
    st.tuples(
        asked,
        st.lists(registered, max_size=3),
        st.dictionaries(st.integers(0, 9), registered, max_size=3),
    ),
    max_size=6,
)


def columns(flags: Flags) -> dict[str, list[object]]:
    return {each.name: getattr(flags, each.name).tolist() for each in fields(Flags)}


@tries(100)
@given(first=st.lists(registered, max_size=4), changes=changes)
def test_flags_of_changed_queries_are_those_of_the_queries_alone(first, changes):
    queries = Queries(first)
    for is_asked, more, changed in changes:
        if is_asked:
            flags_of(queries)
        known = {
            number: one for number, one in changed.items() if number < len(queries)
        }
        expected = list(queries)
        for number, one in known.items():
            expected[number] = one
        queries = queries.with_changed(known).with_more(more)
        assert queries == (*expected, *more)
    assert columns(flags_of(queries)) == columns(flags_of(Queries(tuple(queries))))
    assert queries.origin is None


def test_flags_are_kept_with_the_queries_and_not_with_equal_ones():
    queries = Queries([Registered(name="a", version=1, plan=PLANS[0])])
    flags = flags_of(queries)
    assert flags_of(queries) is flags
    assert flags_of(Queries(queries)) is not flags


def test_what_queries_were_made_of_is_let_go_of_once_it_is_not_needed():
    queries = Queries()
    for version in range(5):
        flags_of(queries)
        one = Registered(name="a", version=version, plan=PLANS[0])
        queries = queries.with_more([one]).with_changed({0: one})
        assert queries.origin is not None
        assert queries.origin.queries.origin is None


def test_each_shard_has_its_own_compiled_queries():
    queries = Queries([Registered(name="a", version=1, plan=PLANS[0])])
    shards = [Settings(shard=number, shards=20) for number in range(20)]
    source = known_fixes(State())
    known = [compiled(queries, settings, source) for settings in shards]
    again = [compiled(queries, settings, source) for settings in shards]
    assert all(one is other for one, other in zip(known, again, strict=True))
    assert order_now(queries, shards[3]) is known[3].order
    assert order_now(Queries(queries), shards[3]) is None
    assert sum(int(one.mine.sum()) for one in known) == 1


def test_a_pickle_of_queries_has_nothing_that_was_derived():
    queries = Queries([Registered(name="a", version=1, plan=PLANS[0])])
    before = len(pickle.dumps(queries))
    compiled(queries, Settings(), known_fixes(State()))
    assert len(pickle.dumps(queries)) == before
    again = pickle.loads(pickle.dumps(queries))
    assert (again, again.derived) == (queries, {})


def test_queries_that_are_stored_alike_are_one_for_all_shards():
    shared = SharedQueries()
    queries = Queries([Registered(name="a", version=1, plan=PLANS[1])])
    blob = shared.to_blob(queries)
    assert shared.from_blob(blob) is queries
    other = SharedQueries()
    read = other.from_blob(blob)
    assert read == queries
    assert other.from_blob(blob) is read
    for number in range(20):
        one = Registered(name=f"q{number}", version=1, plan=PLANS[0])
        other.to_blob(Queries([one]))
    assert other.from_blob(blob) is not read  # only the last few are kept


def test_arrays_of_queries_are_made_once():
    queries = Queries([Registered(name="a", version=1, plan=PLANS[1])])
    arrays = queries_to_arrays(queries)
    assert queries_to_arrays(queries) is arrays
    assert arrays["query_name"].equals(pa.array(["a"]))
    assert np.array_equal(arrays["query_live"], [1])


def test_a_remembered_value_is_asked_for_once_and_forgotten_with_too_many():
    calls: list[list[int]] = []

    def asked(keys):
        calls.append(list(keys))
        return [-key for key in keys]

    negative = Remembered(lambda key: 0 if key == 0 else None, asked, most=3)
    assert negative.of([0, 1, 2, 1]) == {0: 0, 1: -1, 2: -2}
    assert negative.of([2, 3]) == {2: -2, 3: -3}
    assert calls == [[1, 2], [3]]
    assert negative.of([3]) == {3: -3}  # four are known, which is too many
    assert calls == [[1, 2], [3], [3]]


# Caches that belong to nobody

PURE = {  # of small values that are the same for ever: by module and name
    "expressions/constants.py: _TYPES",
    "expressions/constants.py: _VALUES",
    "expressions/filters/geojson.py: _read",
    "expressions/screens.py: _alone",
    "expressions/drafts.py: draft_of",
    "expressions/simple.py: _VALUES",
    "expressions/truth.py: tested_on",
    "matching/query_set.py: _nothing",
    "expressions/simple.py: atoms_of",
    "expressions/loosened.py: _ways_of",
    "expressions/differences.py: _difference_of",
    "expressions/negated.py: _negated_alike",
    "expressions/simple.py: alternatives_in",
    "expressions/simple.py: expressions_in",
    "expressions/simple.py: parts_of",
}
RESOURCES = {  # no caches: a database for each thread, what a step may ask, and what fails within it
    "expressions/evaluation.py: _of_thread",
    "expressions/failures.py: _noted",
    "expressions/filters/users.py: _declared",
    "expressions/filters/users.py: _overran",
}
MAKES_MUTABLE = (
    *("dict", "list", "set", "defaultdict", "deque", "OrderedDict", "Counter"),
    *("WeakKeyDictionary", "WeakValueDictionary", "local", "OfThread"),
    *("ContextVar", "Remembered"),
)
CHANGES = (
    *("append", "add", "insert", "extend", "update", "setdefault", "pop", "popitem"),
    *("clear", "remove", "discard", "move_to_end", "appendleft"),
)


def caches_in(source: str) -> set[str]:
    """The names in a module that keep values: cached functions, and what code of functions changes."""
    tree = ast.parse(source)
    return {*_cached(tree), *_kept(tree)}


def _cached(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            texts = [ast.unparse(each).split("(")[0] for each in node.decorator_list]
            if {"cache", "lru_cache", "functools.cache", "functools.lru_cache"} & {
                *texts
            }:
                yield node.name


def _kept(tree: ast.Module) -> Iterator[str]:
    changed = {name for name in _changed(tree) if name is not None}
    for node in tree.body:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {each.id for each in targets if isinstance(each, ast.Name)}
            yield from names if _makes_mutable(node.value) else names & changed


def _makes_mutable(value: ast.expr | None) -> bool:
    """Whether a value is an empty container, or a call that makes something to be changed."""
    if isinstance(value, ast.Call):
        return ast.unparse(value.func).split("[")[0].split(".")[-1] in MAKES_MUTABLE
    is_empty_dict = isinstance(value, ast.Dict) and not value.keys
    return is_empty_dict or (isinstance(value, ast.List) and not value.elts)


def _changed(tree: ast.Module) -> Iterator[str | None]:
    """The names whose content some code changes, and those that a function binds anew."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Global):
            yield from node.names
        if _is_changing(node):
            yield _name(node.value)


def _is_changing(node: ast.AST) -> TypeGuard[ast.Subscript | ast.Attribute]:
    """Whether something is put into a container or taken out, by an index or by a method."""
    if isinstance(node, ast.Subscript):
        return not isinstance(node.ctx, ast.Load)
    return isinstance(node, ast.Attribute) and node.attr in CHANGES


def _name(node: ast.expr) -> str | None:
    return node.id if isinstance(node, ast.Name) else None


def test_no_module_of_operators_and_engine_keeps_what_belongs_to_queries():
    found = set()
    for package in ("operators", "engine"):
        folder = ROOT / "st_common" / package
        for path in sorted(folder.rglob("*.py")):
            names = caches_in(path.read_text(encoding="utf-8"))
            found |= {f"{path.relative_to(folder)}: {name}" for name in names}
    assert found == PURE | RESOURCES


@pytest.mark.parametrize(
    "planted",
    [
        "_seen = []",
        "_seen: dict[str, int] = {}",
        "_seen = defaultdict(list)",
        "_seen = {'a': 1}\ndef f():\n    _seen['b'] = 2",
        "_seen = {'a': 1}\ndef f():\n    del _seen['a']",
        "_seen = ['a']\ndef f():\n    _seen.append(2)",
        "_seen = None\ndef f():\n    global _seen\n    _seen = 2",
        "@functools.lru_cache(maxsize=3)\ndef _seen(x): return x",
    ],
)
def test_a_cache_in_a_module_is_seen(planted: str):
    assert caches_in(planted) == {"_seen"}
