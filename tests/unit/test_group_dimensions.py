"""Groups of one to four dimensions: boxes as generators write them, by commands, and every cell looked at by hand."""

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from deltalake import DeltaTable
from deltalake import Schema as DeltaSchema
from typer.testing import CliRunner

from jobs import partition
from st_common import tables
from st_common.answers.regions_page import partitions, write_regions_page
from st_common.cli import app
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.partitioning.kdtree import median_split
from st_common.partitioning.regions import Regions
from st_common.partitioning.store import current, store
from st_common.quality.home_check import check_now

pytestmark = [
    pytest.mark.spec("B2"),
    pytest.mark.filterwarnings(
        "default:::great_expectations"
    ),  # its own affair; ours stay errors
]

EDGES = [("minx", "maxx"), ("miny", "maxy"), ("lo3", "hi3"), ("lo4", "hi4")]
SPACE, SHARE = 100.0, 1e-4  # a box covers .01 % of its space (SPEC B20)
STREAM = """
[streams.{name}]
format = "boxes"
columns = {{ object = "key", box = {sides} }}
crs = "planar"
max_ahead_s = "off"
engine = "local"
group = "{group}"
"""
PLACES = """
[streams.{name}]
format = "csv"
columns = {{ object = "id", x = "x", y = "y" }}
crs = "planar"
engine = "local"
group = "{group}"
"""
PARK = {
    "type": "Feature",
    "properties": {"kind": "park"},
    "geometry": {"type": "Polygon", "coordinates": [[[1, 1], [4, 1], [4, 4], [1, 1]]]},
}
Fairway = Callable[..., tuple[int, str]]


@pytest.fixture
def fairway(tmp_path: Path) -> Fairway:
    """Runs a command; gives its exit code and what it says."""
    (tmp_path / "conf").mkdir()
    places = [f"--home={tmp_path / 'home'}", f"--conf={tmp_path / 'conf'}"]

    def run(*words: str) -> tuple[int, str]:
        done = CliRunner().invoke(app, [*places, *words], prog_name="fairway")
        return done.exit_code, done.output

    return run


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def settings(folder: Path, *streams: tuple[str, int], group: str = "space") -> None:
    """Streams by name and number of dimensions, in one group; 0 for streams of places."""
    text = ""
    for name, dimensions in streams:
        sides = [f"{side}{n + 1}" for n in range(dimensions) for side in ("lo", "hi")]
        form = STREAM if dimensions else PLACES
        text += form.format(name=name, group=group, sides=json.dumps(sides))
    (folder / "conf" / "streams.toml").write_text(text)


def boxes(count: int, dimensions: int, seed: int, at: float = 0.0) -> np.ndarray:
    """Uniform boxes with equal sides; float64[n, d, 2]."""
    side = SPACE * SHARE ** (1 / dimensions)
    low = np.random.default_rng(seed).uniform(
        at, at + SPACE - side, (count, dimensions)
    )
    return np.stack([low, low + side], axis=2)


def captured(fairway: Fairway, folder: Path, stream: str, made: np.ndarray) -> None:
    rows = made.reshape(len(made), -1).tolist()
    lines = [
        f"{key} {','.join(map(repr, row))} {'v' * 200}\n"
        for key, row in enumerate(rows)
    ]
    (folder / "boxes.txt").write_text("".join(lines))
    code, said = fairway("replay", stream, str(folder / "boxes.txt"))
    assert code == 0, said


def cells_of(home: Home, group: str = "space") -> list[dict]:
    """The newest regions of a group, as their table says it."""
    rows = tables.read(home.table("regions"), filters=[("group", "=", group)])
    newest = pc.max(rows["version"]).as_py()
    return [row for row in rows.to_pylist() if row["version"] == newest]


def cells_with(cells: list[dict], middle: np.ndarray) -> list[str]:
    """Every cell in which a point lies, edge by edge."""
    return [
        cell["region_id"]
        for cell in cells
        if all(
            cell[low] <= value < cell[high]
            for value, (low, high) in zip(middle, EDGES, strict=False)
        )
    ]


