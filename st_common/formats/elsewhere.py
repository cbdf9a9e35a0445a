"""Formats that other packages bring, by entry points; nobody looks for them before a stream names one.

[project.entry-points."fairway.formats"]
papyrus = "papyrus_format:Papyrus"          a class, a subclass of `Format`
"""

from collections.abc import Container, Sequence
from typing import TYPE_CHECKING

from st_common.errors import ConfigError
from st_common.formats.format import Format

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "fairway.formats"


def names_elsewhere() -> tuple[str, ...]:
    """The names of the formats that installed packages declare."""
    return tuple(sorted({point.name for point in _points()}))


def format_elsewhere(name: str, ours: Container[str]) -> Format | None:
    """The format of that name that an installed package brings; None where none does.

    Args:
        name: as the settings of a stream say it.
        ours: the names that no package may take.

    Raises:
        ConfigError: two packages bring it, or one that is installed takes a name of ours, or it cannot be loaded.
    """
    points = _points()
    taken = next((point for point in points if point.name in ours), None)
    if taken is not None:
        raise ConfigError(
            f"package {_package(taken)} brings a format {taken.name!r}, which is one of Fairway's",
            hint="remove the package, or take a version with another name",
        )
    mine = [point for point in points if point.name == name]
    if len(mine) > 1:
        packages = " and ".join(sorted(_package(point) for point in mine))
        raise ConfigError(
            f"the packages {packages} both bring a format {name!r}",
            hint="remove one of them",
        )
    return _loaded(mine[0]) if mine else None


def _points() -> "Sequence[EntryPoint]":
    from importlib.metadata import entry_points

    return tuple(entry_points(group=GROUP))


def _loaded(point: "EntryPoint") -> Format:
    """The format that an entry point names."""
    what = f"format {point.name!r} of package {_package(point)}"
    try:
        made = point.load()()
    except Exception as error:
        first, _, _ = str(error).partition("\n")
        why = f"{type(error).__name__}: {first}"
        raise ConfigError(
            f"{what} cannot be loaded: {why}",
            hint="mend or remove the package",
        ) from error
    if not isinstance(made, Format):
        raise ConfigError(
            f"{what} cannot be loaded: {point.value} makes no Format",
            hint="an entry point names a subclass of st_common.formats.format.Format",
        )
    return made


def _package(point: "EntryPoint") -> str:
    return "?" if point.dist is None else f"{point.dist.name} {point.dist.version}"
