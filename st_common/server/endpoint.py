"""What an endpoint is, and the parameters that several of them take."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from starlette.responses import Response

from st_common.config.operations import Kind
from st_common.server.asked import Asked, Param, numbers_of, time_of, whole_of

AT = Param(name="at", about="a time, ISO 8601; else now", read=time_of)
LIMIT = Param(
    name="limit", about="at most so many", read=whole_of, schema={"type": "integer"}
)
BBOX = Param(
    name="bbox",
    about="west,south,east,north: only what is in this box",
    read=numbers_of(4),
)
STREAM = Param(name="stream", about="the stream")
TEXT = ("text/plain", "application/json")

Lane = Literal["", "live", "page", "tiles", "queries"]
"""Whose threads carry requests out: the page's have their own, so that whoever looks holds up nobody who posts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One thing that can be asked for.

    Attributes:
        method: of HTTP.
        path: the address; what stands in braces varies.
        about: what it gives, in one sentence.
        run: carries it out, in a thread; None: it is carried out in the event loop, by `app`.
        params: what may stand behind `?`.
        takes: kinds of bodies; empty: none.
        gives: the kind of answer.
        lane: whose threads carry it out; "": those of all requests.
        apart: it is carried out in a process of its own, within the bounds of this kind; None: in a thread.
        apart_with: of which kind it is instead where a parameter is given, and not false.
        apart_if_long: of which kind it is where `run` raises `LongError` in its thread; None: it raises none.
        is_on_map: whether its answer has places as a map shows them.
    """

    method: str
    path: str
    about: str
    run: Callable[[Asked], Response] | None = None
    params: tuple[Param, ...] = ()
    takes: tuple[str, ...] = ()
    gives: str = "application/json"
    lane: Lane = ""
    apart: Kind | None = None
    apart_with: Mapping[str, Kind] = field(default_factory=dict)
    apart_if_long: Kind | None = None
    is_on_map: bool = False

    def kind_of(self, asked: Asked) -> Kind | None:
        """Of which kind a request is that is carried out in a process of its own; None: it is not."""
        given = (
            kind for name, kind in self.apart_with.items() if asked.params.get(name)
        )
        return next(given, self.apart)
