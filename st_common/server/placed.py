"""Answers with the places of their members, as the server sees them: by all that has come, not by what is archived."""

from datetime import datetime

import pyarrow as pa

from st_common.config.stream import StreamSettings
from st_common.server.asked import Asked
from st_common.server.page.lives import live_places


def answer_with_places(asked: Asked, query: str, at: datetime | None) -> pa.Table:
    """The rows of an answer with `x` and `y`, see `answers.member_places.placed_answer`.

    Args:
        asked: the request.
        query: the query's name.
        at: the time of the answer; None: now.

    Raises:
        QueryError: no query was ever registered by that name.
    """
    from st_common.answers.member_places import placed_answer

    def now(stream: StreamSettings) -> pa.Table:
        return live_places(asked, stream).current()

    place = asked.place
    return placed_answer(place.home, place.streams(), query, at, now=now)
