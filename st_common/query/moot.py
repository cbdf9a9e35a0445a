"""IF EXISTS and IF NOT EXISTS: statements that leave everything as it is."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from st_common.query.control import QueryRow
from st_common.query.problem import Problem

if TYPE_CHECKING:
    from st_common.query.text import Statement

_MAKES = ("register", "create_area", "create_stream", "create_table")
_NOUNS = {
    "create_area": "area",
    "drop_area": "area",
    "create_stream": "stream",
    "drop_stream": "stream",
    "create_table": "table",
    "drop_table": "table",
}


def why_moot(
    statement: "Statement",
    before: QueryRow | None,
    areas: Collection[str],
    streams: Collection[str],
    tables: Collection[str],
) -> Problem | None:
    """Why a statement with IF EXISTS or IF NOT EXISTS does nothing, as a notice; None: it is carried out.

    | statement                     | does nothing where             |
    |-------------------------------|--------------------------------|
    | REGISTER, CREATE .. IF NOT .. | it is there, whatever it means |
    | DROP .. IF EXISTS             | it is not there                |

    Args:
        statement: any statement; one without these words is carried out.
        before: the newest row of the query of its name.
        areas: the names of areas, in small letters.
        streams: the names of the streams that were created.
        tables: the names of tables and layers.
    """
    if not statement.conditional:
        return None
    noun = _NOUNS.get(statement.op, "query")
    name = statement.name.casefold()
    is_there = {
        "area": name in areas,
        "stream": name in streams,
        "table": name in tables,
        "query": before is not None and before.live,
    }[noun]
    if is_there != (statement.op in _MAKES):
        return None
    if is_there:
        message = f"{noun} {statement.name!r} is there already, and stays as it is"
    else:
        message = f"there is no {noun} {statement.name!r}, so nothing is dropped"
    return statement.problem(message)
