"""Features from OpenStreetMap files (.osm.pbf, .osm, .osm.gz, .osm.bz2), read with osmium."""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import osmium
import osmium.filter
import osmium.geom
import osmium.osm
import shapely

from st_common.errors import LayerError
from st_common.layers.features import Found, Progress
from st_common.layers.kinds import Kinds

SUFFIXES = (".osm.pbf", ".pbf", ".osm", ".osm.gz", ".osm.bz2", ".osm.xml")
AREA_RELATIONS = frozenset({"multipolygon", "boundary"})
_REPORT_EVERY = 4096


@dataclass(slots=True)
class _Reading:
    """What is known while a file is read; `areas` are those that should come, with the reason why they did not (yet).

    Osmium hands on an area as soon as all its ways are there, often before the relation that says that it is wanted.
    """

    kinds: Kinds
    found: Found = field(default_factory=Found)
    areas: dict[str, str | None] = field(default_factory=dict)
    factory: Any = field(default_factory=osmium.geom.WKBFactory)


def read_osm(file: Path, kinds: Kinds, *, progress: Progress | None = None) -> Found:
    """The features of an OSM file that have a kind: nodes as points, ways as lines, closed ways and relations as areas.

    Areas are assembled by osmium. The fid is `node/1`, `way/1`, `way/1/area` or `relation/1/area`. A line with nodes
    that are not in the file (as at the border of an extract) keeps its known stretches and counts as repaired.
    Reasons of rejects: `missing_nodes` (no stretch of two nodes is left), `bad_location`, `not_closed` (a way that
    could only be an area), `no_area` (osmium could build no area from a closed way or a relation, for instance because
    its rings are open or members are not in the file).

    Args:
        file: .osm.pbf, .osm, .osm.gz or .osm.bz2, sorted.
        kinds: the rules; things with none of their keys are not looked at.
        progress: told now and then how many features were read.

    Raises:
        LayerError: the file cannot be read as a whole; nothing of it is used then.
    """
    if not file.is_file():
        raise LayerError(f"there is no file {file}")
    try:
        return found_in(str(file), kinds, progress=progress)
    except (RuntimeError, OSError, ValueError) as error:
        raise cannot_be_read(file, error) from None


def found_in(source: Any, kinds: Kinds, *, progress: Progress | None = None) -> Found:
    """The same of anything that osmium reads: the name of a file, or bytes in an `osmium.io.FileBuffer`.

    Raises:
        RuntimeError, OSError, ValueError: osmium cannot read it.
    """
    reading = _Reading(kinds)
    for count, thing in enumerate(_things(source, kinds), start=1):
        _take(reading, thing)
        if progress and count % _REPORT_EVERY == 0:
            progress("reading", len(reading.found.fids))
    for fid, reason in reading.areas.items():
        if reason is not None:
            reading.found.reject(reason, fid)
    reading.found.wanted += len(reading.areas)
    return reading.found


def cannot_be_read(file: Path, error: Exception | str) -> LayerError:
    """What is told of a file that is cut off, damaged, or not sorted."""
    message = " ".join(str(error).split()) or type(error).__name__
    hint = (
        "sort it first, with osmium sort"
        if "out of order" in message
        else "is the file complete?"
    )
    return LayerError(f"{file} cannot be read as OSM: {message}", hint=hint)


def _things(source: Any, kinds: Kinds) -> Iterator[Any]:
    processor = osmium.FileProcessor(source).with_locations().with_areas()
    processor.with_filter(osmium.filter.KeyFilter(*sorted(kinds.keys())))
    return iter(processor)


def _take(reading: _Reading, thing: Any) -> None:
    if thing.is_area():
        _take_area(reading, thing)
    elif thing.is_way():
        _take_way(reading, thing)
    elif thing.is_node():
        _take_node(reading, thing)
    elif thing.tags.get("type") in AREA_RELATIONS and reading.kinds.of(
        dict(thing.tags), "area"
    ):
        reading.areas.setdefault(f"relation/{thing.id}/area", "no_area")


def _take_area(reading: _Reading, area: Any) -> None:
    tags = dict(area.tags)
    kind = reading.kinds.of(tags, "area")
    if kind is None:
        return
    fid = f"{'way' if area.from_way() else 'relation'}/{area.orig_id()}/area"
    outer, _ = area.num_rings()
    if not outer:  # osmium hands on areas whose rings it could not close, without rings
        reading.areas.setdefault(fid, "no_area")
        return
    reading.found.wanted += (
        fid in reading.areas and reading.areas[fid] is None
    )  # a second one of the same name
    reading.areas[fid] = None
    reading.found.add(fid, kind, tags, reading.factory.create_multipolygon(area))


def _take_node(reading: _Reading, node: Any) -> None:
    tags = dict(node.tags)
    kind = reading.kinds.of(tags, "point")
    if kind is None:
        return
    reading.found.wanted += 1
    if node.location.valid():
        reading.found.add(
            f"node/{node.id}", kind, tags, reading.factory.create_point(node)
        )
    else:
        reading.found.reject("bad_location", f"node/{node.id}")


def _take_way(reading: _Reading, way: Any) -> None:
    tags = dict(way.tags)
    kind = reading.kinds.of(tags, "line")
    if reading.kinds.of(tags, "area"):
        if way.is_closed():
            reading.areas.setdefault(f"way/{way.id}/area", "no_area")
        elif kind is None:
            reading.found.wanted += 1
            reading.found.reject("not_closed", f"way/{way.id}/area")
    if kind is None:
        return
    reading.found.wanted += 1
    wkb = _line(way, reading)
    if wkb is None:
        reading.found.reject("missing_nodes", f"way/{way.id}")
    else:
        reading.found.add(f"way/{way.id}", kind, tags, wkb)


def _line(way: Any, reading: _Reading) -> str | bytes | None:
    """A way's line; its known stretches when nodes are missing; None when there is none."""
    if all(node.location.valid() for node in way.nodes) and len(way.nodes) > 1:
        places = [(node.lon, node.lat) for node in way.nodes]
        return bytes(shapely.to_wkb(shapely.linestrings(places)))
    runs = itertools.groupby(way.nodes, key=lambda node: node.location.valid())
    stretches = [[(node.lon, node.lat) for node in run] for known, run in runs if known]
    stretches = [stretch for stretch in stretches if len(stretch) > 1]
    if not stretches:
        return None
    reading.found.repair("missing_nodes", f"way/{way.id}")
    lines = [shapely.linestrings(stretch) for stretch in stretches]
    return bytes(
        shapely.to_wkb(lines[0] if len(lines) == 1 else shapely.multilinestrings(lines))
    )
