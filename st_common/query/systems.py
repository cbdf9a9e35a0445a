"""The systems that regions written as PostGIS does say: `INSIDE 'SRID=4326;POLYGON (..)'`."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from st_common.crs import without_srid
from st_common.query.problem import Problem

if TYPE_CHECKING:
    from st_common.query.text import Statement

_SAID = re.compile(r"'(\s*SRID\s*=\s*\d{1,9}\s*;)", re.IGNORECASE)
_CLAUSES = ("inside", "frame")


def problems_of_systems(statement: "Statement", epsg: int) -> Iterator[Problem]:
    """The regions of a statement that say another system than the one of its stream.

    Args:
        statement: a statement, with a stream.
        epsg: the number of the stream's system; 0: of a plane that is none.
    """
    for clause in (name for name in _CLAUSES if name in statement.spans):
        start, end = statement.spans[clause]
        for said in _SAID.finditer(statement.text, start, end):
            try:
                without_srid(said[1], epsg)
            except ValueError as error:
                hint = "write the region in the coordinates of the stream"
                yield statement.problem(str(error), at=said.span(1), hint=hint)


def problems_of_area(statement: "Statement") -> Iterator[Problem]:
    """The system that CREATE AREA says: an area is of no stream, so that none could be compared with it."""
    said = _SAID.search(statement.text)
    if said is not None:
        message = "an area is of no stream, so nobody can say whether its SRID is right"
        hint = "leave it out: its coordinates are those of the streams whose queries use it"
        yield statement.problem(message, at=said.span(1), hint=hint)
