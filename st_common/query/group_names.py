"""Streams and layers called `group.table`: with a group before it, a name means a table of that group alone (SPEC B2).

    buses          the stream, whatever its group: names are unique in a home
    metro.buses    the same, and an error where buses is in another group than metro

No name of a stream, a layer or a group has a dot in it, so each is read in one way.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Literal

from st_common.query.meant import found
from st_common.query.problem import did_you_mean

GroupOf = Callable[[str], str | None]
"""Gives the group of a stream or a layer by its name; None where it is not known."""

_HINTED = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class Tables:
    """The streams of a home, or its layers: their names, and what gives the group of each."""

    what: Literal["stream", "layer"]
    names: Collection[str]
    group_of: GroupOf

    def full_names(self) -> list[str]:
        """All of them with their groups; by its own name where the group is not known."""
        return [full_name(name, self.group_of(name)) for name in self.names]


def full_name(name: str, group: str | None) -> str:
    """A stream or a layer with its group before it; the name alone where the group is not known."""
    return f"{group}.{name}" if group else name


def split_name(name: str) -> tuple[str, str]:
    """The group of a name, "" for none, and the table: `metro.buses` gives metro and buses."""
    group, _, table = name.rpartition(".")
    return group, table


def found_table(name: str, tables: Tables) -> str:
    """The name of the table that is meant, without its group; `name` itself where there is none, or in another group.

    The case does not count.
    """
    group, table = split_name(name)
    called = found(table, tables.names)
    if not group:
        return called
    if called not in tables.names:
        return name
    own = tables.group_of(called)
    is_in = own is not None and own.casefold() == group.casefold()
    return called if is_in else name


def why_unknown(name: str, tables: Tables) -> tuple[str, str]:
    """Why a name with a group means no table, and what to write, for people."""
    group, table = split_name(name)
    called = found(table, tables.names)
    if called not in tables.names:
        known = tables.full_names()
        listed = ", ".join(known[:_HINTED]) or f"there is no {tables.what}"
        hint = did_you_mean(name, known) or f"known {tables.what}s: {listed}"
        return f"unknown {tables.what} {name!r}", hint
    own = tables.group_of(called)
    if own is None:
        message = f"{tables.what} {called!r} does not say in which group it is"
        return message, f"load it again, or write {called} alone"
    message = f"{tables.what} {called!r} is in group {own!r}, not in {group!r}"
    return message, f"write {own}.{called}, or {called} alone"
