"""Filters of users: the classes that `conf/filters.toml` names, or that installed packages bring (SPEC B11).

conf/filters.toml                                  an installed package
  [filters.bridges]                                  [project.entry-points."fairway.filters"]
  class = "my_package.filters:Bridges"               bridges = "my_package.filters:Bridges"

Queries name a filter and never a class: what is imported is decided by whoever looks after the installation.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

from st_common.config.keys import key, known, of_table, read_toml, tables_of
from st_common.config.values import WrongError, number, takes
from st_common.errors import ConfigError

FILE, GROUP = "filters.toml", "fairway.filters"
BUILT_IN = (
    *("box", "enlarge", "enlarge_factor", "enlarge_value", "filter"),
    *("geojson", "geojson_near", "geojson_strict", "key", "property", "wkt"),
)
"""What has a meaning in USING without a class, and so can name none."""
_NAME = re.compile("[a-z][a-z0-9_]{0,62}")
_PATH = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
_LIKE = "class = 'my_package.filters:Bridges'"


@takes("the path of a class, `package.module:Class`", type="string")
def _class_path(value: object) -> str:
    if not isinstance(value, str) or not _PATH.fullmatch(value):
        raise WrongError("must be the path of a class: package.module:Class")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class FilterSettings:
    """A filter of users.

    Attributes:
        name: as queries name it.
        class_: "my_package.filters:Bridges", in a package that is installed beside Fairway, on workers too.
        limit_s: how long it may take for the candidates of one batch; a query whose filter takes longer fails.
    """

    name: str
    class_: str = field(metadata=key(_class_path))
    limit_s: float = field(default=5.0, metadata=key(number(above=0.0, most=3600.0)))


Filters = Mapping[str, FilterSettings]


def load_filters(conf: Path) -> dict[str, FilterSettings]:
    """The filters of a settings folder's filters.toml, by name; none without the file.

    Args:
        conf: the folder, or another file in it.

    Raises:
        ConfigError: the file is no TOML, a name cannot be one or is one of Fairway's, or a key is wrong.
    """
    try:
        document, place = read_toml(
            (conf.parent if conf.suffix == ".toml" else conf) / FILE
        )
    except FileNotFoundError:
        return {}
    known(document, ("filters",), place)
    declared = {}
    for name, table in tables_of(document, "filters", place).items():
        where = place.below("filters", name, called=f"filter {name!r}:")
        if (why := _no_name(name)) is not None:
            raise where.wrong(why, hint="small letters, digits and _, a letter first")
        if not isinstance(table, dict):
            raise where.wrong("must be a table", hint=f"[filters.{name}]")
        declared[name] = of_table(FilterSettings, table, where, given={"name": name})
    return declared


def _no_name(name: str) -> str | None:
    if name in BUILT_IN:
        return "this is the name of one of Fairway's own"
    return None if _NAME.fullmatch(name) else "this is no name of a filter"


def filter_names(declared: Filters) -> tuple[str, ...]:
    """The names of all filters of users, sorted: of the settings, and of installed packages."""
    return tuple(sorted({*declared, *_installed()}))


def filter_named(name: str, declared: Filters) -> FilterSettings | None:
    """The filter of users that a query names, None where there is none; settings come before installed packages.

    Raises:
        ConfigError: two packages bring it.
    """
    if name in declared:
        return declared[name]
    paths = _installed().get(name, ())
    if len(paths) > 1:
        raise ConfigError(
            f"two packages bring a filter {name!r}: {' and '.join(paths)}",
            hint=f"remove one, or name a class in conf/{FILE}",
        )
    return FilterSettings(name=name, class_=paths[0]) if paths else None


@cache
def _installed() -> Mapping[str, tuple[str, ...]]:
    """The paths of the classes that installed packages bring, by the names of filters; names of ours are left out."""
    from importlib.metadata import entry_points  # slow, and asked for by few

    brought: dict[str, tuple[str, ...]] = {}
    for point in entry_points(group=GROUP):
        if _no_name(point.name) is None and _PATH.fullmatch(point.value):
            paths = {*brought.get(point.name, ()), point.value}
            brought[point.name] = tuple(sorted(paths))
    return brought


@cache
def _made(path: str) -> Any:
    module, _, names = path.partition(":")
    made: Any = import_module(module)
    for name in names.split("."):
        made = getattr(made, name)
    return made()


def filter_method(
    settings: FilterSettings, *, joins: bool
) -> tuple[Callable[..., Any], bool]:
    """What a filter of users is asked by, and whether it takes tables in place of one tuple or one pair.

    There is one object of each class in a process.

    Args:
        settings: of the filter.
        joins: whether it is asked about pairs of a fix and a feature.

    Raises:
        ConfigError: the class cannot be imported or made, or has no such method.
    """
    what = f"filter {settings.name!r}"
    try:
        made = _made(settings.class_)
    except Exception as error:  # what others wrote may raise anything
        why = " ".join(f"{type(error).__name__}: {error}".split())
        raise ConfigError(
            f"{what}: class {settings.class_} cannot be loaded: {why}",
            hint="install its package here and on the workers, or put it on PYTHONPATH",
        ) from error
    several, single = (
        ("filter_join_candidates", "filter_join_candidate")
        if joins
        else ("filter_tuples", "filter_tuple")
    )
    for name in (several, single):
        if callable(method := getattr(made, name, None)):
            return method, name == several
    raise ConfigError(
        f"{what}: class {settings.class_} has neither {single} nor {several},"
        f" which {'a join' if joins else 'a query without a join'} asks",
        hint=f"give it one of them, or leave {settings.name} out of the query",
    )


def require_filter(name: str, declared: Filters) -> FilterSettings:
    """As `filter_named`, of a filter that a registered query names.

    Raises:
        ConfigError: there is none here; the hint says what to do.
    """
    named = filter_named(name, declared)
    if named is None:
        raise ConfigError(
            f"there is no filter {name!r} here, which a registered query names",
            hint=f"[filters.{name}] with {_LIKE} in conf/{FILE}, or install its package; or drop the query",
        )
    return named
