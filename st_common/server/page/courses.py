"""How many were in each answer over the last hour, as the list of queries draws it."""

from typing import Any

from starlette.responses import Response

from st_common.answers.courses import MINUTES, Course
from st_common.server.endpoint import Endpoint
from st_common.server.page.known import Known
from st_common.server.page.live import iso
from st_common.server.page.watch import Watch
from st_common.server.parameters import Parameters
from st_common.server.replies import value_reply
from st_common.server.schemas import ANY, WHOLE, an_object

MOST_QUERIES = 2000


@Endpoint(
    "GET",
    "/page/courses",
    an_object(minutes=WHOLE, streams=ANY),
    lane="page",
)
def courses(asked: Parameters) -> Response:
    """How many were in the answers of all queries, minute by minute over the last hour of each stream's event time.

    A query of a stream that is told, and that is not named itself, had no change in the minutes that are known.
    """
    rows = asked.kept.of(Known).queries(asked.place.home)[:MOST_QUERIES]
    named: dict[str, list[str]] = {}
    for row in rows:
        named.setdefault(row["stream"], []).append(row["name"])
    figures = asked.kept.of(Watch).figures(asked)
    told = {
        name: _told(one.course, named.get(name, []))
        for name, one in figures.items()
        if one.course is not None
    }
    return value_reply({"minutes": MINUTES, "streams": told})


def _told(course: Course, names: list[str]) -> dict[str, Any]:
    counts = course.counts
    return {
        "until": iso(course.until_us),
        "known": course.known,
        "queries": {name: counts[name] for name in names if name in counts},
    }
