"""Forms of DAGs, made of what their jobs declare."""

from typing import Any

from airflow.sdk import Param

from st_common.config.parameters import Parameter, Program


def form_of(program: Program, *asked: str) -> dict[str, Param]:
    """The form of a DAG that runs a program: a field for each of the parameters, checked as the program does.

    Args:
        program: the job.
        *asked: the names of the parameters that the form asks for.
    """
    chosen = [program[name] for name in asked]
    return {one.identifier: _param(one) for one in chosen}


def words_of(program: Program, *asked: str) -> list[str]:
    """The words of the command line that hand on what such a form says, as templates of Airflow.

    group, purge   ->   --group={{ params.group }}   {{ '' if params.purge else '--no-purge' }}
    """
    return [_word(program[name]) for name in asked]


def _word(one: Parameter) -> str:
    value = f"params.{one.identifier}"
    if one.is_flag:
        said, unsaid = ("", one.option) if one.default else (one.option, "")
        return f"{{{{ {said!r} if {value} else {unsaid!r} }}}}"
    if _is_list(one):
        value = f"{value} | join(',')"
    elif one.default is None and not one.is_required:
        value = f"'' if {value} is none else {value}"
    return f"{{{{ {value} }}}}" if one.is_word else f"{one.option}={{{{ {value} }}}}"


def _param(one: Parameter) -> Param:
    """A field: empty where there is no default, and filled in where the program needs it."""
    is_optional = one.default is None and not one.is_required
    schema = {**one.type.schema}
    if is_optional:
        schema["type"] = ["null", schema["type"]]
    schema["title"] = one.title or one.name.capitalize()
    schema["description"] = one.sentence
    if "enum" in schema:
        if is_optional:
            schema["enum"] = [*schema["enum"], None]
            schema["values_display"] = {"null": "default"}  # the page would say null
    elif one.type.schema["type"] == "string" and "format" not in schema:
        schema |= _of_text(one)
    if one.is_required:
        return Param(**schema)
    return Param(_default(one), **schema)


def _is_list(one: Parameter) -> bool:
    return bool(one.type.schema["type"] == "array")


def _default(one: Parameter) -> Any:
    if _is_list(one):
        return list(one.default)
    return bool(one.default) if one.is_flag else one.default


def _of_text(one: Parameter) -> dict[str, Any]:
    """What a text must look like: never an option; and empty, where that says the default."""
    pattern = one.type.schema.get("pattern", "^([^-].*)$")
    is_never_empty = one.default or one.is_required
    return {
        "pattern": pattern if is_never_empty else f"{pattern[:-1]}?$",
        "minLength": 0,
    }