def positions(home: Home, stream: str) -> dict[str, dict]:
    rows = tables.read(home.table("positions", stream)).to_pylist()
    return {row["object"]: row for row in rows}


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
@pytest.mark.parametrize("strategy", ["elements", "sample", "thresholds"])
def test_each_box_lies_in_the_one_region_of_its_middle(
    tmp_path: Path, fairway: Fairway, home: Home, dimensions: int, strategy: str
) -> None:
    """Of two streams of a group, whose regions are the same."""
    settings(tmp_path, ("many", dimensions), ("few", dimensions))
    made = {"many": boxes(200, dimensions, 1), "few": boxes(90, dimensions, 2)}
    for stream, rows in made.items():
        captured(fairway, tmp_path, stream, rows)
    options = {
        "elements": ("--first", "150", "--regions", "16"),
        # 320 would be enough for Sedona's tree: no Spark is started
        "sample": ("--regions", "16"),
        "thresholds": ("--upper", "25", "--lower", "5"),
    }
    code, said = fairway(
        "partition", "space", "--strategy", strategy, *options[strategy]
    )
    assert code == 0, said
    space = "" if dimensions == 2 else f" in {dimensions}-D"
    assert f"16 regions{space} by {strategy} (median split" in said
    cells = cells_of(home)
    assert {cell["dimensions"] for cell in cells} == {dimensions}
    for axis, edges in enumerate(EDGES):
        sides = [cell[name] for cell in cells for name in edges]
        if axis < dimensions:
            assert np.isfinite(sides).any(), "each dimension is split"
        else:
            assert set(sides) == ({-np.inf, np.inf} if axis == 1 else {None})
    counted = dict.fromkeys((cell["region_id"] for cell in cells), 0)
    left_out = 150 if strategy == "elements" else 0
    for stream, rows in made.items():
        assert fairway("run", stream, "--until-idle")[0] == 0
        stored = positions(home, stream)
        for key, middle in enumerate(rows.mean(axis=2)):
            (region,) = cells_with(cells, middle)
            row = stored[str(key)]
            assert (row["region_id"], row["region_version"]) == (region, 1)
            counted[region] += not (stream == "many" and key < left_out)
    assert {cell["region_id"]: cell["rows"] for cell in cells} == counted
    if strategy != "elements":
        assert max(counted.values()) <= 25


def test_places_are_split_as_they_were(
    tmp_path: Path, fairway: Fairway, home: Home
) -> None:
    settings(tmp_path, ("cars", 0))
    places = [(0, 0), (1, 5), (2, 1), (3, 4), (6, 0), (7, 3), (8, 2), (9, 9)]
    lines = [f"{name},{x},{y}\n" for name, (x, y) in enumerate(places)]
    (tmp_path / "cars.csv").write_text("".join(["id,x,y\n", *lines]))
    assert fairway("replay", "cars", str(tmp_path / "cars.csv"))[0] == 0
    assert fairway("partition", "space", "--regions", "4")[0] == 0
    inf, names = np.inf, [name for pair in EDGES for name in pair]
    rows = sorted(cells_of(home), key=lambda cell: cell["region_id"])
    assert [(one["region_id"], [one[name] for name in names]) for one in rows] == [
        ("00", [-inf, 6, -inf, 4, None, None, None, None]),
        ("01", [-inf, 6, 4, inf, None, None, None, None]),
        ("10", [6, inf, -inf, 3, None, None, None, None]),
        ("11", [6, inf, 3, inf, None, None, None, None]),
    ]


