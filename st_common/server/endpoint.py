"""An endpoint is declared where it is answered: its address, what it takes, what its answer looks like, its bounds.

    @Endpoint("GET", "/v1/layers", answers=an_object(layers=a_list(_LAYER)))
    def layers(asked: Parameters) -> Response:
        \"\"\"All layers, in figures, with what their loads left out.\"\"\"

What lies below `/v1`, and `/metrics`, is promised, and described in OpenAPI by the first sentence of the docstring;
what the page asks, below `/page`, is not.
"""

from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, field, replace
from inspect import getdoc, iscoroutinefunction
from typing import Any, Literal, TypeVar

from st_common.config.operations import Kind
from st_common.config.parameters import Parameter
from st_common.config.values import whole
from st_common.server.parameters import ANY_TEXT, TIME, Parameters, numbers
from st_common.server.schemas import Schema

AT = Parameter("at", TIME, "a time, ISO 8601; else now")
LIMIT = Parameter("limit", whole(least=0), "at most so many")
BBOX = Parameter("bbox", numbers(4), "west,south,east,north: only what is in this box")
STREAM = Parameter("stream", ANY_TEXT, "the stream")
NEEDED_STREAM = replace(STREAM, is_required=True)
STATEMENTS = ("text/plain", "application/json")
"""Kinds of bodies that are a text of the query language."""
ENDPOINTS: "list[Endpoint]" = []
"""All that were declared so far."""

Lane = Literal["", "live", "page", "tiles", "queries"]
"""Whose threads carry requests out: the page's have their own, so that whoever looks holds up nobody who posts."""
_Run = TypeVar("_Run", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One thing that can be asked for; as a decorator it declares what answers.

    That is carried out in a thread and gets the `Parameters`; a coroutine in the event loop, with the server in front.

    Attributes:
        method: of HTTP.
        path: the address; what stands in braces varies.
        answers: the schema of the answer, or of each status its own; None: it is no JSON.
        params: what may stand behind `?`.
        takes: kinds of bodies; empty: none.
        keys: what a JSON body may have beside its `text`.
        gives: the kind of answer.
        lane: whose threads carry it out; "": those of all requests.
        apart: it is carried out in a process of its own, within the bounds of this kind; None: in a thread.
        apart_with: of which kind it is instead where a parameter is given, and not false.
        apart_if_long: of which kind it is where `run` raises `LongError` in its thread; None: it raises none.
        is_on_map: whether its answer has places as a map shows them.
        run: what answers.
        about: what it gives, in one sentence.
    """

    method: str
    path: str
    answers: Schema | Mapping[int, Schema] | None = None
    _: KW_ONLY
    params: tuple[Parameter, ...] = ()
    takes: tuple[str, ...] = ()
    keys: tuple[Parameter, ...] = ()
    gives: str = "application/json"
    lane: Lane = ""
    apart: Kind | None = None
    apart_with: Mapping[str, Kind] = field(default_factory=dict)
    apart_if_long: Kind | None = None
    is_on_map: bool = False
    run: Callable[..., Any] = lambda: None
    about: str = ""

    def __call__(self, run: _Run) -> _Run:
        """Declares that a function answers."""
        about = (getdoc(run) or "").partition("\n\n")[0]
        ENDPOINTS.append(replace(self, run=run, about=about))
        return run

    @property
    def is_public(self) -> bool:
        """Whether it is promised."""
        return self.path.startswith(("/v1/", "/metrics"))

    @property
    def is_in_loop(self) -> bool:
        """Whether it is carried out in the event loop."""
        return iscoroutinefunction(self.run)

    def kind_of(self, asked: Parameters) -> Kind | None:
        """Of which kind a request is that is carried out in a process of its own; None: it is not."""
        given = (
            kind for name, kind in self.apart_with.items() if asked.params.get(name)
        )
        return next(given, self.apart)
