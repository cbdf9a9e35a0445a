"""Layers on Spark: features of a file found by tasks, spread over regions, and committed by Delta.

    blobs of a .osm.pbf -- decoded -->  places of nodes, things      columns: `layers.osm_blobs`
                        -- joined  -->  parts, each with all that its features name
                        -- read    -->  features, faults             rows of `DRAFTS`, kept on the disks of the workers
    slices of a file    -- read    -->  things by id, each with its place in the file -- checked --^
    any other file      -- read and checked by one task --------------------------------------------^
    features            -- spread  -->  rows of the layer's table, one commit by delta-spark

No feature passes through the driver; what a file has wrong does, for each of these is named in a table.
"""

import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import shapely
from pyspark import StorageLevel
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it
from pyspark.sql.pandas.types import from_arrow_schema

from st_common.batch.prepartition import SAMPLE, prepartition
from st_common.config.home import Home
from st_common.contracts import load_contract
from st_common.errors import LayerError
from st_common.layers.attribution import OF_OPENSTREETMAP
from st_common.layers.conversion import DEGREES
from st_common.layers.faults import Fault, in_order
from st_common.layers.features import Features, Found, Outside
from st_common.layers.load import Read
from st_common.layers.osm_blobs import (
    BEFORE_ALL,
    DECODED,
    NODE,
    PLACE,
    RELATION,
    WAY,
    Run,
    decoded,
    decoded_whole,
    out_of_order,
    read_part,
    runs_of,
)
from st_common.layers.reading import (
    Wanted,
    is_osm,
    read_features,
    read_slice,
    slices_of,
)
from st_common.layers.rows import features_in, layer_rows
from st_common.layers.table import CONTRACT
from st_common.layers.vector import NOTHING, Slice
from st_common.partitioning.regions import Regions
from st_common.partitioning.sample import SAMPLED_PER_REGION, PointSource
from st_common.partitioning.store import stored
from st_common.spark.causes import cause_of
from st_common.spark.delta import replace
from st_common.spark.points import FramePoints
from st_common.spark.session import PARTITIONS, configured
from st_common.tables import fit

Batches = Iterable[pa.RecordBatch]

SLICE_BYTES = 4 << 20
"""Of a GeoPackage and the like that a task reads at once."""
RUN_BYTES = 1 << 20
"""Of blobs that a task decodes at once: some 130,000 nodes."""
_PART_BYTES = 2 << 20  # of the file, for each part that is read at once
_PIECE_BYTES = (
    8 << 20
)  # for each partition: a million nodes, of which a sort takes some 100 MB
_BLOCK = 1024  # ids: things of one block lie near each other, and share nodes
_PBF = ".pbf"
_NOTE, _REACH = "note", "reach"
_MOST_REGIONS = 40  # of a group that has none, as `partition` makes
DRAFTS = pa.schema(
    [
        (
            "outcome",
            pa.string(),
        ),  # null: a feature; of a fault its own; `note` or `reach`
        ("fid", pa.string()),
        ("kind", pa.string()),
        ("tags", pa.map_(pa.string(), pa.string())),
        ("geometry", pa.binary()),
        ("place", pa.string()),
        ("reason", pa.string()),
    ]
)

_OF_OTHERS = ("outcome", "fid", "place", "reason")
_Told = tuple[str, str, str, str]
_NUMBERED = DRAFTS.append(pa.field("number", pa.int64()))  # the place in the file