@pytest.mark.parametrize("dimensions", [1, 2, 3, 4])
def test_a_region_that_grows_is_split_and_the_others_stay(
    tmp_path: Path, fairway: Fairway, home: Home, dimensions: int
) -> None:
    settings(tmp_path, ("boxes", dimensions))
    captured(fairway, tmp_path, "boxes", boxes(200, dimensions, 1))
    partitioned = ("partition", "space", "--strategy", "thresholds")
    assert fairway(*partitioned, "--upper", "60", "--lower", "10")[0] == 0
    before = {cell["region_id"]: cell for cell in cells_of(home)}
    assert len(before) == 4
    (full,) = cells_with(list(before.values()), np.full(dimensions, 2 * SPACE))
    captured(fairway, tmp_path, "boxes", boxes(100, dimensions, 2, at=2 * SPACE))
    assert fairway(*partitioned)[0] == 0
    after = {cell["region_id"]: cell for cell in cells_of(home)}
    kept = before.keys() & after.keys()
    assert kept == before.keys() - {full}
    names = [name for pair in EDGES for name in pair]
    for path in kept:
        assert [before[path][one] for one in names] == [
            after[path][one] for one in names
        ]
    assert all(path.startswith(full) for path in after.keys() - kept)
    assert sum(cell["rows"] for cell in after.values()) == 300
    assert max(cell["rows"] for cell in after.values()) <= 60


def test_siblings_that_hold_little_become_one_again(
    tmp_path: Path, fairway: Fairway, home: Home
) -> None:
    settings(tmp_path, ("boxes", 3))
    captured(fairway, tmp_path, "boxes", boxes(100, 3, 1))
    words = ("partition", "space", "--strategy", "thresholds")
    assert fairway(*words, "--upper", "20", "--lower", "5")[0] == 0
    assert len(cells_of(home)) == 8
    assert fairway(*words, "--upper", "60", "--lower", "30")[0] == 0
    assert sorted(cell["region_id"] for cell in cells_of(home)) == [
        "00",
        "01",
        "10",
        "11",
    ]
    assert fairway(*words, "--upper", "900", "--lower", "300")[0] == 0
    (cell,) = cells_of(home)
    assert (cell["region_id"], cell["dimensions"], cell["hi3"]) == ("0", 3, np.inf)
    assert current(home, "space").bounds.tolist() == [[-np.inf] * 3 + [np.inf] * 3]


@pytest.mark.parametrize("strategy", ["sample", "elements", "thresholds"])
def test_streams_of_different_dimensions_are_no_group(
    tmp_path: Path, fairway: Fairway, home: Home, strategy: str
) -> None:
    settings(tmp_path, ("cars", 0), ("cranes", 3))
    words = ("partition", "space", "--strategy", strategy, "--upper", "9")
    code, said = fairway(*words)
    assert code == 2
    both = "stream 'cars' has 2 dimensions, stream 'cranes' has 3 dimensions"
    assert f"group 'space': {both}" in " ".join(said.split())
    code, said = fairway(*words, "--source", "stream:cranes")
    assert (code, both in " ".join(said.split())) == (2, True)
    assert not tables.exists(home.table("regions"))


def test_the_job_says_it_too(
    tmp_path: Path, fairway: Fairway, capsys: pytest.CaptureFixture[str]
) -> None:
    settings(tmp_path, ("prices", 1), ("cars", 0))
    places = [f"--home={tmp_path / 'home'}", f"--conf={tmp_path / 'conf'}"]
    assert partition.main(["space", "--strategy=elements", *places]) == 2
    said = capsys.readouterr().err
    assert "stream 'prices' has 1 dimension, stream 'cars' has 2 dimensions" in said


def test_a_file_of_places_does_not_split_a_group_of_boxes(
    tmp_path: Path, fairway: Fairway
) -> None:
    settings(tmp_path, ("boxes", 3))
    (tmp_path / "places.csv").write_text("x,y\n1,2\n")
    code, said = fairway("partition", "space", "--source", str(tmp_path / "places.csv"))
    told = " ".join(said.split())
    assert (code, "stream 'boxes' has 3 dimensions" in told) == (2, True)
    assert "places.csv has 2 dimensions" in told


