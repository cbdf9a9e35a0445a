"""Elements that are boxes: from columns of sides, and as BBoxDB's generators write them."""

import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from st_common.answers.answers import answer
from st_common.config.home import Home
from st_common.config.streams import stream_of_table
from st_common.decode import decode
from st_common.engine.local import LocalEngine
from st_common.errors import ConfigError
from st_common.query.area_store import HomeAreas
from st_common.query.registry import register
from st_common.query.text import parse
from tests.kit.doc_blocks import blocks
from tests.kit.log_writer import bare_log

pytestmark = pytest.mark.spec("B7")

SIDES = ["lo1", "hi1", "lo2", "hi2", "lo3", "hi3", "lo4", "hi4"]


def stream_of(dimensions=2, **others):
    """A stream of boxes; the settings of `others` in the place of its own, without those that are None."""
    table = {
        "format": "csv",
        "columns": {"object": "id", "event_ts": "t", "box": SIDES[: 2 * dimensions]},
        "crs": "planar",
        "time_unit": "s",
        "max_ahead_s": "off",
        **others,
    }
    table = {key: value for key, value in table.items() if value is not None}
    return stream_of_table("boxes", table, Path("streams.toml"))


def decoded(stream, text):
    return decode(text.encode(), arrival_us=0, stream=stream)


def reasons(decoded):
    return dict(
        zip(
            decoded.rejects["row"].to_pylist(),
            decoded.rejects["reason"].to_pylist(),
            strict=True,
        )
    )


def test_a_box_has_its_sides_as_attributes_and_its_middle_as_place():
    stream = stream_of(3, attributes={"kind": "string"})
    assert dict(stream.attributes) == {
        "kind": "string",
        **dict.fromkeys(SIDES[:6], "double"),
    }
    text = "id,t,lo1,hi1,lo2,hi2,lo3,hi3,kind\na,1,2,4,10,20,-5,-5,crane\n"
    (fix,) = decoded(stream, text).fixes.to_pylist()
    assert (fix["x"], fix["y"], fix["kind"]) == (3, 15, "crane")
    assert [fix[name] for name in SIDES[:6]] == [2, 4, 10, 20, -5, -5]


def test_a_box_of_one_dimension_lies_on_a_line():
    (fix,) = decoded(stream_of(1), "id,t,lo1,hi1\na,1,2,5\n").fixes.to_pylist()
    assert (fix["x"], fix["y"], fix["lo1"], fix["hi1"]) == (3.5, 0, 2, 5)


def test_sides_that_are_crossed_missing_or_no_numbers_are_rejects():
    lines = ["a,1,2,4,5,4", "b,1,2,,3,4", "c,1,2,x,3,4", "d,1,2,inf,3,4", "e,1,2,2,3,3"]
    told = decoded(stream_of(), "\n".join(["id,t,lo1,hi1,lo2,hi2", *lines, ""]))
    assert reasons(told) == {
        0: "bad_box",
        1: "missing_position",
        2: "bad_number",
        3: "bad_number",
    }
    assert told.fixes["object"].to_pylist() == ["e"]


def test_each_corner_must_be_on_the_globe():
    stream = stream_of(crs="EPSG:4326")
    text = "id,t,lo1,hi1,lo2,hi2\na,1,170,181,0,1\nb,1,0,1,-91,0\nc,1,-180,180,-90,90\n"
    told = decoded(stream, text)
    assert reasons(told) == {0: "out_of_crs", 1: "out_of_crs"}
    assert told.fixes["object"].to_pylist() == ["c"]


def test_an_object_that_leaves_needs_no_box():
    table = {"object": "id", "event_ts": "t", "box": SIDES[:4], "gone": "gone"}
    stream = stream_of(columns=table)
    told = decoded(stream, "id,t,lo1,hi1,lo2,hi2,gone\na,1,,,,,true\n")
    (fix,) = told.fixes.to_pylist()
    assert (fix["gone"], np.isnan(fix["x"]), fix["lo1"]) == (True, True, None)


@given(
    st.lists(
        st.tuples(*[st.floats(-1e300, 1e300).map(lambda one: one + 0.0)] * 8),
        min_size=1,
        max_size=20,
    ),
    st.integers(1, 4),
)
def test_every_box_is_a_fix_or_a_reject_by_its_sides(rows, dimensions):
    sides = [row[: 2 * dimensions] for row in rows]
    lines = [
        ",".join(["a", "1", *(repr(value) for value in row)]) + "\n" for row in sides
    ]
    head = ",".join(["id", "t", *SIDES[: 2 * dimensions]]) + "\n"
    told = decoded(stream_of(dimensions), head + "".join(lines))
    good = [
        row
        for row in sides
        if all(low <= high for low, high in zip(row[::2], row[1::2], strict=True))
    ]
    names = SIDES[: 2 * dimensions]
    kept = list(zip(*(told.fixes[name].to_pylist() for name in names), strict=True))
    assert kept == good
    assert len(told.rejects) == len(sides) - len(good)
    for fix in told.fixes.to_pylist():
        assert fix["lo1"] <= fix["x"] <= fix["hi1"]


