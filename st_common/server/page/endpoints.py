"""The endpoints of the page."""

from st_common.server.endpoint import Endpoint
from st_common.server.page.files import FILE, INDEX

PAGE_ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        method="GET",
        path=INDEX,
        about="The page with the map; needs no token.",
        gives="text/html",
    ),
    Endpoint(
        method="GET",
        path=FILE,
        about="A file of the page; needs no token.",
        gives="application/octet-stream",
    ),
)
"""All of them."""
