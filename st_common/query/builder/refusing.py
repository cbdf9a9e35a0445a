"""What a step of the builder says when it cannot do what was asked: the step, what was wrong, and what to do."""

from collections.abc import Iterator
from contextlib import contextmanager

from st_common.config.home import checked_name
from st_common.errors import ConfigError, QueryError
from st_common.query.grammar.nodes import Refused
from st_common.regions.region import ShapeError


@contextmanager
def told_by(step: str) -> Iterator[None]:
    """What the language refuses inside becomes the error of this step.

    Raises:
        QueryError: `step: what was wrong`, with the language's hint.
    """
    try:
        yield
    except (Refused, ShapeError) as refused:
        raise QueryError(f"{step}: {refused.message}", hint=refused.hint) from None


def refuse_unless(fits: bool, step: str, message: str, hint: str = "") -> None:  # noqa: FBT001 - it reads as `unless x`
    """Raises the error of a step unless all is well."""
    if not fits:
        raise QueryError(f"{step}: {message}", hint=hint)


def name_of(name: object, what: str, step: str) -> str:
    """The name of a stream or a layer, which is a folder's name; a registry finds it in any case."""
    refuse_unless(
        isinstance(name, str), step, f"the name of a {what} is a text, not {name!r}"
    )
    try:
        checked_name(str(name).lower(), what)
    except ConfigError as error:
        raise QueryError(f"{step}: {error.message}", hint=error.hint) from None
    return str(name)


def text_of_user(value: object, what: str, step: str) -> str:
    """A text that stands in a plan: not empty, and without the character NUL, which no log holds."""
    refuse_unless(
        isinstance(value, str) and bool(value), step, f"{what} is a text, not {value!r}"
    )
    refuse_unless("\0" not in str(value), step, f"{what} cannot hold the character NUL")
    return str(value)
