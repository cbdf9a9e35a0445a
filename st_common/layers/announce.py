"""Tells streams which version of a layer counts from here on: control rows in their logs."""

import time
from collections.abc import Collection
from dataclasses import dataclass

from st_common.config.home import Home
from st_common.controls.reading import chosen
from st_common.controls.rows import LayerVersion
from st_common.controls.writing import payload_of
from st_common.errors import LayerError
from st_common.layers.table import first_row, layer_names, newest_version
from st_common.log.control import control_rows
from st_common.log.log import Log
from st_common.partitioning.regions import Regions, whole
from st_common.partitioning.store import stored


@dataclass(frozen=True, slots=True)
class Announcement:
    """A control row that was written: from there on a layer counts in a version.

    Attributes:
        stream: in whose log it stands.
        layer: the layer.
        version: the Delta version of its table.
    """

    stream: str
    layer: str
    version: int


def announce(
    home: Home,
    *,
    layer: str | None = None,
    stream: str | None = None,
    arrival_us: int | None = None,
) -> list[Announcement]:
    """Writes which version of each layer counts from here on into the logs that do not say so yet (control rows).

    A load does this at its end. Called again it completes a load that died in between, and it tells a new stream about
    the layers that exist; once all is said it writes nothing.

    Args:
        home: the home folder.
        layer: this layer only.
        stream: this stream only; it need not exist yet.
        arrival_us: the arrival stamp of the rows (us UTC); the clock's when not given.

    Returns:
        What was written, stream by stream.
    """
    stamp = time.time_ns() // 1000 if arrival_us is None else arrival_us
    newest = loaded_layers(home)
    if layer:
        newest = {name: newest[name] for name in newest if name == layer}
    written: list[Announcement] = []
    for name in [stream] if stream else _stream_names(home):
        log = Log(home.log(name))
        with log.locked():
            said = _announced(log, newest)
            missing = [
                Announcement(name, key, at)
                for key, at in newest.items()
                if said.get(key, -1) < at
            ]
            if missing:
                rows = (
                    LayerVersion(layer=one.layer, version=one.version)
                    for one in missing
                )
                log.append(payload_of(rows), arrival_us=stamp, control=True)
        written += missing
    return written


def required_version(home: Home, layer: str) -> int:
    """The newest loaded version of a layer.

    Raises:
        LayerError: it was never loaded.
    """
    version = newest_version(home, layer)
    if version is None:
        hint = "fairway layer list shows which there are"
        raise LayerError(f"there is no layer {layer!r}", hint=hint)
    return version


def loaded_layers(home: Home) -> dict[str, int]:
    """The layers that are loaded in a home, in order, with their newest versions."""
    versions = ((name, newest_version(home, name)) for name in layer_names(home))
    return {name: version for name, version in versions if version is not None}


def spread_by(
    home: Home, layer: str, version: int | None = None
) -> tuple[str | None, int | None]:
    """The group by whose regions a layer that is loaded is spread, and their version.

    None and None where its table does not say, or is empty.

    Args:
        home: the home folder.
        layer: its name.
        version: of its table; None: the newest.
    """
    row = first_row(home, layer, version, ["region_group", "region_version"])
    return row.get("region_group"), row.get("region_version")


def regions_of(home: Home, layer: str, version: int | None = None) -> Regions:
    """The regions by which a version of a layer (None: the newest) is spread.

    Raises:
        LayerError: its table does not say it, or they are not known any more.
    """
    group, number = spread_by(home, layer, version)
    regions = None
    if group is not None and number is not None:
        regions = stored(home, group, number) if number else whole(group)
    if regions is None:
        message = f"layer {layer!r} does not say by which regions it is spread"
        raise LayerError(message, hint="load it again: fairway layer load")
    return regions


def layer_group(home: Home, layer: str) -> str | None:
    """The group by whose regions a layer that is loaded is spread; None where its table does not say, or is empty."""
    return spread_by(home, layer)[0]


def _stream_names(home: Home) -> list[str]:
    folder = home.root / "streams"
    return (
        sorted(path.name for path in folder.iterdir() if path.is_dir())
        if folder.is_dir()
        else []
    )


def _announced(log: Log, layers: Collection[str]) -> dict[str, int]:
    """The last version of each of some layers that a log names, looked for from its end on: it mostly stands there."""
    said: dict[str, int] = {}
    for segment in log.statements_backwards():
        newest = {
            row.layer: row.version
            for _, row in chosen(control_rows(log, segment), LayerVersion)
        }
        said = newest | said
        if said.keys() >= set(layers):
            break
    return said
