"""Boxes of one to four dimensions: who meets a box, whatever the order in which versions come (SPEC B1)."""

import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.answers.answers import answer
from st_common.config.home import Home
from st_common.config.stream import StreamSettings
from st_common.config.streams import stream_of_table
from st_common.engine.local import LocalEngine
from st_common.errors import QueryError
from st_common.query.area_store import HomeAreas
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.effort import tries
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("B1")

SIDES = ["lo1", "hi1", "lo2", "hi2", "lo3", "hi3", "lo4", "hi4"]
side = st.integers(0, 6)
extents = st.tuples(side, side).map(sorted)
boxes = st.lists(extents, min_size=4, max_size=4)
versions = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 9), boxes),
    min_size=1,
    max_size=30,
)


def stream_of(dimensions: int) -> StreamSettings:
    table = {
        "format": "csv",
        "columns": {"object": "id", "event_ts": "t", "box": SIDES[: 2 * dimensions]},
        "crs": "planar",
        "time_unit": "s",
        "max_ahead_s": "off",
        "engine": "local",
    }
    return stream_of_table("boxes", table, Path("streams.toml"))


def meeting(box: list[list[int]]) -> str:
    """A condition: the stream's box meets another; touching ones do."""
    return " AND ".join(
        f"lo{axis + 1} <= {high} AND hi{axis + 1} >= {low}"
        for axis, (low, high) in enumerate(box)
    )


def write(home: Home, dimensions: int, rows) -> None:
    log = bare_log(home.log("boxes"))
    head = ",".join(["id", "t", *SIDES[: 2 * dimensions]])
    for name, second, box in rows:
        values = [value for extent in box[:dimensions] for value in extent]
        text = f"{head}\n{','.join(map(str, [name, second, *values]))}\n"
        log.append(text.encode(), arrival_us=0)


def answers_of(home: Home, dimensions: int, rows, texts: dict[str, str]):
    """Who is in each of some queries, by name, once all rows have come."""
    stream = stream_of(dimensions)
    said = "".join(f"REGISTER QUERY {name} AS {text};" for name, text in texts.items())
    register(home, {"boxes": stream}, parse(said, areas=HomeAreas(home)), owner="t")
    write(home, dimensions, rows)
    engine = LocalEngine(home, stream)
    while engine.batch():
        pass
    engine.close()
    return {name: set(answer(home, name)["object"].to_pylist()) for name in texts}


@tries(60)
@given(versions, boxes, st.integers(1, 4))
def test_who_meets_a_box_is_who_does_by_the_newest_version_of_each(
    rows, asked, dimensions
):
    """A newer version replaces, a late older one never does; of two of one time the first in the log counts."""
    newest: dict[str, tuple[int, list[list[int]]]] = {}
    for name, second, box in rows:
        if name not in newest or second > newest[name][0]:
            newest[name] = second, box
    expected = {
        name
        for name, (_, box) in newest.items()
        if all(
            box[axis][0] <= asked[axis][1] and box[axis][1] >= asked[axis][0]
            for axis in range(dimensions)
        )
    }
    with tempfile.TemporaryDirectory() as folder:
        text = f"SELECT * FROM boxes WHERE {meeting(asked[:dimensions])}"
        answers = answers_of(Home(Path(folder)), dimensions, rows, {"meets": text})
        assert answers == {"meets": expected}


def test_touching_boxes_meet_and_points_are_boxes(tmp_path):
    rows = [
        ("touches", 1, [[0, 2], [0, 9]]),
        ("corner", 1, [[4, 5], [4, 5]]),
        ("point", 1, [[3, 3], [3, 3]]),
        ("beside", 1, [[5, 6], [2, 4]]),
    ]
    texts = {
        "meets": f"SELECT * FROM boxes WHERE {meeting([[2, 4], [2, 4]])}",
        "within": "SELECT * FROM boxes WHERE lo1 >= 3 AND hi1 <= 5 AND lo2 >= 3 AND hi2 <= 5",
        "first": f"SELECT * FROM boxes WHERE {meeting([[5, 9]])}",
    }
    assert answers_of(Home(tmp_path), 2, rows, texts) == {
        "meets": {"touches", "corner", "point"},
        "within": {"corner", "point"},
        "first": {
            "corner",
            "beside",
        },  # a projection on the first dimension, as it says
    }


def test_a_dimension_that_a_stream_has_not_is_an_error_that_names_it(tmp_path):
    text = f"SELECT * FROM boxes WHERE {meeting([[0, 1]] * 3)}"
    with pytest.raises(QueryError, match="lo3"):
        answers_of(Home(tmp_path), 2, [], {"three": text})
