"""How evenly regions share a stream out: figures 26 and 27 of BBoxDB Streams, on real streams and a generated one.

    .venv/bin/python -m bench.partitioning [riga|aircraft|roads ...]

Regions come of the first n elements of a stream, or of a sample of all of it; the rest of the stream (for a sample: all
of it) is counted in them, by region and by node, as regions are dealt out in turn. Every count is found once more by
DuckDB from the edges in the table `regions`; where the two differ it ends with an error. Prints tables in Markdown.
"""

import gzip
import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import duckdb
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from demo.simulation.network import read_network
from demo.simulation.traffic import PLACE, rounds
from st_common import tables
from st_common.batch.prepartition import ELEMENTS, LOCAL, SAMPLE, prepartition
from st_common.config.home import Home
from st_common.partitioning.sample import Floats, PointSource
from st_common.partitioning.splitting import PointEngine
from st_common.processes.partitioning import engine_of

Points = tuple[Floats, Floats]
DATA = Path(__file__).resolve().parents[2] / "shared" / "data"
FIRST = (20_000, 50_000)
REGIONS = (10, 20, 40, 100, 200, 400, 1000)
NODES = 5
SHARE, SAMPLED_REGIONS = 0.002, 40
_UNITS = 100  # of the generated stream, some 10,000 reports each
_BATCH = 100_000

# Cells are half-open, and infinite at the outer edges.
_RECOUNT = """
SELECT count(p.x) FROM regions r LEFT JOIN points p
ON p.x >= r.minx AND p.x < r.maxx AND p.y >= r.miny AND p.y < r.maxy
WHERE r.version = $version GROUP BY r.region_id ORDER BY r.region_id"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Spread:
    """How the counted elements lie in the regions of one partitioning.

    Attributes:
        strategy: `sample` or `elements`.
        wanted: how many regions were asked for.
        chosen: how many elements the regions come of.
        per_region: how many of the counted elements each region has, in the order of region ids.
        per_node: and each node, where regions are dealt out in turn.
    """

    strategy: str
    wanted: int
    chosen: int
    per_region: tuple[int, ...]
    per_node: tuple[int, ...]

    @property
    def of_regions(self) -> float:
        """The standard deviation over the regions."""
        return statistics.pstdev(self.per_region)

    @property
    def of_nodes(self) -> float:
        """The standard deviation over the nodes."""
        return statistics.pstdev(self.per_node)


def riga() -> Points:
    """Longitude and latitude of buses and trams of Riga for an hour, as they were polled."""
    path = DATA / "gtfsrt-riga" / "riga_vehicle_positions.parquet"
    rows = pq.read_table(path, columns=["longitude", "latitude"])
    return _numbers(rows["longitude"]), _numbers(rows["latitude"])


def aircraft() -> Points:
    """Longitude and latitude of aircraft over Switzerland for a day, by time."""
    packed = (DATA / "adsb-switzerland" / "switzerland.json.gz").read_bytes()
    rows = sorted(json.loads(gzip.decompress(packed)), key=lambda row: row["timestamp"])
    x, y = ([row[name] for row in rows] for name in ("longitude", "latitude"))
    return _numbers(x), _numbers(y)


def roads() -> Points:
    """Reports of PLACE's moving objects on the roads of Oldenburg, generated with a seed."""
    network = read_network(DATA / "roadnet-oldenburg")
    made = list(rounds(network, replace(PLACE, units=_UNITS), seed=1))
    x, y = (np.concatenate([getattr(one, axis) for one in made]) for axis in "xy")
    return x, y


def _numbers(values: npt.ArrayLike) -> Floats:
    return np.asarray(values, dtype=np.float64)


STREAMS: dict[str, Callable[[], Points]] = {
    "riga": riga,
    "aircraft": aircraft,
    "roads": roads,
}