def test_several_groups_of_each_dimension_have_regions_of_their_own(
    tmp_path: Path, fairway: Fairway, home: Home
) -> None:
    groups = [
        (f"g{dimensions}{at}", dimensions) for dimensions in (1, 2, 3, 4) for at in "ab"
    ]
    text = ""
    for group, dimensions in groups:
        settings(tmp_path, (f"s_{group}", dimensions), group=group)
        text += (tmp_path / "conf" / "streams.toml").read_text()
    (tmp_path / "conf" / "streams.toml").write_text(text)
    for seed, (group, dimensions) in enumerate(groups):
        captured(fairway, tmp_path, f"s_{group}", boxes(40, dimensions, seed))
        words = ("partition", group, "--strategy", "elements", "--regions", "4")
        assert fairway(*words)[0] == 0
    for seed, (group, dimensions) in enumerate(groups):
        regions = current(home, group)
        assert (regions.version, regions.dimensions) == (1, dimensions)
        middles = boxes(40, dimensions, seed).mean(axis=2)
        split = median_split(middles, 4)
        assert (regions.region_id, regions.bounds.tolist()) == (
            split.paths,
            split.bounds.tolist(),
        )


def layer_file(folder: Path) -> str:
    (folder / "parks.geojson").write_text(json.dumps(PARK))
    (folder / "conf" / "layers.toml").write_text(
        '[kinds.park]\ngeometry = "area"\ntags = ["kind=park"]\n'
    )
    return str(folder / "parks.geojson")


def test_a_layer_is_no_part_of_a_group_of_three_dimensions(
    tmp_path: Path, fairway: Fairway, home: Home
) -> None:
    settings(tmp_path, ("boxes", 3))
    captured(fairway, tmp_path, "boxes", boxes(50, 3, 1))
    load = ("layer", "load", "parks", layer_file(tmp_path), "--crs", "planar")
    words = ("partition", "space", "--strategy", "elements", "--regions", "4")
    assert fairway(*load, "--group", "space")[0] == 0, "no regions yet"
    code, said = fairway(*words)
    told = " ".join(said.split())
    assert (code, "layer 'parks' has 2 dimensions" in told) == (2, True)
    assert "stream:boxes" in told or "stream 'boxes' has 3 dimensions" in told
    assert fairway(*load, "--group", "other")[0] == 0
    assert fairway(*words)[0] == 0
    code, said = fairway(*load, "--group", "space")
    told = " ".join(said.split())
    assert (code, "layer 'parks' has 2" in told) == (2, True)
    assert "version 1 of its regions has 3 dimensions" in told


def test_a_stream_that_came_later_is_told_that_the_regions_are_others(
    tmp_path: Path, fairway: Fairway, home: Home
) -> None:
    settings(tmp_path, ("flat", 2))
    captured(fairway, tmp_path, "flat", boxes(50, 2, 1))
    words = ("partition", "space", "--strategy", "elements", "--regions", "4")
    assert fairway(*words)[0] == 0
    settings(tmp_path, ("flat", 2), ("deep", 3))
    captured(fairway, tmp_path, "deep", boxes(50, 3, 1))
    code, said = fairway("run", "deep", "--until-idle")
    told = " ".join(said.split())
    assert code == 2
    assert (
        "version 1 of its regions has 2 dimensions, stream 'deep' has 3 dimensions"
        in told
    )
    assert fairway("run", "flat", "--until-idle")[0] == 0
    settings(tmp_path, ("deep", 3), group="depths")
    assert fairway("run", "deep", "--until-idle")[0] == 0, "as the error says"
    assert len(positions(home, "deep")) == 50


def older_table(home: Home, rows: dict[str, list]) -> None:
    """A table of regions as it was written before regions had dimensions."""
    contract = load_contract("regions")
    schema = contract.arrow_schema()
    old = pa.schema(list(schema)[: schema.get_field_index("dimensions")])
    path = home.table("regions")
    DeltaTable.create(
        str(path),
        DeltaSchema.from_arrow(old),
        partition_by=list(contract.partition_by),
        configuration=dict(contract.properties),
    )
    count = len(rows["region_id"])
    known = {
        "group": ["space"] * count,
        "version": [1] * count,
        "rows": [1] * count,
        "strategy": ["thresholds, median"] * count,
        "std_deviation": [0.0] * count,
        **rows,
    }
    columns = {
        field.name: pa.array(known.get(field.name, [None] * count), field.type)
        for field in old
    }
    from deltalake import write_deltalake

    write_deltalake(str(path), pa.table(columns, schema=old), mode="append")


