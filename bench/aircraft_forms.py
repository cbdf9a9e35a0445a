"""Fifty-two queries of all kinds over a day of aircraft: what `bench.ticks` asks of a replay."""

import pyarrow as pa

from bench.forms import plan_of
from st_common.query.comparing import Compare
from st_common.query.frame import Extent, Frame, Sliding
from st_common.query.neighbours import GroupNearest, Nearest, Place, ReverseNearest
from st_common.query.plan import Aggregate, LayerJoin, PairJoin, Plan, Window
from st_common.regions.registry import Area, Box, Circle, MovingBox, MovingCircle


def aircraft_plans(fixes: pa.Table) -> list[Plan]:
    """52 queries of all kinds over Switzerland, those that move with the aircraft that report most."""
    names = fixes["object"].combine_chunks().value_counts()
    most = sorted(names.to_pylist(), key=lambda one: (-one["counts"], one["values"]))
    focal = [one["values"] for one in most]
    zurich, geneva = (8.55, 47.45), (6.11, 46.24)
    near = Box(minx=7.5, miny=46.5, maxx=9.5, maxy=47.7)
    ring = Circle(x=zurich[0], y=zurich[1], radius_m=30_000.0)
    alps = Area(wkt="POLYGON ((6.5 46, 10 46.2, 9.5 47, 7 46.8, 6.5 46))")
    high = "altitude > 30000"
    return [
        *_still(near, ring, alps, high),
        *_moving(focal, high),
        *_near(focal, zurich, geneva, near, high),
        *_paired(focal, near, high),
        *_counted(near, ring, alps, focal),
        *_framed(near, ring, focal),
    ]


def _still(near: Box, ring: Circle, alps: Area, high: str) -> list[Plan]:
    join = LayerJoin(layer="squares", predicate="intersects")
    return [
        plan_of(inside=near),
        plan_of(inside=ring),
        plan_of(inside=alps),
        plan_of(inside=near, where=high),
        plan_of(
            inside=ring,
            emit="every",
            columns=(("callsign", "callsign"), ("feet", "altitude")),
        ),
        plan_of(inside=alps, where="groundspeed > 400"),
        plan_of(join=join),
        plan_of(join=join, inside=near, where=high),
        plan_of(inside=near, valid_until=True),
        plan_of(inside=ring, emit="rstream"),
        plan_of(
            inside=near,
            compare=Compare(
                box=Box(minx=8.0, miny=46.0, maxx=9.0, maxy=47.0), negative=True
            ),
        ),
    ]


def _moving(focal: list[str], high: str) -> list[Plan]:
    squares = LayerJoin(layer="squares", predicate="intersects")
    around = MovingCircle(focal=focal[3], radius_m=60_000.0)
    return [
        *(
            plan_of(
                inside=MovingBox(
                    focal=name, width=80_000.0, height=50_000.0, metres=True
                )
            )
            for name in focal[:3]
        ),
        plan_of(inside=MovingBox(focal=focal[4], width=1.0, height=0.5), where=high),
        *(
            plan_of(inside=MovingCircle(focal=name, radius_m=40_000.0))
            for name in focal[5:8]
        ),
        plan_of(inside=around),
        plan_of(inside=around, valid_until=True),
        plan_of(inside=around, where="groundspeed > 300", emit="every"),
        plan_of(inside=around, join=squares),
    ]


def _near(
    focal: list[str],
    zurich: tuple[float, float],
    geneva: tuple[float, float],
    near: Box,
    high: str,
) -> list[Plan]:
    one, other = Place(x=zurich[0], y=zurich[1]), Place(x=geneva[0], y=geneva[1])
    both = (one, Place(focal=focal[0]))
    return [
        plan_of(neighbours=Nearest(k=5, place=one)),
        plan_of(neighbours=Nearest(k=3, place=other), where=high),
        *(
            plan_of(neighbours=Nearest(k=4, place=Place(focal=name)))
            for name in focal[:3]
        ),
        plan_of(neighbours=Nearest(k=2, place=one), inside=near),
        plan_of(neighbours=ReverseNearest(place=one)),
        plan_of(neighbours=ReverseNearest(place=Place(focal=focal[1]))),
        plan_of(neighbours=GroupNearest(k=3, total="sum", places=both)),
        plan_of(neighbours=GroupNearest(k=2, total="max", places=both), where=high),
    ]


def _paired(focal: list[str], near: Box, high: str) -> list[Plan]:
    close = PairJoin(distance_m=10_000.0)
    return [
        plan_of(pairs=close),
        plan_of(pairs=close, inside=near, where=high),
        plan_of(pairs=PairJoin(distance_m=30_000.0, keys=("substr(callsign, 1, 3)",))),
        plan_of(pairs=close, inside=MovingCircle(focal=focal[0], radius_m=80_000.0)),
    ]


def _counted(near: Box, ring: Circle, alps: Area, focal: list[str]) -> list[Plan]:
    company = "substr(callsign, 1, 3)"
    hour = Window(seconds=3600.0)
    return [
        plan_of(inside=near, aggregate=Aggregate(function="count")),
        plan_of(inside=ring, aggregate=Aggregate(function="avg", argument="altitude")),
        plan_of(
            inside=alps,
            aggregate=Aggregate(function="max", argument="groundspeed", group=company),
        ),
        plan_of(inside=near, aggregate=Aggregate(function="distinct", group=company)),
        plan_of(
            inside=MovingCircle(focal=focal[0], radius_m=50_000.0),
            aggregate=Aggregate(function="count"),
        ),
        plan_of(inside=near, window=Window(seconds=600.0)),
        plan_of(inside=ring, window=Window(tuples=20)),
        plan_of(inside=near, window=hour, aggregate=Aggregate(function="count")),
        plan_of(
            inside=alps,
            window=hour,
            aggregate=Aggregate(function="min", argument="altitude", group=company),
        ),
        plan_of(
            pairs=PairJoin(distance_m=20_000.0), aggregate=Aggregate(function="count")
        ),
    ]


def _framed(near: Box, ring: Circle, focal: list[str]) -> list[Plan]:
    space = Sliding(
        range=Extent(by="space", amount=50_000.0),
        slide=Extent(by="space", amount=10_000.0),
    )
    hour = Sliding(
        range=Extent(by="time", amount=3600.0), slide=Extent(by="time", amount=600.0)
    )
    last = Sliding(range=Extent(by="rows", amount=5))
    speed = Aggregate(function="avgspd")
    return [
        plan_of(frame=Frame(sliding=(space,)), aggregate=speed, emit="rstream"),
        plan_of(
            frame=Frame(sliding=(space,)),
            aggregate=speed,
            where=f"object = '{focal[0]}'",
            emit="rstream",
        ),
        plan_of(frame=Frame(sliding=(hour,)), aggregate=Aggregate(function="count")),
        plan_of(frame=Frame(sliding=(last,), regions=(near,))),
        plan_of(frame=Frame(sliding=(last,)), inside=ring),
        plan_of(
            frame=Frame(sliding=(Sliding(range=Extent(by="time", amount=900.0)),)),
            where=f"object = '{focal[1]}'",
        ),
    ]
