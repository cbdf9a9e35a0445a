"""A map as one SVG text: layers, regions, the rectangles of queries, objects where they are now. Needs no network.

Colours are CSS variables with fallbacks, so that a page can set them (and a dark scheme); every dot, rectangle and
partner carries the class `qN` of the queries that it belongs to, so that a page can point at one query's answer.
"""

import html
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import shapely

from st_common.geometry.space import GLOBE, Space
from st_common.query.plan import Box
from st_common.regions.region import Drawn

Floats = npt.NDArray[np.float64]
Objects = npt.NDArray[np.object_]

KINDS = (
    "forest",
    "park",
    "protected",
    "water",
    "building",
    "river",
    "railway",
    "road",
    "stop",
)
"""What is drawn below what; features of other kinds are drawn above them, as outlines."""

_STYLE = """
.map{background:var(--land,#f5f3ee);display:block;width:100%;height:auto}
.map path{stroke-linejoin:round;stroke-linecap:round}
.map .park{fill:var(--park,#d3e6c0)}.map .forest{fill:var(--forest,#bcd8ab)}.map .protected{fill:none}
.map .water{fill:var(--water,#b9d6ea)}.map .building{fill:var(--building,#e2dbd0)}
.map .road{fill:none;stroke:var(--road,#fff);stroke-width:2.6}
.map .road-edge{fill:none;stroke:var(--edge,#d8d0c3);stroke-width:3.8}
.map .river{fill:none;stroke:var(--water,#b9d6ea);stroke-width:2}
.map .railway{fill:none;stroke:var(--rail,#c4bbae);stroke-width:1;stroke-dasharray:5 3}
.map .stop{fill:none}.map .other{fill:none;stroke:var(--edge,#d8d0c3)}
.map .region{fill:none;stroke:var(--region,#7c6cf2);stroke-width:1;stroke-dasharray:2 4;opacity:.8}
.map .partner{fill:var(--answer,#e2552b);fill-opacity:.13;stroke:var(--answer,#e2552b);stroke-width:1.1}
.map .partner.line{fill:none;stroke-opacity:.5;stroke-width:3}
.map .area{fill:var(--query,#1f5fd0);fill-opacity:.07;stroke:var(--query,#1f5fd0);stroke-width:1.8}
.map .label{font:600 17px system-ui,sans-serif;fill:var(--query,#1f5fd0)}
.map .label{stroke:var(--land,#f5f3ee);stroke-width:4;paint-order:stroke}
.map .o{fill:var(--object,#4b5a68);opacity:.55}
.map .o.in{fill:var(--answer,#e2552b);stroke:var(--land,#fff);stroke-width:.8;opacity:1}
.map .note{font:14px system-ui,sans-serif;fill:var(--note,#6b6459)}
.map .note{stroke:var(--land,#f5f3ee);stroke-width:3;paint-order:stroke}
.map .bar{stroke:var(--note,#6b6459);stroke-width:2;fill:none}
"""
_POINT_RADIUS = 4.0
_DOT_RADIUS = 2.3
_MEMBER_RADIUS = 3.4
_LETTER = 9.5  # about how wide a label's letters are


