"""IF EXISTS and IF NOT EXISTS: statements that leave everything as it is."""

from collections.abc import Collection
from typing import TYPE_CHECKING

from st_common.query.control import QueryRow
from st_common.query.problem import Problem

if TYPE_CHECKING:
    from st_common.query.text import Statement

_MAKES = ("register", "create_area")
_OF_AREAS = ("create_area", "drop_area")


def why_moot(
    statement: "Statement", before: QueryRow | None, areas: Collection[str]
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
    """
    if not statement.conditional:
        return None
    is_area = statement.op in _OF_AREAS
    is_live = before is not None and before.live
    is_there = statement.name.casefold() in areas if is_area else is_live
    if is_there != (statement.op in _MAKES):
        return None
    noun = "area" if is_area else "query"
    if is_there:
        message = f"{noun} {statement.name!r} is there already, and stays as it is"
    else:
        message = f"there is no {noun} {statement.name!r}, so nothing is dropped"
    return statement.problem(message)
