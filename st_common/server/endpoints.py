"""All endpoints that are answered in threads and processes; `app` has those of the event loop, too."""

from st_common.server import ogc, queries, reads, tables  # noqa: F401 - who is imported declares his own
from st_common.server.endpoint import ENDPOINTS
from st_common.server.page import (  # noqa: F401
    courses,
    files,
    live,
    objects,
    past,
    questions,
    shapes,
    state,
    tiles,
)

__all__ = ["ENDPOINTS"]