def generated(dimensions=2):
    table = {
        "format": "boxes",
        "columns": {"object": "key", "box": SIDES[: 2 * dimensions]},
        "attributes": {"text": "string"},
        "crs": "planar",
        "max_ahead_s": "off",
    }
    return stream_of_table("boxes", table, Path("streams.toml"))


def test_lines_of_the_generators_are_boxes():
    text = "17 0.25,0.75,3.5,4.0 some text, with a comma\n18\t1,2,3,4\r\n19 1,2,3\n20\n"
    told = decode(
        text.encode() + b"21 1,2,3,4 \xff\n", arrival_us=5, stream=generated()
    )
    rows = told.fixes.to_pylist()
    assert [(row["object"], row["text"]) for row in rows] == [
        ("17", "some text, with a comma"),
        ("18", None),
    ]
    assert [rows[0][name] for name in ("x", "y", *SIDES[:4])] == [
        *(0.5, 3.75),
        *(0.25, 0.75, 3.5, 4.0),
    ]
    assert reasons(told) == {2: "ragged", 3: "ragged", 4: "bad_utf8"}


def test_columns_that_no_line_has_are_a_reject_of_each_line():
    """Settings with such columns are refused; what decodes is total all the same."""
    table = {"object": "id", "box": SIDES[:4]}
    stream = replace(generated(), columns=replace(generated().columns, object="id"))
    told = decode(b"17 1,2,3,4 text\n18 1,2\n", arrival_us=5, stream=stream)
    assert reasons(told) == {0: "missing_column", 1: "ragged"}
    with pytest.raises(ConfigError, match="'id' is no column of boxes"):
        stream_of(format="boxes", time_unit=None, columns=table)


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
def test_generated_boxes_of_all_dimensions_are_read_whole(dimensions):
    random = np.random.default_rng(dimensions)
    low = random.uniform(0, 100, (500, dimensions))
    boxes = np.stack([low, low + random.uniform(0, 5, low.shape)], axis=2)
    lines = [
        f"{at} {','.join(map(repr, box.ravel().tolist()))} {'x' * 200}\n"
        for at, box in enumerate(boxes)
    ]
    told = decoded(generated(dimensions), "".join(lines))
    assert len(told.rejects) == 0
    names = SIDES[: 2 * dimensions]
    kept = np.column_stack([told.fixes[name].to_numpy() for name in names])
    assert np.array_equal(kept, boxes.reshape(500, -1))


@pytest.mark.parametrize(
    ("columns", "others", "wrong"),
    [
        ({"box": SIDES[:3]}, {}, "must be columns of sides"),
        ({"box": [*SIDES, "lo5", "hi5"]}, {}, "must be columns of sides"),
        ({"box": ["a", "a"]}, {}, "each once"),
        ({"box": SIDES[:2], "x": "x", "y": "y"}, {}, "x and y beside box"),
        ({"box": SIDES[:2], "place": "p"}, {}, "box beside place"),
        ({"box": SIDES[:2]}, {"attributes": {"lo1": "long"}}, "lo1 is an attribute by itself"),
        ({"x": "x", "y": "y"}, {"format": "boxes", "time_unit": None}, "box is missing"),
        ({"box": SIDES[:2]}, {"format": "boxes", "time_unit": None}, "no column of boxes"),
    ],
)  # fmt: skip
def test_settings_that_are_wrong_are_named(columns, others, wrong):
    table = {"object": "id", "event_ts": "t", **columns}
    with pytest.raises(ConfigError, match=wrong):
        stream_of(columns=table, **others)


def test_the_conditions_of_the_docs_find_boxes(tmp_path):
    """Those of docs/file-formats.md, on the stream that it describes."""
    page = Path(__file__).parents[2] / "docs" / "file-formats.md"
    (settings,) = [one.text for one in blocks(page) if "[streams.cranes]" in one.text]
    (questions,) = [one.text for one in blocks(page) if one.kind == "sql"]
    table = tomllib.loads(settings)["streams"]["cranes"] | {"max_ahead_s": "off"}
    stream = stream_of_table("cranes", table, tmp_path)
    home = Home(tmp_path)
    said = "".join(
        f"REGISTER QUERY q{number} AS {line.partition('--')[0]};"
        for number, line in enumerate(questions.splitlines())
    )
    register(home, {"cranes": stream}, parse(said, areas=HomeAreas(home)), owner="t")
    rows = ["a,1,0,10,5,9,40,50", "b,1,12,13,1,2,0,12", "c,1,21,30,0,5,30,40"]
    text = "\n".join(["id,t,x0,x1,y0,y1,z0,z1", *rows, ""])
    bare_log(home.log("cranes")).append(text.encode(), arrival_us=0)
    engine = LocalEngine(home, stream)
    while engine.batch():
        pass
    engine.close()
    answers = [answer(home, f"q{n}")["object"].to_pylist() for n in (0, 1)]
    assert answers == [["a"], ["b"]]
