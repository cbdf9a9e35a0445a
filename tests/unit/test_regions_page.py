"""The picture of regions: every region at its place, with its load, and deviations as statistics say them."""

import re
import statistics
from pathlib import Path

import numpy as np
import pytest

from st_common.answers.regions_page import partitions, write_regions_page
from st_common.config.home import Home
from st_common.errors import ConfigError
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import store

INF = np.inf
QUARTERS = np.array(
    [
        [-INF, -INF, 0, 0],
        [-INF, 0, 0, INF],
        [0, -INF, INF, 10],
        [0, 10, INF, INF],
    ]
)
ROWS = np.array([8, 2, 4, 6])


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path)
    for rows, strategy in (
        (ROWS * 9, "sample, sedona"),
        (ROWS[::-1], "elements, median"),
        (ROWS, "sample, sedona"),
    ):
        made = Regions(
            group="g",
            version=0,
            region_id=["00", "01", "10", "11"],
            bounds=QUARTERS,
        )
        store(home, made, rows.astype(np.int64), strategy)
    return home


@pytest.mark.spec("B4")
def test_the_newest_version_of_each_strategy_is_shown_with_its_deviations(
    home: Home,
) -> None:
    sample, elements = partitions(home, "g")
    assert [(one.version, one.strategy) for one in (sample, elements)] == [
        (3, "sample, sedona"),
        (2, "elements, median"),
    ]
    assert (sample.rows, sample.mean) == (20, 5.0)
    assert sample.deviation == pytest.approx(statistics.pstdev([8, 2, 4, 6]))
    workers = {number: (mean, deviation) for number, mean, deviation in sample.workers}
    assert workers[2] == (10.0, statistics.pstdev([8 + 4, 2 + 6]))
    assert workers[3] == pytest.approx((20 / 3, statistics.pstdev([8 + 6, 2, 4])))
    assert elements.counted == "the rest of the stream"


@pytest.mark.spec("B4")
def test_the_regions_fill_the_picture_and_touch_where_they_do(home: Home) -> None:
    (one, _) = partitions(home, "g")
    south_west, north_west, south_east, north_east = one.cells
    covered = sum(cell.width * cell.height for cell in one.cells)
    assert covered == pytest.approx(one.width * one.height, rel=1e-3)
    assert south_west.share == 1.0
    assert north_west.y == 0.0
    assert north_east.y == 0.0
    assert south_west.y == pytest.approx(north_west.height, abs=0.2)
    assert south_east.x == pytest.approx(south_west.width, abs=0.2)
    assert south_east.y == pytest.approx(north_east.height, abs=0.2)
    assert south_east.height > south_west.height, (
        "its northern border lies further north"
    )


def test_regions_between_thresholds_are_shown_too(tmp_path: Path) -> None:
    home = Home(tmp_path)
    made = Regions(
        group="g", version=0, region_id=["00", "01", "10", "11"], bounds=QUARTERS
    )
    store(home, made, ROWS.astype(np.int64), "thresholds, median")
    (shown,) = partitions(home, "g")
    assert (shown.strategy, shown.rows) == ("thresholds, median", 20)
    assert shown.counted == "all rows of the source"


def test_the_page_needs_no_network_and_a_group_without_regions_has_none(
    home: Home,
) -> None:
    path = write_regions_page(home, "g")
    assert path == home.root / "reports" / "regions" / "g.html"
    page = path.read_text()
    assert page.count("<rect") == 8
    assert not re.search(r"(src|href)=\W*(http|//)", page)
    for group, said in (("other", "'other' has no regions"), ("../g", "../g")):
        with pytest.raises(ConfigError, match=said):
            write_regions_page(home, group)


def test_a_group_of_one_region_has_a_picture_too(tmp_path: Path) -> None:
    home = Home(tmp_path)
    one = Regions(
        group="g",
        version=0,
        region_id=["0"],
        bounds=np.array([[-INF, -INF, INF, INF]]),
    )
    store(home, one, np.array([7]), "sample, median")
    (shown,) = partitions(home, "g")
    assert (len(shown.cells), shown.deviation) == (1, 0.0)
    assert shown.cells[0].width == shown.width > 0