HALVES = {
    "region_id": ["0", "1"],
    "minx": [-np.inf, 50.0],
    "miny": [-np.inf, -np.inf],
    "maxx": [50.0, np.inf],
    "maxy": [np.inf, np.inf],
    "t_upper": [30.0, 30.0],
    "t_lower": [5.0, 5.0],
    "unit": ["rows", "rows"],
}


@pytest.mark.parametrize("dimensions", [1, 2, 3])
def test_regions_of_an_older_table_are_of_x_and_y_until_the_group_is_partitioned(
    tmp_path: Path, fairway: Fairway, home: Home, dimensions: int
) -> None:
    older_table(home, HALVES)
    wrong = [finding for finding in check_now(home) if not finding.passed]
    assert wrong == []
    settings(tmp_path, ("boxes", dimensions))
    made = boxes(80, dimensions, 1)
    captured(fairway, tmp_path, "boxes", made)
    assert fairway("run", "boxes", "--until-idle")[0] == 0
    for key, middle in enumerate(made.mean(axis=2)):
        assert positions(home, "boxes")[str(key)]["region_id"] == str(
            int(middle[0] >= 50)
        )
    code, said = fairway("partition", "space", "--strategy", "thresholds")
    assert code == 0, said
    regions, cells = current(home, "space"), cells_of(home)
    assert (regions.version, regions.dimensions) == (2, dimensions)
    is_kept = all(
        path[0] == "1" or cell["maxx"] <= 50
        for path, cell in zip(
            regions.region_id,
            sorted(cells, key=lambda one: one["region_id"]),
            strict=True,
        )
    )
    assert is_kept or dimensions != 2, "what was split is split further"
    assert max(cell["rows"] for cell in cells) <= 30
    both = tables.read(home.table("regions"), contract=load_contract("regions"))
    assert len(both) == 2 + len(cells), "the first version is still there"
    assert [finding for finding in check_now(home) if not finding.passed] == []


def test_edges_that_do_not_fit_the_dimensions_are_found(home: Home) -> None:
    split = median_split(np.random.default_rng(1).uniform(0, 9, (50, 3)), 4)
    made = Regions(group="g", version=0, region_id=split.paths, bounds=split.bounds)
    store(home, made, np.full(4, 1), "elements, median")
    assert all(finding.passed for finding in check_now(home))
    rows = tables.read(home.table("regions"))
    place = rows.schema.get_field_index("hi3")
    broken = rows.set_column(place, "hi3", pa.nulls(4, pa.float64()))
    tables.replace(home.table("regions"), broken, load_contract("regions"))
    wrong = {finding.rule for finding in check_now(home) if not finding.passed}
    assert wrong == {"edges_of_each_dimension"}


@pytest.mark.parametrize("dimensions", [1, 3])
def test_the_report_draws_each_rectangle_once(
    home: Home, dimensions: int, capsys: pytest.CaptureFixture[str]
) -> None:
    points = np.random.default_rng(1).uniform(0, 9, (200, dimensions))
    split = median_split(points, 8)
    made = Regions(group="g", version=0, region_id=split.paths, bounds=split.bounds)
    store(home, made, np.arange(8), "elements, median")
    (shown,) = partitions(home, "g")
    assert (shown.regions, shown.dimensions, shown.rows) == (8, dimensions, 28)
    names = [name for cell in shown.cells for name in cell.name.split(", ")]
    assert sorted(names) == split.paths
    assert sum(cell.rows for cell in shown.cells) == 28
    assert max(cell.share for cell in shown.cells) == 1.0
    # 8 cells are split once in each of three dimensions: two lie above each other
    assert len(shown.cells) == (4 if dimensions == 3 else 8)
    covered = sum(cell.width * cell.height for cell in shown.cells)
    assert covered == pytest.approx(shown.width * shown.height, rel=1e-2)
    page = write_regions_page(home, "g").read_text()
    assert page.count("<rect") == len(shown.cells)
    assert "8 regions" in page
    assert ("3 dimensions" in page) == (dimensions == 3)
    assert ("<text" in page) == (dimensions == 1), (
        "numbers above each other say nothing"
    )
