"""The map as a picture: what is drawn where, and that names of other people cannot break it."""

import xml.etree.ElementTree as ET

import numpy as np
import pytest
import shapely

from st_common.geometry.space import GLOBE, PLANE
from st_common.query.plan import Box
from st_common.serving.map_picture import Asked, Features, Scene, draw, view_of

NAMES = {"svg": "http://www.w3.org/2000/svg"}
VIEW = Box(minx=0, miny=0, maxx=10, maxy=5)


def scene(**more: object) -> Scene:
    shapes = {
        "w1": ("park", shapely.box(1, 1, 3, 3) - shapely.box(1.5, 1.5, 2, 2)),
        "w2": ("road", shapely.LineString([(0, 4), (20, 4)])),
        "n1": ("stop", shapely.Point(5, 1)),
        "w3": ("building", shapely.box(100, 100, 101, 101)),
    }
    given = {
        "view": VIEW,
        "features": Features(
            fid=np.array(list(shapes), object),
            kind=np.array([kind for kind, _ in shapes.values()], object),
            geometry=np.array([shape for _, shape in shapes.values()], object),
        ),
        "regions": np.array(
            [[-np.inf, -np.inf, 5, np.inf], [5, -np.inf, np.inf, np.inf]]
        ),
        "queries": (
            Asked(
                name="a<b",
                shape=shapely.box(4, 0, 6, 2),
                objects=frozenset(["x"]),
                partners=frozenset(),
            ),
            Asked(
                name="near",
                shape=None,
                objects=frozenset(["x", "y"]),
                partners=frozenset(["w1", "n1"]),
            ),
        ),
        "ids": np.array(["x", "y", 'z"&', "out"], object),
        "x": np.array([5.0, 2.0, 9.0, 11.0]),
        "y": np.array([1.0, 1.0, 4.5, 1.0]),
        "space": PLANE,
        "note": "© A & B",
    }
    return Scene(**given | more)


def drawn(**more: object) -> ET.Element:
    return ET.fromstring(draw(scene(**more), width=100))


def of_class(svg: ET.Element, *names: str) -> list[ET.Element]:
    return [
        element
        for element in svg.iter()
        if set(names) <= set(element.get("class", "").split())
    ]


def test_it_is_one_well_formed_picture_in_the_shape_of_the_view() -> None:
    assert drawn().get("viewBox") == "0 0 100 50"
    assert float(drawn(space=GLOBE).get("viewBox").split()[3]) == pytest.approx(
        50 / np.cos(np.radians(2.5)), abs=1
    )


def test_a_circle_is_an_ellipse_in_its_box() -> None:
    circle = Asked(
        name="c",
        shape=shapely.box(4, 0, 6, 4),
        objects=frozenset(),
        partners=frozenset(),
        drawn="ellipse",
    )
    (drawn_circle,) = of_class(drawn(queries=(circle,)), "area")
    assert drawn_circle.tag.endswith("ellipse")
    assert [drawn_circle.get(name) for name in ("cx", "cy", "rx", "ry")] == [
        "50",
        "30",
        "10",
        "20",
    ]


def test_features_are_drawn_by_kind_and_cut_at_the_view() -> None:
    svg = drawn()
    assert [element.get("d") for element in of_class(svg, "road")] == ["M0,10 100,10"]
    assert of_class(svg, "park")[0].get("d").count("M") == 2  # a ring and its hole
    assert not of_class(svg, "building")


def test_objects_in_answers_stand_out_and_carry_their_queries() -> None:
    svg = drawn()
    assert len(of_class(svg, "o")) == 3  # one is outside of the view
    (x,) = of_class(svg, "o", "in", "q0")
    assert (x.get("cx"), x.get("cy")) == ("50", "40")
    assert len(of_class(svg, "o", "in", "q1")) == 2
    assert x.find("svg:title", NAMES).text == "x: in a<b, near"


def test_partners_and_rectangles_are_drawn() -> None:
    svg = drawn()
    assert len(of_class(svg, "partner", "q1")) == 2
    (area,) = of_class(svg, "area")
    assert [area.get(name) for name in ("x", "y", "width", "height")] == [
        "40",
        "30",
        "20",
        "20",
    ]
    assert [label.text for label in of_class(svg, "label")] == ["a<b"]


def test_regions_end_at_the_view() -> None:
    boxes = [
        [region.get(name) for name in ("x", "width")]
        for region in of_class(drawn(), "region")
    ]
    assert boxes == [["0", "50"], ["50", "50"]]


def test_nothing_to_draw_is_a_picture_too() -> None:
    empty = np.empty(0)
    nothing = Features(
        fid=empty.astype(object),
        kind=empty.astype(object),
        geometry=empty.astype(object),
    )
    svg = drawn(
        view=view_of(empty, empty),
        features=nothing,
        regions=np.empty((0, 4)),
        queries=(),
        ids=empty,
        x=empty,
        y=empty,
    )
    assert not of_class(svg, "o")


def test_the_view_holds_all_points_with_a_margin() -> None:
    box = view_of(np.array([1.0, 3.0, np.nan]), np.array([2.0, 2.0, 9.0]), margin=0.1)
    assert (box.minx, box.maxx) == (pytest.approx(0.8), pytest.approx(3.2))
    assert box.miny < 2.0 < box.maxy < 3.0
