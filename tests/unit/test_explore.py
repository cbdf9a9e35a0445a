"""Maps for notebooks: what is in the page, and what cannot be drawn."""

import json
import re
from typing import Any

import pyarrow as pa
import pytest
import shapely

from st_common.client.result import Result, placed
from st_common.errors import ConfigError

pytestmark = pytest.mark.spec("S9")


def _rows(count: int = 3, crs: str = "EPSG:4326") -> Result:
    return placed(
        pa.table(
            {
                "object": [f"bus {row}" for row in range(count)],
                "line": ["7" if row % 2 else None for row in range(count)],
                "x": pa.array(
                    [None if row == 1 else 24.9 + row for row in range(count)],
                    pa.float64(),
                ),
                "y": pa.array([60.2] * count),
            }
        ),
        crs,
    )


def _data(page: str) -> dict[str, Any]:
    found = re.search(r"const data = /\*DATA\*/ (.*);|const data = (\{.*\});", page)
    assert found is not None
    told: dict[str, Any] = json.loads(found[1] or found[2])
    return told


def test_a_page_has_the_rows_that_have_places_and_counts_the_others() -> None:
    page = _rows().explore(color="line").page
    data = _data(page)
    assert data["x"] == [24.9, 26.9]
    assert data["columns"] == {"object": ["bus 0", "bus 2"], "line": [None, None]}
    assert (data["color"], data["isDegrees"], data["unplaced"]) == ("line", True, 1)


def test_a_plane_is_no_globe() -> None:
    assert _data(_rows(crs="planar").explore().page)["isDegrees"] is False


def test_names_cannot_end_the_script() -> None:
    bad = "</script><script>alert(1)</script>"
    table = pa.table({"object": [bad], "x": [1.0], "y": [2.0]})
    page = placed(table, "EPSG:4326").explore().page
    assert bad not in page
    assert _data(page)["columns"]["object"] == [bad]


def test_a_page_asks_nobody_for_anything() -> None:
    page = _rows().explore().page
    assert "default-src 'none'" in page
    assert not re.search(r"""(src|href)=|url\(|https?://""", page)


@pytest.mark.parametrize(
    "under",
    [
        shapely.box(0, 0, 1, 1),
        {
            "type": "FeatureCollection",
            "features": [
                {
                    "type": "Feature",
                    "geometry": shapely.box(0, 0, 1, 1).__geo_interface__,
                }
            ],
        },
    ],
)
def test_what_lies_below_is_drawn(under: Any) -> None:
    (told,) = _data(_rows().explore(under=under).page)["under"]
    assert told["type"] == "Polygon"
    assert len(told["coordinates"][0]) == 5


def test_what_cannot_be_drawn_is_said() -> None:
    with pytest.raises(ConfigError, match="no column 'route'"):
        _rows().explore(color="route")
    with pytest.raises(ConfigError, match="a str cannot be drawn"):
        _rows().explore(under="forest")
    with pytest.raises(ConfigError, match="these rows have no places"):
        Result(pa.table({"n": [1]})).explore()
    with pytest.raises(
        ConfigError, match="at most 200,000 rows, and these are 200,001"
    ):
        _rows(200_002).explore()


def test_a_notebook_gets_a_frame(tmp_path: Any) -> None:
    shown = _rows().explore()
    framed = shown._repr_html_()  # what notebooks call
    assert framed.startswith("<iframe srcdoc=")
    assert framed.count('"') == 6
    shown.save(tmp_path / "map.html")
    assert (tmp_path / "map.html").read_text() == shown.page