@dataclass(frozen=True, slots=True)
class SparkLayers:
    """Reads layers and writes them on Spark; an `Engine` of `layers.load`.

    Attributes:
        spark: a session with Delta and Sedona, whose workers reach the file and the home folder.
        makes_regions: a group without regions gets some by Sedona's tree over the features.
    """

    spark: SparkSession
    makes_regions: bool = False

    def __call__(self, file: Path, wanted: Wanted) -> Read:
        """Reads a file; its features are the same as those of `layers.load.local`.

        Raises:
            LayerError: the file cannot be read, its name does not say what it is, or a file of OpenStreetMap is not
                sorted.
            ConfigError: a kind is unknown.
        """
        if not file.is_file():
            raise LayerError(f"there is no file {file}")
        try:
            with ExitStack() as until_read, ExitStack() as unless_read:
                drafts = _drafts_of(self.spark, file.absolute(), wanted, until_read)
                drafts = drafts.persist(StorageLevel.DISK_ONLY)
                unless_read.callback(drafts.unpersist)
                read = _read(drafts)
                unless_read.pop_all()
        except PySparkException as error:
            raise cause_of(error) from error
        count = sum(read.by_kind.values())
        regions = min(count // SAMPLED_PER_REGION, _MOST_REGIONS)
        if not self.makes_regions or regions < 2:
            return read
        return dataclasses.replace(read, divided=partial(_divided, drafts, regions))


def _divided(drafts: DataFrame, wanted: int, home: Home, group: str) -> Regions:
    """Regions of like load by the middles of the features' boxes, stored as the first version of their group."""
    features = drafts.where("outcome IS NULL").select(
        "fid", F.expr("ST_GeomFromWKB(geometry)").alias("shape")
    )
    middle = "array((ST_XMin(shape) + ST_XMax(shape)) / 2, (ST_YMin(shape) + ST_YMax(shape)) / 2)"
    frame = features.select(
        F.lit(0).alias("part"),
        F.xxhash64("fid").alias("row"),
        F.expr(middle).alias("point"),
        F.lit(None).cast("string").alias("line"),
    )
    source = PointSource(name="features", dimensions=2, read=lambda: iter(()))
    engine = FramePoints(lambda: drafts.sparkSession, frame=frame)
    done = prepartition(
        home, group, source, strategy=SAMPLE, regions=wanted, engine=engine
    )
    regions = stored(home, group, done.version)
    assert regions is not None  # noqa: S101 - it was just made
    return regions


def _read(drafts: DataFrame) -> Read:
    """What the report of a load says of drafts; they are found once, and kept."""
    features = drafts.where("outcome IS NULL")
    of_osm = F.col("fid").rlike(OF_OPENSTREETMAP)
    by_kind = (
        features.groupBy("kind")
        .agg(F.count("*").alias("count"), F.every(of_osm).alias("is_osm"))
        .orderBy("kind")
        .collect()
    )
    others = drafts.where("outcome IS NOT NULL")
    told = others.select(*_OF_OTHERS).collect()
    reach = [row["place"].split() for row in told if row["outcome"] == _REACH]
    outside = Outside(*(sum(map(int, counts)) for counts in zip(*reach, strict=True)))
    if not by_kind:
        drafts.unpersist()  # nobody will write any of it
    return Read(
        by_kind={row["kind"]: row["count"] for row in by_kind},
        faults=in_order(
            Fault(*row) for row in told if row["outcome"] not in (_NOTE, _REACH)
        ),
        notes=(
            *(row["reason"] for row in told if row["outcome"] == _NOTE),
            *outside.questions,
        ),
        is_openstreetmap=bool(by_kind) and all(row["is_osm"] for row in by_kind),
        replace=partial(_replace, drafts),
    )


# --- any other file ---------------------------------------------------------------------------------------------------


def _drafts_of(
    spark: SparkSession, file: Path, wanted: Wanted, until_read: ExitStack
) -> DataFrame:
    """Rows of `DRAFTS`: what a file holds; `until_read` is closed when they are all there, or will never be."""
    if is_osm(file):
        return _osm(spark, file, wanted, until_read)
    spark.sparkContext.setJobDescription(f"{file.name}: features")
    slices = slices_of(file, wanted, SLICE_BYTES)
    if len(slices) > 1:
        return _sliced(spark, file, wanted, slices)

    def work(batches: Batches) -> Iterator[pa.RecordBatch]:
        for _ in batches:
            yield from _drafts(read_features(file, wanted)).to_batches()

    one = spark.range(0, 1, 1, 1)
    return one.mapInArrow(work, from_arrow_schema(DRAFTS))


def _sliced(
    spark: SparkSession, file: Path, wanted: Wanted, slices: Sequence[Slice]
) -> DataFrame:
    """Slices read side by side, then all features of an id checked together: the first of them counts."""
    empty, said = read_slice(file, wanted, NOTHING)
    wanted.shaped(empty, said, file=file)  # raises where nobody knows the system

    def read(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                found, _ = read_slice(file, wanted, slices[number])
                yield from _of_slice(found).to_batches()

    def check(rows: pa.Table) -> pa.Table:
        return _drafts(wanted.shaped(_found(rows.sort_by("number")), said, file=file))

    numbers = spark.range(0, len(slices), 1, len(slices))
    rows = numbers.mapInArrow(read, from_arrow_schema(_NUMBERED))
    part = F.pmod(F.xxhash64("fid"), F.lit(len(slices))).cast("int")
    grouped = rows.withColumn("part", part).groupBy("part")
    return grouped.applyInArrow(check, from_arrow_schema(DRAFTS))


def _of_slice(found: Found) -> pa.Table:
    """Features and faults as rows of `_NUMBERED`, before anybody looked at geometries."""
    features = {
        "fid": found.fids,
        "kind": found.kinds,
        "tags": found.tags,
        "geometry": found.geometries,
    }
    numbers = [*found.numbers, *[0] * len(found.faults)]
    rows = _rows(features, map(_told, found.faults))
    return rows.append_column("number", pa.array(numbers, pa.int64()))


def _found(rows: pa.Table) -> Found:
    """What `_of_slice` has of several slices, in the order of the rows."""
    is_feature = pc.is_null(rows["outcome"])
    features, faults = rows.filter(is_feature), rows.filter(pc.invert(is_feature))
    columns = (faults[name].to_pylist() for name in _OF_OTHERS)
    return Found(
        fids=features["fid"].to_pylist(),
        kinds=features["kind"].to_pylist(),
        tags=[dict(one) for one in features["tags"].to_pylist()],
        geometries=features["geometry"].to_pylist(),
        numbers=features["number"].to_pylist(),
        faults=[Fault(*one) for one in zip(*columns, strict=True)],
        wanted=len(rows),
    )


def _drafts(found: Features) -> pa.Table:
    """Features, faults and notes as rows of `DRAFTS`; a note on what reaches out is made at the end, of counts."""
    features = {
        "fid": found.fids,
        "kind": found.kinds,
        "tags": found.tags,
        "geometry": shapely.to_wkb(found.geometries),
    }
    own = [one for one in found.notes if one not in found.reach.questions]
    reach = (_REACH, "", " ".join(map(str, found.reach)), "")
    notes = [(_NOTE, "", "", one) for one in own]
    return _rows(features, [*map(_told, found.faults), *notes, reach])


def _told(fault: Fault) -> _Told:
    return fault.outcome, fault.fid, fault.where, fault.reason


def _rows(features: dict[str, Any], others: Iterable[_Told]) -> pa.Table:
    """Features, then what is told of others, as rows of `DRAFTS`."""
    count, told = len(features["fid"]), list(others)
    pairs = [list(one.items()) for one in features["tags"]]
    columns = zip(*told, strict=True) if told else ([], [], [], [])
    return pa.concat_tables(
        [
            _table({**features, "tags": pairs}, count),
            _table(dict(zip(_OF_OTHERS, map(list, columns), strict=True)), len(told)),
        ]
    )


def _table(columns: dict[str, Any], count: int) -> pa.Table:
    """The columns as rows of `DRAFTS`, whose other columns are null."""
    arrays = [
        pa.array(columns[field.name], field.type)
        if field.name in columns
        else pa.nulls(count, field.type)
        for field in DRAFTS
    ]
    return pa.table(arrays, schema=DRAFTS)


# --- OpenStreetMap by blobs -------------------------------------------------------------------------------------------


def _osm(
    spark: SparkSession, file: Path, wanted: Wanted, until_read: ExitStack
) -> DataFrame:
    kinds = wanted.of_osm
    parts = int(max(file.stat().st_size // _PART_BYTES, 2 * _cores(spark)))

    def work(rows: pa.Table) -> pa.Table:
        return _drafts(wanted.shaped(read_part(rows, kinds), DEGREES, file=file))

    pieces = {PARTITIONS: str(_pieces(spark, file))}
    until_read.enter_context(configured(spark, pieces))
    spark.sparkContext.setJobDescription(f"{file.name}: blobs decoded")
    things = _decoded(spark, file, wanted).persist(StorageLevel.DISK_ONLY)
    until_read.callback(things.unpersist)
    _require_sorted(file, things)
    spark.sparkContext.setJobDescription(f"{file.name}: features")
    grouped = _parts(things, parts).groupBy("part")
    return grouped.applyInArrow(work, from_arrow_schema(DRAFTS))


def _pieces(spark: SparkSession, file: Path) -> int:
    """In how many partitions a file is handled: what is sorted at once must fit into the memory of a task."""
    return max(4 * _cores(spark), file.stat().st_size // _PIECE_BYTES)


def _cores(spark: SparkSession) -> int:
    return int(spark.sparkContext.defaultParallelism)


def _decoded(spark: SparkSession, file: Path, wanted: Wanted) -> DataFrame:
    """Rows of `DECODED`, and of which run of the file they are; a file that is no `.osm.pbf` is one run."""
    kinds = wanted.of_osm
    header, runs = (
        runs_of(file, RUN_BYTES)
        if file.name.lower().endswith(_PBF)
        else (None, [Run(0, 0)])
    )

    def work(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                rows = (
                    decoded(file, header, runs[number], kinds)
                    if header
                    else decoded_whole(file, kinds)
                )
                run = pa.repeat(pa.scalar(number, pa.int32()), len(rows))
                yield rows.append_column("run", run)

    schema = from_arrow_schema(DECODED.append(pa.field("run", pa.int32())))
    numbers = spark.range(0, len(runs), 1, min(len(runs), _pieces(spark, file)))
    return numbers.mapInArrow(work, schema)


def _require_sorted(file: Path, things: DataFrame) -> None:
    """Raises a LayerError where things of one run belong before those of a run before it."""
    order = F.expr(f"IF(id > 0, id, abs(id) - {BEFORE_ALL})")
    ends = (
        things.where(F.col("sort") != NODE)
        .groupBy("run", "sort")
        .agg(F.min(order).alias("first"), F.max(order).alias("last"))
        .collect()
    )
    ranks = {sort: rank for rank, sort in enumerate((PLACE, WAY, RELATION))}
    ordered = sorted(ends, key=lambda row: (row["run"], ranks[row["sort"]]))
    for before, after in itertools.pairwise(ordered):
        one, two = ranks[before["sort"]], ranks[after["sort"]]
        if two < one or (one == two and after["first"] <= before["last"]):
            raise out_of_order(file, f"blobs, at {after['first']}")


def _parts(things: DataFrame, parts: int) -> DataFrame:
    """Things and places by the parts that need them, with the column `part`; see `osm_blobs.read_part`.

    way 7: nodes 1, 2           part 3:  way 7,  place of 1, place of 2
    relation 9: ways 7, 8   ->  part 5:  relation 9,  way 7, way 8,  places of 1, 2, 3
    """
    number = F.pmod(F.xxhash64("sort", F.floor(F.col("id") / _BLOCK)), F.lit(parts))
    own = things.where("is_own").withColumn("part", number.cast("int"))
    members = F.expr(f"regexp_extract_all(opl, '[M,]{WAY}(-?[0-9]+)@', 1)")
    of_relations = own.where(F.col("sort") == RELATION)
    named = of_relations.select("part", F.explode(members).alias("id"))
    ways = things.where(F.col("sort") == WAY).withColumn("is_own", F.expr("false"))
    needed = named.withColumn("id", F.col("id").cast("long")).join(ways, "id")
    columns = [*DECODED.names, "part"]
    rows = own.select(columns).unionByName(needed.select(columns))
    nodes = F.explode(F.split(F.regexp_extract("opl", " N(.*)$", 1), ","))
    refs = (
        rows.where(F.col("sort") == WAY)
        .select("part", nodes.alias("ref"))
        .where("ref <> ''")
        .select("part", F.expr("CAST(substring(ref, 2) AS BIGINT)").alias("id"))
    )
    places = things.where(F.col("sort") == PLACE)
    return rows.unionByName(refs.join(places, "id").select(columns))


# --- rows of the table ------------------------------------------------------------------------------------------------


def _replace(
    drafts: DataFrame, path: Path, regions: Regions, attribution: str | None
) -> None:
    """Puts the features in the place of all rows of a layer's table, in one commit; see `layers.load.Read`."""
    contract = load_contract(CONTRACT)
    schema = contract.arrow_schema()

    def work(batches: Batches) -> Iterator[pa.RecordBatch]:
        for batch in filter(len, batches):
            found = features_in(pa.table(batch).sort_by("fid"))
            rows = layer_rows(found, regions, attribution=attribution)
            yield from fit(rows, contract).to_batches()

    spark = drafts.sparkSession
    spark.sparkContext.setJobDescription(f"{path.name}: rows by region, one commit")
    rows = drafts.where("outcome IS NULL").mapInArrow(work, from_arrow_schema(schema))
    by = list(contract.partition_by)
    tasks = min(len(regions.region_id), 4 * _cores(spark))
    by_region = rows.repartition(tasks, *by).sortWithinPartitions(*by, "fid")
    try:
        replace(by_region, path, contract, app=f"load {path.name}")
    finally:
        drafts.unpersist()
