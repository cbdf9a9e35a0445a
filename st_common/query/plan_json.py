"""Plans that people write as JSON: every mistake with its place, and the canonical plan of what they mean."""

import json
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from typing import TYPE_CHECKING, Any, NoReturn

from st_common.errors import QueryError
from st_common.query.builder import QueryBuilder
from st_common.query.builder.replay import rebuilt
from st_common.query.plan import Plan
from st_common.query.problem import did_you_mean
from st_common.query.schema import plan_schema

if TYPE_CHECKING:
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import ValidationError

_SHOWN = 5  # mistakes


def builder_of(
    what: Plan | QueryBuilder,
) -> tuple[QueryBuilder, dict[str, str] | None]:
    """What builds a plan, and what errors call its parts; those of a builder are called by its steps: None.

    Raises:
        QueryError: as `rebuilt`.
    """
    if isinstance(what, QueryBuilder):
        return what, None
    return rebuilt(what), places_in()


def places_in(file: str = "") -> dict[str, str]:
    """How errors call the parts of a plan that was read from JSON: `plan.json: $.inside`."""
    before = f"{file}: " if file else ""
    places = {part.name: f"{before}$.{part.name}" for part in fields(Plan)}
    return {**places, "group": f"{before}$.aggregate.group"}


def plan_from_json(text: str) -> Plan:
    """The plan of `built_from_json`."""
    return built_from_json(text).build()


def built_from_json(text: str) -> QueryBuilder:
    """What a JSON text in the present version says, built: expressions are checked as in texts of the language.

    Raises:
        QueryError: what is wrong, each mistake with its place in the JSON such as `$.inside.minx`.
    """
    value = _value(text)
    mistakes = sorted(
        _validator().iter_errors(value), key=lambda mistake: mistake.json_path
    )
    if mistakes:
        said = list(
            dict.fromkeys(each for mistake in mistakes for each in _said(mistake))
        )
        more = f"; {len(said) - _SHOWN} more" if len(said) > _SHOWN else ""
        raise QueryError(
            "; ".join(said[:_SHOWN]) + more,
            hint="data_contracts/plan.schema.json says what a plan has",
        )
    return rebuilt(Plan.from_json(value))


def _value(text: str) -> Any:
    try:
        return json.loads(
            text, parse_constant=_refuse_constant, object_pairs_hook=_object
        )
    except json.JSONDecodeError as error:
        raise QueryError(
            f"line {error.lineno}, column {error.colno}: this is no JSON: {error.msg}"
        ) from None
    except RecursionError:
        raise QueryError("$: nested too deeply") from None


def _refuse_constant(name: str) -> NoReturn:
    raise QueryError(f"{name} is no number in JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        names = [name for name, _ in pairs]
        raise QueryError(
            f"{next(name for name in names if names.count(name) > 1)!r} stands twice in one object"
        )
    return value


@cache
def _validator() -> "Draft202012Validator":
    from jsonschema import Draft202012Validator  # slow to import, and seldom needed

    return Draft202012Validator(plan_schema())


def _said(mistake: "ValidationError") -> Iterator[str]:
    """A mistake in words, with the place first."""
    if mistake.validator != "additionalProperties":
        yield f"{mistake.json_path}: {_wanted(mistake)}"
        return
    known = mistake.schema["properties"]
    for name in sorted(set(mistake.instance) - set(known)):
        hint = did_you_mean(name, known) or f"known are {', '.join(known)}"
        yield f"{mistake.json_path}: unknown part {name!r} ({hint})"


def _wanted(mistake: "ValidationError") -> str:
    if mistake.validator == "const" and mistake.json_path == "$.v":
        return f"this is version {mistake.instance!r} of a plan, not {mistake.validator_value}"
    return str(mistake.message)
