"""Runs of an OSM file's blobs, each decoded for itself, and parts of the file that are complete for their features.

A `.osm.pbf` is a header and blobs of some 8,000 things each; header and blobs together are a file again. What is
decoded becomes columns, so that an engine can bring together what belongs together:

    header | blob 1 | blob 2 | .. | blob 9 | blob 10 ..
             +------ run 0 ------+  +----- run 1 ----+
                       |                    |
      places: 1 at 9.52 47.16, 2 at ..      |               of all nodes; no Python object for any
      things: way 7 of nodes 1, 2           |               a line of OPL for whatever may be a feature, and all ways
                       |                    |
      a part: things, and the ways and places that they name   -> features, as of the whole file
"""

import struct
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import osmium
import osmium.filter
import osmium.index
import osmium.io
import osmium.osm
import pyarrow as pa
import pyarrow.compute as pc

from st_common.errors import LayerError
from st_common.layers.features import Found
from st_common.layers.kinds import Kinds
from st_common.layers.osm import AREA_RELATIONS, cannot_be_read, found_in

Ints = npt.NDArray[np.int64]

PLACE, NODE, WAY, RELATION = "p", "n", "w", "r"
"""What a row is: a place of a node, or a line of OPL, which begins with the same letter."""
_NAMES = {PLACE: "nodes", WAY: "ways", RELATION: "relations"}
DECODED = pa.schema(
    [
        pa.field("sort", pa.string(), nullable=False),
        pa.field("id", pa.int64(), nullable=False),
        pa.field("lon", pa.int32()),  # in 1e-7 degrees, as OSM has them; places alone
        pa.field("lat", pa.int32()),
        pa.field("opl", pa.string()),  # all but places
        pa.field("is_own", pa.bool_(), nullable=False),  # it may be a feature
    ]
)
_PLACES = np.dtype([("id", "<i8"), ("lon", "<i4"), ("lat", "<i4")])
_NOWHERE = np.iinfo(np.int32).max  # a node without a location, and the end of the index
_MOST_HEADER, _MOST_BLOB = 1 << 16, 1 << 25  # bytes; the format allows no more
_PER_DEGREE = 10_000_000
BEFORE_ALL = 1 << 62
"""How far ids below 1 stand before the others, where ids are numbers that ascend; see `place_in_order`."""


@dataclass(frozen=True, slots=True)
class Run:
    """Some bytes of a file that follow each other.

    Attributes:
        offset: of the first byte.
        length: in bytes.
    """

    offset: int
    length: int


def runs_of(file: Path, run_bytes: int) -> tuple[Run, list[Run]]:
    """The header of a `.osm.pbf`, and its blobs as runs of about `run_bytes`; only sizes of blobs are read.

    Raises:
        LayerError: the file is cut off, or no `.osm.pbf`.
    """
    size, runs = file.stat().st_size, [Run(0, 0)]
    with file.open("rb") as source:
        header = Run(0, _blob_bytes(source, file))
        at = begun = header.length
        while at < size:
            source.seek(at)
            at += _blob_bytes(source, file)
            if at > size:
                raise cannot_be_read(file, "the file ends inside of a blob")
            if at - begun >= run_bytes:
                runs.append(Run(begun, at - begun))
                begun = at
    if at > begun:
        runs.append(Run(begun, at - begun))
    return header, runs[1:]


def _blob_bytes(source: IO[bytes], file: Path) -> int:
    """The size of the blob that begins here, with its own header, in bytes."""
    length = source.read(4)
    head_bytes = struct.unpack(">I", length)[0] if len(length) == len(b"size") else 0
    if not 0 < head_bytes <= _MOST_HEADER:
        raise cannot_be_read(file, "a blob does not begin where one should")
    sizes = [value for field, value in _fields(source.read(head_bytes)) if field == 3]
    if len(sizes) != 1 or sizes[0] > _MOST_BLOB:
        raise cannot_be_read(file, "a blob does not say how long it is")
    return 4 + head_bytes + sizes[0]


