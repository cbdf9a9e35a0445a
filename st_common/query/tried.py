"""The plans of queries that are tried on days that are past."""

from collections.abc import Iterable

from st_common.errors import ConfigError
from st_common.query.plan import Plan
from st_common.query.text import Statement


def tried_plans(
    statements: Iterable[Statement], stream: str, place: str = ""
) -> dict[str, Plan]:
    """The plans of registrations, by the names of their queries.

    Args:
        statements: as `fitted` gives them; those that create areas are for the queries beside them alone.
        stream: the stream that all of them are on.
        place: begins errors, such as "FILE, ".

    Raises:
        ConfigError: there is another statement, a query on another stream, or a name twice.
    """
    plans: dict[str, Plan] = {}
    for one in statements:
        if one.op == "create_area":
            continue
        if one.op != "register" or one.plan is None or one.plan.stream != stream:
            raise ConfigError(
                f"{place}line {one.line}: a trial on {stream!r} takes registrations on it alone",
                hint="REGISTER QUERY .. AS SELECT .. FROM its name .., and CREATE AREA for these",
            )
        if one.name in plans:
            raise ConfigError(f"{place}line {one.line}: {one.name!r} is there twice")
        plans[one.name] = one.plan
    return plans
