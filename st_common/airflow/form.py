"""Forms of DAGs, made of what their jobs declare; and what is given that a form does not have."""

import math
from collections.abc import Collection
from dataclasses import replace
from typing import Any

from airflow.sdk import Param

from st_common.home import NAME_PATTERN
from st_common.parameters import TIME_PATTERN, Parameter, Program

_TYPES = {"whole": "integer", "number": "number", "flag": "boolean", "names": "array"}


def form_of(
    program: Program, *names: str, known: Collection[str] = ()
) -> dict[str, Param]:
    """The form of a DAG that runs a program: a field for each of the parameters, checked as the program does.

    Args:
        program: the job.
        *names: of the parameters that the form asks for.
        known: those of them that the DAG knows itself where the form is left empty.
    """
    chosen = [program[name] for name in names]
    return {
        one.key: _param(replace(one, is_required=False) if one.name in known else one)
        for one in chosen
    }


def words_of(program: Program, *names: str) -> list[str]:
    """The words of the command line that hand on what such a form says, as templates of Airflow.

    group, purge   ->   --group={{ params.group }}   {{ '' if params.purge else '--no-purge' }}
    """
    return [_word(program[name]) for name in names]


def _word(one: Parameter) -> str:
    value = f"params.{one.key}"
    if one.kind == "flag":
        said, unsaid = ("", one.option) if one.default else (one.option, "")
        return f"{{{{ {said!r} if {value} else {unsaid!r} }}}}"
    if one.kind == "names":
        value = f"{value} | join(',')"
    elif one.default is None and not one.is_required:
        value = f"'' if {value} is none else {value}"
    return f"{{{{ {value} }}}}" if one.is_word else f"{one.option}={{{{ {value} }}}}"


def _param(one: Parameter) -> Param:
    """A field: empty where there is no default, and filled in where the program needs it."""
    kind = _TYPES.get(one.kind, "string")
    is_needed = one.is_required or (one.is_word and one.default is None)
    is_optional = one.default is None and not is_needed
    schema: dict[str, Any] = {"type": ["null", kind] if is_optional else kind}
    schema["title"] = one.title or one.name.capitalize()
    text = f"{one.text}: {one.takes}" if one.kind == "time" else one.text
    schema["description"] = f"{text[0].upper()}{text[1:]}"
    if one.choices:
        schema["enum"] = [*one.choices, *([None] if is_optional else [])]
    elif kind == "string":
        schema |= _of_text(one)
    bounds = {
        "minimum": one.least,
        "exclusiveMinimum": one.above,
        "maximum": one.most,
    }
    schema |= {name: bound for name, bound in bounds.items() if math.isfinite(bound)}
    if one.kind == "names":
        schema |= {"items": {"type": "string"}}
    if is_needed:
        return Param(**schema)
    return Param(list(one.default) if one.kind == "names" else _default(one), **schema)


def _default(one: Parameter) -> Any:
    return bool(one.default) if one.kind == "flag" else one.default


def _of_text(one: Parameter) -> dict[str, str]:
    """What a text must look like; never an option."""
    if one.kind == "day":
        return {"format": "date"}
    if one.kind == "time":
        return {"pattern": f"^({TIME_PATTERN})?$"}
    pattern = NAME_PATTERN if one.kind == "name" else one.pattern or "[^-].*"
    return {
        "pattern": f"^({pattern})$" if one.default or one.is_word else f"^({pattern})?$"
    }


def unknown_values(given: Any, known: Collection[str]) -> list[str]:
    """The names of values that a form does not have, in order.

        {"regions": 8, "regionen": 9}, known {"group", "regions"}   ->   ["regionen"]

    Args:
        given: the values of a run by name; None or {}: none.
        known: the names in the form.
    """
    return sorted(set(given or {}) - set(known))


def refusal(dag: str, unknown: Collection[str], known: Collection[str]) -> str:
    """What is said of values that a form does not have."""
    names = ", ".join(map(repr, unknown))
    has = ", ".join(sorted(known)) or "none"
    return f"DAG {dag} has no parameter {names} (it has: {has})"