def spread(
    home: Home,
    points: Points,
    engine: PointEngine = LOCAL,
    *,
    strategy: str,
    regions: int,
    first: int = 1,
) -> Spread:
    """Partitions a group by a stream, and counts the stream in its regions.

    Args:
        home: takes the regions, as the next version of the group `bench`.
        points: x and y of all elements, in the order of the stream.
        engine: reads them and splits space.
        strategy: `sample` or `elements`.
        regions: how many are wanted.
        first: how many elements make them, for `elements`.

    Raises:
        ValueError: DuckDB counts something else.
    """

    def batches() -> Iterator[Floats]:
        for at in range(0, len(points[0]), _BATCH):
            yield np.column_stack([axis[at : at + _BATCH] for axis in points])

    done = prepartition(
        home,
        "bench",
        PointSource(name="a stream", dimensions=2, read=batches),
        strategy=strategy,
        regions=regions,
        share=SHARE,
        elements=first,
        workers=NODES,
        engine=engine,
    )
    counted_from = first if strategy == ELEMENTS else 0
    per_region = recounted(home, points, counted_from, done.version)
    spread = Spread(
        strategy=strategy,
        wanted=regions,
        chosen=done.chosen,
        per_region=per_region,
        per_node=tuple(sum(per_region[node::NODES]) for node in range(NODES)),
    )
    told = (done.rows, done.std_deviation, done.std_deviation_workers)
    again = (sum(per_region), spread.of_regions, spread.of_nodes)
    if not np.allclose(told, again, rtol=1e-9):
        raise ValueError(f"{strategy}, {regions} regions: told {told}, counted {again}")
    return spread


def recounted(home: Home, points: Points, start: int, version: int) -> tuple[int, ...]:
    """How many points from one on lie in each region of a version, by the edges in the table alone."""
    x, y = points
    with duckdb.connect() as connection:
        connection.register("regions", tables.read(home.table("regions")))
        connection.register("points", pa.table({"x": x[start:], "y": y[start:]}))
        rows = connection.execute(_RECOUNT, {"version": version}).fetchall()
    return tuple(count for (count,) in rows)


def spreads(home: Home, points: Points) -> list[Spread]:
    """By the first elements with each number of regions, then by a sample."""
    by_elements = [
        spread(home, points, strategy=ELEMENTS, regions=regions, first=first)
        for first in FIRST
        for regions in REGIONS
    ]
    with engine_of(home, "bench", "spark") as engine:
        sampled = spread(home, points, engine, strategy=SAMPLE, regions=SAMPLED_REGIONS)
    return [*by_elements, sampled]


def share(counts: Sequence[int]) -> str:
    """The standard deviation of counts beside their mean, in percent."""
    return f"{statistics.pstdev(counts) / statistics.mean(counts):.1%}"


def figure_26(made: Mapping[str, Sequence[Spread]]) -> Iterator[str]:
    """Rows of a table: how many elements each node has, with 40 regions."""
    nodes = [f"node {node}" for node in range(1, NODES + 1)]
    yield row("stream", "regions by", *nodes, "deviation")
    yield row(*["---"] * (NODES + 3))
    for name, spreads in made.items():
        for one in spreads:
            if one.wanted == SAMPLED_REGIONS:
                counts = (f"{count:,}" for count in one.per_node)
                by = f"{one.chosen:,}, {one.strategy}"
                yield row(name, by, *counts, f"{one.of_nodes:,.0f}")


def figure_27(made: Mapping[str, Sequence[Spread]]) -> Iterator[str]:
    """Rows of a table: deviations over regions and over nodes, in percent of the mean, by number of regions."""
    columns = [(name, first) for name in made for first in FIRST]
    yield row("regions", *(f"{name}, first {first:,}" for name, first in columns))
    yield row(*["---"] * (len(columns) + 1))
    of = {
        (
            name,
            one.chosen,
            one.wanted,
        ): f"{share(one.per_region)}, {share(one.per_node)}"
        for name, spreads in made.items()
        for one in spreads
        if one.strategy == ELEMENTS
    }
    for regions in REGIONS:
        yield row(f"{regions:,}", *(of[*column, regions] for column in columns))


def row(*cells: str) -> str:
    """A row of a table in Markdown."""
    return f"| {' | '.join(cells)} |"


def main(names: Sequence[str]) -> None:
    """Prints both tables."""
    made = {}
    for name in names or list(STREAMS):
        with tempfile.TemporaryDirectory() as folder:
            made[name] = spreads(Home(Path(folder)), STREAMS[name]())
    for table in (figure_26(made), figure_27(made)):
        print("\n".join(table), end="\n\n")


if __name__ == "__main__":
    main(sys.argv[1:])
