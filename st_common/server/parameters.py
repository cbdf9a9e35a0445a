"""What is asked of an endpoint: parameters that are known, with their types, and what is wrong with others."""

import json
import math
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

from st_common.config.keys import Key, values_of
from st_common.config.keys import Place as InBody
from st_common.config.parameters import Parameter
from st_common.config.streams import stream_of
from st_common.config.values import Type
from st_common.errors import ConfigError, FairwayError, QueryError
from st_common.server.installation import Installation

_Thing = TypeVar("_Thing")
MOST_CHARACTERS = 2_000_000
"""Of a text of statements: what is understood in some seconds."""
MOST_MEMBERS = 100_000
"""Of one list of values, and points of one geometry: 1.5 s of CPU for a smooth polygon, 9 s for a jagged one."""
_QUOTED = re.compile(r"'[^']*'")
_FLAT = re.compile(r"[^();]+")


class Kept:
    """What a server keeps from one request to the next, such as where objects are: one thing of each kind."""

    def __init__(self) -> None:
        self._things: dict[type, Any] = {}
        self._lock = threading.Lock()

    def of(self, kind: type[_Thing]) -> _Thing:
        """The thing of a kind; it is made where nobody has asked for it yet."""
        with self._lock:
            if kind not in self._things:
                self._things[kind] = kind()
            thing: _Thing = self._things[kind]
            return thing

    def keep(self, thing: object) -> None:
        """Keeps a thing in place of the one of its kind."""
        with self._lock:
            self._things[type(thing)] = thing

    def rest(self) -> None:
        """Lets every thing that can let go of what nobody has asked for lately."""
        self._each("rest")

    def close(self) -> None:
        """Ends every thing that has an end."""
        self._each("close")

    def _each(self, act: str) -> None:
        with self._lock:
            things = list(self._things.values())
        for one in things:
            if hasattr(one, act):
                getattr(one, act)()


class LongError(Exception):
    """A request takes longer than it may in a thread of the server: a process of its own is to carry it out."""


class AbsentError(FairwayError):
    """What is asked for does not exist."""


class UnsupportedError(FairwayError):
    """A body is of a kind that is not taken."""


class TooLargeError(FairwayError):
    """A body is larger than it may be."""

    def __init__(self) -> None:
        super().__init__("the body is too large", hint="send it in parts")


class RejectedError(FairwayError):
    """Of what was sent no record can be read.

    Args:
        message: what is wrong.
        hint: what is likely to mend it.
        told: what the records are, as JSON values.
    """

    def __init__(self, message: str, *, hint: str, told: Mapping[str, Any]) -> None:
        super().__init__(message, hint=hint)
        self.told = told


class ReusedKeyError(FairwayError):
    """An idempotency key that came with another request before."""


def time_of(value: str) -> datetime:
    """A time in ISO 8601, UTC where no zone is said.

    Raises:
        ValueError: it is none.
    """
    from st_common.query.past import time_written

    return time_written(value)


ANY_TEXT = Type(takes="a text", check=str, schema={"type": "string"})
TIME = Type(
    takes="a time such as 2024-05-01T12:30:00Z",
    schema={"type": "string"},
    read=time_of,
)


