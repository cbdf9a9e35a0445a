"""Filters of users: what their classes are given, and how long they may take (SPEC B11, docs/adr/0112).

    candidates    a tuple each, or one table    ->   bool each

A class runs in a thread of its own, which is given up when it takes longer than its limit: an exception is raised in it
at its next line of Python. Code that holds the interpreter in C until it is done cannot be stopped from here.
"""

import ctypes
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import shapely

from st_common.config.filters import (
    Filters,
    FilterSettings,
    filter_method,
    require_filter,
)
from st_common.operators.expressions.filters.protocol import Bools, Features, Fixes
from st_common.query.tuples import Element, Feature

T = TypeVar("T")
_FIX = ("object", "event_ts", "x", "y")
_UTC = pa.timestamp("us", "UTC")
_PAUSE = 12  # times its limit a filter that overran is not asked: a backlog of batches must not wait for each

_declared: ContextVar[Filters] = ContextVar("declared", default=MappingProxyType({}))
_overran: dict[tuple[FilterSettings, str | None], float] = {}


class OverrunError(BaseException):
    """A filter took too long; no `Exception`, so that what others wrote does not catch it."""


@contextmanager
def declared_filters(filters: Filters) -> Iterator[None]:
    """A context in which queries may name these filters of users, beside those of installed packages."""
    token = _declared.set(filters)
    try:
        yield
    finally:
        _declared.reset(token)


def user_filter(name: str) -> "UserFilter":
    """The filter of users that a query names.

    Raises:
        ConfigError: there is none here, or its class cannot be loaded: nothing is wrong with the query.
    """
    return UserFilter(require_filter(name, _declared.get()))


@dataclass(frozen=True, slots=True)
class UserFilter:
    """A class of users as the engine asks it: see `protocol.Filter`."""

    settings: FilterSettings

    def require(self, *, joins: bool) -> None:
        """Raises a ConfigError where the class cannot be asked: nothing is wrong with a row then."""
        filter_method(self.settings, joins=joins)

    def filter_fixes(self, fixes: Fixes, value: str | None) -> Bools:
        """What the class says of each fix; raises whatever it raises."""
        method, takes_tables = filter_method(self.settings, joins=False)
        table = _table(fixes)
        if takes_tables:
            return np.asarray(_asked(method, table, value))
        return _each(method, ((one,) for one in _elements(table)), value)

    def filter_pairs(
        self, fixes: Fixes, features: Features, value: str | None
    ) -> Bools:
        """What the class says of each fix beside its feature; raises whatever it raises."""
        method, takes_tables = filter_method(self.settings, joins=True)
        left, right = _table(fixes), features.rows
        assert right is not None  # noqa: S101 - `screens` reads them before it asks
        if takes_tables:
            return np.asarray(_asked(method, left, right, value))
        pairs = zip(_elements(left), _features(right, features.name), strict=True)
        return _each(method, pairs, value)

    def limited(self, judge: Callable[[], T], value: str | None) -> T:
        """What `judge` gives, which asks this filter, if it gives it in time.

        Args:
            judge: is called in a thread of its own.
            value: the custom value that is asked with.

        Raises:
            OverrunError: it took longer than the limit of the filter, now or a moment ago.
        """
        key, limit_s = (self.settings, value), self.settings.limit_s
        if time.monotonic() < _overran.get(key, 0.0):
            raise OverrunError
        outcome: list[tuple[T | None, BaseException | None]] = []
        run = copy_context().run

        def work() -> None:
            try:
                outcome.append((run(judge), None))
            except BaseException as error:  # noqa: BLE001 - what others wrote may raise anything
                outcome.append((None, error))

        thread = threading.Thread(target=work, name="filter", daemon=True)
        thread.start()
        thread.join(limit_s)
        if not outcome:
            _interrupt(thread)
            _overran[key] = time.monotonic() + _PAUSE * limit_s
            raise OverrunError
        given, error = outcome[0]
        if error is not None:
            raise error
        return given  # type: ignore[return-value] # there was no error


def _interrupt(thread: threading.Thread) -> None:
    """Raises an exception in a thread, at its next line of Python; nothing if it has ended."""
    if thread.ident is not None:
        ctypes.pythonapi.PyThreadState_SetAsyncExc(
            ctypes.c_ulong(thread.ident), ctypes.py_object(OverrunError)
        )


def _asked(method: Callable[..., Any], *given: object) -> Any:
    """What a method of users gives; one that wants to end the process fails instead."""
    try:
        return method(*given)
    except (SystemExit, KeyboardInterrupt, GeneratorExit) as error:
        raise RuntimeError(f"{type(error).__name__} {error}") from error


def _each(
    method: Callable[..., Any], rows: Iterator[tuple[Any, ...]], value: str | None
) -> Bools:
    passed = [_asked(method, *row, value) for row in rows]
    for one in passed:
        if not isinstance(one, bool | np.bool_):
            raise TypeError(f"it gives {one!r:.60}, not True or False")
    return np.array(passed, np.bool_)


def _table(fixes: Fixes) -> pa.Table:
    """A row for each fix: object, event_ts (UTC), x, y and the attributes of the stream."""
    readings = fixes.readings
    names = (*_FIX, *readings.attributes)
    columns = readings.columns(names, fixes.ids, space=fixes.space)
    columns["event_ts"] = pa.array(readings.ts).cast(_UTC)
    return pa.table(columns)


def _elements(table: pa.Table) -> Iterator[Element]:
    for row in table.to_pylist():
        yield Element(**{name: row.pop(name) for name in _FIX}, fields=row)


def _features(table: pa.Table, layer: str) -> Iterator[Feature]:
    shapes = shapely.from_wkb(table["geometry"].to_numpy())
    for row, shape in zip(table.to_pylist(), shapes, strict=True):
        row |= {"tags": _tags(row["tags"]), "geometry": shape}
        yield Feature(layer=layer, **row)


def _tags(tags: list[tuple[str, str]] | None) -> Mapping[str, str]:
    return dict(tags or ())
