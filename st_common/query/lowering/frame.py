"""Windows in brackets: which fixes of the stream a query is about (CQL-S section 3, SPEC W2-W5)."""

from collections.abc import Sequence
from functools import partial

from sqlglot import exp

from st_common.query.areas import Areas
from st_common.query.frame import Frame, Sliding
from st_common.query.grammar.nodes import Inside, Reach, Refused, span_of
from st_common.query.lowering.gathered import Gathered
from st_common.query.lowering.options import Chosen
from st_common.query.lowering.quantity import duration, extent_of
from st_common.query.lowering.space import region_of
from st_common.regions.region import MovingRegion, Region


def frame_of(
    windows: Sequence[exp.Expr], chosen: Chosen, areas: Areas, gathered: Gathered
) -> Frame | None:
    """The frame of the windows behind a stream; None without any. A window that is wrong is gathered."""
    if not windows:
        if chosen.of_windows is not None:
            hint = "a window stands in brackets behind the stream: [RANGE BY 50 km RATTR SPACE]"
            gathered.found.append(
                Refused(
                    "this is an option of windows, and there is none",
                    chosen.of_windows,
                    hint,
                )
            )
        return None
    gathered.attempt(partial(_refuse_beside_session, windows, chosen), None)
    read = [gathered.attempt(partial(_window, each, areas), None) for each in windows]
    sessions = [each for each in read if isinstance(each, float)]
    return Frame(
        sliding=tuple(each for each in read if isinstance(each, Sliding)),
        regions=tuple(
            each
            for each in read
            if each is not None and not isinstance(each, Sliding | float)
        ),
        session_s=sessions[0] if sessions else None,
        full=chosen.full,
        min_step_m=chosen.min_step_m,
        origin_s=chosen.origin_s,
    )


def refuse_windows(source: exp.Expr, *, layer: bool) -> None:
    """Refuses windows behind what is joined."""
    for window in source.args.get("windows") or ():
        if layer:
            hint = "a window holds fixes of a stream"
            raise Refused(
                f"{source.name} is a layer, and a layer has no window",
                span_of(window),
                hint,
            )
        raise Refused("a window stands behind the first stream", span_of(window))


def _refuse_beside_session(windows: Sequence[exp.Expr], chosen: Chosen) -> None:
    """A session holds what came since a pause, however long ago: no window slides along it, and none is ever full."""
    kinds = [_kind(each) for each in windows]
    if "session" not in kinds:
        return
    first = kinds.index("session")
    others = [
        each
        for place, each in enumerate(windows)
        if place != first and kinds[place] != "region"
    ]
    if others:
        hint = "regions alone may stand beside it: [RANGE BY region RATTR SPACE]"
        message = "a session stands beside no other window"
        raise Refused(message, span_of(others[0]), hint)
    if chosen.full and chosen.of_windows is not None:
        hint = "it has no range that could be full"
        raise Refused("windows = 'full' is not for sessions", chosen.of_windows, hint)


def _kind(bracket: exp.Expr) -> str:
    """By what a window reaches: "session", "region", or a domain."""
    reach = bracket.this
    return "region" if isinstance(reach.this, Inside) else str(reach.args["by"].name)


def _window(bracket: exp.Expr, areas: Areas) -> Sliding | Region | float:
    """A window that slides, a region, or the pause that ends a session, in seconds."""
    reach, slide = bracket.this, bracket.args.get("slide")
    if reach.args["by"].name == "session":
        return duration(reach.this, "a pause")
    if isinstance(reach.this, Inside):
        return _region(reach, slide, areas)
    step = extent_of(slide.this, slide.args["by"].name) if slide is not None else None
    return Sliding(range=extent_of(reach.this, reach.args["by"].name), slide=step)


def _region(reach: Reach, slide: exp.Expr | None, areas: Areas) -> Region:
    if reach.args["by"].name != "space":
        raise Refused(
            "a region is a range of SPACE",
            span_of(reach),
            "RANGE BY region RATTR SPACE",
        )
    if slide is not None:
        hint = "a window of space or time may stand beside it: [RANGE BY region RATTR SPACE] [RANGE '1 hour']"
        raise Refused("a region stands still: it has no SLIDE", span_of(slide), hint)
    region = region_of(reach.this, areas)
    if isinstance(region, MovingRegion):
        hint = "INSIDE takes a region that goes with an object"
        raise Refused("the region of a window stands still", span_of(reach), hint)
    return region
