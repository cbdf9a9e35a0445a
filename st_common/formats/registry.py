"""The formats of records that there are, each in a module of its own; packages bring others (`elsewhere`)."""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from st_common.errors import ConfigError
from st_common.formats.ais import Ais
from st_common.formats.boxes import Boxes
from st_common.formats.csv import Csv, Tsv
from st_common.formats.elsewhere import format_elsewhere, names_elsewhere
from st_common.formats.format import Format
from st_common.formats.geojson import GeoJson
from st_common.formats.gpx import Gpx
from st_common.formats.gtfs_rt import GtfsRt
from st_common.formats.hfp import Hfp
from st_common.formats.ndjson import Ndjson
from st_common.formats.nmea import Nmea
from st_common.formats.opensky import OpenSky
from st_common.formats.owntracks import OwnTracks
from st_common.formats.parquet import Parquet
from st_common.formats.readsb import Readsb
from st_common.formats.sbs1 import Sbs1
from st_common.formats.traccar import Traccar

FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        "csv": Csv(),
        "tsv": Tsv(),
        "ndjson": Ndjson(),
        "gpx": Gpx(),
        "gtfs-rt": GtfsRt(),
        "ais": Ais(),
        "sbs1": Sbs1(),
        "geojson": GeoJson(),
        "opensky": OpenSky(),
        "parquet": Parquet(),
        "hfp": Hfp(),
        "nmea": Nmea(),
        "owntracks": OwnTracks(),
        "traccar": Traccar(),
        "readsb": Readsb(),
        "boxes": Boxes(),
    }
)
"""All formats, by the name that settings give them."""


def names_of_formats() -> str:
    """The names of all formats of ours, for people: "csv, tsv, ndjson or gpx"."""
    *others, last = FORMATS
    return f"{', '.join(others)} or {last}"


def is_known(name: str) -> bool:
    """Whether there is a format of that name, ours or one that an installed package declares; it is not loaded."""
    return name in FORMATS or name in names_elsewhere()


def format_of(name: str) -> Format:
    """The format of that name: one of ours, else one that an installed package brings.

    Raises:
        ConfigError: there is none, or it cannot be loaded.
    """
    return FORMATS[name] if name in FORMATS else _brought(name)


@cache
def _brought(name: str) -> Format:
    found = format_elsewhere(name, FORMATS)
    if found is None:
        others = "".join(f", {each}" for each in names_elsewhere())
        raise ConfigError(
            f"no format {name!r} is known",
            hint=f"format is {names_of_formats()}{others}; packages may bring others",
        )
    return found
