"""The endpoints of the page."""

from st_common.server.asked import Param, whole_of
from st_common.server.endpoint import Endpoint
from st_common.server.page.files import FILE, INDEX
from st_common.server.page.live import live
from st_common.server.page.packed import MEDIA
from st_common.server.page.state import page_state
from st_common.server.page.tiles import TILE, tile

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
    Endpoint(
        method="GET",
        path="/live/{stream}",
        about="Where the objects of a stream are now, as arrays for a map: all, or those that moved behind a cursor.",
        run=live,
        params=(Param(name="since", about="the cursor of the last answer"),),
        gives=MEDIA,
        lane="live",
    ),
    Endpoint(
        method="GET",
        path="/page-state",
        about="How all streams, queries, layers and deliveries are, as the page polls it.",
        run=page_state,
        lane="page",
    ),
    Endpoint(
        method="GET",
        path="/tiles/{layer}/{z}/{x}/{y}.mvt",
        about="Features of a layer as a vector tile for a map; 204 where nothing lies in it.",
        run=tile,
        params=(
            Param(
                name="v",
                about="the version of the layer",
                read=whole_of,
                kind="integer",
            ),
        ),
        gives=TILE,
        lane="tiles",
    ),
)
"""All of them."""