def numbers(*counts: int) -> Type:
    """Finite numbers with commas between, as many as one of `counts`."""

    def read(value: str) -> tuple[float, ...]:
        found = tuple(map(float, value.split(",")))
        if len(found) not in counts or not all(map(math.isfinite, found)):
            raise ValueError
        return found

    bounds = {"minItems": min(counts), "maxItems": max(counts)}
    return Type(
        takes=f"{' or '.join(map(str, counts))} numbers with commas between",
        schema={"type": "array", "items": {"type": "number"}, **bounds},
        read=read,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """One request.

    Attributes:
        place: where the server works.
        path: the parts of the address that vary, by name.
        params: the parameters that were given, read.
        body: the bytes.
        media: of the body, without its parameters.
        base: the address of the server.
        headers: of the request, names in small letters.
        kept: what the server keeps from one request to the next.
        is_apart: it is carried out in a process of its own, and may take long.
        before_writing: called before anything is written that was found out for the request; it may end it.
    """

    place: Installation
    path: Mapping[str, str]
    params: Mapping[str, Any]
    body: bytes = b""
    media: str = ""
    base: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    kept: Kept = field(default_factory=Kept)
    is_apart: bool = False
    before_writing: Callable[[], None] | None = None

    def json(self) -> dict[str, Any]:
        """The body as a JSON object.

        Raises:
            QueryError: it is none.
        """
        try:
            value = json.loads(self.body)
        except json.JSONDecodeError as error:
            where = f"line {error.lineno}, column {error.colno}"
            raise QueryError(f"{where}: the body is no JSON from here on") from None
        except RecursionError:
            raise QueryError("the body is too deep: objects in objects") from None
        except ValueError:  # of numbers with too many digits too
            raise QueryError("the body is no JSON, or no UTF-8") from None
        if not isinstance(value, dict):
            raise QueryError("the body must be a JSON object")
        return value

    def values(self, known: Iterable[Key]) -> dict[str, Any]:
        """What a JSON body says beside its `text`; {} for a body that is the text.

        Raises:
            ConfigError: a key is unknown, or a value is wrong; the message names it.
        """
        if self.media != "application/json":
            return {}
        table = {
            key: value
            for key, value in self.json().items()
            if key != "text" and value is not None
        }
        keys = {one.name: one for one in known}
        return values_of(keys, table, InBody(file="the body"))

    def text(self) -> str:
        """The body as text: of JSON its `text`, else all of it.

        Raises:
            QueryError: it is no UTF-8, has no text, or more of it than is understood in some seconds.
        """
        text = self._text()
        if len(text) > MOST_CHARACTERS:
            raise QueryError(
                f"the text has {len(text):,} characters, more than {MOST_CHARACTERS:,}",
                hint="send several, or register it by `fairway query register`",
            )
        _require_short_lists(text)
        return text

    def _text(self) -> str:
        if self.media == "application/json":
            value = self.json().get("text")
            if not isinstance(value, str):
                raise QueryError("the body has no text", hint='{"text": "SELECT .."}')
            if not _is_unicode(value):
                raise QueryError(
                    "the text has half a character",
                    hint="\\ud800 to \\udfff stand in pairs",
                )
            return value
        try:
            return self.body.decode()
        except UnicodeDecodeError as error:
            wrong = f"the body is no UTF-8 from byte {error.start} on"
            raise QueryError(wrong, hint="send UTF-8") from None


def _require_short_lists(text: str) -> None:
    """Makes sure that no geometry and no list of a text has more members than are understood in some seconds.

    Members are what stands between commas: of a geometry in its quotes, of a list in its brackets. What is in quotes
    in a list counts as one.
    """
    for what, parts in (
        ("geometry has {:,} points", _QUOTED.findall(text)),
        ("list has {:,} values", _FLAT.findall(_QUOTED.sub("", text))),
    ):
        most = 1 + max((part.count(",") for part in parts), default=0)
        if most > MOST_MEMBERS:
            raise QueryError(
                f"a {what.format(most)}, more than {MOST_MEMBERS:,}",
                hint="make it a layer, or register it by `fairway query register`",
            )


def _is_unicode(text: str) -> bool:
    """Whether a text can be written: JSON may have a half of a pair that is one character."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def read_params(
    given: Mapping[str, str], known: tuple[Parameter, ...]
) -> dict[str, Any]:
    """The parameters that a request has, and of those that it leaves out the defaults.

    Raises:
        ConfigError: one is unknown, wrong, empty or missing; the message names it.
    """
    by_name = {one.name: one for one in known}
    values = {one.name: one.default for one in known if one.default is not None}
    for name, text in given.items():
        if name not in by_name:
            hint = f"known: {', '.join(by_name) or 'none'}"
            raise ConfigError(f"unknown parameter {name!r}", hint=hint)
        values[name] = replace(by_name[name], is_required=True).read(text)
    for name, one in by_name.items():
        if one.is_required and name not in given:
            raise ConfigError(f"the parameter {name!r} is missing")
    return values


def known_query(asked: Parameters) -> str:
    """The name of the query in an address, as it was registered.

    Raises:
        AbsentError: there is none of that name.
    """
    from st_common.query.lookup import find

    try:
        return find(asked.place.home, asked.path["query"]).name
    except QueryError as error:
        raise AbsentError(error.message, hint=error.hint) from None


def known_stream(asked: Parameters, name: str) -> Any:
    """The settings of the stream that is asked for.

    Raises:
        AbsentError: there is none of that name.
        ConfigError: its table is wrong.
    """
    streams = asked.place.streams()
    if name not in streams and name not in streams.broken:
        hint = f"there are {', '.join(streams) or 'none'}"
        raise AbsentError(f"there is no stream {name!r}", hint=hint)
    return stream_of(streams, name)
