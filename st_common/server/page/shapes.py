"""The regions of a query as the map draws them: where they are now, and with which object they go."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow.compute as pc
import shapely
from starlette.responses import Response

from st_common.answers.answers import answered
from st_common.answers.history import object_at
from st_common.config.stream import StreamSettings
from st_common.layers.rows import shapes_of
from st_common.layers.table import AT_HOME, newest_version, read_rows
from st_common.query.lookup import find
from st_common.query.neighbours import Place, places_of
from st_common.query.plan import Plan
from st_common.regions.combined_shapes import drawn_shape
from st_common.regions.region import AroundObject, MovingRegion, Region
from st_common.regions.registry import still
from st_common.server.endpoint import AT, Endpoint
from st_common.server.page.frame import Frame, frame_of
from st_common.server.page.known import layer_frame
from st_common.server.page.readers import live_places
from st_common.server.parameters import (
    AbsentError,
    Parameters,
    known_query,
    known_stream,
)
from st_common.server.replies import GEOJSON, value_reply
from st_common.server.schemas import FEATURES

MOST_PARTNERS = 200
_Feature = dict[str, Any]
_Where = Callable[[str], tuple[float, float] | None]


@Endpoint(
    "GET",
    "/page/shapes/{query}",
    FEATURES,
    params=(AT,),
    gives=GEOJSON,
    lane="page",
    apart_with={"at": "read"},
    is_on_map=True,
)
def shapes(asked: Parameters) -> Response:
    """The regions of a query and the features in its answer, as they are now or were at a time."""
    row = find(asked.place.home, known_query(asked))
    if row.plan is None:
        raise AbsentError(f"query {row.name!r} was dropped")
    stream, plan = known_stream(asked, row.stream), row.plan
    where, frame = _where(asked, stream), frame_of(asked, stream)
    features = [
        *(_region(one, stream, where, frame) for one in _regions(plan)),
        *_centres(plan, where, frame),
        *_partners(asked, row.name, plan),
    ]
    shown = {"type": "FeatureCollection", "features": features}
    return value_reply(shown, media=GEOJSON)


def _where(asked: Parameters, stream: StreamSettings) -> _Where:
    """What says where an object is, or was at the time that is asked about; None of one that is nowhere."""
    at = asked.params.get("at")
    if at is None:
        return live_places(asked, stream).place_of

    def then(name: str) -> tuple[float, float] | None:
        rows = object_at(asked.place.home, stream, name, at).to_pylist()
        return (rows[0]["x"], rows[0]["y"]) if rows else None

    return then


def _regions(plan: Plan) -> Iterator[Region]:
    if plan.inside is not None:
        yield plan.inside
    if plan.frame is not None:
        yield from plan.frame.regions


def _region(
    region: Region, stream: StreamSettings, where: _Where, frame: Frame
) -> _Feature:
    """A region where it is; without a shape while an object that it goes with is nowhere."""
    region = region.in_units(stream.unit_m)
    shape, follows, at = None, None, None
    if isinstance(region, MovingRegion):
        places = {name: where(name) for name in region.focals}
        known = {name: one for name, one in places.items() if one is not None}
        if isinstance(region, AroundObject):
            follows, at = region.focal, known.get(region.focal)
        if len(known) == len(places):
            standing = region.standing(known, space=stream.space)
            shape = drawn_shape(standing, stream.space)
    else:
        shape = drawn_shape(still(region), stream.space)
    return _feature("region", shape, frame, follows=follows, at=at)


def _centres(plan: Plan, where: _Where, frame: Frame) -> Iterator[_Feature]:
    places = () if plan.neighbours is None else places_of(plan.neighbours)
    for place in places:
        at = _place(place, where)
        shape = None if at is None else shapely.Point(at)
        moves = at if place.focal is not None else None
        yield _feature("centre", shape, frame, follows=place.focal, at=moves)


def _place(place: Place, where: _Where) -> tuple[float, float] | None:
    if place.focal is None:
        return place.x, place.y
    return where(place.focal)


def _partners(asked: Parameters, query: str, plan: Plan) -> Iterator[_Feature]:
    """The features of a layer that are in the answer, some of them where there are very many."""
    home, join = asked.place.home, plan.join
    version = None if join is None else newest_version(home, join.layer)
    if join is None or version is None:
        return
    partners = pc.unique(
        answered(home, query, asked.params.get("at")).rows["partner"]
    ).drop_null()
    fids = partners.slice(0, MOST_PARTNERS).to_pylist()
    rows = read_rows(
        home,
        join.layer,
        version,
        columns=["fid", "kind", "geometry"],
        filters=[*AT_HOME, ("fid", "in", fids)],
    )
    frame = layer_frame(asked, join.layer)
    for row, shape in zip(rows.to_pylist(), shapes_of(rows), strict=True):
        feature = _feature("partner", shape, frame)
        feature["properties"] |= {"fid": row["fid"], "kind": row["kind"]}
        yield feature


def _feature(
    role: str,
    shape: shapely.Geometry | None,
    frame: Frame,
    *,
    follows: str | None = None,
    at: tuple[float, float] | None = None,
) -> _Feature:
    geometry, follows_at = None, None
    if shape is not None:
        placed = shapely.transform(shape, frame.placed)
        geometry = json.loads(shapely.to_geojson(placed))
    if at is not None:
        follows_at = frame.placed(np.array([at])).ravel().tolist()
    properties = {"role": role, "follows": follows, "follows_at": follows_at}
    return {"type": "Feature", "geometry": geometry, "properties": properties}
