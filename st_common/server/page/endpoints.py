"""The endpoints of the page."""

from st_common.server.asked import Param, time_of, whole_of
from st_common.server.endpoint import AT, LIMIT, STREAM, TEXT, Endpoint
from st_common.server.page.asks import ask, check, complete
from st_common.server.page.files import FILE, INDEX
from st_common.server.page.live import live
from st_common.server.page.objects import page_object
from st_common.server.page.packed import MEDIA
from st_common.server.page.past import page_past, places, regions, visits, ways
from st_common.server.page.shapes import shapes
from st_common.server.page.state import page_state
from st_common.server.page.tiles import TILE, tile

_OBJECT = Param(name="object", about="the object")
_FROM = Param(name="from", about="the first time, ISO 8601", read=time_of)
_TO = Param(name="to", about="the last time, ISO 8601", read=time_of)

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
        path="/page/live/{stream}",
        about="Where the objects of a stream are now, as arrays for a map: all, or those that moved behind a cursor.",
        run=live,
        params=(Param(name="since", about="the cursor of the last answer"),),
        gives=MEDIA,
        lane="live",
    ),
    Endpoint(
        method="GET",
        path="/page/state",
        about="How all streams, queries, layers and deliveries are, as the page polls it.",
        run=page_state,
        lane="page",
    ),
    Endpoint(
        method="GET",
        path="/page/tiles/{layer}/{z}/{x}/{y}.mvt",
        about="Features of a layer as a vector tile for a map; 204 where nothing lies in it.",
        run=tile,
        params=(
            Param(
                name="v",
                about="the version of the layer",
                read=whole_of,
                schema={"type": "integer"},
            ),
        ),
        gives=TILE,
        lane="tiles",
    ),
    Endpoint(
        method="GET",
        path="/page/shapes/{query}",
        about="The regions of a query where they are now, and the features in its answer.",
        run=shapes,
        gives="application/geo+json",
        lane="page",
    ),
    Endpoint(
        method="POST",
        path="/page/ask",
        about="What a SELECT that stands alone would have told, AS OF a time or BETWEEN two.",
        run=ask,
        params=(LIMIT,),
        takes=TEXT,
        apart="ask",
        is_on_map=True,
    ),
    Endpoint(
        method="POST",
        path="/page/check",
        about="Whether a SELECT is right, and what it is.",
        run=check,
        takes=TEXT,
        lane="page",
        apart_if_long="ask",
    ),
    Endpoint(
        method="POST",
        path="/page/complete",
        about="What may be typed next in a statement.",
        run=complete,
        takes=("application/json",),
        lane="page",
        apart_if_long="ask",
    ),
    Endpoint(
        method="GET",
        path="/page/past/{stream}",
        about="Where the objects of a stream were at a time, as arrays for a map.",
        run=page_past,
        params=(AT,),
        gives=MEDIA,
        apart="read",
        is_on_map=True,
    ),
    Endpoint(
        method="GET",
        path="/page/ways/{stream}",
        about="The way of one object.",
        run=ways,
        params=(_OBJECT, _FROM, _TO, LIMIT),
        apart="read",
        is_on_map=True,
    ),
    Endpoint(
        method="GET",
        path="/page/places/{stream}",
        about="Where fixes of an interval lie: a sample of them.",
        run=places,
        params=(_FROM, _TO, LIMIT),
        apart="read",
        is_on_map=True,
    ),
    Endpoint(
        method="GET",
        path="/page/object/{stream}/{object}",
        about="All that is known of one object, now or at a time.",
        run=page_object,
        params=(AT,),
        apart="read",
        is_on_map=True,
    ),
    Endpoint(
        method="GET",
        path="/page/visits",
        about="Stays in answers, the newest or the longest first.",
        run=visits,
        params=(
            STREAM,
            Param(name="query", about="only in its answer"),
            _OBJECT,
            _FROM,
            _TO,
            LIMIT,
            Param(name="order", about="newest or longest"),
        ),
        apart="read",
    ),
    Endpoint(
        method="GET",
        path="/page/regions/{stream}",
        about="The regions by which a stream is stored, with their load.",
        run=regions,
        gives="application/geo+json",
        lane="page",
    ),
)
"""All of them."""