def _fields(message: bytes) -> Iterator[tuple[int, int]]:
    """The fields of a BlobHeader: their numbers and, of those that are no text, values."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        value, at = _varint(message, at)
        yield key >> 3, value
        if key & 7 == 2:  # bytes: what was read is their number
            at += value


def _varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while at < len(message):
        byte, at = message[at], at + 1
        number |= (byte & 127) << shift
        if byte < 128:
            break
        shift += 7
    return number, at


def decoded(file: Path, header: Run, run: Run, kinds: Kinds) -> pa.RecordBatch:
    """What a run of blobs holds, as rows of `DECODED`: the places of all nodes, and things as lines of OPL.

    Of nodes and relations lines come only for those that may be features by one of their keys; of ways all come, for
    each may be a member. Rows stand in the order of the file, places first.

    Args:
        file: a `.osm.pbf`.
        header: of the file, see `runs_of`.
        run: some of its blobs.
        kinds: the rules; things with none of their keys are no features.

    Raises:
        LayerError: it cannot be read, or its things are out of order.
    """
    with file.open("rb") as source:
        data = _bytes(source, header) + _bytes(source, run)
    return _decoded(file, osmium.io.FileBuffer(data, "pbf"), kinds)


def decoded_whole(file: Path, kinds: Kinds) -> pa.RecordBatch:
    """The same of a whole file of any format that osmium reads, of which no part can be read for itself."""
    return _decoded(file, osmium.io.File(str(file)), kinds)


def _bytes(source: IO[bytes], run: Run) -> bytes:
    source.seek(run.offset)
    return source.read(run.length)


def _decoded(file: Path, source: Any, kinds: Kinds) -> pa.RecordBatch:
    with tempfile.TemporaryDirectory(prefix="fairway-osm-") as folder:
        paths = [Path(folder, name) for name in ("places", "all.opl", "own.opl")]
        try:
            _split(source, kinds, *paths)
        except (RuntimeError, OSError, ValueError) as error:
            raise cannot_be_read(file, error) from None
        places, lines, own = _places(paths[0]), _lines(paths[1]), _lines(paths[2])
    ids = _ids(lines)
    for one in (WAY, RELATION):
        _require_sorted(file, ids[np.asarray(pc.starts_with(lines, one))], _NAMES[one])
    _require_sorted(file, places["id"], _NAMES[PLACE])
    is_own = ~np.asarray(pc.starts_with(lines, WAY)) | np.isin(ids, _ids(own))
    sorts = pc.utf8_slice_codeunits(lines, 0, 1)
    of_things = [sorts, pa.array(ids), *_no_place(len(lines)), lines, pa.array(is_own)]
    none = pa.nulls(len(places), pa.string())
    of_places = [
        pa.array(np.full(len(places), PLACE, object), pa.string()),
        *(pa.array(places[name]) for name in ("id", "lon", "lat")),
        none,
        pa.array(np.zeros(len(places), bool)),
    ]
    columns = [
        pa.concat_arrays([place, thing.cast(place.type)])
        for place, thing in zip(of_places, of_things, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=DECODED)


def _no_place(count: int) -> list[pa.Array]:
    return [pa.nulls(count, pa.int32())] * 2


def _split(source: Any, kinds: Kinds, places: Path, things: Path, own: Path) -> None:
    """Writes the places of nodes, the things that count, and again those of its ways that may be features."""
    ways, relations = osmium.osm.WAY, osmium.osm.RELATION
    keys = sorted(kinds.keys())
    with_a_key = osmium.filter.KeyFilter(*keys)
    with_a_key.enable_for(osmium.osm.NODE | relations)
    of_areas = osmium.filter.TagFilter(*(("type", one) for one in AREA_RELATIONS))
    of_areas.enable_for(relations)
    locations = osmium.NodeLocationsForWays(
        osmium.index.create_map(f"sparse_file_array,{places}")
    )
    locations.apply_nodes_to_ways = False
    files = [
        osmium.io.File(str(path), "opl,add_metadata=false") for path in (things, own)
    ]
    with osmium.SimpleWriter(files[0]) as out, osmium.SimpleWriter(files[1]) as of_own:
        steps: list[Any] = [locations, with_a_key, of_areas, out]
        steps += [osmium.filter.EntityFilter(ways), osmium.filter.KeyFilter(*keys)]
        osmium.apply(source, *steps, of_own)


def _require_sorted(file: Path, ids: Ints, what: str) -> None:
    """Raises a LayerError where ids do not ascend as osmium sorts them: -1, -2, .., then 1, 2, ..; each stands once."""
    again = np.flatnonzero(np.diff(place_in_order(ids)) <= 0)
    if len(again):
        raise out_of_order(file, f"{what}, at {ids[again[0] + 1]}")


def place_in_order(ids: Ints) -> Ints:
    """Numbers that ascend as ids do in a sorted file."""
    return np.where(ids > 0, ids, np.abs(ids) - BEFORE_ALL)


def out_of_order(file: Path, what: str) -> LayerError:
    """What is told of a file that is not sorted: no part of it can be read for itself."""
    return cannot_be_read(file, f"out of order: {what}")


def _places(index: Path) -> npt.NDArray[np.void]:
    """What osmium's index holds: places of nodes, in the order in which they came."""
    places: npt.NDArray[np.void] = np.fromfile(index, _PLACES)
    known: npt.NDArray[np.bool_] = places["lon"] != _NOWHERE
    return np.compress(known, places)


