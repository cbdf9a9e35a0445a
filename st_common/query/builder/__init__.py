"""Queries built in Python: the third way to a plan, beside texts and JSON (SPEC B14).

    query("ships").in_space((0, 0, 50, 50)).enlarge_metres(50).compare_with((10, 10, 20, 20)).negative_matches().build()

Every call gives a new builder, so that one may be the start of several queries, and each step is checked at once: what
a builder holds could be registered. Of the same method the last call counts, except filters, windows and `and_equal`,
which add up. BBoxDB's words, and what they are here:

| the paper (section 5.4)                                 | here                                                   |
|---------------------------------------------------------|--------------------------------------------------------|
| QueryPlanBuilder.createQueryOnTable(table)              | query(stream)                                          |
| forAllNewTuplesInSpace(box)                             | in_space(box)                                          |
| enlargeStreamTupleBoundingBoxByFactor / ByValue         | enlarge_factor(c) / enlarge_value(v)                   |
| enlargeStreamTupleBoundingBoxByWGS84Meter               | enlarge_metres(m)                                      |
| filterStreamTupleByKey / ByBoundingBox                  | filter_key(key) / filter_box(box)                      |
| addStreamFilter(filter), addJoinFilter(filter)          | filter(name, value)                                    |
| compareWithStaticSpace(box)                             | compare_with(box)                                      |
| reportPositiveMatches / reportNegativeMatches           | positive_matches() / negative_matches()                |
| spatialJoinWithTable(table)                             | join(layer).on_intersects()                            |
| build()                                                 | build()                                                |
"""

from st_common.query.builder.answering import AnswerSteps
from st_common.query.builder.fencing import FenceSteps
from st_common.query.builder.framing import FrameSteps
from st_common.query.builder.joining import Joining, JoinSteps
from st_common.query.builder.lasting import LastingSteps
from st_common.query.builder.placing import PlaceSteps
from st_common.query.builder.ranging import RangeSteps
from st_common.query.builder.refusing import name_of
from st_common.query.builder.regions import (
    all_of,
    any_of,
    around,
    box_across,
    box_around,
    circle,
    corridor,
    outside,
)
from st_common.query.plan import Plan
from st_common.query.tree.growing import grown
from st_common.query.tree.relational import Source

__all__ = [
    "Joining",
    "QueryBuilder",
    "all_of",
    "any_of",
    "around",
    "box_across",
    "box_around",
    "circle",
    "corridor",
    "outside",
    "query",
]


class QueryBuilder(
    RangeSteps, PlaceSteps, FenceSteps, LastingSteps, FrameSteps, JoinSteps, AnswerSteps
):
    """A query as far as it is built; `query(stream)` begins one."""

    __slots__ = ()

    def build(self) -> Plan:
        """The plan, which a registry takes, `to_text` writes and `to_json` keeps."""
        return self.plan


def query(stream: str) -> QueryBuilder:
    """A query on a stream: without any step its answer is every object.

    Raises:
        QueryError: this is no name for a stream.
    """
    step = "query(..)"
    source = Source(stream=name_of(stream, "stream", step))
    return QueryBuilder(grown(source, {}), steps={"stream": step})
