'''Tables of settings: declared as dataclasses, read from TOML, and what is wrong in them named with file and line.

class Shop:                                                        conf/shops.toml
    """..
    Attributes:                                                    [shops.north]
        hours: how long it is open.                                hours = 30
    """
    hours: float = field(default=8.0, metadata=key(number(least=0, most=24)))

of_table(Shop, table, place)   ->   conf/shops.toml:2: shop 'north': hours = 30 must be at most 24
'''

import difflib
import inspect
import keyword
import re
import tomllib
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, dataclass, fields, replace
from functools import cache, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from st_common.config.home import checked_name
from st_common.config.values import Type, WrongError
from st_common.errors import ConfigError

T = TypeVar("T")
_TYPE = "type"
_TEXTS = re.compile(r"^    (\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_UNITS = {
    "_s": "seconds",
    "_ms": "milliseconds",
    "_days": "days",
    "_m": "metres",
    "_mps": "metres per second",
    "_kb": "kilobytes",
    "_mb": "megabytes",
}  # what names of numbers end with


@dataclass(frozen=True, slots=True)
class Key:
    """One value that people set: a key of a table, or a parameter of a program.

    Attributes:
        name: as people write it.
        type: what it may be.
        text: what it says, for people; the first letter small.
        default: where nobody sets it; None: there is none, and what `text` says counts.
        unit: of a number, such as `hours`.
        is_required: it must be set.
    """

    name: str
    type: Type
    text: str
    default: Any = None
    unit: str = ""
    is_required: bool = False

    @property
    def identifier(self) -> str:
        """Its name in Python, and in forms: `source_crs`, `from_`."""
        name = self.name.replace("-", "_")
        return f"{name}_" if keyword.iskeyword(name) else name

    @property
    def takes(self) -> str:
        """What it may be, in words: `a number, above 0, hours`."""
        return f"{self.type.takes}, {self.unit}" if self.unit else self.type.takes


def key(what: Type) -> Mapping[str, Type]:
    """The metadata of a dataclass's field that is a key of a table."""
    return {_TYPE: what}


@cache
def keys_of(kind: type) -> Mapping[str, Key]:
    """The keys of a table that a dataclass declares, by name: its fields with the metadata of `key`.

    A field without a default is a key that must be there. What it says stands under `Attributes` of the docstring.
    """
    texts = _texts(kind)
    made = {}
    for one in fields(kind):
        if _TYPE not in one.metadata:
            continue
        name = one.name.rstrip("_")
        is_required = one.default is MISSING and one.default_factory is MISSING
        made[name] = Key(
            name,
            one.metadata[_TYPE],
            texts.get(one.name, ""),
            None if one.default is MISSING else one.default,
            _unit_of(name),
            is_required,
        )
    return MappingProxyType(made)


def _unit_of(name: str) -> str:
    ending = name[name.rfind("_") :] if "_" in name else ""
    return _UNITS.get(ending, "")