def _lines(opl: Path) -> pa.Array:
    text = opl.read_bytes()
    if not text:
        return pa.array([], pa.string())
    ends = np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")) + 1
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    return pa.StringArray.from_buffers(
        len(ends), pa.py_buffer(offsets), pa.py_buffer(text)
    )


def _ids(lines: pa.Array) -> Ints:
    """The id of each thing: `w7 Thighway=road Nn1,n2` is 7."""
    texts = pc.extract_regex(lines, r"^.(?P<id>-?\d+)").field("id")
    return np.asarray(texts.cast(pa.int64()))


def read_part(rows: pa.Table, kinds: Kinds) -> Found:
    """The features of a part of a file, as `read_osm` finds them in the whole.

        way 7 that may be one, the places of its nodes 1, 2         ->   way/7
        relation 9, its ways 7 and 8 with their nodes; 8 is own     ->   relation/9/area, way/8

    Args:
        rows: of `DECODED`, in any order, and some of them several times: things that are own, all ways that their
            relations name, and the places of all nodes that all those ways name. Ways that are not own are no features.
        kinds: the rules.

    Raises:
        RuntimeError, OSError, ValueError: osmium cannot read it.
    """
    is_place = np.asarray(pc.equal(rows["sort"], PLACE))
    things, places = rows.filter(~is_place), rows.filter(is_place)
    lines = _once(things)
    written = np.unique(np.asarray(places["id"]), return_index=True)[1]
    named = pc.starts_with(lines, NODE)
    own_nodes = _ids(lines.filter(named))
    places = places.take(written)
    places = places.filter(~np.isin(np.asarray(places["id"]), own_nodes))
    parts = [_place_lines(places), lines.filter(named), lines.filter(pc.invert(named))]
    text = b"".join(_text(one) for one in parts)
    return found_in(osmium.io.FileBuffer(text, "opl"), kinds)


def _once(things: pa.Table) -> pa.Array:
    """The lines of things as a file has them: sorted, each once; those that are not own have no tags."""
    sorts, ids = things["sort"].to_numpy(zero_copy_only=False), np.asarray(things["id"])
    is_own = np.asarray(things["is_own"])
    rank = (sorts == WAY) + 2 * (sorts == RELATION)
    order = np.lexsort([~is_own, np.abs(ids), ids > 0, rank])
    sorts, ids, is_own = sorts[order], ids[order], is_own[order]
    first = np.ones(len(order), bool)
    first[1:] = (sorts[1:] != sorts[:-1]) | (ids[1:] != ids[:-1])
    lines = things["opl"].combine_chunks().take(pa.array(order[first]))
    bare = pc.replace_substring_regex(lines, r" T[^ ]*", " T", max_replacements=1)
    return pc.if_else(pa.array(is_own[first]), lines, bare)


def _place_lines(places: pa.Table) -> pa.Array:
    """Lines of OPL for nodes without tags: `n1 x9.5206833 y47.1660222`."""
    ids = places["id"].combine_chunks().cast(pa.string())
    lon, lat = (_degrees(np.asarray(places[name], np.int64)) for name in ("lon", "lat"))
    return pc.binary_join_element_wise("n", ids, " x", lon, " y", lat, "\n", "")


def _degrees(units: Ints) -> pa.Array:
    whole, rest = np.divmod(np.abs(units), _PER_DEGREE)
    sign = pc.if_else(pa.array(units < 0), "-", "")
    digits = pc.utf8_lpad(pa.array(rest).cast(pa.string()), 7, "0")
    return pc.binary_join_element_wise(
        sign, pa.array(whole).cast(pa.string()), ".", digits, ""
    )


def _text(lines: pa.Array) -> bytes:
    """The bytes of all texts, one behind the other."""
    lines = lines.combine_chunks() if isinstance(lines, pa.ChunkedArray) else lines
    if not len(lines):
        return b""
    lines = pa.concat_arrays([lines])  # from its first byte on, if it was cut out
    offsets, data = lines.buffers()[1:]
    ends = np.frombuffer(offsets, np.int32)[
        lines.offset : lines.offset + len(lines) + 1
    ]
    return bytes(data[ends[0] : ends[-1]])