@dataclass(frozen=True, slots=True, kw_only=True)
class Features:
    """Features of layers to draw; arrays of one length.

    Attributes:
        fid: their ids, text.
        kind: their kinds, text; see `KINDS`.
        geometry: Shapely geometries, in the scene's coordinates.
    """

    fid: Objects
    kind: Objects
    geometry: Objects


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A query as the map shows it.

    Attributes:
        name: its name, written beside its region.
        shape: of its region; None: it has none, or it goes with an object that is nowhere.
        objects: the ids of the objects in its answer.
        partners: the ids of the features in its answer.
        drawn: the shape is drawn as the rectangle or the ellipse in its bounds, or along its outline.
    """

    name: str
    shape: shapely.Geometry | None
    objects: frozenset[str]
    partners: frozenset[str]
    drawn: Drawn = "rectangle"


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """What is drawn.

    Attributes:
        view: the part of the world that is shown.
        features: of layers, drawn below everything else.
        regions: float64[n, 4], minx, miny, maxx, maxy of partition regions; outer edges infinite.
        queries: drawn with their answers; the n-th one has the class `qN`.
        ids: object[m], the objects' ids.
        x: float64[m], where they are now.
        y: likewise.
        space: degrees are drawn with true angles at the middle of the view.
        note: a line of text at the bottom, such as the source of the layers.
    """

    view: Box
    features: Features
    regions: Floats
    queries: tuple[Asked, ...]
    ids: Objects
    x: Floats
    y: Floats
    space: Space = GLOBE
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Paper:
    """From the world to the picture: `scale` is pixels per unit, of x and of y."""

    view: Box
    scale: Floats
    width: float
    height: float

    def place(self, points: Floats) -> Floats:
        """Pixels of float64[n, 2], rounded to a tenth, y downwards."""
        corner = np.array([self.view.minx, self.view.maxy])
        return np.asarray(
            np.round((points - corner) * self.scale * np.array([1.0, -1.0]), 1)
        )


def view_of(x: Floats, y: Floats, *, margin: float = 0.03) -> Box:
    """The box that holds some points, a little larger on every side; the unit square for no points.

    Args:
        x: float64[n]; NaN is nowhere.
        y: likewise.
        margin: by which share of its width and height the box grows, on each side.
    """
    known = ~(np.isnan(x) | np.isnan(y))
    if not known.any():
        return Box(minx=0.0, miny=0.0, maxx=1.0, maxy=1.0)
    low = np.array([x[known].min(), y[known].min()])
    high = np.array([x[known].max(), y[known].max()])
    grow = np.maximum((high - low) * margin, 1e-6)
    (minx, miny), (maxx, maxy) = low - grow, high + grow
    return Box(minx=float(minx), miny=float(miny), maxx=float(maxx), maxy=float(maxy))


def draw(scene: Scene, *, width: int = 900) -> str:
    """The map as an `<svg>` element. Features and regions are cut at the view; objects outside of it are left out.

    Args:
        scene: what is drawn.
        width: pixels where nothing scales it; the height follows from the view.
    """
    paper = _paper(scene, width)
    parts = [
        *_layers(scene.features, paper),
        *_regions(scene.regions, paper),
        *_partners(scene, paper),
        *_dots(scene, paper),
        *_areas(scene.queries, paper),
        _legend(scene, paper),
    ]
    size = f"{paper.width:.0f} {paper.height:.0f}"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" class="map" viewBox="0 0 {size}" role="img" aria-label="Map">'
    return "\n".join([head, f"<style>{_STYLE}</style>", *parts, "</svg>"])


def _paper(scene: Scene, width: int) -> _Paper:
    view = scene.view
    squeeze = (
        1.0
        if scene.space.is_flat
        else math.cos(math.radians((view.miny + view.maxy) / 2))
    )
    # A degree of longitude is shorter than one of latitude, by the cosine of the latitude.
    per_x = width / (view.maxx - view.minx)
    scale = np.array([per_x, per_x / squeeze])
    return _Paper(
        view=view,
        scale=scale,
        width=width,
        height=float((view.maxy - view.miny) * scale[1]),
    )


def _layers(features: Features, paper: _Paper) -> Iterable[str]:
    view = paper.view
    cut = shapely.clip_by_rect(
        features.geometry, view.minx, view.miny, view.maxx, view.maxy
    )
    known = [*KINDS, *sorted(set(features.kind.tolist()) - set(KINDS))]
    for kind in known:
        shapes = cut[(features.kind == kind) & ~shapely.is_empty(cut)]
        path = _path(shapes, paper)
        if not path:
            continue
        if kind == "road":
            yield f'<path class="road-edge" d="{path}"/>'
        yield f'<path class="{kind if kind in KINDS else "other"}" fill-rule="evenodd" d="{path}"/>'


def _path(shapes: Objects, paper: _Paper) -> str:
    """All lines and rings of the shapes as one path; points give nothing."""
    parts = shapely.get_parts(shapes)
    parts = shapely.get_parts(parts)  # of collections, which cutting may give
    areas = np.isin(shapely.get_type_id(parts), [3, 6])
    rings = shapely.get_rings(parts[areas])
    lines = parts[shapely.get_type_id(parts) == 1]
    return "".join([*_strokes(rings, paper, "Z"), *_strokes(lines, paper, "")])


def _strokes(lines: Objects, paper: _Paper, end: str) -> Iterable[str]:
    points, of = shapely.get_coordinates(lines, return_index=True)
    words = _words(paper.place(points))
    for part in np.split(words, np.flatnonzero(np.diff(of)) + 1) if len(of) else ():
        yield f"M{' '.join(part.tolist())}{end}"


def _words(pixels: Floats) -> npt.NDArray[np.str_]:
    text = np.char.mod("%g", pixels)
    return np.asarray(np.char.add(np.char.add(text[:, 0], ","), text[:, 1]))


def _regions(regions: Floats, paper: _Paper) -> Iterable[str]:
    view = paper.view
    low = np.maximum(regions[:, :2], [view.minx, view.miny])
    high = np.minimum(regions[:, 2:], [view.maxx, view.maxy])
    seen = (low < high).all(axis=1)
    for corner, opposite in zip(
        paper.place(low[seen]), paper.place(high[seen]), strict=True
    ):
        yield _rectangle("region", corner, opposite)


def _rectangle(name: str, corner: Floats, opposite: Floats, inner: str = "") -> str:
    (left, top), (right, bottom) = (
        np.minimum(corner, opposite),
        np.maximum(corner, opposite),
    )
    size = f'width="{right - left:g}" height="{bottom - top:g}"'
    return f'<rect class="{name}" x="{left:g}" y="{top:g}" {size}>{inner}</rect>'


def _ellipse(name: str, corner: Floats, opposite: Floats, inner: str = "") -> str:
    (x, y), (across, along) = (corner + opposite) / 2, np.abs(opposite - corner) / 2
    return f'<ellipse class="{name}" cx="{x:g}" cy="{y:g}" rx="{across:g}" ry="{along:g}">{inner}</ellipse>'


def _outline(name: str, shape: shapely.Geometry, paper: _Paper, inner: str) -> str:
    view = paper.view
    cut = shapely.clip_by_rect(shape, view.minx, view.miny, view.maxx, view.maxy)
    path = _path(np.array([cut], object), paper)
    return f'<path class="{name}" fill-rule="evenodd" d="{path}">{inner}</path>'


def _partners(scene: Scene, paper: _Paper) -> Iterable[str]:
    """The features that are partners in some answer, once each."""
    asking: dict[str, list[int]] = {}
    for number, query in enumerate(scene.queries):
        for fid in query.partners:
            asking.setdefault(fid, []).append(number)
    wanted = np.isin(scene.features.fid, list(asking))
    view = paper.view
    cut = shapely.clip_by_rect(
        scene.features.geometry[wanted], view.minx, view.miny, view.maxx, view.maxy
    )
    for fid, kind, shape in zip(
        scene.features.fid[wanted], scene.features.kind[wanted], cut, strict=True
    ):
        names = " ".join(f"q{number}" for number in asking[fid])
        title = _title(
            f"{kind} {fid}: in the answer of {', '.join(scene.queries[n].name for n in asking[fid])}"
        )
        if shape.geom_type in ("Point", "MultiPoint") and not shape.is_empty:
            (x, y), *_ = paper.place(shapely.get_coordinates(shape))
            yield f'<circle class="partner {names}" cx="{x:g}" cy="{y:g}" r="{_POINT_RADIUS}">{title}</circle>'
        elif path := _path(np.array([shape], object), paper):
            line = " line" if "Line" in shape.geom_type else ""
            yield f'<path class="partner{line} {names}" fill-rule="evenodd" d="{path}">{title}</path>'


def _dots(scene: Scene, paper: _Paper) -> Iterable[str]:
    """Objects in no answer as one path of dots, below one circle for each object in some answer."""
    view = paper.view
    seen = (
        (scene.x >= view.minx)
        & (scene.x <= view.maxx)
        & (scene.y >= view.miny)
        & (scene.y <= view.maxy)
    )
    asking: dict[str, list[int]] = {}
    for number, query in enumerate(scene.queries):
        for name in query.objects:
            asking.setdefault(name, []).append(number)
    member = np.isin(scene.ids, list(asking))
    points = paper.place(np.stack([scene.x, scene.y], axis=1))
    r = _DOT_RADIUS
    for x, y in points[seen & ~member].tolist():
        yield f'<circle class="o" cx="{x:g}" cy="{y:g}" r="{r}"/>'
    for name, (x, y) in zip(
        scene.ids[seen & member], points[seen & member].tolist(), strict=True
    ):
        names = " ".join(f"q{number}" for number in asking[name])
        title = _title(
            f"{name}: in {', '.join(scene.queries[number].name for number in asking[name])}"
        )
        yield f'<circle class="o in {names}" cx="{x:g}" cy="{y:g}" r="{_MEMBER_RADIUS}">{title}</circle>'


def _areas(queries: Sequence[Asked], paper: _Paper) -> Iterable[str]:
    for number, query in enumerate(queries):
        if query.shape is None:
            continue
        low, high = paper.place(shapely.bounds(query.shape).reshape(2, 2))
        title = _title(f"{query.name}: {len(query.objects)} objects")
        if query.drawn == "outline":
            yield _outline(f"area q{number}", query.shape, paper, title)
        else:
            shape = _ellipse if query.drawn == "ellipse" else _rectangle
            yield shape(f"area q{number}", low, high, title)
        left, top = np.maximum([min(low[0], high[0]), min(low[1], high[1])], 0.0)
        left = min(left, paper.width - _LETTER * len(query.name))
        yield f'<text class="label q{number}" x="{left + 5:g}" y="{top + 20:g}">{html.escape(query.name)}</text>'


def _title(text: str) -> str:
    return f"<title>{html.escape(text)}</title>"


def _legend(scene: Scene, paper: _Paper) -> str:
    """A scale bar of a round length, and the note, at the bottom."""
    y = paper.height - 12
    parts = []
    if scene.note:
        end = f'x="{paper.width - 10:g}" y="{y:g}" text-anchor="end"'
        parts.append(f'<text class="note" {end}>{html.escape(scene.note)}</text>')
    if not scene.space.is_flat:
        per_metre = paper.scale[1] / 111_195
        length_m = 10 ** math.floor(math.log10(paper.width * 0.3 / per_metre))
        length_m *= 2 if length_m * 2 * per_metre < paper.width * 0.3 else 1
        label = f"{length_m:g} m" if length_m < 1000 else f"{length_m / 1000:g} km"
        right = 10 + length_m * per_metre
        parts.append(
            f'<path class="bar" d="M10,{y - 4:g} V{y:g} H{right:.1f} V{y - 4:g}"/>'
        )
        parts.append(f'<text class="note" x="{right + 6:.1f}" y="{y:g}">{label}</text>')
    return "".join(parts)