def _texts(kind: type) -> dict[str, str]:
    """What docstrings say of fields; of two classes the one that inherits."""
    texts: dict[str, str] = {}
    for one in reversed(kind.__mro__):
        _, _, said = inspect.cleandoc(one.__doc__ or "").partition("Attributes:\n")
        texts |= {
            name: re.sub(r"(?<!\.)\.$", "", " ".join(text.split()))
            for name, text in _TEXTS.findall(said)
        }
    return texts


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a table of settings stands, so that errors can say it.

    Attributes:
        file: whose table it is, as people know it.
        path: the keys that lead to it, as `("streams", "buses", "columns")`.
        called: what people call it, as `stream 'buses': columns:`.
        text: of the file; "" where it is none of TOML, and so has no lines.
    """

    file: Path | str
    path: tuple[str, ...] = ()
    called: str = ""
    text: str = ""

    def below(self, *path: str, called: str) -> "Place":
        """The place of a table in this one."""
        called = f"{self.called} {called}".strip()
        return replace(self, path=(*self.path, *path), called=called)

    def wrong(self, message: str, *, at: str = "", hint: str = "") -> ConfigError:
        """The error that says what is wrong here.

        Args:
            message: what is wrong.
            at: the key that it is about; "": the word with which the message begins, where that is one, or the table.
            hint: what to do.
        """
        path = (*self.path, at or message.partition(" ")[0].rstrip(":"))
        line = f":{line_of(self.text, path)}" if self.text else ""
        return ConfigError(
            " ".join(filter(None, (f"{self.file}{line}:", self.called, message))),
            hint=hint,
        )


@lru_cache
def line_of(text: str, path: tuple[str, ...]) -> int:
    """The line in which a key begins; else that of the innermost table above it that the text has.

    The parser of TOML tells no places: it is given the text up to lines that have the key's name, as few as possible.

    Args:
        text: a file that is TOML.
        path: the keys that lead to it.
    """
    lines = text.split("\n")
    for depth in range(len(path), 0, -1):
        named = [n for n, line in enumerate(lines) if path[depth - 1] in line]
        first = bisect_left(
            named,
            True,  # noqa: FBT003 - what is looked for among answers to `_has`
            key=lambda n, sought=path[:depth]: _has(lines, n, sought),  # type: ignore[misc] # its default
        )
        if first < len(named):
            return named[first] + 1
    return 1


def _has(lines: Sequence[str], upto: int, path: Sequence[str]) -> bool:
    """Whether a key stands in the lines up to one, and those that end what begins there."""
    for end in range(upto + 1, len(lines) + 1):
        try:
            value: Any = tomllib.loads("\n".join(lines[:end]))
        except tomllib.TOMLDecodeError:
            continue
        for name in path:
            if not isinstance(value, dict) or name not in value:
                return False
            value = value[name]
        return True
    return False


def without_effect(instead: str, *names: str) -> dict[str, tuple[str, str]]:
    """What is said of keys that are gone, as `values_of` takes it; `instead` holds for everybody now."""
    said = f"{{!r}} has no effect any more: {instead}"
    return {name: (f"{name} = {said}", "take the line out") for name in names}


def of_table(
    kind: type[T],
    table: Mapping[str, Any],
    place: Place,
    *,
    elsewhere: Mapping[str, tuple[str, str]] = MappingProxyType({}),
    given: Mapping[str, Any] = MappingProxyType({}),
) -> T:
    """What a table says, as the dataclass that declares it; see `values_of`. `given` are fields that are no keys.

    What keys are to each other the dataclass looks at itself, by a WrongError.
    """
    keys = keys_of(kind)  # type: ignore[arg-type] # a class has a hash
    values = values_of(keys, table, place, elsewhere=elsewhere)
    said = {keys[name].identifier: value for name, value in values.items()}
    try:
        return kind(**given, **said)
    except WrongError as error:
        raise place.wrong(str(error), hint=error.hint) from None


def values_of(
    keys: Mapping[str, Key],
    table: Mapping[str, Any],
    place: Place,
    *,
    elsewhere: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> dict[str, Any]:
    """The values of a table by their keys, each as its type gives it back.

    Args:
        keys: those that there are.
        table: what the file says.
        place: where it stands.
        elsewhere: keys that belong to another table, or to none any more: what is said of each, and what to do.

    Raises:
        ConfigError: a key is unknown or missing, or a value is wrong.
    """
    known(table, keys, place, elsewhere=elsewhere)
    for one in keys.values():
        if one.is_required and one.name not in table:
            hint = one.type.takes if "enum" in one.type.schema else ""
            raise place.wrong(f"{one.name} is missing", hint=hint)
    values = {}
    for name, value in table.items():
        try:
            values[name] = keys[name].type.check(value)
        except WrongError as error:
            raise place.wrong(
                f"{name} = {value!r} {error}", at=name, hint=error.hint
            ) from None
        except ConfigError as error:
            raise place.wrong(
                f"{name}: {error.message}", at=name, hint=error.hint
            ) from None
    return values


def known(
    table: Mapping[str, Any],
    keys: Iterable[str],
    place: Place,
    *,
    elsewhere: Mapping[str, tuple[str, str]] = MappingProxyType({}),
) -> None:
    """Makes sure that every key of a table is known; see `values_of`.

    Raises:
        ConfigError: one is not; with a guess at what was meant.
    """
    keys = tuple(keys)
    for name in table:
        if name in keys:
            continue
        if name in elsewhere:
            said, hint = elsewhere[name]
            raise place.wrong(said.format(table[name]), at=name, hint=hint)
        near = difflib.get_close_matches(name, keys, n=1, cutoff=0.5)
        guess = f"did you mean {near[0]!r}?" if near else ""
        raise place.wrong(
            f"unknown key {name!r}",
            at=name,
            hint=guess or f"known keys: {', '.join(keys)}",
        )


def read_toml(path: Path) -> tuple[dict[str, Any], Place]:
    """The tables of a TOML file, and where they stand.

    Raises:
        FileNotFoundError: there is none.
        ConfigError: it is no TOML, or cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
        return tomllib.loads(text), Place(file=path, text=text)
    except FileNotFoundError:
        raise
    except (ValueError, RecursionError, OSError) as error:  # too long a number too
        raise ConfigError(f"{path} cannot be read: {error}") from None


def table_named(
    name: str, table: object, file: Place, *, head: str, what: str
) -> tuple[dict[str, Any], Place]:
    """The table `[HEAD.NAME]` of a file (what people call a `what`, such as a stream), and where it stands.

    Raises:
        ConfigError: it cannot be called so, or is no table.
    """
    place = file.below(head, name, called=f"{what} {name!r}:")
    try:
        checked_name(name, what)
    except ConfigError as error:
        raise replace(place, called="").wrong(error.message, hint=error.hint) from None
    if not isinstance(table, dict):
        raise place.wrong("must be a table", hint=f"[{head}.{name}]")
    return table, place


def tables_of(
    document: Mapping[str, Any], head: str, place: Place
) -> Mapping[str, Any]:
    """The tables of a file that has nothing else: `[streams.NAME]`, `[deliveries.NAME]`.

    Raises:
        ConfigError: it has something else.
    """
    known(document, (head,), place)
    tables = document.get(head, {})
    if not isinstance(tables, dict):
        raise place.wrong(f"{head} must be tables", at=head, hint=f"[{head}.NAME]")
    return tables
